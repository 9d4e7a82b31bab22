//! Webhooks: stored with a cursor that only moves forward.

use std::sync::Arc;

use bytes::Bytes;
use nuncio_protocol::PushId;

use super::kit::*;
use crate::store::{Backlog, Dead, Micros, State, Store, WAITING};

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
    other.since = Some(6);
    other.told = Some(State(2));
    other.dead = Some(Dead { from: 2, count: 3, at: 5 });
    store.put_push(one, other.clone()).await.unwrap();
    other.epoch = 1;
    let expected = [config("a", Some(1)), other, config("c", Some(1))].map(|config| kept(&*store, config));
    assert_eq!(pushes(&*store, one).await, expected);

    assert!(store.delete_push(one, &PushId::from("a")).await.unwrap());
    assert!(!store.delete_push(one, &PushId::from("a")).await.unwrap());
    assert!(!store.delete_push(two, &PushId::from("b")).await.unwrap());
    assert_eq!(pushes(&*store, one).await.len(), 2);
    assert_eq!(pushes(&*store, two).await, [kept(&*store, config("a", None))]);
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
        let due = store.due_pushes("n1", now, limit).await.unwrap();
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
    assert!(!store.advance_push(task_key, behind).await.unwrap());
    let now = pushes(&*store, task_key).await.remove(0);
    let expected = kept(&*store, crate::store::PushConfig { acked: 5, ..config("p", None) });
    assert_eq!(now, expected);

    let mut failed = expected.clone();
    failed.attempts = 1;
    failed.due = Some(50);
    failed.last_error = Some("refused".into());
    assert!(store.advance_push(task_key, failed.clone()).await.unwrap());
    assert_eq!(pushes(&*store, task_key).await, std::slice::from_ref(&failed));
    store.delete_push(task_key, &PushId::from("p")).await.unwrap();
    assert!(!store.advance_push(task_key, failed).await.unwrap());
    assert!(store.pushes(task_key).await.unwrap().is_empty());
    assert!(store.due_pushes("n1", 100, 10).await.unwrap().is_empty());
}

/// A report about a webhook that was replaced meanwhile says nothing about the new one.
pub async fn a_replaced_webhook_takes_no_old_reports(store: Arc<dyn Store>) {
    let task_key = create(&*store, task("t")).await;
    store.put_push(task_key, config("p", Some(1))).await.unwrap();
    store.put_push(task_key, config("p", Some(2))).await.unwrap();
    let mut old = config("p", None);
    old.acked = 9;
    assert!(!store.advance_push(task_key, old.clone()).await.unwrap());
    old.epoch = 1;
    assert!(store.advance_push(task_key, old.clone()).await.unwrap());
    assert_eq!(pushes(&*store, task_key).await, [kept(&*store, old)]);
    let later = kept(&*store, crate::store::PushConfig { epoch: 70, ..config("q", None) });
    store.put_push(task_key, later.clone()).await.unwrap();
    assert_eq!(pushes(&*store, task_key).await[1], later);
}

/// Waiting webhooks are due when they are woken, and count as pending from then on.
pub async fn webhooks_that_wait_can_be_woken(store: Arc<dyn Store>) {
    let task_key = create(&*store, task("t")).await;
    for (id, due) in [("a", Some(WAITING)), ("b", Some(50)), ("c", None), ("d", Some(WAITING))] {
        store.put_push(task_key, config(id, due)).await.unwrap();
    }
    assert_eq!(store.push_backlog().await.unwrap(), Backlog { pending: 1, ..Backlog::default() });
    assert_eq!(store.due_pushes("n1", 100, 10).await.unwrap().len(), 1);
    assert_eq!(store.wake_pushes(70).await.unwrap(), 2);
    assert_eq!(store.wake_pushes(80).await.unwrap(), 0);
    let due = store.due_pushes("n1", 100, 10).await.unwrap();
    let due: Vec<_> = due.iter().map(|(_, push)| (push.id.as_str(), push.due)).collect();
    assert_eq!(due, [("b", Some(50)), ("a", Some(70)), ("d", Some(70))]);
    let failing = crate::store::PushConfig { since: Some(33), ..config("a", Some(90)) };
    assert!(store.advance_push(task_key, failing).await.unwrap());
    assert_eq!(store.push_backlog().await.unwrap(), Backlog { pending: 3, oldest: Some(33), dead: 0 });
}

/// A replay begins before the first event that was given up, and nothing that was under way spoils it.
pub async fn a_replay_moves_back_to_what_was_given_up(store: Arc<dyn Store>) {
    let task_key = create(&*store, task("t")).await;
    store.put_push(task_key, config("p", Some(1))).await.unwrap();
    let id = PushId::from("p");
    assert!(!store.replay_push(task_key, &id, 5).await.unwrap(), "nothing was given up");
    let mut over = config("p", None);
    over.acked = 9;
    over.attempts = 4;
    over.since = Some(2);
    over.told = Some(State(3));
    over.last_error = Some("no answer".into());
    over.dead = Some(Dead { from: 6, count: 2, at: 40 });
    assert!(store.advance_push(task_key, over.clone()).await.unwrap());
    assert_eq!(store.push_backlog().await.unwrap(), Backlog { pending: 0, oldest: None, dead: 2 });
    assert!(store.replay_push(task_key, &id, 50).await.unwrap());
    assert!(!store.replay_push(task_key, &id, 51).await.unwrap());
    assert!(!store.advance_push(task_key, over).await.unwrap());
    let now = pushes(&*store, task_key).await.remove(0);
    let expected =
        crate::store::PushConfig { acked: 5, epoch: 1, last_error: Some("no answer".into()), ..config("p", Some(50)) };
    assert_eq!(now, kept(&*store, expected));
    assert_eq!(store.due_pushes("n1", 50, 10).await.unwrap().len(), 1);
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
    let expected = kept(&*store, config("1", Some(1)));
    assert_eq!(pushes(&*store, task_key).await, std::slice::from_ref(&expected));
    let due = store.due_pushes("n1", 1, 10).await.unwrap();
    assert_eq!(
        due.into_iter().map(|(task, push)| (task, kept(&*store, push))).collect::<Vec<_>>(),
        [(task_key, expected)]
    );
}
