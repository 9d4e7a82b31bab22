//! What goes on after a restart, and how the server stops.

use std::time::Duration;

use nuncio_tests::{
    Server, Sse, Value, Wire, answer, at_once, follow_up, id, in_context, json, message, state, texts, words,
};

fn restart_hard(server: &mut Server) {
    server.kill();
    server.restart();
}

#[tokio::test]
async fn a_task_that_waits_for_input_survives_a_kill_and_goes_on() {
    let mut server = Server::start(&[]);
    let asked = server.send("ask colour?").await;
    let yes = server.send("approve rm -rf build").await;
    let no = server.send("approve rm -rf /").await;
    let locked = server.send("auth first").await;
    restart_hard(&mut server);
    for task in [&asked, &yes, &no, &locked] {
        assert_eq!(&server.task(id(task)).await, task, "the same as before");
    }
    let subscriber = server.subscribe(id(&asked), None).await;
    let done = server.send_params(follow_up(&asked, "red")).await;
    assert_eq!((state(&done), texts(&done)), ("COMPLETED", vec!["red".to_owned()]));
    let said: Vec<&Value> =
        done["history"].as_array().expect("a history").iter().map(|m| &m["parts"][0]["text"]).collect();
    assert_eq!(said, ["ask colour?", "colour?", "red"]);
    assert_eq!(subscriber.all().await.last().expect("events").state(), "TASK_STATE_COMPLETED");
    assert_eq!(texts(&server.send_params(follow_up(&yes, "y")).await), ["approved"]);
    assert_eq!(texts(&server.send_params(follow_up(&no, "n")).await), ["denied"]);
    assert_eq!(texts(&server.send_params(follow_up(&locked, "go on")).await), ["go on"]);
}

#[tokio::test]
async fn a_task_that_waits_for_input_can_be_canceled_after_a_kill() {
    let mut server = Server::start(&[]);
    let asked = server.send("ask colour?").await;
    restart_hard(&mut server);
    assert_eq!(state(&server.cancel(id(&asked)).await), "CANCELED");
    restart_hard(&mut server);
    assert_eq!(state(&server.task(id(&asked)).await), "CANCELED");
}

#[tokio::test]
async fn tasks_that_found_no_room_run_after_a_restart_in_order() {
    let mut server = Server::configured("max-running-turns: 1\n");
    let running = server.send_async("hold").await;
    server.until(id(&running), "WORKING").await;
    let mut waiting = Vec::new();
    for n in 0..5 {
        waiting.push(server.send_async(&format!("stream {n}1")).await);
    }
    restart_hard(&mut server);
    let cut = server.task(id(&running)).await;
    assert_eq!((state(&cut), words(&cut)), ("FAILED", "The task was interrupted by a restart"));
    let mut ended = Vec::new();
    for task in &waiting {
        let done = server.until(id(task), "COMPLETED").await;
        ended.push(done["status"]["timestamp"].as_str().expect("a time").to_owned());
    }
    assert!(ended.is_sorted(), "first come, first served: {ended:?}");
}

#[tokio::test]
async fn tasks_that_wait_survive_restart_after_restart() {
    let mut server = Server::configured("max-running-turns: 1\n");
    let mut blocking = server.send_async("hold").await;
    let mut waiting = Vec::new();
    for _ in 0..3 {
        waiting.push(server.send_async("hold").await);
    }
    let last = server.send_async("hello").await;
    for next in waiting {
        server.until(id(&blocking), "WORKING").await;
        restart_hard(&mut server);
        server.until(id(&blocking), "FAILED").await;
        blocking = next;
    }
    server.until(id(&blocking), "WORKING").await;
    assert_eq!(state(&server.task(id(&last)).await), "SUBMITTED");
    server.cancel(id(&blocking)).await;
    assert_eq!(texts(&server.until(id(&last), "COMPLETED").await), ["hello"]);
}

#[tokio::test]
async fn hundreds_of_waiting_tasks_are_all_taken_up() {
    let mut server = Server::configured("max-running-turns: 1\n");
    let running = server.send_async("hold").await;
    server.until(id(&running), "WORKING").await;
    for _ in 0..600 {
        server.send_async("hello").await;
    }
    restart_hard(&mut server);
    for _ in 0..3000 {
        if server.count("COMPLETED").await == 600 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!((server.count("COMPLETED").await, server.count("FAILED").await), (600, 1));
}

#[tokio::test]
async fn every_message_of_a_waiting_task_is_answered_after_a_restart() {
    let mut server = Server::configured("max-running-turns: 1\n");
    let locked = server.send("auth first").await;
    let running = server.send_async("hold").await;
    server.until(id(&running), "WORKING").await;
    let task = server.send_async("one").await;
    server.send_params(at_once(follow_up(&task, "two"))).await;
    let unlocked = server.send_params(at_once(follow_up(&locked, "go on"))).await;
    assert_eq!(state(&unlocked), "SUBMITTED");
    restart_hard(&mut server);
    assert_eq!(texts(&server.until(id(&task), "COMPLETED").await), ["one", "two"]);
    assert_eq!(texts(&server.until(id(&locked), "COMPLETED").await), ["go on"], "it had not begun");
}

#[tokio::test]
async fn a_waiting_task_can_be_canceled_after_a_restart() {
    let mut server = Server::configured("max-running-turns: 1\n");
    let running = server.send_async("hold").await;
    server.until(id(&running), "WORKING").await;
    let (first, second) = (server.send_async("hold").await, server.send_async("hello").await);
    restart_hard(&mut server);
    server.until(id(&first), "WORKING").await;
    assert_eq!(state(&server.cancel(id(&second)).await), "CANCELED");
    assert_eq!(state(&server.cancel(id(&first)).await), "CANCELED");
    assert_eq!(state(&server.send("hello").await), "COMPLETED");
    assert_eq!(server.log(id(&second)).await.len(), 2);
}

#[tokio::test]
async fn turns_of_a_context_keep_their_order_over_a_restart() {
    let mut server = Server::start(&[]);
    let here = json!("here");
    let running = server.send_params(at_once(in_context(&here, "hold"))).await;
    server.until(id(&running), "WORKING").await;
    let first = server.send_params(at_once(in_context(&here, "sleep 0.3"))).await;
    let second = server.send_params(at_once(in_context(&here, "hello"))).await;
    restart_hard(&mut server);
    let second = server.until(id(&second), "COMPLETED").await;
    let first = server.task(id(&first)).await;
    assert_eq!(state(&first), "COMPLETED");
    assert!(first["status"]["timestamp"].as_str() <= second["status"]["timestamp"].as_str());
}

#[tokio::test]
async fn a_finished_task_can_be_read_from_any_number_on_also_after_a_restart() {
    let mut server = Server::start(&[]);
    let first = server.stream("stream 700").await.all().await;
    let task = first[0].body()["task"]["id"].as_str().expect("an id").to_owned();
    assert_eq!(first.len(), 703);
    for again in [false, true] {
        if again {
            restart_hard(&mut server);
        }
        for after in [0, 1, 350, 702] {
            let rest = server.subscribe(&task, Some(after)).await.all().await;
            assert_eq!(rest, first[usize::try_from(after).expect("small")..], "after {after}");
            let wrapped = Sse::open(Wire::Rpc.subscribe(&server, &task, Some(after))).await.all().await;
            assert!(wrapped.iter().zip(&rest).all(|(a, b)| a.id == b.id && a.body() == b.body()));
            assert_eq!(wrapped.len(), rest.len());
        }
        assert_eq!(server.subscribe(&task, Some(703)).await.all().await, []);
        let beyond = Wire::Rest.subscribe(&server, &task, Some(704));
        let (status, error) = answer(beyond).await;
        assert_eq!((status, error["error"]["status"].as_str()), (400, Some("INVALID_ARGUMENT")), "{error}");
        assert!(error["error"]["message"].as_str().is_some_and(|text| text.contains("704")), "{error}");
        let (_, error) = answer(Wire::Rpc.subscribe(&server, &task, Some(704))).await;
        assert_eq!(error["error"]["code"], -32602);
        let (_, error) = answer(Wire::Rpc.subscribe(&server, &task, None)).await;
        assert_eq!(error["error"]["code"], -32004, "without a number a finished task is refused: {error}");
    }
    let asked = server.send("ask colour?").await;
    let (status, _) = answer(Wire::Rest.subscribe(&server, id(&asked), Some(99))).await;
    assert_eq!(status, 400, "nor has an open task a number that is still to come");
}

#[tokio::test]
async fn a_last_event_that_is_no_number_counts_as_none() {
    let server = Server::start(&[]);
    let asked = server.send("ask colour?").await;
    for wrong in ["x", "-1", "1.5", ""] {
        let request = Wire::Rest.subscribe(&server, id(&asked), None).header("Last-Event-ID", wrong);
        let first = Sse::open(request).await.next().await.expect("an event");
        assert_eq!(first.body()["task"], asked, "the stream begins with the task");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_server_lets_turns_end_and_takes_no_more() {
    let mut server = Server::start(&[]);
    let blocking = tokio::spawn(answer(server.post("/message:send", &message("sleep 1"))));
    let mut stream = server.stream("sleep 1").await;
    stream.until("TASK_STATE_WORKING").await;
    let streamed = tokio::spawn(stream.all());
    // Both run.
    for _ in 0..1000 {
        if server.count("WORKING").await == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.signal("TERM");
    let mut refused = (0, Value::Null);
    for _ in 0..200 {
        refused = answer(server.post("/message:send", &at_once(message("hello")))).await;
        if refused.0 == 503 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!((refused.0, &refused.1["error"]["status"]), (503, &json!("UNAVAILABLE")));
    let (status, rpc) = answer(server.rpc_request("SendMessage", &message("hello"))).await;
    assert_eq!((status, &rpc["error"]["code"]), (503, &json!(-31503)));
    let (status, ready) = answer(server.get("/ready")).await;
    assert_eq!((status, &ready["status"]), (503, &json!("draining")));
    let (status, done) = blocking.await.expect("no panic");
    assert_eq!((status, state(&done["task"])), (200, "COMPLETED"));
    assert_eq!(streamed.await.expect("no panic").last().expect("events").state(), "TASK_STATE_COMPLETED");
    assert_eq!(server.ended(), Some(0));
    server.restart();
    assert_eq!(server.task(id(&done["task"])).await, done["task"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_outlasts_the_drain_is_cut_and_taken_up_by_the_next_start() {
    let mut server = Server::configured("drain-timeout: 300ms\nmax-running-turns: 1\n");
    let asked = server.send("ask colour?").await;
    let held = server.send_async("hold").await;
    server.until(id(&held), "WORKING").await;
    let queued = server.send_async("hello").await;
    let waiting = tokio::spawn(server.subscribe(id(&held), None).await.all());
    assert_eq!(server.terminate(), Some(0));
    let seen = waiting.await.expect("no panic");
    assert_eq!(seen.last().expect("the task").state(), "TASK_STATE_WORKING", "the stream just ends");
    server.restart();
    let rest = server.subscribe(id(&held), seen.last().expect("the task").id).await.all().await;
    assert_eq!(rest.last().expect("an end").state(), "TASK_STATE_FAILED");
    assert_eq!(words(&server.task(id(&held)).await), "The task was interrupted by a restart");
    assert_eq!(texts(&server.until(id(&queued), "COMPLETED").await), ["hello"]);
    assert_eq!(texts(&server.send_params(follow_up(&asked, "red")).await), ["red"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_sender_hears_that_the_server_stops() {
    let mut server = Server::configured("drain-timeout: 300ms\n");
    let held = tokio::spawn(answer(server.post("/message:send", &message("hold"))));
    for _ in 0..1000 {
        if server.count("WORKING").await == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(server.terminate(), Some(0));
    let (status, error) = held.await.expect("an answer, not a broken connection");
    assert_eq!((status, &error["error"]["status"]), (503, &json!("UNAVAILABLE")));
    server.restart();
    let task = error["error"]["details"][0]["metadata"]["taskId"].as_str().expect("the task");
    assert_eq!(state(&server.task(task).await), "FAILED");
}
