//! Acting on one server upon what runs on another.

use nuncio_tests::{
    Bus, Cluster, PATIENCE, Server, Value, answer, at_once, follow_up, id, in_context, json, message, state, texts,
};
use tokio::task::JoinSet;

use crate::logbook::{Logbook, Run};

fn said(task: &Value) -> Vec<&str> {
    let history = task["history"].as_array().expect("a history");
    history.iter().filter_map(|message| message["parts"][0]["text"].as_str()).collect()
}

#[tokio::test]
async fn a_message_for_a_turn_that_runs_elsewhere_becomes_its_next_turn() {
    let all = [Bus::Redis, Bus::Postgres, Bus::None].map(|bus| async move {
        let cluster = Cluster::start(2, bus, "");
        let [here, there] = &cluster.replicas[..] else { panic!("two of them") };
        let task = here.send_params(at_once(message("sleep 5"))).await;
        there.until(id(&task), "WORKING").await;
        let over = there.send_params(follow_up(&task, "stream 3")).await;
        assert_eq!(state(&over), "COMPLETED", "{over}");
        assert!(texts(&over).concat().contains("chunk 2"), "{over}");
        assert_eq!(said(&over).iter().filter(|text| **text == "stream 3").count(), 1, "{over}");
        assert_eq!(here.task(id(&task)).await, over);
    });
    futures_util::future::join_all(all).await;
}

#[tokio::test]
async fn a_repeated_message_for_a_turn_elsewhere_is_delivered_once() {
    let cluster = Cluster::start(3, Bus::Redis, "");
    let task = cluster.replicas[0].send_params(at_once(message("hold"))).await;
    let mut calls = JoinSet::new();
    for n in 0..12 {
        let request = cluster.replicas[n % 3].rpc_request("SendMessage", &at_once(follow_up(&task, "again")));
        calls.spawn(answer(request.header("Idempotency-Key", "again")));
    }
    for (_, answer) in calls.join_all().await {
        assert_eq!(answer["result"]["task"]["id"], task["id"], "{answer}");
    }
    let canceled = cluster.replicas[1].cancel(id(&task)).await;
    assert_eq!(said(&canceled).iter().filter(|text| **text == "again").count(), 1, "{canceled}");
}

#[tokio::test]
async fn a_task_holds_as_many_messages_on_all_replicas_together() {
    let cluster = Cluster::start(2, Bus::Redis, "max-history: 4\n");
    let [here, there] = &cluster.replicas[..] else { panic!("two of them") };
    let task = here.send_params(at_once(message("hold"))).await;
    there.until(id(&task), "WORKING").await;
    let mut calls = JoinSet::new();
    for n in 0..9 {
        let params = at_once(follow_up(&task, &format!("message {n}")));
        calls.spawn(answer(there.rpc_request("SendMessage", &params)));
    }
    let answers: Vec<Value> = calls.join_all().await.into_iter().map(|(_, answer)| answer).collect();
    let refused: Vec<&Value> = answers.iter().map(|answer| &answer["error"]).filter(|error| !error.is_null()).collect();
    assert_eq!(refused.len(), 6, "{answers:?}");
    for error in refused {
        assert_eq!(error["code"], -32004, "{error}");
        assert!(error["message"].as_str().unwrap().contains("contextId"), "{error}");
    }
    assert_eq!(said(&here.task(id(&task)).await).len(), 4);
}

#[tokio::test]
async fn a_turn_is_canceled_from_every_replica() {
    for bus in [Bus::Redis, Bus::Postgres, Bus::None] {
        let cluster = Cluster::start(3, bus, "");
        for from in &cluster.replicas {
            let task = cluster.replicas[0].send_params(at_once(message("hold"))).await;
            cluster.replicas[0].until(id(&task), "WORKING").await;
            let canceled = from.cancel(id(&task)).await;
            assert_eq!(state(&canceled), "CANCELED");
            for replica in &cluster.replicas {
                assert_eq!(state(&replica.task(id(&task)).await), "CANCELED");
            }
        }
    }
}

#[tokio::test]
async fn a_task_that_waits_in_the_queue_is_canceled_from_another_replica() {
    let cluster = Cluster::start(2, Bus::Redis, "max-running-turns: 1\n");
    let [here, there] = &cluster.replicas[..] else { panic!("two of them") };
    let mut busy = Vec::new();
    for server in [here, there] {
        let hold = server.send_params(at_once(message("hold"))).await;
        server.until(id(&hold), "WORKING").await;
        busy.push(hold);
    }
    let waiting = here.send_params(at_once(message("hold"))).await;
    assert_eq!(state(&waiting), "SUBMITTED");
    assert_eq!(state(&there.cancel(id(&waiting)).await), "CANCELED");
    for hold in busy {
        assert_eq!(state(&there.cancel(id(&hold)).await), "CANCELED");
    }
}

#[tokio::test]
async fn a_question_is_answered_on_another_replica() {
    let cluster = Cluster::start(2, Bus::Redis, "");
    let [here, there] = &cluster.replicas[..] else { panic!("two of them") };
    let asked = here.send("ask colour?").await;
    assert_eq!(state(&asked), "INPUT_REQUIRED");
    let done = there.send_params(follow_up(&asked, "red")).await;
    assert_eq!((state(&done), texts(&done)), ("COMPLETED", vec!["red".to_owned()]));
    assert_eq!(said(&done), ["ask colour?", "colour?", "red"]);
    for (word, outcome) in [("y", "approved"), ("n", "denied")] {
        let asked = here.send("approve rm -rf build").await;
        assert_eq!(texts(&there.send_params(follow_up(&asked, word)).await), [outcome]);
    }
    // Also where the first one is gone.
    let asked = here.send("ask colour?").await;
    let mut cluster = cluster;
    cluster.replicas[0].lose();
    let done = cluster.replicas[1].send_params(follow_up(&asked, "blue")).await;
    assert_eq!((state(&done), texts(&done)), ("COMPLETED", vec!["blue".to_owned()]));
}

#[tokio::test]
async fn turns_of_one_context_run_one_after_the_other_on_all_replicas_together() {
    let logbook = Logbook::new();
    let cluster = Cluster::start(3, Bus::Redis, &logbook.config());
    let first = cluster.replicas[0].send_params(logbook.work("first", 2, 10)).await;
    assert_eq!(state(&first), "COMPLETED", "{first}");
    let mut calls = JoinSet::new();
    for n in 0..9 {
        let mut params = logbook.work(&format!("turn-{n}"), 5, 20);
        params["message"]["contextId"] = first["contextId"].clone();
        calls.spawn(answer(cluster.replicas[n % 3].rpc_request("SendMessage", &params)));
    }
    for (_, answer) in calls.join_all().await {
        assert_eq!(state(&answer["result"]["task"]), "COMPLETED", "{answer}");
    }
    let mut runs = logbook.runs();
    assert_eq!(runs.len(), 10);
    runs.sort_by_key(Run::start);
    for pair in runs.windows(2) {
        assert!(pair[0].end() <= pair[1].start(), "{} and {} at once", pair[0].name, pair[1].name);
    }
}

#[tokio::test]
async fn a_conversation_goes_on_wherever_its_next_message_arrives() {
    let cluster = Cluster::start(2, Bus::Redis, "");
    let [here, there] = &cluster.replicas[..] else { panic!("two of them") };
    let first = here.send("hello").await;
    for (n, server) in [there, here, there].into_iter().enumerate() {
        let next = server.send_params(in_context(&first["contextId"], &format!("again {n}"))).await;
        assert_eq!((state(&next), &next["contextId"]), ("COMPLETED", &first["contextId"]));
    }
    let (_, list) = answer(here.get(&format!("/tasks?contextId={}", first["contextId"].as_str().unwrap()))).await;
    assert_eq!(list["totalSize"], 4);
}

/// What a replica answers to this key, as a task.
async fn once(server: &Server, key: &str) -> Value {
    let request = server.post("/message:send", &message("stream 3")).header("Idempotency-Key", key);
    let sent = tokio::time::timeout(PATIENCE, answer(request)).await.expect("an answer");
    assert_eq!(sent.0, 200, "{}", sent.1);
    sent.1["task"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_sends_of_one_key_on_three_replicas_run_once() {
    let cluster = std::sync::Arc::new(Cluster::start(3, Bus::Redis, ""));
    for round in 0..5 {
        let mut calls = JoinSet::new();
        for n in 0..20 {
            let cluster = cluster.clone();
            calls.spawn(async move { once(&cluster.replicas[n % 3], &format!("k-{round}")).await });
        }
        let tasks = calls.join_all().await;
        assert!(tasks.iter().all(|task| *task == tasks[0]), "{tasks:?}");
    }
    let list = cluster.replicas[0].rpc("ListTasks", json!({})).await;
    assert_eq!(list["result"]["totalSize"], 5);
}
