//! Webhooks: stored with a cursor that only moves forward.

use std::sync::Arc;

use bytes::Bytes;
use nuncio_protocol::PushId;

use super::kit::*;
use crate::store::{Micros, Store};

/// Put, replace, list in order, delete once.
pub async fn webhooks_are_stored_replaced_and_deleted(store: Arc<dyn Store>) {
    let (one, two) = (create(&*store, task("1")).await, create(&*store, task("2")).await);
    for id in ["b", "a", "c"] {
        store.put_push(one, config(id, Some(1))).await.unwrap();
    }
    store.put_push(two, config("a", None)).await.unwrap();
    let mut other = config("b", Some(7));
    other.body = Bytes::from("another address");
    other.version = "0.3".into();
    other.acked = 4;
    other.attempts = 2;
    other.last_error = Some("no route".into());
    store.put_push(one, other.clone()).await.unwrap();
    assert_eq!(store.pushes(one).await.unwrap(), [config("a", Some(1)), other, config("c", Some(1))]);

    assert!(store.delete_push(one, &PushId::from("a")).await.unwrap());
    assert!(!store.delete_push(one, &PushId::from("a")).await.unwrap());
    assert!(!store.delete_push(two, &PushId::from("b")).await.unwrap());
    assert_eq!(store.pushes(one).await.unwrap().len(), 2);
    assert_eq!(store.pushes(two).await.unwrap(), [config("a", None)]);
    let nobody = crate::store::TaskKey(two.0 + 1_000);
    store.put_push(nobody, config("a", Some(0))).await.unwrap_err();
    assert!(store.pushes(nobody).await.unwrap().is_empty());
    store.check().await.unwrap();
}

/// Whatever waits longest comes first; what has nothing to do never comes.
pub async fn webhooks_fall_due_in_order(store: Arc<dyn Store>) {
    let (one, two) = (create(&*store, task("1")).await, create(&*store, task("2")).await);
    store.put_push(one, config("a", Some(30))).await.unwrap();
    store.put_push(one, config("b", Some(10))).await.unwrap();
    store.put_push(two, config("a", Some(20))).await.unwrap();
    store.put_push(two, config("b", None)).await.unwrap();
    let due = async |now: Micros, limit| -> Vec<_> {
        let due = store.due_pushes(now, limit).await.unwrap();
        due.into_iter().map(|(task, config)| (task, config.id.to_string())).collect()
    };
    let (a, b) = (|| "a".to_owned(), || "b".to_owned());
    assert!(due(9, 10).await.is_empty());
    assert_eq!(due(10, 10).await, [(one, b())]);
    assert_eq!(due(99, 10).await, [(one, b()), (two, a()), (one, a())]);
    assert_eq!(due(99, 2).await, [(one, b()), (two, a())]);
    store.advance_push(one, config("b", Some(40))).await.unwrap();
    store.advance_push(two, config("a", None)).await.unwrap();
    store.put_push(two, config("b", Some(5))).await.unwrap();
    assert_eq!(due(99, 10).await, [(two, b()), (one, a()), (one, b())]);
    store.delete_push(two, &PushId::from("b")).await.unwrap();
    assert_eq!(due(99, 10).await, [(one, a()), (one, b())]);
}

/// A late report of an older delivery changes nothing, and a deleted webhook stays deleted.
pub async fn a_webhook_cursor_never_moves_back(store: Arc<dyn Store>) {
    let task_key = create(&*store, task("t")).await;
    store.put_push(task_key, config("p", Some(1))).await.unwrap();
    let mut ahead = config("p", None);
    ahead.acked = 5;
    ahead.body = Bytes::from("not the cursor's business");
    store.advance_push(task_key, ahead).await.unwrap();
    let mut behind = config("p", Some(2));
    behind.acked = 4;
    behind.attempts = 9;
    behind.last_error = Some("late".into());
    store.advance_push(task_key, behind).await.unwrap();
    let now = store.pushes(task_key).await.unwrap().remove(0);
    let expected = crate::store::PushConfig { acked: 5, ..config("p", None) };
    assert_eq!(now, expected);

    let mut failed = expected.clone();
    failed.attempts = 1;
    failed.due = Some(50);
    failed.last_error = Some("refused".into());
    store.advance_push(task_key, failed.clone()).await.unwrap();
    assert_eq!(store.pushes(task_key).await.unwrap(), std::slice::from_ref(&failed));
    store.delete_push(task_key, &PushId::from("p")).await.unwrap();
    store.advance_push(task_key, failed).await.unwrap();
    assert!(store.pushes(task_key).await.unwrap().is_empty());
    assert!(store.due_pushes(100, 10).await.unwrap().is_empty());
}

/// A webhook that comes with a new task is there with its first event, and not if the task is known.
pub async fn a_webhook_can_come_with_the_task(store: Arc<dyn Store>) {
    let with_push = |id: &str| {
        let mut task = task(id);
        task.key = Some(key("k", 0));
        task.push = Some(config(id, Some(1)));
        task
    };
    let task_key = create(&*store, with_push("1")).await;
    store.create(with_push("2")).await.unwrap();
    assert_eq!(store.pushes(task_key).await.unwrap(), [config("1", Some(1))]);
    assert_eq!(store.due_pushes(1, 10).await.unwrap(), [(task_key, config("1", Some(1)))]);
}
