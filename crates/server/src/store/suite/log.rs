//! Numbers, bodies, replay, keys and closing.

use std::sync::Arc;

use bytes::Bytes;
use nuncio_protocol::{ContextId, TaskId};

use super::kit::*;
use crate::store::{AppendError, Created, Early, Older, Seq, Store, StoreError};

/// Events are numbered 1, 2, 3, … and come back in order.
pub async fn numbers_have_no_gaps(store: Arc<dyn Store>) {
    let task_key = create(&*store, task("t")).await;
    let heard = Arc::new(Heard::default());
    for seq in 2..=50 {
        store.append(event(task_key, seq, &heard));
    }
    assert_eq!(heard.outcome(50).await, Ok(()));
    let events = replay(&*store, task_key).await;
    let mut expected = vec![(1, "t/1".to_owned())];
    expected.extend((2..=50).map(|seq| (seq, format!("event {seq}"))));
    assert_eq!(events, expected);
    let row = store.task_by_key(task_key).await.unwrap().unwrap();
    assert_eq!((row.seq, row.epoch, row.attempts, row.snapshot_seq), (50, 1, 0, 0));
}

/// A task that was at work before it was stored comes with all that happened, and goes on from there.
pub async fn a_task_can_come_with_its_next_events(store: Arc<dyn Store>) {
    let early = |seq: Seq, state, snapshot: Option<&str>| Early {
        // Large ones too, which do not share a row.
        body: Bytes::from(format!("event {seq}{}", "x".repeat(20_000))),
        at: seq.cast_signed(),
        state,
        snapshot: snapshot.map(|text| Bytes::from(text.to_owned())),
    };
    let mut done = task("done");
    done.early = vec![early(2, Some(WORKING), None), early(3, None, None), early(4, Some(COMPLETED), Some("whole"))];
    let mut asks = task("asks");
    asks.early = vec![early(2, Some(WORKING), None), early(3, Some(INPUT_REQUIRED), Some("rests"))];
    let mut works = task("works");
    works.early = vec![early(2, Some(WORKING), None)];
    let expected = [(&done, 4, COMPLETED, 4, Some("whole")), (&asks, 3, INPUT_REQUIRED, 3, Some("rests"))];
    let mut large = task("large");
    large.body = Bytes::from("x".repeat(40_000));
    large.early = vec![early(2, Some(WORKING), None)];
    // One whose snapshot is too large to stand with its events, and one whose events are.
    let much = "y".repeat(50_000);
    let mut long = task("long");
    long.early = vec![early(2, Some(INPUT_REQUIRED), Some(&much))];
    let mut wide = task("wide");
    wide.body = large.body.clone();
    wide.early = vec![early(2, Some(INPUT_REQUIRED), Some("rests"))];
    let expected = expected.into_iter().chain([(&works, 2, WORKING, 0, None), (&large, 2, WORKING, 0, None)]);
    let rest = [(&long, 2, INPUT_REQUIRED, 2, Some(&*much)), (&wide, 2, INPUT_REQUIRED, 2, Some("rests"))];
    let expected = expected.chain(rest);
    for (task, seq, state, snapshot_seq, snapshot) in expected {
        let task_key = create(&*store, task.clone()).await;
        let row = store.task(&task.scope, &task.id).await.unwrap().unwrap();
        assert_eq!((row.key, row.seq, row.epoch, row.state), (task_key, seq, 1, state));
        assert_eq!((row.created, row.updated), (1, seq.cast_signed()));
        assert_eq!((row.snapshot.as_deref(), row.snapshot_seq), (snapshot.map(str::as_bytes), snapshot_seq));
        for after in 0..=seq {
            let events = store.events(task_key, after, 9, usize::MAX).await.unwrap();
            let numbers: Vec<Seq> = events.iter().map(|event| event.seq).collect();
            assert_eq!(numbers, (after + 1..=seq).collect::<Vec<_>>());
            for event in events.iter().filter(|event| event.seq > 1) {
                assert_eq!(event.body.len(), "event 1".len() + 20_000);
            }
        }
        if state != COMPLETED {
            append(&*store, task_key, seq + 1, |append| {
                (append.state, append.snapshot) = (Some(COMPLETED), Some(Bytes::from("over")));
            })
            .await
            .unwrap();
            assert_eq!(replay(&*store, task_key).await.len(), usize::try_from(seq + 1).unwrap());
            let row = store.task(&task.scope, &task.id).await.unwrap().unwrap();
            assert_eq!((row.snapshot.as_deref(), row.snapshot_seq), (Some(&b"over"[..]), seq + 1));
        }
    }
    let page = store.list(all(alice())).await.unwrap();
    assert_eq!((page.total, page.tasks.len()), (6, 6));
    assert!(store.abandoned("other", 9).await.unwrap().is_empty());
}

/// Ids, tenants and owners may hold any character, bodies any byte.
pub async fn bodies_and_names_keep_every_byte(store: Arc<dyn Store>) {
    let every: String = ('\0'..='\u{2ff}').chain(['\u{fffd}', '\u{10ffff}', '\'', '"', '%', '/']).collect();
    let bytes: Bytes = (0..=255).cycle().take(70_000).collect();
    let mut strange = task(&every);
    strange.scope = scope(&every, &format!("{every}2"));
    strange.context_id = ContextId::from(&*every);
    strange.agent = (&*every).into();
    strange.body = bytes.clone();
    strange.key = Some(key(&every, 0));
    let (scope, id) = (strange.scope.clone(), strange.id.clone());
    let task_key = create(&*store, strange).await;
    for other in ["", "\0", "%", "'"] {
        let mut plain = task(other);
        plain.scope = scope.clone();
        create(&*store, plain).await;
    }

    append(&*store, task_key, 2, |append| {
        append.body = bytes.clone();
        append.snapshot = Some(bytes.clone());
        append.message = Some(bytes.clone());
        append.state = Some(WORKING);
    })
    .await
    .unwrap();
    let row = store.task(&scope, &id).await.unwrap().unwrap();
    assert_eq!((&row.id, &row.scope, row.context_id.as_str(), &*row.agent), (&id, &scope, &*every, &*every));
    assert_eq!(row.snapshot.as_ref(), Some(&bytes));
    for event in store.events(task_key, 0, 9, usize::MAX).await.unwrap() {
        assert_eq!(event.body, bytes);
    }
    assert_eq!(store.messages(task_key).await.unwrap(), [(2, bytes)]);
    assert_eq!(store.find_key(&scope, &key(&every, 0)).await.unwrap(), Some((task_key, 1)));
    let mut query = all(scope);
    query.context_id = Some(ContextId::from(&*every));
    assert_eq!(store.list(query).await.unwrap().tasks, [row]);
}

/// A replay obeys its limits, makes progress, and ends.
pub async fn replay_has_bounds(store: Arc<dyn Store>) {
    let task_key = create(&*store, task("t")).await;
    for seq in 2..=10 {
        append(&*store, task_key, seq, |append| append.body = Bytes::from(vec![b'x'; 100])).await.unwrap();
    }
    let numbers = async |after, limit, bytes| -> Vec<Seq> {
        let events = store.events(task_key, after, limit, bytes).await.unwrap();
        events.iter().map(|event| event.seq).collect()
    };
    assert_eq!(numbers(0, 100, usize::MAX).await, (1..=10).collect::<Vec<_>>());
    assert_eq!(numbers(3, 4, usize::MAX).await, [4, 5, 6, 7]);
    assert_eq!(numbers(3, 100, 1).await, [4], "at least one");
    assert_eq!(numbers(3, 100, 0).await, [4], "at least one");
    let some = numbers(3, 100, 300).await;
    assert!(some.starts_with(&[4, 5]) && some.len() <= 4, "{some:?}");
    assert!(numbers(10, 100, 1_000).await.is_empty());
    assert!(numbers(Seq::MAX, 100, 1_000).await.is_empty());
    assert!(numbers(0, 0, 1_000).await.is_empty());
    let nobody = crate::store::TaskKey(task_key.0 + 1_000);
    assert!(store.events(nobody, 0, 10, 1_000).await.unwrap().is_empty());
    assert!(store.task_by_key(nobody).await.unwrap().is_none());
}

/// Follow-up messages stand beside the log, under the numbers of their events.
pub async fn messages_keep_their_events(store: Arc<dyn Store>) {
    let (one, two) = (create(&*store, task("1")).await, create(&*store, task("2")).await);
    assert!(store.messages(one).await.unwrap().is_empty());
    for seq in 2..=5 {
        append(&*store, one, seq, |append| {
            append.message = (seq % 2 == 0).then(|| Bytes::from(format!("message {seq}")));
        })
        .await
        .unwrap();
    }
    let expected = [(2, Bytes::from("message 2")), (4, Bytes::from("message 4"))];
    assert_eq!(store.messages(one).await.unwrap(), expected);
    assert!(store.messages(two).await.unwrap().is_empty());
}

/// The last snapshot counts, and says which event it includes last.
pub async fn snapshots_replace_each_other(store: Arc<dyn Store>) {
    let task_key = create(&*store, task("t")).await;
    let heard = Arc::new(Heard::default());
    for seq in 2..=9 {
        let mut append = event(task_key, seq, &heard);
        append.snapshot = (seq % 3 == 0 && seq < 9).then(|| Bytes::from(format!("task at {seq}")));
        store.append(append);
    }
    heard.outcome(9).await.unwrap();
    let row = store.task_by_key(task_key).await.unwrap().unwrap();
    assert_eq!((row.snapshot_seq, row.snapshot, row.seq), (6, Some(Bytes::from("task at 6")), 9));
}

/// 64 tasks write 200 events each at once: every one is kept, acknowledged, and in order.
pub async fn concurrent_appends_are_all_kept_in_order(store: Arc<dyn Store>) {
    let mut writers = Vec::new();
    for n in 0..64 {
        let store = store.clone();
        writers.push(tokio::spawn(async move {
            let task_key = create(&*store, task(&format!("t{n}"))).await;
            let heard = Arc::new(Heard::default());
            for seq in 2..=200 {
                store.append(event(task_key, seq, &heard));
                if seq % 50 == n % 50 {
                    heard.outcome(seq).await.unwrap();
                }
            }
            heard.outcome(200).await.unwrap();
            let words = heard.words();
            assert!(words.iter().all(Result::is_ok), "{words:?}");
            assert!(words.is_sorted_by(|a, b| a.as_ref().unwrap() < b.as_ref().unwrap()), "{words:?}");
            assert_eq!(words.last(), Some(&Ok(200)));
            task_key
        }));
    }
    for writer in writers {
        let task_key = writer.await.unwrap();
        let numbers: Vec<Seq> = replay(&*store, task_key).await.into_iter().map(|event| event.0).collect();
        assert_eq!(numbers, (1..=200).collect::<Vec<_>>());
    }
    assert_eq!(store.list(all(alice())).await.unwrap().total, 64);
}

/// The same caller's key finds the task it made; other callers' keys are their own.
pub async fn a_repeated_create_finds_the_first_task(store: Arc<dyn Store>) {
    let with_key = |id: &str, scope| {
        let mut task = task(id);
        task.scope = scope;
        task.key = Some(key("k", 0));
        task
    };
    let first = create(&*store, with_key("1", alice())).await;
    append(&*store, first, 2, |_| ()).await.unwrap();
    let again = store.create(with_key("2", alice())).await.unwrap();
    assert_eq!(again, Created::Known(first, 1));
    assert!(store.task(&alice(), &TaskId::from("2")).await.unwrap().is_none());
    assert_eq!(store.list(all(alice())).await.unwrap().total, 1);

    create(&*store, with_key("3", scope("acme", "bob"))).await;
    create(&*store, with_key("4", scope("other", "alice"))).await;
    assert_eq!(store.find_key(&alice(), &key("k", 0)).await.unwrap(), Some((first, 1)));
    assert_eq!(store.find_key(&alice(), &key("other", 0)).await.unwrap(), None);
    assert_eq!(store.find_key(&scope("acme", "carol"), &key("k", 0)).await.unwrap(), None);
}

/// Of many creates with the same key at the same time, one makes the task.
pub async fn concurrent_creates_with_one_key_make_one_task(store: Arc<dyn Store>) {
    let creates = (0..32).map(|n| {
        let store = store.clone();
        let mut task = task(&format!("t{n}"));
        task.key = Some(key("k", 0));
        tokio::spawn(async move { store.create(task).await.unwrap() })
    });
    let mut made = Vec::new();
    let mut known = Vec::new();
    for create in creates.collect::<Vec<_>>() {
        match create.await.unwrap() {
            Created::New(task) | Created::Waiting(task) => made.push(task),
            Created::Known(task, seq) => known.push((task, seq)),
        }
    }
    assert_eq!((made.len(), known.len()), (1, 31));
    assert!(known.iter().all(|known| *known == (made[0], 1)));
}

/// A key that was used before `since` is free again.
pub async fn an_old_key_is_forgotten(store: Arc<dyn Store>) {
    let at = |id: &str, at, since| {
        let mut task = task(id);
        task.at = at;
        task.key = Some(key("k", since));
        task
    };
    let first = create(&*store, at("1", 100, 0)).await;
    assert_eq!(store.create(at("2", 200, 100)).await.unwrap(), Created::Known(first, 1));
    let second = create(&*store, at("3", 300, 101)).await;
    assert_ne!(first, second);
    assert_eq!(store.create(at("4", 400, 101)).await.unwrap(), Created::Known(second, 1));
    assert_eq!(store.find_key(&alice(), &key("k", 300)).await.unwrap(), Some((second, 1)));
    assert_eq!(store.find_key(&alice(), &key("k", 301)).await.unwrap(), None);
}

/// A key refuses its event and all behind it; the ones before it are kept.
pub async fn a_used_key_refuses_an_append(store: Arc<dyn Store>) {
    let mut with_key = task("1");
    with_key.key = Some(key("k", 0));
    let first = create(&*store, with_key).await;
    let task_key = create(&*store, task("2")).await;
    let heard = Arc::new(Heard::default());
    for seq in 2..=5 {
        let mut append = event(task_key, seq, &heard);
        append.state = Some(if seq < 4 { WORKING } else { COMPLETED });
        append.key = (seq == 3 || seq == 4).then(|| key(if seq == 3 { "fresh" } else { "k" }, 0));
        append.message = Some(Bytes::from("message"));
        append.snapshot = Some(Bytes::from(format!("at {seq}")));
        store.append(append);
    }
    assert_eq!(heard.outcome(3).await, Ok(()));
    assert_eq!(heard.outcome(4).await, Err(AppendError::KeyUsed));
    assert!(heard.outcome(5).await.is_err());
    // Something behind them in line, so that all were dealt with.
    store.check().await.unwrap();
    let row = store.task_by_key(task_key).await.unwrap().unwrap();
    assert_eq!((row.seq, row.state, row.snapshot_seq), (3, WORKING, 3));
    assert_eq!(store.messages(task_key).await.unwrap().len(), 2);
    assert_eq!(replay(&*store, task_key).await.len(), 3);
    assert_eq!(store.find_key(&alice(), &key("fresh", 0)).await.unwrap(), Some((task_key, 3)));
    assert_eq!(store.find_key(&alice(), &key("k", 0)).await.unwrap(), Some((first, 1)));

    let repeated = append(&*store, task_key, 4, |append| append.key = Some(key("fresh", 0))).await;
    assert_eq!(repeated, Err(AppendError::KeyUsed));
    // A create with the key of a follow-up message finds that message's event.
    let mut again = task("3");
    again.key = Some(key("fresh", 0));
    assert_eq!(store.create(again).await.unwrap(), Created::Known(task_key, 3));
    append(&*store, task_key, 4, |append| append.key = Some(key("k", 2))).await.unwrap();
    assert_eq!(store.find_key(&alice(), &key("k", 0)).await.unwrap(), Some((task_key, 4)));
}

/// A store that works says so, any number of times.
pub async fn a_healthy_store_says_so(store: Arc<dyn Store>) {
    for _ in 0..3 {
        store.check().await.unwrap();
    }
}

/// Closing waits for what was handed over; everything later is refused.
pub async fn close_keeps_the_old_and_refuses_the_new(store: Arc<dyn Store>) {
    let task_key = create(&*store, task("t")).await;
    let (before, after) = (Arc::new(Heard::default()), Arc::new(Heard::default()));
    for seq in 2..=300 {
        store.append(event(task_key, seq, &before));
    }
    store.close().await;
    assert_eq!(before.words().last(), Some(&Ok(300)));

    store.append(event(task_key, 301, &after));
    assert_eq!(after.outcome(301).await, Err(StoreError::Closed.into()));
    assert_eq!(store.create(task("u")).await, Err(StoreError::Closed));
    assert_eq!(store.claim(task_key, 1, lease("n2"), false).await, Err(StoreError::Closed));
    assert_eq!(store.put_push(task_key, config("p", None)).await, Err(StoreError::Closed));
    assert_eq!(store.trim(Older::than(1_000), 10).await, Err(StoreError::Closed));
    assert_eq!(store.check().await, Err(StoreError::Closed));
    assert_eq!(store.task_by_key(task_key).await.unwrap().unwrap().seq, 300);
    store.close().await;
}
