//! The rules of LiquidCrypto: a draft of 1.0 at paths of its own, beside what everybody speaks.

use http::request::Parts;
use nuncio_protocol::draft::{self, ExtensionRequired, Listing};
use nuncio_protocol::jsonrpc;
use nuncio_protocol::{
    AgentCard, CancelTaskRequest, Error, ErrorKind, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTasksRequest, ListTasksResponse, SendMessageRequest, SubscribeToTaskRequest, TaskPushNotificationConfigRequest,
    TaskState, Timestamp, Value, codec, json,
};

use crate::bind::dispatch::{Answer, Outcome, Request};
use crate::bind::{App, params};
use crate::call::Call;
use crate::metrics::Operation;

/// How many tasks are looked at to find those of several states.
const MOST_LOOKED_AT: usize = 10_000;

/// Where the draft is spoken.
pub(super) fn is_path(path: &str) -> bool {
    matches!(path, "/a2a" | "/a2a/") || is_stream_path(path)
}

/// Where everything is a stream.
fn is_stream_path(path: &str) -> bool {
    matches!(path, "/a2a/stream" | "/a2a/stream/")
}

/// Kinds of content by the names of the draft.
pub(super) fn shape(card: &mut AgentCard) {
    for modes in [&mut card.default_input_modes, &mut card.default_output_modes] {
        for name in ["file", "text"] {
            if !modes.iter().any(|mode| mode == name) {
                modes.insert(0, name.into());
            }
        }
    }
}

/// The address of the draft stands first, for those who take the first; it names no version, so that others pass it.
pub(super) fn finish_card(card: &mut Value, base_url: &str) {
    card["protocolVersions"] = json!(["1.0"]);
    if let Some(extensions) = card["capabilities"]["extensions"].as_array_mut() {
        for extension in extensions.iter_mut().filter_map(Value::as_object_mut) {
            extension.entry("required").or_insert(Value::Bool(false));
        }
    }
    let own = json!({ "url": format!("{base_url}/a2a"), "protocolBinding": "JSONRPC" });
    match card.get_mut("supportedInterfaces").and_then(Value::as_array_mut) {
        Some(all) => all.insert(0, own),
        None => card["supportedInterfaces"] = json!([own]),
    }
}

/// Whether this is a method of the draft.
pub(crate) fn is_method(method: &str) -> bool {
    !method.contains('/')
}

/// Reads a request of the draft. Listings come with what 1.0 cannot say.
pub(crate) fn read(app: &App, path: &str, request: &jsonrpc::Request<'_>) -> Result<(Request, Option<Listing>), Error> {
    let json = request.params;
    let unknown = || Error::new(ErrorKind::MethodNotFound, "There is no such method at this path");
    let streams = is_stream_path(path);
    let push = match &*request.method {
        "SetTaskPushNotificationConfig" | "CreateTaskPushNotificationConfig" => Some(Operation::PushCreate),
        "GetTaskPushNotificationConfig" => Some(Operation::PushGet),
        "ListTaskPushNotificationConfigs" | "ListTaskPushNotificationConfig" => Some(Operation::PushList),
        "DeleteTaskPushNotificationConfig" => Some(Operation::PushDelete),
        _ => None,
    };
    if let Some(operation) = push
        && !streams
        && !app.has_push()
    {
        return Ok((Request::NoPush(operation), None));
    }
    let read = match &*request.method {
        "SendMessage" if streams => Request::Stream(Box::new(draft::read_send(json)?)),
        "StreamMessage" | "SendStreamingMessage" => Request::Stream(Box::new(draft::read_send(json)?)),
        "Resubscribe" | "SubscribeToTask" => {
            let id = draft::read_names(json)?.task;
            Request::Subscribe(SubscribeToTaskRequest { id, ..SubscribeToTaskRequest::default() })
        }
        _ if streams => return Err(unknown()),
        "SendMessage" => Request::Send(Box::new(draft::read_send(json)?)),
        "GetTask" => {
            let wanted: GetTaskRequest =
                GetTaskRequest { id: draft::read_names(json)?.task, ..request.params().unwrap_or_default() };
            Request::Get(wanted)
        }
        "CancelTask" => {
            Request::Cancel(CancelTaskRequest { id: draft::read_names(json)?.task, ..CancelTaskRequest::default() })
        }
        "ListTasks" => {
            let listing = draft::read_list(json)?;
            return Ok((Request::List(page(&listing)), Some(listing)));
        }
        "SetTaskPushNotificationConfig" | "CreateTaskPushNotificationConfig" => {
            Request::PushCreate(Box::new(draft::read_push_config(json)?))
        }
        "ListTaskPushNotificationConfigs" | "ListTaskPushNotificationConfig" => {
            let task_id = draft::read_names(json)?.task;
            Request::PushList(ListTaskPushNotificationConfigsRequest {
                task_id,
                ..ListTaskPushNotificationConfigsRequest::default()
            })
        }
        "GetTaskPushNotificationConfig" | "DeleteTaskPushNotificationConfig" => {
            let names = draft::read_names(json)?;
            let wanted = TaskPushNotificationConfigRequest {
                task_id: names.task,
                id: names.config,
                ..TaskPushNotificationConfigRequest::default()
            };
            if request.method.starts_with("Get") { Request::PushGet(wanted) } else { Request::PushDelete(wanted) }
        }
        _ => return Err(unknown()),
    };
    Ok((read, None))
}

fn page(listing: &Listing) -> ListTasksRequest {
    let status = match listing.states[..] {
        [state] => state,
        _ => TaskState::Unspecified,
    };
    ListTasksRequest {
        context_id: listing.context_id.clone(),
        status,
        page_size: Some(listing.limit),
        page_token: listing.after.as_ref().map(|(micros, id)| format!("{micros}.{id}")).unwrap_or_default(),
        include_artifacts: Some(true),
        ..ListTasksRequest::default()
    }
}

/// Tasks that a message refers to belong to its conversation. One that nobody knows does no harm.
pub(crate) async fn check_references(app: &App, call: &Call, request: &Request) -> Result<(), Error> {
    let (Request::Send(request) | Request::Stream(request)) = request else { return Ok(()) };
    let Some(message) = &request.message else { return Ok(()) };
    // More than that are refused.
    for id in message.reference_task_ids.iter().take(SendMessageRequest::MOST_REFERENCES) {
        match app.engine.get(call, id).await {
            Ok(task) if task.task()?.context_id != message.context_id => {
                let text = "Referenced task does not belong to this context";
                return Err(Error::new(ErrorKind::InvalidParams, text).fact("taskId", id.as_str()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The page that was asked for, as the draft writes it. What the engine cannot select is selected here.
pub(crate) async fn listed(app: &App, call: &Call, listing: &Listing, first: Outcome) -> Result<Vec<u8>, Error> {
    let Outcome::Answer(Answer::List(mut found, _)) = first else { return Err(Error::internal()) };
    let most = usize::try_from(listing.limit).unwrap_or_default();
    let mut next = std::mem::take(&mut found.next_page_token);
    let mut looked_at = found.tasks.len();
    if listing.states.len() > 1 {
        let is_wanted = |page: &mut ListTasksResponse| {
            page.tasks.retain(|task| listing.states.contains(&task.status.state));
        };
        is_wanted(&mut found);
        while found.tasks.len() < most && !next.is_empty() && looked_at < MOST_LOOKED_AT {
            let request =
                ListTasksRequest { page_token: next, page_size: Some(ListTasksRequest::LARGEST_PAGE), ..page(listing) };
            let mut more = app.engine.list(call, &request).await?;
            looked_at += more.tasks.len();
            next = std::mem::take(&mut more.next_page_token);
            is_wanted(&mut more);
            found.tasks.extend(more.tasks);
        }
        if found.tasks.len() > most {
            found.tasks.truncate(most);
            let last = found.tasks.last();
            let time = last.and_then(|task| task.status.timestamp).map_or(0, Timestamp::as_micros);
            next = last.map(|task| format!("{time}.{}", task.id)).unwrap_or_default();
        }
    }
    let cursor = next.split_once('.').and_then(|(micros, id)| Some(draft::cursor(micros.parse().ok()?, &id.into())));
    let mut out = Vec::new();
    draft::write_list(&found, cursor.as_deref(), &mut out);
    Ok(out)
}

/// An error as the draft has it: only a missing extension comes with data of its own.
pub(crate) fn error(app: &App, parts: &Parts, error: &Error) -> Value {
    if error.kind != ErrorKind::ExtensionSupportRequired {
        return codec::to_value(&nuncio_protocol::v03::json_error(error));
    }
    let card = app.card(params::path_tenant(parts));
    let provided = params::extensions(&parts.headers);
    codec::to_value(&ExtensionRequired { required: card.required_extensions(), provided })
}
