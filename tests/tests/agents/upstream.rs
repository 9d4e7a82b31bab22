//! Another A2A agent behind this server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nuncio_tests::{
    PATIENCE, Server, SseEvent, Value, Wire, answer, at_once, client, follow_up, id, in_context, json, message, state,
    texts, words,
};

mod door;
mod hostile;

use door::{Door, Reply};

const INPUT: &str = "urn:nuncio:a2a:input:v1";
const HITL: &str = "https://kagent.dev/extensions/hitl/v1";

/// A server in front of an address.
fn front(url: &str, more: &str) -> Server {
    Server::configured(&format!("agent: upstream\nupstream: {url}\n{more}\n"))
}

/// A demo that shows only a card of 0.3.
fn old() -> Server {
    Server::configured("card-format: \"0.3\"")
}

/// What `stream N` says.
fn chunks(n: usize) -> Vec<String> {
    (0..n).map(|n| format!("chunk {n}")).collect()
}

fn chunks_of(events: &[SseEvent]) -> Vec<String> {
    events.iter().filter_map(SseEvent::chunk).map(str::to_owned).collect()
}

/// The text of all parts of all chunks.
fn text_of(events: &[SseEvent]) -> String {
    let parts = |event: &SseEvent| event.body()["artifactUpdate"]["artifact"]["parts"].as_array().cloned();
    let all = events.iter().filter_map(parts).flatten();
    all.filter_map(|part| part["text"].as_str().map(str::to_owned)).collect()
}

/// The newest tasks of a server.
async fn tasks(server: &Server) -> Vec<Value> {
    let answer = server.rpc("ListTasks", json!({})).await;
    answer["result"]["tasks"].as_array().expect("tasks").clone()
}

/// The only task of a server, as soon as it is in this state.
async fn only(server: &Server, wanted: &str) -> Value {
    let until = Instant::now() + PATIENCE;
    loop {
        let tasks = tasks(server).await;
        assert!(tasks.len() <= 1, "{tasks:?}");
        if tasks.first().is_some_and(|task| state(task) == wanted) {
            return tasks[0].clone();
        }
        assert!(Instant::now() < until, "{wanted} is not reached: {tasks:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn every_chunk_comes_through_every_binding_and_version() {
    let back = Server::start(&["--store", "memory"]);
    for (binding, version) in [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3"), ("HTTP+JSON", "0.3")] {
        let door = Door::to(&back.url, binding, version, true).await;
        let front = front(&door.url, "store: memory");
        for wire in Wire::ALL {
            let events = nuncio_tests::Sse::open(wire.stream(&front, "stream 500 1")).await.all().await;
            assert_eq!(chunks_of(&events), chunks(500), "{wire:?} over {binding} {version}");
        }
        let version = format!("a2a-version: {version}");
        assert!(door.heads().iter().filter(|head| head.starts_with("POST")).all(|head| head.contains(&version)));
        let task = front.send("stream 50").await;
        assert_eq!((state(&task), texts(&task)), ("COMPLETED", vec![chunks(50).concat()]));
    }
}

#[tokio::test]
async fn an_agent_of_0_3_is_shown_with_its_skills_and_our_address() {
    let back = old();
    let front = front(&back.url, "name: front\ntokens: [{ name: me, token: secret-of-the-front-0123 }]");
    let card = front.get("/.well-known/agent-card.json").send().await.unwrap().json::<Value>().await.unwrap();
    assert_eq!(card["name"], "front");
    assert!(card["skills"].as_array().unwrap().iter().any(|skill| skill["id"] == "stream"), "{card}");
    let interfaces = card["supportedInterfaces"].as_array().unwrap();
    assert!(
        interfaces.iter().all(|one| one["url"].as_str().unwrap().contains(front.url.trim_start_matches("http://"))),
        "{card}"
    );
    assert!(card["securitySchemes"]["bearerAuth"].is_object(), "{card}");
    let uris: Vec<&str> =
        card["capabilities"]["extensions"].as_array().unwrap().iter().filter_map(|one| one["uri"].as_str()).collect();
    let mut once = uris.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), uris.len(), "each once: {uris:?}");
}

#[tokio::test]
async fn an_address_alone_says_what_it_is() {
    let back = Server::start(&["--store", "memory"]);
    let front = Server::start(&["--store", "memory", "--upstream", &back.url]);
    assert_eq!(texts(&front.send("hello").await), ["hello"]);
    assert_eq!(tasks(&back).await.len(), 1);
}

#[tokio::test]
async fn an_agent_that_does_not_stream_is_asked_again_and_again() {
    let back = Server::start(&["--store", "memory"]);
    let door = Door::to(&back.url, "JSONRPC", "1.0", false).await;
    let front = front(&door.url, "store: memory");
    let task = front.send("stream 40 40").await;
    assert_eq!((state(&task), texts(&task)), ("COMPLETED", vec![chunks(40).concat()]));
    assert_eq!(front.send("usage").await["metadata"], back.send("usage").await["metadata"]);
}

#[tokio::test]
async fn a_cancel_is_passed_on() {
    for version in ["0.3", "1.0"] {
        let back = Server::configured(&format!("card-format: \"{version}\""));
        let front = front(&back.url, "");
        let task = front.send_async("hold").await;
        only(&back, "WORKING").await;
        assert_eq!(state(&front.cancel(id(&task)).await), "CANCELED");
        only(&back, "CANCELED").await;
    }
}

#[tokio::test]
async fn a_cancel_at_any_moment_leaves_no_work_behind() {
    let back = Server::start(&["--store", "memory"]);
    let front = front(&back.url, "store: memory");
    for n in 0..20 {
        let task = front.send_async("hold").await;
        tokio::time::sleep(Duration::from_millis(n)).await;
        assert_eq!(state(&front.cancel(id(&task)).await), "CANCELED");
    }
    let until = Instant::now() + PATIENCE;
    while back.count("WORKING").await + back.count("SUBMITTED").await > 0 {
        assert!(Instant::now() < until, "work is left: {:?}", tasks(&back).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The agent fails at first, so that the message is about to be sent again when the task is canceled.
#[tokio::test]
async fn what_is_canceled_is_not_sent_again() {
    let back = Server::start(&["--store", "memory"]);
    let (address, broken) = (back.url.trim_start_matches("http://").to_owned(), Arc::new(AtomicBool::new(true)));
    let is_broken = broken.clone();
    let door = Door::open(move |head, own| match door::asks_for_card(head) {
        true => Reply::With(door::ok(&door::card(own, "JSONRPC", "1.0", true))),
        false if is_broken.load(Ordering::SeqCst) => Reply::With(door::response("503 Service Unavailable", "{}")),
        false => Reply::Through(address.clone()),
    });
    let door = door.await;
    let front = front(&door.url, "store: memory\ncancel-grace: 30s");
    let sends = || door.heads().iter().filter(|head| head.starts_with("POST")).count();
    let task = front.send_async("hold").await;
    let until = Instant::now() + PATIENCE;
    // By now the pauses between two attempts are long.
    while sends() < 4 {
        assert!(Instant::now() < until, "it is not tried again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    broken.store(false, Ordering::SeqCst);
    let before = sends();
    // The answer comes when the turn has ended, and with it everything that it sends.
    assert_eq!(state(&front.cancel(id(&task)).await), "CANCELED");
    front.send("hello").await;
    assert_eq!(tasks(&back).await.len(), 1, "only what came later arrived");
    assert!(sends() > before);
}

#[tokio::test]
async fn a_task_that_waits_is_canceled_there_too() {
    let back = old();
    let mut front = front(&back.url, "");
    let task = front.send("ask which?").await;
    assert_eq!(state(&front.cancel(id(&task)).await), "CANCELED");
    only(&back, "CANCELED").await;
    // Also when the server was started anew in between and no turn is under way.
    let task = front.send("ask which?").await;
    front.kill();
    front.restart();
    assert_eq!(state(&front.cancel(id(&task)).await), "CANCELED");
    let until = Instant::now() + PATIENCE;
    while back.count("CANCELED").await < 2 {
        assert!(Instant::now() < until, "{:?}", tasks(&back).await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_ends_there_ends_here() {
    let back = old();
    let front = front(&back.url, "");
    let task = front.send_async("hold").await;
    let theirs = only(&back, "WORKING").await;
    back.cancel(id(&theirs)).await;
    front.until(id(&task), "CANCELED").await;
    let failed = front.send("fail for a reason").await;
    assert_eq!((state(&failed), words(&failed)), ("FAILED", "for a reason"));
    let rejected = front.send("reject no").await;
    assert_eq!((state(&rejected), words(&rejected)), ("REJECTED", "no"));
    let auth = front.send("auth log in").await;
    assert_eq!((state(&auth), words(&auth)), ("AUTH_REQUIRED", "log in"));
    let direct = front.send("message hello").await;
    assert_eq!((state(&direct), words(&direct)), ("COMPLETED", "hello"));
}

#[tokio::test]
async fn questions_and_approvals_are_answered_through_the_chain() {
    let back = old();
    let mut front = front(&back.url, "");
    let task = front.send("ask which colour?").await;
    assert_eq!((state(&task), words(&task)), ("INPUT_REQUIRED", "which colour?"));
    let done = front.send_params(follow_up(&task, "blue")).await;
    assert_eq!((state(&done), texts(&done)), ("COMPLETED", vec!["blue".to_owned()]));
    assert_eq!(tasks(&back).await.len(), 1, "the same task");

    // A decision is bound to what the other server asked, and survives restarts of either.
    for restart in [false, true] {
        let task = front.send("approve rm -rf build").await;
        let asked = task["status"]["message"]["metadata"][INPUT].clone();
        assert_eq!(asked["kind"], "approval", "{task}");
        if restart {
            front.kill();
            front.restart();
        }
        let decide = |decision: &str, digest: &Value| {
            let mut params = follow_up(&task, "");
            let data = json!({ "id": asked["id"], "decision": decision, "digest": digest });
            params["message"]["parts"] = json!([{ "data": data }]);
            params
        };
        let wrong = front.send_params(decide("approve", &json!("sha256:0"))).await;
        assert_eq!(state(&wrong), "INPUT_REQUIRED", "{wrong}");
        let done = front.send_params(decide("approve", &asked["digest"])).await;
        assert_eq!((state(&done), texts(&done)), ("COMPLETED", vec!["approved".to_owned()]), "{done}");
    }
}

#[tokio::test]
async fn a_message_that_comes_meanwhile_is_next() {
    let back = old();
    let front = front(&back.url, "");
    let task = front.send_async("sleep 1").await;
    only(&back, "WORKING").await;
    front.send_params(at_once(follow_up(&task, "and this"))).await;
    let done = front.until(id(&task), "COMPLETED").await;
    assert_eq!(texts(&done), ["slept 1 s", "and this"]);
}

#[tokio::test]
async fn an_extension_is_activated_all_the_way() {
    let back = old();
    let front = front(&back.url, "");
    let request = front.rpc_request("SendMessage", &message("approve it")).header("A2A-Extensions", HITL);
    let (_, asked) = answer(request).await;
    let task = &asked["result"]["task"];
    assert!(task["status"]["message"]["metadata"][HITL].is_object(), "{task}");
    let plain = front.send("approve it").await;
    assert!(plain["status"]["message"]["metadata"].get(HITL).is_none(), "nobody asked for it: {plain}");
}

#[tokio::test]
async fn what_the_other_server_decides_by_itself_is_heard() {
    let back = Server::configured("card-format: \"0.3\"\napproval-timeout: 2s");
    let front = front(&back.url, "");
    let task = front.send("approve it").await;
    assert_eq!(state(&task), "INPUT_REQUIRED");
    let done = front.until(id(&task), "COMPLETED").await;
    assert_eq!(texts(&done), ["denied"]);
}

#[tokio::test]
async fn every_kind_of_part_goes_there_and_files_come_back() {
    let back = old();
    let front = front(&back.url, "");
    let parts = json!([
        { "text": "keep this" },
        { "data": { "a": [1, null] } },
        { "raw": "aGk=", "filename": "hi.txt", "mediaType": "text/plain" },
        { "url": "https://files.example/x", "mediaType": "image/png" },
    ]);
    let mut params = message("");
    params["message"]["parts"] = parts.clone();
    params["message"]["metadata"] = json!({ "mine": { "deep": true } });
    let task = front.send_params(params).await;
    assert_eq!(state(&task), "COMPLETED", "{task}");
    let theirs = back.task(id(&tasks(&back).await[0])).await;
    assert_eq!(theirs["history"][0]["parts"], parts);
    assert_eq!(theirs["history"][0]["metadata"]["mine"]["deep"], true);

    let small = front.send("file notes.txt 5").await;
    assert_eq!(small["artifacts"][0]["name"], "notes.txt");
    assert_eq!(small["artifacts"][0]["parts"][0]["raw"], "YWJjZGU=", "{small}");
    let large = front.send("file large.bin 400000").await;
    let url = large["artifacts"][0]["parts"][0]["url"].as_str().expect("kept apart");
    assert_eq!(client().get(url).send().await.unwrap().bytes().await.unwrap().len(), 400_000);
}

#[tokio::test]
async fn conversations_go_on_after_restarts_of_both() {
    let mut back = old();
    let mut front = front(&back.url, "");
    let first = front.send("one").await;
    let next = async |front: &Server, back: &Server, text: &str| {
        let mut params = in_context(&first["contextId"], text);
        params["message"]["referenceTaskIds"] = json!([first["id"], "unknown"]);
        let task = front.send_params(params).await;
        assert_eq!((state(&task), texts(&task)), ("COMPLETED", vec![text.to_owned()]));
        tasks(back).await
    };
    let theirs = tasks(&back).await[0].clone();
    next(&front, &back, "two").await;
    front.kill();
    front.restart();
    next(&front, &back, "three").await;
    back.kill();
    back.restart();
    let all = next(&front, &back, "four").await;
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|task| task["contextId"] == theirs["contextId"]), "{all:?}");
    let last = back.task(id(&all[0])).await;
    assert_eq!(last["history"][0]["referenceTaskIds"], json!([theirs["id"]]));
}

#[tokio::test]
async fn a_server_killed_in_the_middle_changes_nothing_for_those_around_it() {
    for middle_is_old in [true, false] {
        let back = old();
        let format = if middle_is_old { "0.3" } else { "1.0" };
        let mut middle = front(&back.url, &format!("card-format: \"{format}\""));
        let front = front(&middle.url, "");
        let mut stream = front.stream("stream 300 10").await;
        let mut seen = Vec::new();
        while chunks_of(&seen).len() < 50 {
            seen.push(stream.next().await.expect("more"));
        }
        middle.kill();
        middle.restart();
        while let Some(event) = stream.next().await {
            seen.push(event);
        }
        // What was missed may come in one piece.
        assert_eq!(text_of(&seen), chunks(300).concat(), "{format}");
        assert_eq!(seen.last().map(SseEvent::state), Some("TASK_STATE_COMPLETED"));
        for server in [&front, &middle, &back] {
            let all = tasks(server).await;
            assert_eq!(all.len(), 1, "one task each: {all:?}");
            assert_eq!(texts(&server.task(id(&all[0])).await), [chunks(300).concat()]);
        }
    }
}

#[tokio::test]
async fn a_server_killed_in_front_goes_on_where_it_was() {
    let back = old();
    let mut front = front(&back.url, "");
    let task = front.send_async("stream 300 10").await;
    let until = Instant::now() + PATIENCE;
    while texts(&front.task(id(&task)).await).concat().len() < 400 {
        assert!(Instant::now() < until, "no text comes");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    front.kill();
    front.restart();
    let done = front.until(id(&task), "COMPLETED").await;
    assert_eq!(texts(&done), [chunks(300).concat()]);
    assert_eq!(tasks(&back).await.len(), 1);
    // The agent was done before the server was back.
    let task = front.send_async("stream 100 10").await;
    front.until(id(&task), "WORKING").await;
    front.kill();
    let theirs = id(&tasks(&back).await[0]).to_owned();
    back.until(&theirs, "COMPLETED").await;
    front.restart();
    let done = front.until(id(&task), "COMPLETED").await;
    assert_eq!(texts(&done), [chunks(100).concat()]);
    assert_eq!(tasks(&back).await.len(), 2);
}

#[tokio::test]
async fn an_agent_that_loses_its_own_work_says_so() {
    let mut back = old();
    let front = front(&back.url, "");
    let task = front.send_params(at_once(message("hold"))).await;
    only(&back, "WORKING").await;
    back.kill();
    back.restart();
    let failed = front.until(id(&task), "FAILED").await;
    assert_eq!(words(&failed), "The task was interrupted by a restart");
}
