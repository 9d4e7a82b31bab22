//! A2A over JSON-RPC: every call is a POST to one address.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nuncio_protocol::codec::{DecodeError, Raw};
use nuncio_protocol::{Value, codec};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use serde::Deserialize;

use super::dialect::{Call, Dialect};
use super::{Framing, agent, unreadable};
use crate::error::{AgentError, ClientError};
use crate::http::{Ask, Http, protocol};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Numbers the calls of one interface.
#[derive(Clone, Debug, Default)]
pub(super) struct JsonRpc {
    ids: Arc<AtomicU64>,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    id: Value,
    result: Option<Raw>,
    #[serde(default)]
    error: Value,
}

impl JsonRpc {
    pub(super) fn ask(
        &self,
        url: &Url,
        mut headers: HeaderMap,
        dialect: Dialect,
        call: &Call<'_>,
        streams: bool,
    ) -> Result<(Ask, Framing), ClientError> {
        let Some(method) = method(call, dialect) else {
            return Err(ClientError::Unsupported {
                what: "A2A 0.3 has no list of tasks over JSON-RPC. Use an interface of 1.0.".into(),
            });
        };
        let id = self.ids.fetch_add(1, Ordering::Relaxed) + 1;
        let accept = HeaderValue::from_static("text/event-stream, application/json");
        headers.insert(ACCEPT, if streams { accept } else { JSON });
        headers.insert(CONTENT_TYPE, JSON);
        let mut body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":"#).into_bytes();
        dialect.write(call, &mut body);
        body.push(b'}');
        let ask = Ask { method: Method::POST, url: url.clone(), headers, body: body.into() };
        Ok((ask, Framing::JsonRpc { id }))
    }
}

fn method(call: &Call<'_>, dialect: Dialect) -> Option<&'static str> {
    let (new, old) = match call {
        Call::Send(_) => ("SendMessage", "message/send"),
        Call::Stream(_) => ("SendStreamingMessage", "message/stream"),
        Call::Get(_) => ("GetTask", "tasks/get"),
        Call::List(_) => ("ListTasks", ""),
        Call::Cancel(_) => ("CancelTask", "tasks/cancel"),
        Call::Subscribe(_) => ("SubscribeToTask", "tasks/resubscribe"),
        Call::PushCreate(_) => ("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set"),
        Call::PushGet(_) => ("GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get"),
        Call::PushList(_) => ("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list"),
        Call::PushDelete(_) => ("DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete"),
        Call::Card(_) => ("GetAgentCard", "GetAgentCard"),
        Call::ExtendedCard(_) => ("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"),
    };
    let name = if dialect == Dialect::New { new } else { old };
    Some(name).filter(|name| !name.is_empty())
}

/// Reads one JSON-RPC response: the result, if it answers this very request.
pub(super) fn open<T>(
    http: &Http,
    url: &Url,
    id: u64,
    body: &[u8],
    read: impl Fn(&[u8]) -> Result<T, DecodeError>,
) -> Result<T, ClientError> {
    let answer: Answer = codec::decode(body).map_err(|error| unreadable(http, url, &error))?;
    if !answer.error.is_null() {
        // Whoever could not read the request could not know its id.
        if answer.id != id && !answer.id.is_null() {
            return Err(wrong_id(url));
        }
        let error = AgentError::from_jsonrpc(&answer.error);
        return Err(error.map_or_else(
            || protocol(url, "the `error` of its answer has neither code nor message"),
            |error| agent(http, url, error),
        ));
    }
    if answer.id != id {
        return Err(wrong_id(url));
    }
    // What is deleted leaves nothing behind, and some agents then leave `result` out; all others fail to be read.
    let result = answer.result.as_ref().map_or("null", Raw::get);
    read(result.as_bytes()).map_err(|error| match error {
        _ if answer.result.is_none() => protocol(url, "its answer has neither `result` nor `error`"),
        DecodeError::Shape { path, what } => {
            let dot = if path.is_empty() { "" } else { "." };
            unreadable(http, url, &DecodeError::Shape { path: format!("result{dot}{path}"), what })
        }
        error @ DecodeError::Syntax(_) => unreadable(http, url, &error),
    })
}

/// Whether a response holds nothing: where streams are not connections, that is how they end.
pub(super) fn is_end(body: &[u8]) -> bool {
    codec::decode::<Answer>(body).is_ok_and(|answer| answer.result.is_none() && answer.error.is_null())
}

fn wrong_id(url: &Url) -> ClientError {
    protocol(url, "its answer carries the id of another request")
}

/// The agent's error in the body of an answer with a bad status.
pub(super) fn error(body: &[u8]) -> Option<AgentError> {
    let body: Value = codec::decode(body).ok()?;
    body.get("jsonrpc")?;
    AgentError::from_jsonrpc(body.get("error")?)
}
