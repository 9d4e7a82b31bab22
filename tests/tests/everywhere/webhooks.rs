//! Webhooks of tasks.

use nuncio_protocol::{AuthenticationInfo, ListTaskPushNotificationConfigsRequest, Task, TaskPushNotificationConfig};
use nuncio_tests::{Value, json};
use serde_json::to_value;

use crate::kit::{at_once, refused, text};
use crate::scenarios;
use crate::ways::Way;

scenarios! {
    "a webhook made, read, listed and removed": Nothing, life;
    "two webhooks of one task": Nothing, two;
    "a webhook that is not there": Nothing, missing;
    "a webhook of a task that is not there": Nothing, no_task;
    "a webhook into the inside network": Nothing, inside;
    "a webhook with the message": Nothing, with_message;
}

fn webhook(task: &Task, id: &str) -> TaskPushNotificationConfig {
    TaskPushNotificationConfig {
        id: id.into(),
        task_id: task.id.clone(),
        url: "http://127.0.0.1:39999/hook".into(),
        token: "secret-token".into(),
        authentication: Some(AuthenticationInfo { scheme: "Bearer".into(), credentials: "secret-bearer".into() }),
        ..TaskPushNotificationConfig::default()
    }
}

fn all_of(task: &Task) -> ListTaskPushNotificationConfigsRequest {
    ListTaskPushNotificationConfigsRequest { task_id: task.id.clone(), ..Default::default() }
}

async fn life(way: Way) -> Value {
    let task = way.held().await;
    let made = way.client.create_push(webhook(&task, "first")).await.expect("made");
    assert_eq!(made.id.as_str(), "first");
    let read = way.client.get_push(task.id.clone(), "first".into()).await.expect("read");
    let listed = way.client.list_push(all_of(&task)).await.expect("listed");
    assert_eq!(listed.configs.len(), 1);
    way.client.delete_push(task.id.clone(), "first".into()).await.expect("removed");
    assert!(way.client.list_push(all_of(&task)).await.expect("listed").configs.is_empty());
    way.cancel(&task.id).await.expect("canceled");
    json!([to_value(made).unwrap(), to_value(read).unwrap(), to_value(listed.configs).unwrap()])
}

async fn two(way: Way) -> Value {
    let task = way.held().await;
    for id in ["a", "b"] {
        way.client.create_push(webhook(&task, id)).await.expect("made");
    }
    let listed = way.client.list_push(all_of(&task)).await.expect("listed");
    way.cancel(&task.id).await.expect("canceled");
    let mut ids: Vec<_> = listed.configs.iter().map(|config| config.id.as_str().to_owned()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["a", "b"]);
    json!(ids)
}

async fn missing(way: Way) -> Value {
    let task = way.held().await;
    let read = refused(way.client.get_push(task.id.clone(), "none".into()).await);
    way.cancel(&task.id).await.expect("canceled");
    read
}

async fn no_task(way: Way) -> Value {
    let task = Task { id: "no-such-task".into(), ..Task::default() };
    json!([
        refused(way.client.create_push(webhook(&task, "first")).await),
        refused(way.client.get_push(task.id.clone(), "first".into()).await),
        refused(way.client.list_push(all_of(&task)).await),
        refused(way.client.delete_push(task.id.clone(), "first".into()).await),
    ])
}

async fn inside(way: Way) -> Value {
    let task = way.held().await;
    let config = TaskPushNotificationConfig { url: "http://169.254.169.254/latest".into(), ..webhook(&task, "first") };
    let error = refused(way.client.create_push(config).await);
    way.cancel(&task.id).await.expect("canceled");
    error
}

async fn with_message(way: Way) -> Value {
    let mut request = at_once(text("hold"));
    let config = TaskPushNotificationConfig {
        id: "mine".into(),
        url: "http://127.0.0.1:39999/hook".into(),
        ..TaskPushNotificationConfig::default()
    };
    request.configuration.get_or_insert_default().task_push_notification_config = Some(config);
    let task = way.send(request).await;
    let listed = way.client.list_push(all_of(&task)).await.expect("listed");
    assert_eq!(listed.configs.len(), 1);
    way.cancel(&task.id).await.expect("canceled");
    to_value(listed.configs).unwrap()
}
