//! Pages, filters, totals and who sees what.

use std::sync::Arc;

use bytes::Bytes;
use nuncio_protocol::{ContextId, PushId, TaskId};

use super::kit::*;
use crate::store::{ListCursor, ListQuery, Micros, NewTask, Scope, State, Store, TaskRow};

/// Follows the pages to the end; every page must agree on the total.
async fn pages(store: &dyn Store, mut query: ListQuery) -> Vec<TaskRow> {
    let mut rows: Vec<TaskRow> = Vec::new();
    let mut totals = Vec::new();
    loop {
        let page = store.list(query.clone()).await.unwrap();
        assert!(page.tasks.len() <= query.limit);
        totals.push(page.total);
        rows.extend(page.tasks);
        if !page.more {
            break;
        }
        let last = rows.last().unwrap();
        query.after = Some(ListCursor { updated: last.updated, id: last.id.clone() });
    }
    assert!(totals.iter().all(|total| usize::try_from(*total) == Ok(rows.len())), "{totals:?}");
    rows
}

fn ids(rows: &[TaskRow]) -> Vec<&str> {
    rows.iter().map(|row| row.id.as_str()).collect()
}

/// 25 tasks, newest state change first, whole on any page size.
pub async fn pages_are_in_order_and_complete(store: Arc<dyn Store>) {
    let mut expected = Vec::new();
    for n in 0..25 {
        let mut task = task(&format!("t{n:02}"));
        // Not in the order of creation.
        task.at = Micros::from(n * 7 % 25);
        expected.push((task.at, format!("t{n:02}")));
        create(&*store, task).await;
    }
    expected.sort_unstable_by(|a, b| b.cmp(a));
    let expected: Vec<&str> = expected.iter().map(|(_, id)| id.as_str()).collect();
    for limit in [1, 2, 5, 24, 25, 26, usize::MAX] {
        let rows = pages(&*store, ListQuery { limit, ..all(alice()) }).await;
        assert_eq!(ids(&rows), expected, "in pages of {limit}");
    }
    let none = store.list(ListQuery { limit: 0, ..all(alice()) }).await.unwrap();
    assert_eq!((none.tasks.len(), none.total, none.more), (0, 25, true));
}

/// A page ends after the snapshot that exceeds its bytes, whichever kind of task it is of. The total stays what it is.
pub async fn pages_are_bounded_in_bytes(store: Arc<dyn Store>) {
    for n in 0..12_i64 {
        let key = create(&*store, NewTask { at: n, ..task(&format!("t{n:02}")) }).await;
        if n % 3 != 0 {
            // Every third is under way and has none.
            let ended = append(&*store, key, 2, |append| {
                append.state = Some(COMPLETED);
                append.at = n;
                append.snapshot = Some(Bytes::from(vec![b' '; 1000]));
            });
            ended.await.unwrap();
        }
    }
    let everything = pages(&*store, all(alice())).await;
    assert_eq!(everything.len(), 12);
    for bytes in [0, 999, 1000, 2500, 100_000] {
        let query = ListQuery { bytes, ..all(alice()) };
        let page = store.list(query.clone()).await.unwrap();
        let held: Vec<usize> = page.tasks.iter().map(|row| row.snapshot.as_ref().map_or(0, Bytes::len)).collect();
        let before_last: usize = held.iter().rev().skip(1).sum();
        assert!(before_last <= bytes, "{bytes}: {held:?}");
        assert_eq!(page.more, page.tasks.len() < 12, "{bytes}");
        assert!(!page.more || held.iter().sum::<usize>() > bytes, "{bytes}: {held:?} is shorter than it need be");
        assert_eq!(ids(&pages(&*store, query).await), ids(&everything), "{bytes}");
    }
}

/// Tasks that changed at the same moment keep a fixed order across pages.
pub async fn ties_are_ordered_by_id(store: Arc<dyn Store>) {
    for id in ["b", "a", "é", "c", "B", "", "a\0", "aa"] {
        create(&*store, task(id)).await;
    }
    for limit in 1..=4 {
        let rows = pages(&*store, ListQuery { limit, ..all(alice()) }).await;
        assert_eq!(ids(&rows), ["é", "c", "b", "aa", "a\0", "a", "B", ""]);
    }
}

/// Every combination of filters lists and counts exactly what matches.
pub async fn filters_combine_and_totals_agree(store: Arc<dyn Store>) {
    let states = [SUBMITTED, WORKING, COMPLETED, FAILED, INPUT_REQUIRED];
    for n in 0..60_u16 {
        let mut task = task(&format!("t{n:02}"));
        task.context_id = ContextId::from(["x", "y", ""][usize::from(n % 3)]);
        task.scope = if n % 2 == 0 { alice() } else { scope("acme", "bob") };
        task.at = 1;
        // Several of one context, which only one of them could hold.
        task.lease = lease("");
        let task_key = create(&*store, task).await;
        state(&*store, task_key, states[usize::from(n % 5)], Micros::from(n / 4)).await;
        if n % 7 == 0 && !states[usize::from(n % 5)].is_final() {
            state(&*store, task_key, COMPLETED, Micros::from(n / 2)).await;
        }
    }
    let everything = pages(&*store, all(alice())).await;
    assert_eq!(everything.len(), 30);
    let contexts = [None, Some("x"), Some(""), Some("nowhere")];
    let wanted = states.into_iter().map(Some).chain([None, Some(State(9))]);
    for (context, state) in wanted.flat_map(|state| contexts.map(|context| (context, state))) {
        for since in [None, Some(-5), Some(0), Some(7), Some(1_000)] {
            let matches = |row: &&TaskRow| {
                context.is_none_or(|context| row.context_id.as_str() == context)
                    && state.is_none_or(|state| row.state == state)
                    && since.is_none_or(|since| row.updated >= since)
            };
            let expected: Vec<TaskRow> = everything.iter().filter(matches).cloned().collect();
            let context_id = context.map(ContextId::from);
            let query = ListQuery { context_id, state, since, limit: 3, ..all(alice()) };
            let found = pages(&*store, query).await;
            assert_eq!(ids(&found), ids(&expected), "{context:?} {state:?} {since:?}");
            assert_eq!(found, expected);
        }
    }
    let mut beyond = all(alice());
    beyond.since = Some(5);
    beyond.after = Some(ListCursor { updated: 4, id: TaskId::from("zzz") });
    let page = store.list(beyond).await.unwrap();
    assert!(page.tasks.is_empty() && !page.more && page.total > 0);
}

/// A task that changes between two pages moves to the front; no other is lost or seen twice.
pub async fn a_page_boundary_survives_changes(store: Arc<dyn Store>) {
    let mut keys = Vec::new();
    for n in 0..10 {
        let mut task = task(&format!("t{n}"));
        task.at = n;
        keys.push(create(&*store, task).await);
    }
    let mut query = ListQuery { limit: 4, ..all(alice()) };
    let first = store.list(query.clone()).await.unwrap();
    assert_eq!(ids(&first.tasks), ["t9", "t8", "t7", "t6"]);
    // The boundary itself moves away, a later one moves away, and a new one arrives.
    state(&*store, keys[6], WORKING, 100).await;
    state(&*store, keys[3], COMPLETED, 101).await;
    create(&*store, {
        let mut task = task("t99");
        task.at = 102;
        task
    })
    .await;
    query.after = Some(ListCursor { updated: 6, id: TaskId::from("t6") });
    let second = store.list(query.clone()).await.unwrap();
    assert_eq!(ids(&second.tasks), ["t5", "t4", "t2", "t1"]);
    assert!(second.more);
    query.after = Some(ListCursor { updated: 1, id: TaskId::from("t1") });
    let third = store.list(query).await.unwrap();
    assert_eq!((ids(&third.tasks), third.more, third.total), (vec!["t0"], false, 11));
    let rows = pages(&*store, all(alice())).await;
    assert_eq!(ids(&rows)[..4], ["t99", "t3", "t6", "t9"]);
}

/// Neither another owner nor another tenant reaches a task, even by its id or its key.
pub async fn other_scopes_see_nothing(store: Arc<dyn Store>) {
    let mut mine = task("t");
    mine.key = Some(key("k", 0));
    mine.push = Some(config("p", Some(1)));
    let task_key = create(&*store, mine).await;
    let others = [("acme", "bob"), ("other", "alice"), ("", "alice"), ("acme", ""), ("", ""), ("alice", "acme")];
    for other in others.map(|(tenant, owner)| scope(tenant, owner)) {
        assert_eq!(store.task(&other, &TaskId::from("t")).await.unwrap(), None, "{other}");
        assert_eq!(store.find_key(&other, &key("k", 0)).await.unwrap(), None, "{other}");
        sees_nothing(&*store, &other).await;
        // The same id belongs to somebody in every tenant, once.
        let mut same = task("t");
        same.scope = other.clone();
        if other.tenant != alice().tenant && !other.owner.is_empty() {
            let theirs = create(&*store, same).await;
            assert_eq!(store.task(&other, &TaskId::from("t")).await.unwrap().unwrap().key, theirs);
        }
    }
    let mine = store.task(&alice(), &TaskId::from("t")).await.unwrap().unwrap();
    assert_eq!((mine.key, mine.scope), (task_key, alice()));
    let mut taken = task("t");
    taken.scope = scope("acme", "bob");
    store.create(taken).await.unwrap_err();
    sees_nothing(&*store, &scope("acme", "bob")).await;
    assert_eq!(store.pushes(task_key).await.unwrap()[0].id, PushId::from("p"));
}

async fn sees_nothing(store: &dyn Store, scope: &Scope) {
    for state in [None, Some(SUBMITTED)] {
        for context_id in [None, Some(ContextId::from("context of t"))] {
            for since in [None, Some(0)] {
                let query = ListQuery { state, context_id: context_id.clone(), since, ..all(scope.clone()) };
                let page = store.list(query).await.unwrap();
                assert_eq!((page.tasks.len(), page.total, page.more), (0, 0, false), "{scope}");
            }
        }
    }
}
