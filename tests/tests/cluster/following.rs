//! Reading on one server what happens on another.

use nuncio_tests::{Bus, Cluster, Sse, Value, answer, at_once, client, id, json, message, state};

#[tokio::test]
async fn a_subscriber_elsewhere_sees_every_event_with_every_bus() {
    for bus in [Bus::Redis, Bus::Postgres, Bus::None] {
        let cluster = Cluster::start(2, bus, "");
        let [here, there] = &cluster.replicas[..] else { panic!("two of them") };
        follows(here, there).await;
        follows(there, here).await;
    }
}

#[tokio::test]
async fn without_its_bus_a_subscriber_elsewhere_still_sees_every_event() {
    let mut cluster = Cluster::start(2, Bus::Redis, "");
    cluster.redis.as_mut().unwrap().kill();
    follows(&cluster.replicas[0], &cluster.replicas[1]).await;
    for replica in &cluster.replicas {
        let ready = client().get(format!("{}/ready", replica.url)).send().await.unwrap();
        assert_eq!(ready.status(), 200, "slower is not broken: {}", ready.text().await.unwrap());
    }
    cluster.redis.as_mut().unwrap().up();
    follows(&cluster.replicas[1], &cluster.replicas[0]).await;
}

/// A task that runs here is followed there from its first event and from the middle.
async fn follows(here: &nuncio_tests::Server, there: &nuncio_tests::Server) {
    let mut stream = here.stream("stream 60 20").await;
    let task = stream.next().await.unwrap().body()["task"]["id"].as_str().unwrap().to_owned();
    let from_the_start = there.subscribe(&task, Some(0)).await;
    let mut from_now = there.subscribe(&task, None).await;
    let now = from_now.next().await.unwrap();
    let (all, rest) = tokio::join!(from_the_start.all(), from_now.all());
    assert_eq!(all.last().unwrap().state(), "TASK_STATE_COMPLETED");
    assert_eq!(all.iter().map(|event| event.id.unwrap()).collect::<Vec<_>>(), (1..=63).collect::<Vec<u64>>());
    let after = usize::try_from(now.id.unwrap()).unwrap();
    assert_eq!(rest, all[after..], "after {after}");
    assert_eq!(here.log(&task).await, all, "the same on both");
    assert_eq!(stream.all().await, all[1..]);
}

#[tokio::test]
async fn a_stream_of_one_task_is_the_same_over_every_binding_on_another_server() {
    let cluster = Cluster::start(2, Bus::Redis, "");
    let [here, there] = &cluster.replicas[..] else { panic!("two of them") };
    let task = here.send_params(at_once(message("stream 20 20"))).await;
    for wire in nuncio_tests::Wire::ALL {
        let events = Sse::open(wire.subscribe(there, id(&task), Some(0))).await.all().await;
        assert_eq!(events.len(), 23, "{wire:?}");
    }
}

#[tokio::test]
async fn get_and_list_answer_the_same_everywhere() {
    let cluster = Cluster::start(3, Bus::Redis, "");
    let mut sent = Vec::new();
    for n in 0..9 {
        sent.push(cluster.replicas[n % 3].send(&format!("stream {n}")).await);
    }
    for task in &sent {
        for replica in &cluster.replicas {
            assert_eq!(&replica.task(id(task)).await, task);
        }
    }
    let mut lists = Vec::new();
    for replica in &cluster.replicas {
        lists.push(replica.rpc("ListTasks", json!({ "includeArtifacts": true })).await["result"].clone());
    }
    assert_eq!(lists[0]["totalSize"], 9);
    assert!(lists.iter().all(|list| *list == lists[0]), "{lists:?}");
}

#[tokio::test]
async fn a_blocking_send_elsewhere_waits_for_the_turn_that_runs_here() {
    let cluster = Cluster::start(2, Bus::Redis, "");
    let [here, there] = &cluster.replicas[..] else { panic!("two of them") };
    let send = |server: &nuncio_tests::Server, params: &Value| {
        answer(server.rpc_request("SendMessage", params).header("Idempotency-Key", "once"))
    };
    let (_, first) = send(here, &at_once(message("sleep 1"))).await;
    let (_, second) = send(there, &message("sleep 1")).await;
    assert_eq!(second["result"]["task"]["id"], first["result"]["task"]["id"]);
    assert_eq!(state(&second["result"]["task"]), "COMPLETED");
}

#[tokio::test]
async fn a_large_file_is_served_by_every_replica() {
    let cluster = Cluster::start(2, Bus::Redis, "");
    let [here, there] = &cluster.replicas[..] else { panic!("two of them") };
    let task = here.send("file data.bin 1000000").await;
    let url = task["artifacts"][0]["parts"][0]["url"].as_str().expect("an address").to_owned();
    let path = url.split_once("/artifacts/").map(|(_, rest)| format!("/artifacts/{rest}")).unwrap();
    let mut bodies = Vec::new();
    for replica in [here, there] {
        let file = replica.get(&path).send().await.unwrap();
        assert_eq!(file.status(), 200);
        bodies.push(file.bytes().await.unwrap());
    }
    assert_eq!(bodies[0].len(), 1_000_000);
    assert!(bodies[0] == bodies[1], "the same bytes");
}
