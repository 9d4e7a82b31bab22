//! One writer per task.

use std::sync::Arc;

use bytes::Bytes;

use super::kit::*;
use crate::store::{AppendError, Claim, Lease, Store};

/// A writer whose task was taken over changes nothing, not even partly, and hears it.
pub async fn an_old_epoch_changes_nothing(store: Arc<dyn Store>) {
    let task_key = create(&*store, task("t")).await;
    append(&*store, task_key, 2, |append| append.state = Some(WORKING)).await.unwrap();
    let claimed = store.claim(task_key, 1, lease("n2"), false).await.unwrap().taken().unwrap();
    assert_eq!((claimed.epoch, claimed.seq, claimed.state), (2, 2, WORKING));
    let before = store.task_by_key(task_key).await.unwrap().unwrap();

    let heard = Arc::new(Heard::default());
    for seq in 3..=6 {
        let mut old = event(task_key, seq, &heard);
        old.state = Some(COMPLETED);
        old.snapshot = Some(Bytes::from("old"));
        old.message = Some(Bytes::from("old"));
        old.key = Some(key("old", 0));
        store.append(old);
    }
    assert_eq!(heard.outcome(3).await, Err(AppendError::Fenced));
    assert_eq!(heard.outcome(6).await, Err(AppendError::Fenced));
    store.check().await.unwrap();
    assert!(heard.words().iter().all(Result::is_err));
    assert_eq!(store.task_by_key(task_key).await.unwrap().unwrap(), before);
    assert_eq!(replay(&*store, task_key).await.len(), 2);
    assert!(store.messages(task_key).await.unwrap().is_empty());
    assert_eq!(store.find_key(&alice(), &key("old", 0)).await.unwrap(), None);
    let mut completed = all(alice());
    completed.state = Some(COMPLETED);
    assert_eq!(store.list(completed).await.unwrap().total, 0);

    append(&*store, task_key, 3, |append| append.epoch = 2).await.unwrap();
    let early = append(&*store, task_key, 4, |append| append.epoch = 3).await;
    assert_eq!(early, Err(AppendError::Fenced), "an epoch that nobody holds yet");
}

/// A number that is not the next one is refused, and so is everything that builds on it.
pub async fn a_number_that_is_not_next_is_refused_with_all_behind_it(store: Arc<dyn Store>) {
    let task_key = create(&*store, task("t")).await;
    let (gap, twice, next) = (Arc::new(Heard::default()), Arc::new(Heard::default()), Arc::new(Heard::default()));
    for seq in [3, 4, 5] {
        store.append(event(task_key, seq, &gap));
    }
    store.append(event(task_key, 1, &twice));
    store.append(event(task_key, 2, &next));
    store.append(event(task_key, 3, &next));
    store.append(event(task_key, 3, &twice));
    assert_eq!(next.outcome(3).await, Ok(()));
    assert_eq!(gap.outcome(3).await, Err(AppendError::Fenced));
    assert_eq!(twice.outcome(1).await, Err(AppendError::Fenced));
    store.check().await.unwrap();
    assert!(gap.words().iter().chain(&twice.words()).all(Result::is_err));
    assert_eq!(replay(&*store, task_key).await.len(), 3);
    let nobody = crate::store::TaskKey(task_key.0 + 1_000);
    assert_eq!(append(&*store, nobody, 1, |_| ()).await, Err(AppendError::Fenced));
    let stated = append(&*store, nobody, 1, |append| append.state = Some(WORKING)).await;
    assert_eq!(stated, Err(AppendError::Fenced));
}

/// Of many claims under the same epoch, one wins.
pub async fn one_of_many_claims_wins(store: Arc<dyn Store>) {
    let task_key = create(&*store, task("t")).await;
    for epoch in 1..=5 {
        let claims = (0..16).map(|n| {
            let store = store.clone();
            tokio::spawn(async move { store.claim(task_key, epoch, lease(&format!("n{n}")), false).await.unwrap() })
        });
        let mut won = Vec::new();
        for claim in claims.collect::<Vec<_>>() {
            won.extend(claim.await.unwrap().taken());
        }
        assert_eq!(won.len(), 1);
        assert_eq!(won[0].epoch, epoch + 1);
    }
    let nobody = crate::store::TaskKey(task_key.0 + 1_000);
    assert_eq!(store.claim(nobody, 1, lease("n"), false).await.unwrap(), Claim::Lost);
}

/// Retries add up; a claim for another reason starts at zero.
pub async fn claims_count_attempts(store: Arc<dyn Store>) {
    let task_key = create(&*store, task("t")).await;
    append(&*store, task_key, 2, |append| append.snapshot = Some(Bytes::from("s"))).await.unwrap();
    let mut attempts = Vec::new();
    for (epoch, retry) in (1..).zip([true, true, true, false, true]) {
        let row = store.claim(task_key, epoch, lease("n"), retry).await.unwrap().taken().unwrap();
        assert_eq!((row.snapshot_seq, row.snapshot.as_deref()), (2, Some(&b"s"[..])));
        attempts.push(row.attempts);
    }
    assert_eq!(attempts, [1, 2, 3, 0, 1]);
}

/// Only active tasks can be abandoned, oldest first, and not those of a writer that is alive.
pub async fn tasks_of_a_living_writer_are_not_abandoned(store: Arc<dyn Store>) {
    let mut keys = Vec::new();
    for (id, at) in [("t3", 30), ("t1", 10), ("t2", 20), ("t4", 40)] {
        let mut task = task(id);
        task.at = at;
        keys.push(create(&*store, task).await);
    }
    state(&*store, keys[3], COMPLETED, 50).await;
    let ids = async |node: &str, limit| -> Vec<String> {
        let rows = store.abandoned(node, limit).await.unwrap();
        rows.iter().map(|row| row.id.to_string()).collect()
    };
    alive(&*store, &["n1", "n2"]).await;
    assert!(ids("n1", 10).await.is_empty());
    gone(&*store, "n1").await;
    assert_eq!(ids("n2", 10).await, ["t1", "t2", "t3"]);
    assert_eq!(ids("n2", 2).await, ["t1", "t2"]);

    let taken = store.claim(keys[1], 1, Lease { node: "n2".into() }, true).await.unwrap();
    assert_eq!(taken.taken().unwrap().id.as_str(), "t1");
    assert_eq!(ids("n2", 10).await, ["t2", "t3"]);
    state(&*store, keys[0], INPUT_REQUIRED, 60).await;
    assert_eq!(ids("n2", 10).await, ["t2"], "a task that rests needs no writer");
    state(&*store, keys[0], WORKING, 70).await;
    assert_eq!(ids("n2", 10).await, ["t2", "t3"]);
}
