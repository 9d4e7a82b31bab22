//! The four JSON dialects of the HTTP bindings: two versions, each over JSON-RPC and REST.

use nuncio_protocol::{
    Error, ListTaskPushNotificationConfigsResponse, ListTasksResponse, Message, SendMessageResponse, StreamResponse,
    Task, Value, codec, draft, v03,
};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use super::dispatch::Answer;
use super::form;
use crate::call::Version;
use crate::engine::Form;
use crate::metrics::Binding;
use crate::profile::{coding_agent, proto_agent};

/// Who is spoken to, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) binding: Binding,
    pub(crate) version: Version,
    pub(crate) accent: Accent,
}

/// How a server that stands in for another one speaks otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Accent {
    #[default]
    Plain,
    /// Not 1.0 but a draft of it.
    Draft,
    /// 0.3 as protoAgent has it.
    ProtoAgent,
    /// 0.3 as coding-agent-a2a has it.
    CodingAgent,
}

impl Accent {
    /// What is changed about each object of 0.3, if anything is.
    fn dress(self) -> Option<fn(&mut Value)> {
        match self {
            Self::Plain | Self::Draft => None,
            Self::ProtoAgent => Some(proto_agent::dress),
            Self::CodingAgent => Some(coding_agent::dress),
        }
    }

    /// Whether this error is none: what was asked for is null.
    pub(super) fn is_null(self, error: &Error) -> bool {
        self == Self::ProtoAgent && proto_agent::is_no_webhook(error)
    }

    /// Writes an object of 0.3.
    pub(super) fn write(self, write: impl FnOnce(&mut Vec<u8>), out: &mut Vec<u8>) {
        let Some(dress) = self.dress() else { return write(out) };
        let mut plain = Vec::with_capacity(512);
        write(&mut plain);
        match codec::decode::<Value>(&plain) {
            Ok(mut tree) => {
                dress(&mut tree);
                codec::encode_into(&tree, out);
            }
            Err(_) => out.extend_from_slice(&plain),
        }
    }
}

impl Dialect {
    pub(crate) fn rpc(version: Version) -> Self {
        Self { binding: Binding::JsonRpc, version, accent: Accent::Plain }
    }

    pub(crate) fn rest(version: Version) -> Self {
        Self { binding: Binding::Rest, version, accent: Accent::Plain }
    }

    /// The same with an accent.
    pub(crate) fn with(self, accent: Accent) -> Self {
        Self { accent, ..self }
    }

    fn draft_answer(answer: Answer, out: &mut Vec<u8>) -> Result<(), Error> {
        match answer {
            Answer::Task(task) => draft::write_task(&task.task()?, out),
            Answer::Sent(task, handle) => draft::write_sent(&SendMessageResponse::Task(handle.tree(&task)?), out),
            Answer::Message(message) => draft::write_sent(&SendMessageResponse::Message(message), out),
            Answer::List(page, _) => draft::write_list(&page, None, out),
            Answer::Push(config) => draft::write_push_config(&config, out),
            Answer::PushList(configs) => draft::write_push_configs(&configs, out),
            Answer::PushDeleted => out.extend_from_slice(b"null"),
            Answer::Card(card) => codec::encode_into(&*card, out),
        }
        Ok(())
    }

    /// An answer that is not a stream.
    pub(crate) fn answer(self, answer: Answer) -> Result<Vec<u8>, Error> {
        let mut out = Vec::with_capacity(answer.size());
        self.answer_into(answer, &mut out)?;
        Ok(out)
    }

    /// The same behind what is already there.
    pub(crate) fn answer_into(self, answer: Answer, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.accent == Accent::Draft {
            return Self::draft_answer(answer, out);
        }
        match (answer, self.version) {
            (Answer::Task(task), Version::V1) => out.extend_from_slice(&task.0),
            (Answer::Task(task), Version::V03) => self.write_task(&task.task()?, out),
            (Answer::Sent(task, _), Version::V1) => {
                out.extend_from_slice(b"{\"task\":");
                out.extend_from_slice(&task.0);
                out.push(b'}');
            }
            (Answer::Sent(task, handle), Version::V03) => {
                self.write_sent(&SendMessageResponse::Task(handle.tree(&task)?), out);
            }
            (Answer::Message(message), Version::V1) => {
                codec::encode_into(&StreamResponse::Message(message), out);
            }
            (Answer::Message(message), Version::V03) => {
                self.write_sent(&SendMessageResponse::Message(message), out);
            }
            (Answer::List(page, artifacts), Version::V1) => codec::encode_into(&Listed(&page, artifacts), out),
            (Answer::List(page, _), Version::V03) => self.write_list(&page, out),
            (Answer::Push(config), Version::V1) => codec::encode_into(&config, out),
            (Answer::Push(config), Version::V03) => match self.binding {
                Binding::JsonRpc => v03::json::write_push_config(&config, out),
                _ => v03::rest::write_push_config(&config, out),
            },
            (Answer::PushList(configs), Version::V1) => {
                let next_page_token = String::new();
                codec::encode_into(&ListTaskPushNotificationConfigsResponse { configs, next_page_token }, out);
            }
            (Answer::PushList(configs), Version::V03) => match self.binding {
                Binding::JsonRpc => v03::json::write_push_configs(&configs, out),
                _ => v03::rest::write_push_configs(&configs, out),
            },
            (Answer::Card(card), Version::V1) => codec::encode_into(&*card, out),
            (Answer::Card(card), Version::V03) => {
                v03::json::write_card(&card, out);
            }
            (Answer::PushDeleted, _) => out.extend_from_slice(match self.binding {
                Binding::JsonRpc => b"null",
                _ => b"{}",
            }),
        }
        Ok(())
    }

    /// The form of events on a stream, unless it is the stored one.
    pub(crate) fn form(self) -> Option<Form> {
        match (self.version, self.binding) {
            _ if self.accent == Accent::Draft => Some(form::DRAFT),
            (Version::V1, _) => None,
            (Version::V03, Binding::JsonRpc) => Some(match self.accent {
                Accent::ProtoAgent => form::PROTO_AGENT,
                Accent::CodingAgent => form::CODING_AGENT,
                Accent::Plain | Accent::Draft => form::V03,
            }),
            (Version::V03, _) => Some(form::V03_REST),
        }
    }

    /// A direct answer as the one event of a stream.
    pub(crate) fn message_event(self, message: Message) -> Vec<u8> {
        let event = StreamResponse::Message(message);
        let mut out = Vec::new();
        match (self.version, self.binding) {
            _ if self.accent == Accent::Draft => draft::write_event(&event, &mut out),
            (Version::V1, _) => codec::encode_into(&event, &mut out),
            (Version::V03, Binding::JsonRpc) => {
                self.accent.write(|out| v03::json::write_event(&event, out), &mut out);
            }
            (Version::V03, _) => v03::rest::write_event(&event, &mut out),
        }
        out
    }

    fn write_task(self, task: &Task, out: &mut Vec<u8>) {
        match self.binding {
            Binding::JsonRpc => self.accent.write(|out| v03::json::write_task(task, out), out),
            _ => v03::rest::write_task(task, out),
        }
    }

    fn write_sent(self, sent: &SendMessageResponse, out: &mut Vec<u8>) {
        match self.binding {
            Binding::JsonRpc => self.accent.write(|out| v03::json::write_send_response(sent, out), out),
            _ => v03::rest::write_send_response(sent, out),
        }
    }

    /// 0.3 names a listing over REST without a shape for it: the page of 1.0 around tasks of 0.3.
    fn write_list(self, page: &ListTasksResponse, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"tasks\":[");
        for (i, task) in page.tasks.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            self.write_task(task, out);
        }
        out.extend_from_slice(b"],\"nextPageToken\":");
        codec::encode_into(&page.next_page_token, out);
        out.extend_from_slice(
            format!(",\"pageSize\":{},\"totalSize\":{}}}", page.page_size, page.total_size).as_bytes(),
        );
    }

    /// The `error` of a JSON-RPC response, or a REST body.
    pub(crate) fn error(self, error: &Error) -> Vec<u8> {
        self.error_as(error, error.kind.http_status())
    }

    /// The same under another HTTP status than the usual one, which REST bodies repeat.
    pub(crate) fn error_as(self, error: &Error, status: u16) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        let own = match self.accent {
            Accent::Plain | Accent::Draft => None,
            Accent::ProtoAgent => proto_agent::error(error),
            Accent::CodingAgent => coding_agent::error(error),
        };
        if let Some(own) = own {
            codec::encode_into(&own, &mut out);
            return out;
        }
        match (self.binding, self.version) {
            (Binding::JsonRpc, Version::V1) if self.accent == Accent::Draft => {
                codec::encode_into(&v03::json_error(error), &mut out);
            }
            (Binding::JsonRpc, Version::V1) => codec::encode_into(&error.jsonrpc(), &mut out),
            (Binding::JsonRpc, Version::V03) => codec::encode_into(&v03::json_error(error), &mut out),
            (_, Version::V1) => codec::encode_into(&error.rest_as(status), &mut out),
            (_, Version::V03) => codec::encode_into(&v03::rest_error_as(error, status), &mut out),
        }
        out
    }
}

/// A page in which artifacts are there when asked for, even if there are none, and absent otherwise.
struct Listed<'a>(&'a ListTasksResponse, bool);

impl Serialize for Listed<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        struct Tasks<'a>(&'a [Task], bool);
        impl Serialize for Tasks<'_> {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let mut all = to.serialize_seq(Some(self.0.len()))?;
                for task in self.0 {
                    all.serialize_element(&ListedTask(task, self.1))?;
                }
                all.end()
            }
        }
        let mut map = to.serialize_map(Some(4))?;
        map.serialize_entry("tasks", &Tasks(&self.0.tasks, self.1))?;
        map.serialize_entry("nextPageToken", &self.0.next_page_token)?;
        map.serialize_entry("pageSize", &self.0.page_size)?;
        map.serialize_entry("totalSize", &self.0.total_size)?;
        map.end()
    }
}

struct ListedTask<'a>(&'a Task, bool);

impl Serialize for ListedTask<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(task, artifacts) = self;
        if !artifacts || !task.artifacts.is_empty() {
            return task.serialize(to);
        }
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("id", &task.id)?;
        map.serialize_entry("contextId", &task.context_id)?;
        map.serialize_entry("status", &task.status)?;
        map.serialize_entry("artifacts", &task.artifacts)?;
        if !task.history.is_empty() {
            map.serialize_entry("history", &task.history)?;
        }
        if !task.metadata.is_empty() {
            map.serialize_entry("metadata", &task.metadata)?;
        }
        map.end()
    }
}
