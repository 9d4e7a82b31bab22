//! What a message means, which turn runs when, and how a task ends.

use std::time::Duration;

use nuncio_tests::{
    Random, Server, Sse, Value, Wire, answer, at_once, follow_up, id, in_context, is_over, json, message, state, texts,
    words,
};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

/// The HTTP status, and the code and reason of JSON-RPC and REST for the same wrong send.
async fn refused_send(server: &Server, params: &Value) -> (i64, u16, String) {
    let (_, rpc) = answer(server.rpc_request("SendMessage", params)).await;
    let (status, rest) = answer(server.post("/message:send", params)).await;
    let reason = rpc["error"]["data"][0]["reason"].as_str().unwrap_or_default().to_owned();
    assert_eq!(rest["error"]["details"][0]["reason"].as_str().unwrap_or_default(), reason);
    assert!(rpc["error"]["message"].as_str().is_some_and(|text| text.len() > 10), "words: {rpc}");
    (rpc["error"]["code"].as_i64().expect("an error"), status, reason)
}

/// When the log of a task says that it came to this state.
async fn time_of(server: &Server, task: &Value, wanted: &str) -> String {
    let log = server.log(id(task)).await;
    let event = log.iter().find(|event| event.state() == format!("TASK_STATE_{wanted}")).expect("that state");
    let status = &event.body().get("statusUpdate").unwrap_or(&event.body()["task"])["status"];
    status["timestamp"].as_str().expect("a time").to_owned()
}

#[tokio::test]
async fn a_blocking_send_waits_for_the_end() {
    let server = Server::start(&[]);
    let task = server.send("sleep 0.3").await;
    assert_eq!((state(&task), texts(&task)), ("COMPLETED", vec!["slept 0.3 s".to_owned()]));
    let (status, sent) = answer(server.post("/message:send", &message("stream 3"))).await;
    assert_eq!((status, state(&sent["task"])), (200, "COMPLETED"));
    assert_eq!(texts(&sent["task"]), ["chunk 0chunk 1chunk 2"]);
}

#[tokio::test]
async fn a_send_that_returns_immediately_shows_a_task_that_goes_on() {
    let server = Server::start(&[]);
    let task = server.send_async("hold").await;
    assert!(matches!(state(&task), "SUBMITTED" | "WORKING"), "{task}");
    server.until(id(&task), "WORKING").await;
    server.cancel(id(&task)).await;
    let old =
        json!({ "kind": "message", "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": "hold" }] });
    let sent = server.rpc("message/send", json!({ "message": old, "configuration": { "blocking": false } })).await;
    assert!(matches!(sent["result"]["status"]["state"].as_str(), Some("submitted" | "working")), "{sent}");
    let quick = server.send_async("hello").await;
    assert_eq!(texts(&server.until(id(&quick), "COMPLETED").await), ["hello"]);
}

#[tokio::test]
async fn a_message_with_a_context_is_a_new_task_of_that_context() {
    let server = Server::start(&[]);
    let first = server.send("one").await;
    let second = server.send_params(in_context(&first["contextId"], "two")).await;
    assert_eq!(second["contextId"], first["contextId"]);
    assert_ne!(second["id"], first["id"]);
    assert_eq!(texts(&second), ["two"]);
    let own = server.send_params(in_context(&json!("a context of my own"), "three")).await;
    assert_eq!(own["contextId"], "a context of my own");
    let none = server.send_params(in_context(&json!(""), "four")).await;
    assert_ne!(none["contextId"], "");
}

#[tokio::test]
async fn a_message_for_the_wrong_task_is_refused_and_changes_nothing() {
    let server = Server::start(&[]);
    let asked = server.send("ask colour?").await;
    let mut elsewhere = follow_up(&asked, "red");
    elsewhere["message"]["contextId"] = json!("elsewhere");
    let (code, status, _) = refused_send(&server, &elsewhere).await;
    assert_eq!((code, status), (-32602, 400));
    let unknown = follow_up(&json!({ "id": "no-such-task" }), "red");
    assert_eq!(refused_send(&server, &unknown).await, (-32001, 404, "TASK_NOT_FOUND".into()));
    assert_eq!(server.task(id(&asked)).await, asked);
    let mut here = follow_up(&asked, "red");
    here["message"]["contextId"] = asked["contextId"].clone();
    assert_eq!(texts(&server.send_params(here).await), ["red"]);
    for over in ["hello", "fail x", "reject x"] {
        let over = server.send(over).await;
        let refused = refused_send(&server, &follow_up(&over, "more")).await;
        assert_eq!(refused, (-32004, 400, "UNSUPPORTED_OPERATION".into()));
        assert_eq!(server.task(id(&over)).await, over);
    }
    let listed = server.rpc("ListTasks", json!({})).await;
    assert_eq!(listed["result"]["totalSize"], 4, "no task came of a refused message");
}

#[tokio::test]
async fn references_to_unknown_tasks_are_ignored() {
    let server = Server::start(&[]);
    let mut params = message("hello");
    params["message"]["referenceTaskIds"] = json!(["no-such-task", ""]);
    let task = server.send_params(params).await;
    assert_eq!(state(&task), "COMPLETED");
    assert_eq!(task["history"][0]["referenceTaskIds"][0], "no-such-task");
}

#[tokio::test]
async fn history_is_as_long_as_asked_for() {
    let server = Server::start(&[]);
    let said = |task: &Value| -> Option<Vec<String>> {
        let history = task.get("history")?.as_array().expect("a list");
        Some(history.iter().map(|message| message["parts"][0]["text"].as_str().unwrap_or("?").to_owned()).collect())
    };
    let all = vec!["ask colour?".to_owned(), "colour?".to_owned(), "red".to_owned()];
    let cases = [(None, Some(all.clone())), (Some(0), None), (Some(1), Some(all[2..].to_vec())), (Some(9), Some(all))];
    for (length, expected) in cases {
        let asked = server.send("ask colour?").await;
        let mut params = follow_up(&asked, "red");
        let mut read = json!({ "id": asked["id"] });
        let mut list = json!({ "contextId": asked["contextId"] });
        let mut query = String::new();
        if let Some(length) = length {
            params["configuration"] = json!({ "historyLength": length });
            read["historyLength"] = json!(length);
            list["historyLength"] = json!(length);
            query = format!("?historyLength={length}");
        }
        assert_eq!(said(&server.send_params(params).await), expected, "sent with {length:?}");
        assert_eq!(said(&server.rpc("GetTask", read.clone()).await["result"]), expected, "got with {length:?}");
        assert_eq!(said(&server.rpc("tasks/get", read).await["result"]), expected, "got by 0.3 with {length:?}");
        let (_, got) = answer(server.get(&format!("/tasks/{}{query}", id(&asked)))).await;
        assert_eq!(said(&got), expected, "got over REST with {length:?}");
        let listed = server.rpc("ListTasks", list).await;
        assert_eq!(said(&listed["result"]["tasks"][0]), expected, "listed with {length:?}");
    }
    let task = server.send("hello").await;
    for method in ["GetTask", "ListTasks"] {
        let wrong = server.rpc(method, json!({ "id": task["id"], "historyLength": -1 })).await;
        assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    }
    let mut wrong = message("hello");
    wrong["configuration"] = json!({ "historyLength": -1 });
    assert_eq!(refused_send(&server, &wrong).await.0, -32602);
}

#[tokio::test]
async fn turns_of_one_context_run_one_after_the_other_and_of_two_at_the_same_time() {
    let server = Server::start(&[]);
    let here = json!("here");
    let mut same = Vec::new();
    for _ in 0..3 {
        same.push(server.send_params(at_once(in_context(&here, "sleep 0.5"))).await);
    }
    let other = server.send_params(at_once(in_context(&json!("there"), "sleep 0.5"))).await;
    for task in same.iter().chain([&other]) {
        server.until(id(task), "COMPLETED").await;
    }
    for pair in same.windows(2) {
        let (ended, began) =
            (time_of(&server, &pair[0], "COMPLETED").await, time_of(&server, &pair[1], "WORKING").await);
        assert!(ended <= began, "the next turn begins after {ended}, not at {began}");
    }
    let (ended, began) = (time_of(&server, &same[0], "COMPLETED").await, time_of(&server, &other, "WORKING").await);
    assert!(began < ended, "another context does not wait until {ended}, as it did until {began}");
}

#[tokio::test]
async fn turns_beyond_the_limit_wait_as_submitted_in_order() {
    let server = Server::configured("max-running-turns: 2\n");
    let mut tasks = Vec::new();
    for _ in 0..5 {
        tasks.push(server.send_async("hold").await);
    }
    for task in &tasks[..2] {
        server.until(id(task), "WORKING").await;
    }
    for n in 2..5 {
        for waiting in &tasks[n..] {
            assert_eq!(state(&server.task(id(waiting)).await), "SUBMITTED");
        }
        assert_eq!((server.count("WORKING").await, server.count("SUBMITTED").await), (2, 5 - n as u64));
        server.cancel(id(&tasks[n - 2])).await;
        server.until(id(&tasks[n]), "WORKING").await;
    }
}

#[tokio::test]
async fn a_turn_that_waits_for_an_answer_lets_others_run() {
    let server = Server::configured("max-running-turns: 1\n");
    let asked = server.send("ask colour?").await;
    assert_eq!(state(&asked), "INPUT_REQUIRED");
    assert_eq!(state(&server.send("hello").await), "COMPLETED");
    assert_eq!(texts(&server.send_params(follow_up(&asked, "red")).await), ["red"]);
    assert_eq!(state(&server.send("hello").await), "COMPLETED");
}

#[tokio::test]
async fn a_full_server_refuses_work_and_stores_none_of_it() {
    let server = Server::configured("max-running-turns: 1\nmax-queued-turns: 2\n");
    let locked = server.send("auth first").await;
    assert_eq!(state(&locked), "AUTH_REQUIRED");
    let running = server.send_async("hold").await;
    server.until(id(&running), "WORKING").await;
    let waiting = [server.send_async("one").await, server.send_async("two").await];
    assert_eq!(refused_send(&server, &message("three")).await, (-31503, 503, "UNAVAILABLE".into()));
    let refused = server.post("/message:stream", &message("three")).send().await.expect("an answer");
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_eq!(refused_send(&server, &follow_up(&locked, "go on")).await.0, -31503);
    let keyed = server.post("/message:send", &message("three")).header("Idempotency-Key", "k");
    assert_eq!(answer(keyed.try_clone().expect("a plain body")).await.0, 503);
    assert_eq!(server.task(id(&locked)).await, locked);
    assert_eq!(server.rpc("ListTasks", json!({})).await["result"]["totalSize"], 4);
    server.cancel(id(&running)).await;
    for task in &waiting {
        server.until(id(task), "COMPLETED").await;
    }
    let (status, sent) = answer(keyed).await;
    assert_eq!((status, texts(&sent["task"])), (200, vec!["three".to_owned()]));
    assert_eq!(texts(&server.send_params(follow_up(&locked, "go on")).await), ["go on"]);
}

/// What waits for an answer holds a program, so it is bounded as well.
#[tokio::test]
async fn turns_that_wait_for_an_answer_have_their_measure() {
    let server = Server::configured("max-running-turns: 2\nmax-queued-turns: 3\n");
    let mut asked = Vec::new();
    for _ in 0..5 {
        let task = server.send("ask colour?").await;
        assert_eq!(state(&task), "INPUT_REQUIRED");
        asked.push(task);
    }
    let mut waiting = Vec::new();
    for _ in 0..3 {
        waiting.push(server.send_async("ask colour?").await);
    }
    assert_eq!(refused_send(&server, &message("ask colour?")).await.1, 503);
    let metrics = reqwest::get(format!("{}/metrics", server.url)).await.expect("an answer").text().await.expect("text");
    for line in ["nuncio_turns_running 0", "nuncio_turns_paused 5", "nuncio_turns_queued 3"] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    for task in &waiting {
        assert_eq!(state(&server.task(id(task)).await), "SUBMITTED", "five are enough");
    }
    // Whoever is answered makes room for one who waits.
    for (answered, next) in asked.iter().zip(&waiting) {
        assert_eq!(texts(&server.send_params(follow_up(answered, "red")).await), ["red"]);
        server.until(id(next), "INPUT_REQUIRED").await;
    }
}

#[tokio::test]
async fn clients_that_hang_up_change_nothing() {
    let server = Server::start(&[]);
    let blocking = tokio::spawn(server.post("/message:send", &in_context(&json!("blocking"), "sleep 0.5")).send());
    let listed = async |context: &str| {
        for _ in 0..1000 {
            let page = server.rpc("ListTasks", json!({ "contextId": context })).await;
            if page["result"]["totalSize"] == 1 {
                return page["result"]["tasks"][0].clone();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Value::Null
    };
    let task = listed("blocking").await;
    assert!(!is_over(&task), "{task}");
    blocking.abort();
    for wire in Wire::ALL {
        let mut stream = Sse::open(wire.stream(&server, "stream 50 10")).await;
        let first = stream.next().await.expect("the task");
        stream.next().await;
        drop(stream);
        let id = first.body().get("task").unwrap_or(first.body())["id"].as_str().expect("an id").to_owned();
        let mut reader = server.subscribe(&id, None).await;
        reader.next().await;
        drop(reader);
        let done = server.until(&id, "COMPLETED").await;
        assert_eq!(done["artifacts"][0]["parts"].as_array().map(Vec::len), Some(50));
    }
    assert_eq!(texts(&server.until(id(&task), "COMPLETED").await), ["slept 0.5 s"]);
}

/// A client may go at any moment, also while its message is being stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_whose_sender_goes_at_once_is_carried_out_or_was_never_there() {
    let server = Server::configured("max-running-turns: 4\n");
    let asked = server.send("auth first").await;
    let mut random = Random::new();
    let address = server.url.trim_start_matches("http://").to_owned();
    for round in 0..300 {
        let params = if round % 3 == 0 { follow_up(&asked, "auth again") } else { message("stream 2") };
        let body = params.to_string();
        let head = format!(
            "POST /message:send HTTP/1.1\r\nhost: {address}\r\na2a-version: 1.0\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        let mut socket = tokio::net::TcpStream::connect(&address).await.expect("a connection");
        socket.write_all(format!("{head}{body}").as_bytes()).await.expect("it takes the request");
        tokio::time::sleep(Duration::from_micros(random.below(4000))).await;
        drop(socket);
    }
    for _ in 0..3000 {
        if server.count("SUBMITTED").await + server.count("WORKING").await == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!((server.count("SUBMITTED").await, server.count("WORKING").await), (0, 0), "every turn has run");
    assert!(server.count("COMPLETED").await > 0, "some messages have arrived");
    assert_eq!(state(&server.send_params(follow_up(&asked, "hello")).await), "COMPLETED");
    let holds: Vec<Value> = {
        let mut all = Vec::new();
        for _ in 0..4 {
            all.push(server.send_async("hold").await);
        }
        all
    };
    for task in &holds {
        server.until(id(task), "WORKING").await;
    }
}

#[tokio::test]
async fn a_canceled_task_ends_canceled_wherever_it_was() {
    let server = Server::configured("max-running-turns: 2\ncancel-grace: 300ms\n");
    let deaf = server.send_async("burst 100000000").await;
    server.until(id(&deaf), "WORKING").await;
    let working = server.send_async("hold").await;
    server.until(id(&working), "WORKING").await;
    let queued = server.send_async("hello").await;
    let queued_with_more = server.send_async("hello").await;
    let more = server.send_params(at_once(follow_up(&queued_with_more, "more"))).await;
    assert_eq!(state(&more), "SUBMITTED");
    for task in [&queued, &queued_with_more, &working, &deaf] {
        let canceled = server.cancel(id(task)).await;
        assert_eq!(state(&canceled), "CANCELED", "{task}");
        assert_eq!(server.cancel(id(task)).await["status"], canceled["status"], "a second time");
        assert_eq!(server.task(id(task)).await["status"], canceled["status"]);
    }
    // Their places are free again, and their turns do not run after all.
    assert_eq!(state(&server.send("hello").await), "COMPLETED");
    let states: Vec<String> = server.log(id(&queued)).await.iter().map(|event| event.state().to_owned()).collect();
    assert_eq!(states, ["TASK_STATE_SUBMITTED", "TASK_STATE_CANCELED"]);
    let log = server.log(id(&queued_with_more)).await;
    assert_eq!(log.iter().filter(|event| event.state() == "TASK_STATE_CANCELED").count(), 1);
    assert_eq!(server.log(id(&working)).await.len(), 3);

    for text in ["ask colour?", "approve rm", "auth first"] {
        let resting = server.send(text).await;
        assert!(!is_over(&resting));
        assert_eq!(state(&server.cancel(id(&resting)).await), "CANCELED", "{text}");
        assert_eq!(refused_send(&server, &follow_up(&resting, "red")).await.0, -32004);
    }
    let (status, canceled) = {
        let task = server.send_async("hold").await;
        answer(server.post(&format!("/tasks/{}:cancel", id(&task)), &json!({}))).await
    };
    assert_eq!((status, state(&canceled)), (200, "CANCELED"));
    let task = server.send_async("hold").await;
    assert_eq!(server.rpc("tasks/cancel", json!({ "id": task["id"] })).await["result"]["status"]["state"], "canceled");
}

#[tokio::test]
async fn a_task_that_is_over_cannot_be_canceled() {
    let server = Server::start(&[]);
    for text in ["hello", "fail x", "reject x", "crash"] {
        let task = server.send(text).await;
        let refused = server.rpc("CancelTask", json!({ "id": task["id"] })).await;
        assert_eq!(refused["error"]["code"], -32002, "{refused}");
        assert_eq!(refused["error"]["data"][0]["reason"], "TASK_NOT_CANCELABLE");
        let (status, _) = answer(server.post(&format!("/tasks/{}:cancel", id(&task)), &json!({}))).await;
        assert_eq!(status, 400);
        assert_eq!(server.task(id(&task)).await, task);
    }
    let refused = server.rpc("CancelTask", json!({ "id": "no-such-task" })).await;
    assert_eq!(refused["error"]["code"], -32001);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_who_cancel_at_once_agree() {
    let server = Server::configured("max-running-turns: 1\n");
    let running = server.send_async("hold").await;
    server.until(id(&running), "WORKING").await;
    let queued = server.send_async("hold").await;
    let asked = server.send_params(at_once(in_context(&queued["contextId"], "ask colour?"))).await;
    for task in [&running, &queued, &asked] {
        let mut cancels = JoinSet::new();
        for _ in 0..20 {
            cancels.spawn(answer(server.rpc_request("CancelTask", &json!({ "id": task["id"] }))));
        }
        let answers: Vec<Value> = cancels.join_all().await.into_iter().map(|(_, answer)| answer).collect();
        assert_eq!(state(&answers[0]["result"]), "CANCELED", "{}", answers[0]);
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        let log = server.log(id(task)).await;
        assert_eq!(log.iter().filter(|event| event.state() == "TASK_STATE_CANCELED").count(), 1);
    }
    assert_eq!(state(&server.send("hello").await), "COMPLETED");
}

/// The moment at which a waiting turn starts is not a moment to lose anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancels_and_follow_ups_at_the_start_of_a_turn_are_kept() {
    let server = Server::configured("max-running-turns: 2\n");
    let mut tasks = Vec::new();
    for _ in 0..150 {
        tasks.push(server.send_async("stream 3 1").await);
    }
    let mut calls = JoinSet::new();
    for (n, task) in tasks.iter().enumerate() {
        let request = match n % 3 {
            0 => server.rpc_request("CancelTask", &json!({ "id": task["id"] })),
            1 => server.rpc_request("SendMessage", &follow_up(task, "more")),
            _ => continue,
        };
        calls.spawn(async move { (n, answer(request).await.1) });
    }
    let mut delivered = 0;
    for (n, answer) in calls.join_all().await {
        let code = answer["error"]["code"].as_i64();
        let task = server.task(id(&tasks[n])).await;
        match (n % 3, code) {
            (0, None) => assert_eq!(state(&task), "CANCELED"),
            (0, Some(-32002)) | (1, Some(-32004)) => assert_eq!(state(&task), "COMPLETED"),
            (1, None) => {
                delivered += 1;
                assert_eq!(texts(&task), ["chunk 0chunk 1chunk 2", "more"]);
            }
            _ => assert_eq!(code, None, "{answer}"),
        }
    }
    assert!(delivered > 0, "some follow-ups came in time");
    for task in &tasks {
        let done = server.task(id(task)).await;
        if !is_over(&done) {
            server.until(id(task), "COMPLETED").await;
        }
    }
}

#[tokio::test]
async fn a_stream_ends_where_input_is_required_and_a_subscription_at_the_end() {
    let server = Server::start(&[]);
    let first = server.stream("ask colour?").await.all().await;
    assert_eq!(first.last().expect("events").state(), "TASK_STATE_INPUT_REQUIRED");
    let task = first[0].body()["task"].clone();
    let mut subscribers = Vec::new();
    for wire in [Wire::Rest, Wire::Rpc] {
        let mut stream = Sse::open(wire.subscribe(&server, id(&task), None)).await;
        assert_eq!(stream.next().await.expect("the task").state(), "TASK_STATE_INPUT_REQUIRED");
        subscribers.push(stream);
    }
    let old = Sse::open(Wire::OldRpc.subscribe(&server, id(&task), None)).await.all().await;
    assert_eq!(old.last().expect("the task").state(), "input-required", "0.3 ends at a final status");
    let mut again = Sse::open(server.post("/message:stream", &follow_up(&task, "red"))).await;
    let snapshot = again.next().await.expect("an event");
    assert_eq!(snapshot.body()["task"]["id"], task["id"], "a follow-up shows the task first, too");
    let rest = again.all().await;
    assert_eq!(rest.last().unwrap_or(&snapshot).state(), "TASK_STATE_COMPLETED");
    for stream in subscribers {
        let seen = stream.all().await;
        assert_eq!(seen.last().expect("events").state(), "TASK_STATE_COMPLETED");
        assert!(seen.iter().any(|event| event.chunk() == Some("red")));
    }
}

#[tokio::test]
async fn a_stream_stays_open_while_credentials_are_awaited() {
    let server = Server::start(&[]);
    let mut stream = server.stream("auth log in first").await;
    let event = stream.until("TASK_STATE_AUTH_REQUIRED").await;
    let task = server.task(event.body()["statusUpdate"]["taskId"].as_str().expect("an id")).await;
    assert_eq!(texts(&server.send_params(follow_up(&task, "go on")).await), ["go on"]);
    stream.until("TASK_STATE_COMPLETED").await;
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn a_follow_up_on_a_working_task_is_its_next_turn() {
    let server = Server::start(&[]);
    let task = server.send_async("sleep 0.5").await;
    server.until(id(&task), "WORKING").await;
    let mut second = follow_up(&task, "stream 2");
    second["message"]["messageId"] = json!("m-2");
    let mut third = follow_up(&task, "third");
    third["message"]["messageId"] = json!("m-3");
    let early = server.send_params(at_once(second)).await;
    assert_eq!(state(&early), "WORKING");
    let done = server.send_params(third).await;
    assert_eq!(
        (state(&done), texts(&done)),
        ("COMPLETED", vec!["slept 0.5 s".into(), "chunk 0chunk 1".into(), "third".into()])
    );
    let said: Vec<&Value> = done["history"].as_array().expect("a history").iter().map(|m| &m["messageId"]).collect();
    assert_eq!(said, ["m-1", "m-2", "m-3"]);
    let log = server.log(id(&task)).await;
    assert_eq!(log.iter().filter(|event| event.state() == "TASK_STATE_COMPLETED").count(), 1);
}

#[tokio::test]
async fn a_turn_that_takes_too_long_fails_with_words() {
    let server = Server::configured("turn-timeout: 1s\n");
    for text in ["hold", "burst 100000000"] {
        let late = server.send(text).await;
        assert_eq!((state(&late), words(&late)), ("FAILED", "The turn took longer than 1s"));
    }
    // The time in which the agent waits for an answer is not the agent's.
    let asked = server.send("ask colour?").await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(texts(&server.send_params(follow_up(&asked, "red")).await), ["red"]);
}

#[tokio::test]
async fn each_turn_of_a_task_has_its_own_time() {
    let server = Server::configured("turn-timeout: 4s\n");
    let task = server.send_async("sleep 2.5").await;
    let done = server.send_params(follow_up(&task, "sleep 2.5")).await;
    assert_eq!((state(&done), texts(&done).len()), ("COMPLETED", 2), "{done}");
}

#[tokio::test]
async fn an_agent_that_is_silent_too_long_fails_with_words() {
    let server = Server::configured("silence-timeout: 2s\n");
    let talking = server.send_async("stream 12 250").await;
    let silent = server.send("hold").await;
    assert_eq!((state(&silent), words(&silent)), ("FAILED", "The agent was silent for longer than 2s"));
    server.until(id(&talking), "COMPLETED").await;
}

#[tokio::test]
async fn a_crash_of_the_agent_fails_its_task_only() {
    let server = Server::start(&[]);
    let other = server.send_async("sleep 0.5").await;
    let mut stream = server.stream("crash").await;
    let failed = stream.until("TASK_STATE_FAILED").await;
    let text = failed.data.to_string();
    assert!(text.contains("The agent crashed") && !text.contains("asked to crash"), "{text}");
    assert_eq!(stream.next().await, None);
    server.until(id(&other), "COMPLETED").await;
    assert_eq!(state(&server.send("hello").await), "COMPLETED");
}

#[tokio::test]
async fn the_demo_agent_does_what_its_table_says() {
    let server = Server::start(&["--thinking-exposure", "raw-thinking", "--thinking-exposure", "tool-trace"]);
    let ends = async |text: &str| {
        let task = server.send(text).await;
        (state(&task).to_owned(), words(&task).to_owned(), texts(&task).concat())
    };
    let is = |state: &str, words: &str, text: &str| (state.to_owned(), words.to_owned(), text.to_owned());
    assert_eq!(ends("anything else").await, is("COMPLETED", "", "anything else"));
    assert_eq!(ends("stream 3").await, is("COMPLETED", "", "chunk 0chunk 1chunk 2"));
    assert_eq!(ends("stream 3 5").await, is("COMPLETED", "", "chunk 0chunk 1chunk 2"));
    assert_eq!(ends("burst 3").await, is("COMPLETED", "", "chunk 0chunk 1chunk 2"));
    assert_eq!(ends("sleep 0.1").await, is("COMPLETED", "", "slept 0.1 s"));
    assert_eq!(ends("fail on purpose").await, is("FAILED", "on purpose", ""));
    assert_eq!(ends("reject this").await, is("REJECTED", "this", ""));
    assert_eq!(ends("auth first").await, is("AUTH_REQUIRED", "first", ""));
    assert_eq!(ends("crash").await, is("FAILED", "The agent crashed", ""));
    assert_eq!(ends("ask colour?").await, is("INPUT_REQUIRED", "colour?", ""));
    assert_eq!(ends("think hard").await.0, "COMPLETED");
    assert_eq!(ends("tool search").await, is("COMPLETED", "", "used search"));

    for (said, decided) in [("y", "approved"), ("n", "denied"), ("approve", "approved"), ("deny", "denied")] {
        let asked = server.send("approve rm -rf build").await;
        assert_eq!(state(&asked), "INPUT_REQUIRED");
        assert!(words(&asked).contains("rm -rf build"), "{asked}");
        let unclear = server.send_params(follow_up(&asked, "perhaps")).await;
        assert_eq!(state(&unclear), "INPUT_REQUIRED", "what is no answer is asked again");
        assert_eq!(texts(&server.send_params(follow_up(&asked, said)).await), [decided]);
    }

    let chunks = server.stream("stream 3").await.all().await;
    let chunks: Vec<&Value> = chunks.iter().filter_map(|event| event.body().get("artifactUpdate")).collect();
    let flags = |name: &str| -> Vec<bool> { chunks.iter().map(|chunk| chunk[name] == true).collect() };
    assert_eq!((flags("append"), flags("lastChunk")), (vec![false, true, true], vec![false, false, true]));

    let thought = server.stream("think hard").await.all().await;
    assert!(
        thought.iter().any(|e| e.body()["statusUpdate"]["metadata"]["urn:nuncio:a2a:thinking:v1"]["text"] == "hard")
    );
    let tool = server.stream("tool search").await.all().await;
    let phases: Vec<String> = tool
        .iter()
        .filter_map(|e| e.body()["statusUpdate"]["metadata"]["urn:nuncio:a2a:tool:v1"]["phase"].as_str())
        .map(str::to_owned)
        .collect();
    assert_eq!(phases, ["started", "input", "delta", "delta", "delta", "completed"]);

    let file = server.send("file notes.txt 5").await;
    assert_eq!(file["artifacts"][0]["name"], "notes.txt");
    assert_eq!(file["artifacts"][0]["parts"][0]["raw"], "YWJjZGU=");
    let usage = server.send("usage").await;
    assert_eq!(usage["metadata"]["urn:nuncio:a2a:usage:v1"]["inputTokens"], 12);

    let direct = server.rpc("SendMessage", message("message hi there")).await;
    assert_eq!(direct["result"]["message"]["parts"][0]["text"], "hi there");
    assert_eq!(direct["result"]["message"]["role"], "ROLE_AGENT");
    assert!(direct["result"]["message"]["contextId"].is_string());
    for wire in Wire::ALL {
        let events = Sse::open(wire.stream(&server, "message hi there")).await.all().await;
        assert_eq!(events.len(), 1, "{wire:?}: exactly one event");
    }
}

#[tokio::test]
async fn a_short_answer_is_stored_together_with_its_task() {
    let server = Server::start(&[]);
    server.send("warm up").await;
    // What the server does by itself commits no events.
    let commits = async || {
        let names = ["nuncio_commit_events_count", "nuncio_commit_events_bucket{le=\"0.0\"}"];
        let [all, without_events] = server.metrics(names).await;
        all - without_events
    };
    let before = commits().await;
    for _ in 0..10 {
        let task = server.send("hello").await;
        assert_eq!((state(&task), server.log(id(&task)).await.len()), ("COMPLETED", 4));
    }
    assert_eq!(commits().await - before, 10.0, "commits for 10 messages");
}
