//! What nodes ask of each other: messages, cancellations and webhooks.

use std::sync::Arc;

use bytes::Bytes;
use nuncio_protocol::PushId;

use super::kit::*;
use super::shared::shared;
use crate::store::{AppendError, Letter, LetterId, Node, Order, Posted, PushConfig, Store, TaskKey, WAITING};

fn letter(text: &str, name: Option<&str>) -> Letter {
    Letter { message: Bytes::from(text.to_owned()), key: name.map(|name| key(name, 3)), at: 5 }
}

async fn orders(store: &dyn Store, node: &str) -> Vec<Order> {
    shared(store).orders(&node.into()).await.unwrap()
}

/// A letter reaches the node that writes the task, is taken with one event, and says so.
pub async fn a_letter_is_taken_with_its_event(store: Arc<dyn Store>) {
    alive(&*store, &["n1", "n2"]).await;
    let (task_key, other) = (create(&*store, task("t")).await, create(&*store, task("u")).await);
    let post = async |text: &str, name| shared(&*store).post(task_key, letter(text, name)).await.unwrap();
    let (one, two) = (post("one", None).await, post("two\0", Some("k\0")).await);
    let expected = [
        Order::Deliver(task_key, one, letter("one", None)),
        Order::Deliver(task_key, two, letter("two\0", Some("k\0"))),
    ];
    assert_eq!(orders(&*store, "n1").await, expected);
    assert!(orders(&*store, "n2").await.is_empty());
    assert_eq!(shared(&*store).posted(one).await.unwrap(), Posted::Waits);

    take(&*store, task_key, 2, one, Some("first")).await.unwrap();
    assert_eq!(shared(&*store).posted(one).await.unwrap(), Posted::Taken(2));
    assert_eq!(orders(&*store, "n1").await, expected[1..]);
    assert_eq!(take(&*store, task_key, 3, one, None).await, Err(AppendError::Recalled), "taken once");
    assert_eq!(take(&*store, other, 2, LetterId(two.0 + 5_000), None).await, Err(AppendError::Recalled));
    assert_eq!(store.messages(task_key).await.unwrap().len(), 1);
    // An old writer takes nothing along.
    gone(&*store, "n1").await;
    store.claim(task_key, 1, lease("n2"), false).await.unwrap().taken().unwrap();
    assert_eq!(take(&*store, task_key, 3, two, None).await, Err(AppendError::Fenced));
    assert_eq!(orders(&*store, "n2").await, expected[1..]);
    assert_eq!(shared(&*store).recall(one).await.unwrap(), Posted::Taken(2));
    assert_eq!(shared(&*store).posted(LetterId(two.0 + 5_000)).await.unwrap(), Posted::Gone);
}

/// A letter that was taken back is not delivered, whoever has read it.
pub async fn a_letter_can_be_recalled_until_it_is_taken(store: Arc<dyn Store>) {
    alive(&*store, &["n1"]).await;
    let task_key = create(&*store, task("t")).await;
    let id = shared(&*store).post(task_key, letter("one", None)).await.unwrap();
    assert_eq!(shared(&*store).recall(id).await.unwrap(), Posted::Waits);
    assert_eq!(shared(&*store).recall(id).await.unwrap(), Posted::Gone);
    assert_eq!(shared(&*store).posted(id).await.unwrap(), Posted::Gone);
    assert!(orders(&*store, "n1").await.is_empty());
    let before = store.task_by_key(task_key).await.unwrap();
    assert_eq!(take(&*store, task_key, 2, id, Some("k")).await, Err(AppendError::Recalled));
    assert_eq!(store.task_by_key(task_key).await.unwrap(), before);
    assert!(store.messages(task_key).await.unwrap().is_empty());
    assert_eq!(store.find_key(&alice(), &key("k", 0)).await.unwrap(), None);
    append(&*store, task_key, 2, |_| ()).await.unwrap();

    // A key that was used leaves the letter where it is.
    append(&*store, task_key, 3, |append| append.key = Some(key("used", 0))).await.unwrap();
    let id = shared(&*store).post(task_key, letter("two", Some("used"))).await.unwrap();
    assert_eq!(take(&*store, task_key, 4, id, Some("used")).await, Err(AppendError::KeyUsed));
    assert_eq!(shared(&*store).posted(id).await.unwrap(), Posted::Waits);

    // Whoever is first wins.
    for n in 0..20 {
        let task_key = create(&*store, task(&format!("race {n}"))).await;
        let id = shared(&*store).post(task_key, letter("three", None)).await.unwrap();
        let racer = store.clone();
        let taking = tokio::spawn(async move { take(&*racer, task_key, 2, id, None).await });
        let recalled = shared(&*store).recall(id).await.unwrap();
        match taking.await.unwrap() {
            Ok(()) => assert_eq!(recalled, Posted::Taken(2)),
            Err(error) => assert_eq!((error, recalled), (AppendError::Recalled, Posted::Waits)),
        }
    }
}

async fn take(
    store: &dyn Store,
    task: TaskKey,
    seq: u64,
    letter: LetterId,
    name: Option<&str>,
) -> Result<(), AppendError> {
    append(store, task, seq, |append| {
        append.letter = Some(letter);
        append.message = Some(Bytes::from("message"));
        append.key = name.map(|name| key(name, 0));
    })
    .await
}

/// Whoever writes the task, now or later, is asked to end it, until it is over.
pub async fn a_cancellation_is_told_until_the_task_is_over(store: Arc<dyn Store>) {
    alive(&*store, &["n1", "n2"]).await;
    let shared = shared(&*store);
    let (task_key, other) = (create(&*store, task("t")).await, create(&*store, task("u")).await);
    assert!(!shared.is_cancel_asked(task_key).await.unwrap());
    shared.ask_cancel(task_key).await.unwrap();
    shared.ask_cancel(task_key).await.unwrap();
    assert!(shared.is_cancel_asked(task_key).await.unwrap() && !shared.is_cancel_asked(other).await.unwrap());
    for _ in 0..2 {
        assert_eq!(orders(&*store, "n1").await, [Order::Cancel(task_key)]);
    }
    assert!(orders(&*store, "n2").await.is_empty());
    gone(&*store, "n1").await;
    store.claim(task_key, 1, lease("n2"), false).await.unwrap().taken().unwrap();
    assert_eq!(orders(&*store, "n2").await, [Order::Cancel(task_key)]);
    state(&*store, task_key, crate::store::State(5), 10).await;
    assert!(orders(&*store, "n2").await.is_empty());
    shared.ask_cancel(task_key).await.unwrap();
    assert!(orders(&*store, "n2").await.is_empty());
}

fn hook(id: &str, due: Option<i64>, node: Option<&str>) -> PushConfig {
    PushConfig { node: node.map(Into::into), ..config(id, due) }
}

/// A webhook is in the hand of one node. What a node leaves behind that still has something to do goes to another.
pub async fn webhooks_are_in_the_hand_of_one_node(store: Arc<dyn Store>) {
    alive(&*store, &["n1", "n2"]).await;
    let shared = shared(&*store);
    let task_key = create(&*store, task("t")).await;
    for (id, due, node) in [
        ("a", Some(30), Some("n1")),
        ("b", Some(WAITING), Some("n1")),
        ("c", None, Some("n1")),
        ("d", Some(10), None),
        ("e", Some(20), Some("n2")),
    ] {
        store.put_push(task_key, hook(id, due, node)).await.unwrap();
    }
    let due = async |node: &str| -> Vec<String> {
        let due = store.due_pushes(node, 100, 10).await.unwrap();
        due.into_iter().map(|(_, push)| push.id.to_string()).collect()
    };
    assert_eq!((due("n1").await, due("n2").await), (vec!["a".to_owned()], vec!["e".to_owned()]));
    let (one, two): (Node, Node) = ("n1".into(), "n2".into());
    let taken = shared.take_pushes(&two, 50, 10).await.unwrap();
    let expected = PushConfig { epoch: 1, ..hook("d", Some(10), Some("n2")) };
    assert_eq!(taken, [(task_key, expected)], "only what nobody had");
    assert!(shared.take_pushes(&two, 50, 10).await.unwrap().is_empty());
    gone(&*store, "n1").await;
    assert_eq!(shared.take_pushes(&two, 60, 1).await.unwrap().len(), 1);
    assert_eq!(shared.take_pushes(&two, 60, 10).await.unwrap().len(), 1);
    let pushes = store.pushes(task_key).await.unwrap();
    let now: Vec<_> = pushes.iter().map(|push| (push.due, push.epoch, push.node.as_deref())).collect();
    assert_eq!(now[0], (Some(30), 1, Some("n2")));
    assert_eq!(now[1], (Some(60), 1, Some("n2")), "what waited may have missed something");
    assert_eq!(now[2], (None, 0, Some("n1")), "there is nothing more to do");
    assert_eq!(due("n2").await, ["d", "e", "a", "b"]);
    // What the former one reports is out of date.
    assert!(!store.advance_push(task_key, hook("a", None, Some("n1"))).await.unwrap());
    let report = PushConfig { epoch: 1, acked: 3, ..hook("a", None, Some("n2")) };
    assert!(store.advance_push(task_key, report).await.unwrap());
    assert!(store.due_pushes("n1", 100, 10).await.unwrap().is_empty());
    assert!(shared.take_pushes(&one, 70, 10).await.unwrap().is_empty());
}

/// One webhook can be taken in hand by itself, but not out of the hand of a node that is alive.
pub async fn one_webhook_can_be_taken_in_hand(store: Arc<dyn Store>) {
    alive(&*store, &["n1", "n2"]).await;
    let task_key = create(&*store, task("t")).await;
    store.put_push(task_key, hook("p", Some(1), Some("n1"))).await.unwrap();
    let id = PushId::from("p");
    let take = async |node: &str| shared(&*store).take_push(task_key, &id, &node.into()).await.unwrap();
    let now = async || {
        let push = store.pushes(task_key).await.unwrap().remove(0);
        (push.node.map(|node| node.to_string()), push.epoch)
    };
    assert!(take("n1").await && !take("n2").await);
    assert_eq!(now().await, (Some("n1".into()), 0));
    gone(&*store, "n1").await;
    assert!(take("n2").await);
    assert_eq!(now().await, (Some("n2".into()), 1));
    assert!(!shared(&*store).take_push(task_key, &PushId::from("q"), &"n2".into()).await.unwrap());
}

/// However many nodes look for webhooks at once, each goes to one of them.
pub async fn no_webhook_is_taken_twice(store: Arc<dyn Store>) {
    let task_key = create(&*store, task("t")).await;
    for n in 0..60 {
        store.put_push(task_key, hook(&format!("p{n:02}"), Some(n), Some("gone"))).await.unwrap();
    }
    let takers = (0..4).map(|n| {
        let (store, node): (_, Node) = (store.clone(), format!("n{n}").into());
        tokio::spawn(async move {
            shared(&*store).beat(&node, TTL).await.unwrap();
            let mut taken = Vec::new();
            loop {
                let some = shared(&*store).take_pushes(&node, 100, 7).await.unwrap();
                let all = store.pushes(task_key).await.unwrap();
                if some.is_empty() && all.iter().all(|push| push.node.as_deref() != Some("gone")) {
                    return taken;
                }
                taken.extend(some.into_iter().map(|(_, push)| push.id.to_string()));
            }
        })
    });
    let mut all = Vec::new();
    for taker in takers.collect::<Vec<_>>() {
        all.extend(taker.await.unwrap());
    }
    all.sort();
    assert_eq!(all, (0..60).map(|n| format!("p{n:02}")).collect::<Vec<_>>());
    assert!(store.pushes(task_key).await.unwrap().iter().all(|push| push.epoch == 1));
}
