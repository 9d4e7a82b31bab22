//! A2A over plain HTTP: every operation has a path of its own.

use std::sync::atomic::{AtomicU8, Ordering};

use nuncio_protocol::{Value, codec, json};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use serde::Serialize;

use super::Version;
use super::dialect::{Call, Dialect};
use crate::error::AgentError;
use crate::http::Ask;

/// Everything that might mean something inside a path, the colon before `cancel` included.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Which method follows a task.
#[derive(Debug)]
pub(super) struct Rest {
    verb: AtomicU8,
}

const POST: u8 = 0;
const GET: u8 = 1;
/// Both were tried.
const SETTLED: u8 = 2;

impl Rest {
    pub(super) fn new(version: Version) -> Self {
        // The prose of 1.0 and its clients say POST; agents of 0.3 in Python answer only GET.
        let verb = if version == Version::V0_3 { GET } else { POST };
        Self { verb: AtomicU8::new(verb) }
    }

    /// Changes the method that follows a task, once; whether it is another one now.
    pub(super) fn other_verb(&self) -> bool {
        let other = |verb: u8| (verb < SETTLED).then_some(SETTLED + (1 - verb));
        self.verb.fetch_update(Ordering::Relaxed, Ordering::Relaxed, other).is_ok()
    }

    pub(super) fn ask(
        &self,
        url: &Url,
        mut headers: HeaderMap,
        dialect: Dialect,
        call: &Call<'_>,
        streams: bool,
    ) -> Ask {
        let (method, path, query) = self.route(call, dialect);
        let accept = match (streams, dialect) {
            (true, Dialect::New) => "text/event-stream, application/a2a+json, application/json",
            (true, _) => "text/event-stream, application/json",
            (false, Dialect::New) => "application/a2a+json, application/json",
            (false, _) => "application/json",
        };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        let mut body = Vec::new();
        if method == Method::POST {
            // Every agent takes this type; the one of 1.0.1 is refused by those of 1.0.0.
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            match *call {
                Call::Cancel(request) if dialect == Dialect::New && !request.metadata.is_empty() => {
                    codec::encode_into(&json!({ "metadata": request.metadata }), &mut body);
                }
                Call::Cancel(_) | Call::Subscribe(_) => body.extend_from_slice(b"{}"),
                _ => dialect.write(call, &mut body),
            }
        }
        Ask { method, url: address(url, call, dialect, &path, &query), headers, body: body.into() }
    }

    fn route(&self, call: &Call<'_>, dialect: Dialect) -> (Method, String, Vec<(String, String)>) {
        let task = |id: &nuncio_protocol::TaskId| format!("tasks/{}", segment(id.as_str()));
        let hooks = |id: &nuncio_protocol::TaskId| format!("{}/pushNotificationConfigs", task(id));
        let (method, path, query) = match *call {
            Call::Send(_) => (Method::POST, "message:send".into(), Vec::new()),
            Call::Stream(_) => (Method::POST, "message:stream".into(), Vec::new()),
            Call::Get(request) => (Method::GET, task(&request.id), query(request, &["tenant", "id"])),
            Call::List(request) => (Method::GET, "tasks".into(), query(request, &["tenant"])),
            Call::Cancel(request) => (Method::POST, format!("{}:cancel", task(&request.id)), Vec::new()),
            Call::Subscribe(request) => {
                let get = self.verb.load(Ordering::Relaxed) % SETTLED == GET;
                let method = if get { Method::GET } else { Method::POST };
                (method, format!("{}:subscribe", task(&request.id)), Vec::new())
            }
            Call::PushCreate(config) => (Method::POST, hooks(&config.task_id), Vec::new()),
            Call::PushList(request) => (Method::GET, hooks(&request.task_id), query(request, &["tenant", "taskId"])),
            Call::PushGet(request) | Call::PushDelete(request) => {
                let path = format!("{}/{}", hooks(&request.task_id), segment(request.id.as_str()));
                (if matches!(call, Call::PushGet(_)) { Method::GET } else { Method::DELETE }, path, Vec::new())
            }
            Call::Card(_) => (Method::GET, ".well-known/agent-card.json".into(), Vec::new()),
            Call::ExtendedCard(_) if dialect == Dialect::New => (Method::GET, "extendedAgentCard".into(), Vec::new()),
            Call::ExtendedCard(_) => (Method::GET, "card".into(), Vec::new()),
        };
        (method, path, query)
    }
}

/// Where a call goes: below the interface, and below the tenant or the prefix of 0.3.
fn address(url: &Url, call: &Call<'_>, dialect: Dialect, path: &str, query: &[(String, String)]) -> Url {
    let base = url.path().trim_end_matches('/');
    let first = match (dialect, tenant(call)) {
        (Dialect::New, "") => String::new(),
        (Dialect::New, tenant) => format!("{}/", segment(tenant)),
        _ => "v1/".into(),
    };
    let mut url = url.clone();
    url.set_path(&format!("{base}/{first}{path}"));
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    url
}

fn tenant<'a>(call: &Call<'a>) -> &'a str {
    match *call {
        Call::Send(request) | Call::Stream(request) => &request.tenant,
        Call::Get(request) => &request.tenant,
        Call::List(request) => &request.tenant,
        Call::Cancel(request) => &request.tenant,
        Call::Subscribe(request) => &request.tenant,
        Call::PushCreate(config) => &config.tenant,
        Call::PushGet(request) | Call::PushDelete(request) => &request.tenant,
        Call::PushList(request) => &request.tenant,
        Call::ExtendedCard(request) | Call::Card(request) => &request.tenant,
    }
}

fn segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

/// The members of a request as parameters, without those that the path says.
fn query<T: Serialize>(request: &T, without: &[&str]) -> Vec<(String, String)> {
    let Value::Object(members) = codec::to_value(request) else { return Vec::new() };
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let said = members.into_iter().filter(|(name, _)| !without.contains(&name.as_str()));
    said.map(|(name, value)| (name, text(value))).collect()
}

/// The agent's error in the body of an answer with a bad status, or in an event.
pub(super) fn error(status: u16, body: &[u8], dialect: Dialect) -> Option<AgentError> {
    let body: Value = codec::decode(body).ok()?;
    AgentError::from_rest(status, &body, dialect != Dialect::New)
}
