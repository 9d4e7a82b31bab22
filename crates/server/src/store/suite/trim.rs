//! Removing what is old.

use std::sync::Arc;

use bytes::Bytes;
use nuncio_protocol::TaskId;

use super::kit::*;
use crate::store::{AppendError, Claim, Created, Older, State, Store};

/// Finished tasks from before the moment go with all that is theirs; every other one stays whole.
pub async fn trim_removes_only_what_is_finished_and_old(store: Arc<dyn Store>) {
    let mut keys = Vec::new();
    for (n, at) in [(1, 10), (2, 10), (3, 10), (3, 99), (3, 100), (4, 50), (5, 50), (6, 10), (7, 50), (8, 10)] {
        let id = keys.len().to_string();
        let task_key = create(&*store, task(&id)).await;
        append(&*store, task_key, 2, |append| append.message = Some(Bytes::from("m"))).await.unwrap();
        append(&*store, task_key, 3, |append| {
            (append.state, append.at) = (Some(State(n)), at);
            append.snapshot = Some(Bytes::from("s"));
        })
        .await
        .unwrap();
        // Whoever has read it before does not see it any longer for that.
        assert!(store.task(&alice(), &TaskId::from(id)).await.unwrap().is_some());
        keys.push(task_key);
    }
    assert_eq!(store.trim(Older::than(10), 100).await.unwrap(), 0);
    assert_eq!(store.trim(Older::than(100), 100).await.unwrap(), 5);
    let gone = [2, 3, 5, 6, 8];
    for (n, task_key) in keys.iter().enumerate() {
        let row = store.task(&alice(), &TaskId::from(n.to_string())).await.unwrap();
        assert_eq!(row.is_none(), gone.contains(&n), "task {n}");
        let left = usize::from(row.is_some());
        assert_eq!(store.task_by_key(*task_key).await.unwrap(), row);
        assert_eq!(replay(&*store, *task_key).await.len(), 3 * left);
        assert_eq!(store.messages(*task_key).await.unwrap().len(), left);
    }
    let page = store.list(all(alice())).await.unwrap();
    assert_eq!((page.total, page.tasks.len()), (5, 5));
    let mut completed = all(alice());
    completed.state = Some(COMPLETED);
    let page = store.list(completed).await.unwrap();
    assert_eq!((page.total, page.tasks.len()), (1, 1));
    assert_eq!(append(&*store, keys[2], 4, |_| ()).await, Err(AppendError::Fenced));
    assert_eq!(store.claim(keys[2], 1, lease("n"), false).await.unwrap(), Claim::Lost);
    // An id that was trimmed is free, and its new task shares nothing with the old one.
    let again = create(&*store, task("2")).await;
    assert!(!keys.contains(&again));
    assert_eq!(replay(&*store, again).await.len(), 1);
}

/// Old keys are forgotten, even of tasks that stay; a key whose task is gone is free.
pub async fn trim_forgets_keys_and_webhooks(store: Arc<dyn Store>) {
    let with_key = |id: &str, name: &str, at| {
        let mut task = task(id);
        task.at = at;
        task.key = Some(key(name, 0));
        task.push = Some(config("p", Some(at)));
        task
    };
    let old = create(&*store, with_key("1", "finished", 10)).await;
    let open = create(&*store, with_key("2", "open", 10)).await;
    let young = create(&*store, with_key("3", "young", 200)).await;
    append(&*store, old, 2, |append| {
        append.at = 150;
        append.key = Some(key("late", 0));
    })
    .await
    .unwrap();
    state(&*store, old, FAILED, 20).await;
    assert_eq!(store.trim(Older::than(100), 10).await.unwrap(), 1);
    assert_eq!(store.find_key(&alice(), &key("finished", 0)).await.unwrap(), None);
    assert_eq!(store.find_key(&alice(), &key("late", 0)).await.unwrap(), None);
    assert_eq!(store.find_key(&alice(), &key("open", 0)).await.unwrap(), None);
    assert_eq!(store.find_key(&alice(), &key("young", 0)).await.unwrap(), Some((young, 1)));
    let due: Vec<_> = store.due_pushes("n1", 1_000, 10).await.unwrap().into_iter().map(|due| due.0).collect();
    assert_eq!(due, [open, young]);
    assert!(store.pushes(old).await.unwrap().is_empty());
    for (id, name) in [("4", "finished"), ("5", "open"), ("6", "late")] {
        assert!(matches!(store.create(with_key(id, name, 300)).await.unwrap(), Created::New(_)));
    }
}

/// Where a rest is an end, old tasks at rest go as well, unless somebody works on them or waits for an answer.
pub async fn trim_takes_what_rests_where_that_is_an_end(store: Arc<dyn Store>) {
    alive(&*store, &["n1"]).await;
    let mut keys = Vec::new();
    for (n, at) in [(6, 10), (8, 10), (6, 200), (2, 10), (6, 10), (3, 10)] {
        let mut task = task(&keys.len().to_string());
        task.push = Some(config("p", Some(at)));
        let task_key = create(&*store, task).await;
        state(&*store, task_key, State(n), at).await;
        keys.push(task_key);
    }
    let held = keys[4];
    if let Some(shared) = store.shared() {
        for key in keys.iter().filter(|key| **key != held) {
            shared.release(*key, 1).await.unwrap();
        }
    }
    let left = async || {
        let page = store.list(all(alice())).await.unwrap();
        let mut left: Vec<_> = page.tasks.iter().map(|row| row.id.as_str().to_owned()).collect();
        left.sort_unstable();
        assert_eq!(page.total, left.len() as u64);
        left
    };
    assert_eq!(store.trim(Older::than(100), 10).await.unwrap(), 1);
    assert_eq!(left().await, ["0", "1", "2", "3", "4"]);
    let than = Older { at_rest: Some(Arc::new(move |key| key == held)), ..Older::than(100) };
    // One in hand does not stand in the way of the others.
    assert_eq!(store.trim(than.clone(), 1).await.unwrap(), 1);
    assert_eq!(store.trim(than.clone(), 10).await.unwrap(), 1);
    assert_eq!(store.trim(than, 10).await.unwrap(), 0);
    assert_eq!(left().await, ["2", "3", "4"]);
    assert_eq!(store.claim(keys[0], 1, lease("n1"), false).await.unwrap(), Claim::Lost);
    assert!(store.pushes(keys[0]).await.unwrap().is_empty());
    assert!(replay(&*store, keys[0]).await.is_empty());
    // And what was in hand goes on.
    state(&*store, held, WORKING, 300).await;
}

/// A key lives as long as is said, whatever becomes of tasks.
pub async fn trim_keeps_keys_for_their_own_time(store: Arc<dyn Store>) {
    let mut keys = Vec::new();
    for (id, at) in [("1", 10), ("2", 50)] {
        let mut task = task(id);
        (task.at, task.key) = (at, Some(key(id, 0)));
        keys.push(create(&*store, task).await);
    }
    store.trim(Older { keys: 20, ..Older::than(100) }, 10).await.unwrap();
    assert_eq!(store.find_key(&alice(), &key("1", 0)).await.unwrap(), None);
    assert_eq!(store.find_key(&alice(), &key("2", 0)).await.unwrap(), Some((keys[1], 1)));
}

/// At most so many at a time, until nothing is left, whatever the size of a task.
pub async fn trim_is_bounded(store: Arc<dyn Store>) {
    let long = create(&*store, task("long")).await;
    let heard = Arc::new(Heard::default());
    for seq in 2..=5_000 {
        store.append(event(long, seq, &heard));
    }
    heard.outcome(5_000).await.unwrap();
    state(&*store, long, COMPLETED, 1).await;
    for n in 0..149 {
        let mut short = task(&n.to_string());
        short.scope.owner = format!("owner {}", n % 3).into();
        short.state = COMPLETED;
        create(&*store, short).await;
    }
    let mut removed = Vec::new();
    while removed.last() != Some(&0) {
        removed.push(store.trim(Older::than(2), 70).await.unwrap());
    }
    assert_eq!(removed, [70, 70, 10, 0]);
    assert!(replay(&*store, long).await.is_empty());
    for owner in ["alice", "owner 0", "owner 1", "owner 2"] {
        assert_eq!(store.list(all(scope("acme", owner))).await.unwrap().total, 0);
    }
}
