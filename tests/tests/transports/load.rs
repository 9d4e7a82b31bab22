//! Many at once, and readers that take their time.

use std::collections::HashSet;
use std::time::Duration;

use nuncio_tests::{json, message, state};

use crate::kit::{ALL, By, House, Talk, until};

#[tokio::test]
async fn two_hundred_requests_at_once_are_answered_once_each() {
    let house = House::open("");
    for by in ALL {
        let mut talk = Talk::open(&house, by).await;
        let mut open = HashSet::new();
        for n in 0..200 {
            open.insert(talk.ask("SendMessage", &message(&format!("number {n}"))).await);
        }
        let mut texts = HashSet::new();
        while !open.is_empty() {
            let frame = talk.next().await.expect("an answer");
            assert!(open.remove(&frame.id.as_u64().expect("an id")), "{by:?}: twice {}", frame.id);
            let part = &frame.body["result"]["task"]["artifacts"][0]["parts"][0]["text"];
            texts.insert(part.as_str().expect("a text").to_owned());
        }
        assert_eq!(texts.len(), 200, "{by:?}");
    }
}

#[tokio::test]
async fn a_hundred_streams_share_a_connection_each_in_order() {
    let house = House::open("");
    for by in ALL {
        let mut talk = Talk::open(&house, by).await;
        let mut last = std::collections::HashMap::new();
        for _ in 0..100 {
            last.insert(talk.ask("SendStreamingMessage", &message("stream 5 5")).await, 0);
        }
        let mut done = 0;
        while done < 100 {
            let frame = talk.next().await.expect("a frame");
            let seen = last.get_mut(&frame.id.as_u64().expect("an id")).expect("a stream of ours");
            match frame.event {
                Some(event) => {
                    assert_eq!(event, *seen + 1, "{by:?}");
                    *seen = event;
                }
                None => {
                    assert!(frame.last, "{by:?}: {frame:?}");
                    done += 1;
                }
            }
        }
        assert!(last.values().all(|events| *events == 8), "{by:?}: {last:?}");
    }
}

#[tokio::test]
async fn streams_do_not_keep_other_requests_from_being_answered() {
    let house = House::open("");
    for by in ALL {
        let mut talk = Talk::open(&house, by).await;
        let mut tasks = Vec::new();
        for _ in 0..80 {
            let id = talk.ask("SendStreamingMessage", &message("hold")).await;
            tasks.push(talk.next_of(id).await.body["result"]["task"]["id"].clone());
        }
        talk.send("in between").await;
        for task in tasks {
            let canceled = talk.call("CancelTask", json!({ "id": task })).await;
            assert_eq!(state(&canceled["result"]), "CANCELED", "{by:?}");
        }
    }
}

#[tokio::test]
async fn a_reader_who_takes_its_time_costs_no_memory_and_loses_nothing() {
    let house = House::open("");
    house.server.send("warm up").await;
    for by in [By::Unix, By::WebSocket] {
        let mut talk = Talk::open(&house, by).await;
        let before = house.server.resident_kib();
        let stream = talk.ask("SendStreamingMessage", &message("burst 30000")).await;
        let task = talk.next_of(stream).await.body["result"]["task"]["id"].clone();
        let task = task.as_str().expect("an id").to_owned();
        // Nobody reads until the task is long over.
        let mut other = Talk::open(&house, by).await;
        until("the task is over", async || {
            let task = other.call("GetTask", json!({ "id": task })).await;
            state(&task["result"]) == "COMPLETED"
        })
        .await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let grown = house.server.resident_kib().saturating_sub(before);
        assert!(grown < 96 << 10, "{by:?}: {grown} KiB more");
        let mut seen = 1;
        loop {
            let frame = talk.next_of(stream).await;
            if frame.last {
                break;
            }
            seen += 1;
            assert_eq!(frame.event, Some(seen), "{by:?}");
        }
        assert_eq!(seen, 30_003, "{by:?}");
    }
}

#[tokio::test]
async fn a_connection_that_waits_holds_little_memory() {
    const CONNECTIONS: u64 = 200;
    let house = House::open("");
    for by in [By::Unix, By::WebSocket] {
        let task = Talk::open(&house, by).await.send("warm up").await;
        let before = house.server.resident_kib();
        let mut open = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut talk = Talk::open(&house, by).await;
            talk.call("GetTask", json!({ "id": task["id"] })).await;
            open.push(talk);
        }
        let each = house.server.resident_kib().saturating_sub(before) / CONNECTIONS;
        assert!(each < 64, "{by:?}: {each} KiB each");
    }
}
