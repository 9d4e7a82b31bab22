//! What servers that share a store have in common: who is alive, who writes, and who waits for whom.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use nuncio_protocol::ContextId;

use super::kit::*;
use crate::store::{Claim, Created, NewTask, Node, Progress, Shared, Store, TaskKey};

pub(super) fn shared(store: &dyn Store) -> &dyn Shared {
    store.shared().unwrap()
}

/// A task in this context, for this node.
fn in_context(id: &str, context: &str, node: &str) -> NewTask {
    NewTask { context_id: ContextId::from(context), lease: lease(node), ..task(id) }
}

async fn claim(store: &dyn Store, task: TaskKey, node: &str) -> Claim {
    let row = store.task_by_key(task).await.unwrap().unwrap();
    store.claim(task, row.epoch, lease(node), false).await.unwrap()
}

async fn startable(store: &dyn Store) -> Vec<String> {
    let rows = store.abandoned("n1", 100).await.unwrap();
    rows.iter().map(|row| row.id.to_string()).collect()
}

/// A node is alive from its first beat on, until it leaves or is silent for too long.
pub async fn a_node_is_alive_while_it_beats(store: Arc<dyn Store>) {
    let shared = shared(&*store);
    let (one, two): (Node, Node) = ("n1".into(), "n2".into());
    assert!(!shared.name().is_empty());
    assert!(shared.nodes().await.unwrap().is_empty());
    assert!(!shared.beat(&one, TTL).await.unwrap(), "it was not known");
    assert!(shared.beat(&one, TTL).await.unwrap());
    assert!(!shared.beat(&two, Duration::from_millis(1)).await.unwrap());
    while shared.nodes().await.unwrap().contains(&two) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(shared.nodes().await.unwrap(), std::slice::from_ref(&one));
    assert!(!shared.beat(&two, TTL).await.unwrap(), "it was not alive any more");
    assert_eq!(shared.nodes().await.unwrap(), [one.clone(), two.clone()], "but is again");
    shared.leave(&one).await.unwrap();
    shared.leave(&one).await.unwrap();
    assert_eq!(shared.nodes().await.unwrap(), [two]);
    assert!(!shared.beat(&one, TTL).await.unwrap());
}

/// Everybody can see who writes a task, and how far it has come.
pub async fn the_writer_of_a_task_is_known(store: Arc<dyn Store>) {
    let task_key = create(&*store, task("t")).await;
    let row = async || store.task_by_key(task_key).await.unwrap().unwrap();
    assert_eq!((row().await.leased, row().await.writer), (true, None), "it never was alive");
    alive(&*store, &["n1"]).await;
    assert_eq!(row().await.writer.as_deref(), Some("n1"));
    assert_eq!(store.task(&alice(), &row().await.id).await.unwrap().unwrap(), row().await);
    assert_eq!(store.list(all(alice())).await.unwrap().tasks, [row().await]);
    let held = async |node: &str| shared(&*store).held(&node.into()).await.unwrap();
    assert_eq!(held("n1").await, [(task_key, 1)]);
    assert!(held("n2").await.is_empty() && held("").await.is_empty());
    append(&*store, task_key, 2, |append| append.state = Some(WORKING)).await.unwrap();
    let progress = async || shared(&*store).progress(&[task_key, TaskKey(task_key.0 + 1_000)]).await.unwrap();
    let mut expected = Progress { task: task_key, epoch: 1, seq: 2, state: WORKING, alive: true };
    assert_eq!(progress().await, [expected]);
    gone(&*store, "n1").await;
    expected.alive = false;
    assert_eq!(progress().await, [expected]);
    assert_eq!((row().await.leased, row().await.writer), (true, None));
    assert!(shared(&*store).progress(&[]).await.unwrap().is_empty());
}

/// A second turn of a context waits until the first is over. Other callers have contexts of their own.
pub async fn a_context_has_one_turn_at_a_time(store: Arc<dyn Store>) {
    alive(&*store, &["n1", "n2"]).await;
    let first = create(&*store, in_context("1", "c", "n1")).await;
    let Created::Waiting(second) = store.create(in_context("2", "c", "n2")).await.unwrap() else {
        panic!("two turns of one context")
    };
    let row = store.task_by_key(second).await.unwrap().unwrap();
    assert_eq!((row.leased, row.writer, row.epoch, row.seq), (false, None, 1, 1));
    assert_eq!(replay(&*store, second).await.len(), 1);
    create(&*store, NewTask { scope: scope("acme", "bob"), ..in_context("3", "c", "n2") }).await;
    create(&*store, in_context("4", "d", "n2")).await;
    assert_eq!(claim(&*store, second, "n2").await, Claim::Busy);
    assert_eq!(claim(&*store, second, "n1").await, Claim::Busy, "not even on the same node");
    assert!(startable(&*store).await.is_empty());
    state(&*store, first, INPUT_REQUIRED, 10).await;
    assert_eq!(claim(&*store, second, "n2").await, Claim::Busy, "a turn that waits for an answer keeps it");
    state(&*store, first, COMPLETED, 20).await;
    assert!(!store.task_by_key(first).await.unwrap().unwrap().leased, "what is over has no writer");
    assert_eq!(startable(&*store).await, ["2"]);
    let taken = claim(&*store, second, "n2").await.taken().unwrap();
    assert_eq!((taken.epoch, taken.writer.as_deref()), (2, Some("n2")));
    // One that is over when it comes holds nothing.
    let done = NewTask { state: COMPLETED, ..in_context("5", "c", "n1") };
    let done = create(&*store, done).await;
    assert!(!store.task_by_key(done).await.unwrap().unwrap().leased);
}

/// Of many at once, one gets the context.
pub async fn one_of_many_gets_the_context(store: Arc<dyn Store>) {
    let nodes: Vec<String> = (0..8).map(|n| format!("n{n}")).collect();
    alive(&*store, &nodes.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let creates = nodes.iter().map(|node| {
        let (store, new) = (store.clone(), in_context(node, "c", node));
        tokio::spawn(async move { store.create(new).await.unwrap() })
    });
    let (mut made, mut waiting) = (Vec::new(), Vec::new());
    for create in creates.collect::<Vec<_>>() {
        match create.await.unwrap() {
            Created::New(task) => made.push(task),
            Created::Waiting(task) => waiting.push(task),
            known @ Created::Known(..) => panic!("{known:?}"),
        }
    }
    assert_eq!((made.len(), waiting.len()), (1, 7));
    state(&*store, made[0], COMPLETED, 10).await;
    let claims = waiting.iter().zip(&nodes).map(|(task, node)| {
        let (store, task, node) = (store.clone(), *task, node.clone());
        tokio::spawn(async move { claim(&*store, task, &node).await })
    });
    let mut taken = 0;
    for claim in claims.collect::<Vec<_>>() {
        taken += usize::from(claim.await.unwrap().taken().is_some());
    }
    assert_eq!(taken, 1);
}

/// Nobody takes a task away from a node that is alive.
pub async fn a_living_writer_keeps_its_task(store: Arc<dyn Store>) {
    alive(&*store, &["n1", "n2"]).await;
    let task_key = create(&*store, task("t")).await;
    assert_eq!(claim(&*store, task_key, "n2").await, Claim::Busy);
    assert_eq!(claim(&*store, task_key, "").await, Claim::Busy);
    assert_eq!(store.claim(task_key, 7, lease("n2"), false).await.unwrap(), Claim::Lost);
    append(&*store, task_key, 2, |_| ()).await.unwrap();
    let again = claim(&*store, task_key, "n1").await.taken().unwrap();
    assert_eq!((again.epoch, again.seq), (2, 2), "its own turn may begin anew");
    gone(&*store, "n1").await;
    let taken = claim(&*store, task_key, "n2").await.taken().unwrap();
    assert_eq!((taken.epoch, taken.writer.as_deref()), (3, Some("n2")));
    // A claim for nobody puts it back in line.
    let freed = claim(&*store, task_key, "").await;
    assert_eq!(freed, Claim::Busy, "n2 holds it");
    gone(&*store, "n2").await;
    let freed = claim(&*store, task_key, "").await.taken().unwrap();
    assert_eq!((freed.epoch, freed.leased), (4, false));
    assert_eq!(startable(&*store).await, ["t"]);
}

/// What nobody writes is taken up in the order of its arrival, one task of each context.
pub async fn waiting_tasks_are_startable_one_per_context(store: Arc<dyn Store>) {
    alive(&*store, &["n1", "n2"]).await;
    for (id, context, node, at) in
        [("1", "a", "", 50), ("2", "a", "", 10), ("3", "b", "n1", 20), ("4", "b", "", 5), ("5", "c", "n2", 30)]
    {
        let mut new = in_context(id, context, node);
        new.at = at;
        store.create(new).await.unwrap();
    }
    assert_eq!(startable(&*store).await, ["2"]);
    gone(&*store, "n2").await;
    assert_eq!(startable(&*store).await, ["2", "5"]);
    gone(&*store, "n1").await;
    // What has begun is taken up before what has not.
    assert_eq!(startable(&*store).await, ["2", "3", "5"]);
    assert_eq!(store.abandoned("n1", 2).await.unwrap().len(), 2);
}

/// A node that is gone keeps the context of what it worked on, until somebody takes that up; but not of what rests.
pub async fn what_rests_gives_its_context_back_when_its_node_is_gone(store: Arc<dyn Store>) {
    alive(&*store, &["n1", "n2"]).await;
    let works = create(&*store, in_context("works", "a", "n1")).await;
    let rests = create(&*store, in_context("rests", "b", "n1")).await;
    let asks = create(&*store, in_context("asks", "c", "n1")).await;
    state(&*store, rests, INPUT_REQUIRED, 10).await;
    state(&*store, asks, INPUT_REQUIRED, 10).await;
    let Created::Waiting(behind_work) = store.create(in_context("a2", "a", "n2")).await.unwrap() else { panic!() };
    let Created::Waiting(behind_rest) = store.create(in_context("b2", "b", "n2")).await.unwrap() else { panic!() };
    gone(&*store, "n1").await;
    assert_eq!(claim(&*store, behind_work, "n2").await, Claim::Busy);
    assert_eq!(startable(&*store).await, ["works", "b2"]);
    claim(&*store, behind_rest, "n2").await.taken().unwrap();
    // Were it only slow, it could not go on.
    let old = append(&*store, rests, 3, |append| append.state = Some(WORKING)).await;
    assert_eq!(old, Err(crate::store::AppendError::Fenced));
    create(&*store, in_context("c2", "c", "n2")).await;
    let old = append(&*store, asks, 3, |append| append.state = Some(WORKING)).await;
    assert_eq!(old, Err(crate::store::AppendError::Fenced));
    let taken = claim(&*store, works, "n2").await.taken().unwrap();
    assert_eq!(taken.epoch, 2);
}

/// A turn that is over gives its lease back, behind everything that it has written.
pub async fn a_release_comes_after_what_was_written(store: Arc<dyn Store>) {
    alive(&*store, &["n1", "n2"]).await;
    let shared = shared(&*store);
    let task_key = create(&*store, task("t")).await;
    shared.release(task_key, 7).await.unwrap();
    assert!(store.task_by_key(task_key).await.unwrap().unwrap().leased, "another epoch");
    let heard = Arc::new(Heard::default());
    for seq in 2..=400 {
        let mut next = event(task_key, seq, &heard);
        next.state = (seq == 400).then_some(INPUT_REQUIRED);
        next.snapshot = (seq == 400).then(|| Bytes::from("rests"));
        store.append(next);
    }
    shared.release(task_key, 1).await.unwrap();
    let row = store.task_by_key(task_key).await.unwrap().unwrap();
    assert_eq!((row.seq, row.state, row.leased, row.epoch), (400, INPUT_REQUIRED, false, 1));
    heard.outcome(400).await.unwrap();
    let taken = claim(&*store, task_key, "n2").await.taken().unwrap();
    assert_eq!(taken.epoch, 2);
    shared.release(task_key, 1).await.unwrap();
    assert!(store.task_by_key(task_key).await.unwrap().unwrap().leased, "that turn was over long ago");
}

/// What a caller has on all nodes together.
pub async fn the_load_of_a_caller_is_known(store: Arc<dyn Store>) {
    alive(&*store, &["n1", "n2"]).await;
    let load = async |owner: &str| shared(&*store).load(owner).await.unwrap();
    assert_eq!(load("alice").await, (0, 0));
    let done = create(&*store, in_context("1", "a", "n1")).await;
    create(&*store, in_context("2", "b", "n2")).await;
    create(&*store, in_context("3", "c", "")).await;
    store.create(in_context("4", "a", "n2")).await.unwrap();
    create(&*store, NewTask { scope: scope("other", "alice"), ..in_context("5", "a", "n2") }).await;
    create(&*store, NewTask { scope: scope("acme", "bob"), ..in_context("6", "a", "n2") }).await;
    assert_eq!(load("alice").await, (3, 2));
    assert_eq!(load("bob").await, (1, 0));
    state(&*store, done, COMPLETED, 10).await;
    assert_eq!(load("alice").await, (2, 2));
    gone(&*store, "n2").await;
    assert_eq!(load("alice").await, (0, 2));
}

/// Something is lent so often as fits, to everybody apart.
pub async fn what_is_used_up_is_lent_again_with_time(store: Arc<dyn Store>) {
    let (hour, shared) = (Duration::from_secs(3600), shared(&*store));
    // One now, and two ahead of time.
    assert_eq!(shared.borrow("alice", hour, hour * 2, 2).await.unwrap(), 2);
    assert_eq!(shared.borrow("alice", hour, hour * 2, 9).await.unwrap(), 1);
    assert_eq!(shared.borrow("alice", hour, hour * 2, 1).await.unwrap(), 0);
    assert_eq!(shared.borrow("bob", hour, Duration::ZERO, 5).await.unwrap(), 1);
    assert_eq!(shared.borrow("bob", hour, Duration::ZERO, 5).await.unwrap(), 0);
    let moment = Duration::from_millis(1);
    assert_eq!(shared.borrow("carol", moment, Duration::ZERO, 1).await.unwrap(), 1);
    while shared.borrow("carol", moment, Duration::ZERO, 1).await.unwrap() == 0 {
        tokio::time::sleep(moment).await;
    }
}
