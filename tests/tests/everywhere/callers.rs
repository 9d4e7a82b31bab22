//! Who may see what, and who may come in.

use nuncio_client::Client;
use nuncio_protocol::{CancelTaskRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest, TaskId};
use nuncio_tests::{Value, json};

use crate::kit::{refused, said, text};
use crate::scenarios;
use crate::ways::{BEN, Way};

scenarios! {
    "a stranger's task looks like a missing one": Callers, foreign;
    "nobody in particular": Callers, nobody;
    "a wrong token": Callers, wrong_token;
    "tenants are apart": Callers, tenants;
    "an extension named": Nothing, extension;
}

/// All that can be asked about a task, refused.
async fn about(client: &Client, id: &TaskId) -> Value {
    let listing = ListTaskPushNotificationConfigsRequest { task_id: id.clone(), ..Default::default() };
    json!([
        refused(client.get(GetTaskRequest { id: id.clone(), ..GetTaskRequest::default() }).await),
        refused(client.cancel(CancelTaskRequest { id: id.clone(), ..CancelTaskRequest::default() }).await),
        refused(client.list_push(listing).await),
        refused(client.send(on(id)).await),
    ])
}

fn on(id: &TaskId) -> nuncio_protocol::SendMessageRequest {
    let mut request = text("and then?");
    if let Some(message) = &mut request.message {
        message.task_id = id.clone();
    }
    request
}

async fn foreign(way: Way) -> Value {
    let task = way.held().await;
    let ben = way.with(Some(BEN), |_| {});
    let (foreign, missing) = (about(&ben, &task.id).await, about(&ben, &"no-such-task".into()).await);
    let blank = |value: &Value, id: &str| value.to_string().replace(id, "ID");
    assert_eq!(blank(&foreign, task.id.as_str()), blank(&missing, "no-such-task"));
    way.cancel(&task.id).await.expect("it is still there, and Anna's");
    missing
}

async fn nobody(way: Way) -> Value {
    let error = refused(way.with(None, |_| {}).send(text("hello")).await);
    assert_eq!(error, json!({ "unauthorized": 401 }));
    error
}

async fn wrong_token(way: Way) -> Value {
    let error = refused(way.with(Some("token-of-nobody"), |_| {}).send(text("hello")).await);
    assert_eq!(error, json!({ "unauthorized": 401 }));
    error
}

async fn tenants(way: Way) -> Value {
    if !way.is_v1() {
        return json!("0.3 has none");
    }
    let other = way.with(Some(crate::ways::ANNA), |options| options.tenant = Some("acme".into()));
    let mut request = text("hello");
    request.tenant = "acme".into();
    let task = way.send(request).await;
    let missing = refused(way.client.get(GetTaskRequest { id: task.id.clone(), ..Default::default() }).await);
    let found = other.get(GetTaskRequest { id: task.id, ..Default::default() }).await.expect("the task");
    assert_eq!(said(&found), "hello");
    json!(missing["code"])
}

async fn extension(way: Way) -> Value {
    let uri = "https://kagent.dev/extensions/hitl/v1".to_owned();
    let client = way.client.activating(std::slice::from_ref(&uri)).expect("a client");
    let answer = client.send(text("approve rm -rf build")).await.expect("an answer");
    let nuncio_protocol::SendMessageResponse::Task(task) = answer else { panic!("a message") };
    let message = task.status.message.expect("a question");
    let form = message.metadata.get(&uri).expect("the form of the extension");
    assert!(message.extensions.contains(&uri));
    form["type"].clone()
}
