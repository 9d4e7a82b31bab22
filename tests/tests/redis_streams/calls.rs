//! Through our own client.

use std::process::Command;
use std::time::Duration;

use futures_util::StreamExt;
use nuncio_client::{Binding, Client, ClientError, Options, Version};
use nuncio_protocol::{
    CancelTaskRequest, ErrorKind, GetTaskRequest, ListTasksRequest, SendMessageRequest, SendMessageResponse, Task,
    TaskState,
};
use nuncio_tests::{Redis, Value, binary, client as http, raw::until};

use crate::kit::{Caller, address, client, config, request, said, serve, until_done};

fn message(id: &str, text: &str) -> SendMessageRequest {
    serde_json::from_value(said(id, text)).expect("a message")
}

async fn task(client: &Client, id: &str, text: &str) -> Task {
    match client.send(message(id, text)).await.expect("an answer") {
        SendMessageResponse::Task(task) => task,
        SendMessageResponse::Message(message) => panic!("a task: {message:?}"),
    }
}

#[tokio::test]
async fn every_operation_in_both_versions() {
    let redis = Redis::start();
    let _server = serve(&redis, "");
    for version in [Version::V1_0, Version::V0_3] {
        let client = client(&redis, Options { version: Some(version), ..Options::default() });
        assert_eq!(client.binding(), Binding::RedisStreams);
        let done = task(&client, &format!("a-{version}"), "hello").await;
        assert_eq!(done.status.state, TaskState::Completed);
        let get = GetTaskRequest { id: done.id.clone(), ..Default::default() };
        assert_eq!(client.get(get).await.expect("the task").id, done.id);
        let wrong = client.get(GetTaskRequest { id: "none".into(), ..Default::default() }).await;
        assert_eq!(wrong.expect_err("no task").kind(), Some(ErrorKind::TaskNotFound));
        if version == Version::V1_0 {
            assert_eq!(client.list(ListTasksRequest::default()).await.expect("tasks").total_size, 1);
        }
        let mut stream = client.stream(message(&format!("b-{version}"), "hold")).await.expect("a stream");
        let first = stream.next().await.expect("an event").expect("the task");
        let nuncio_protocol::StreamResponse::Task(held) = first.response else { panic!("a task") };
        // From another client of the same agent.
        let other = self::client(&redis, Options { version: Some(version), ..Options::default() });
        let mut followed = other.subscribe(held.id.clone(), Some(1)).await.expect("a stream");
        assert_eq!(followed.next().await.expect("an event").expect("an event").seq, Some(2));
        let canceled = client.cancel(CancelTaskRequest { id: held.id.clone(), ..Default::default() }).await;
        assert_eq!(canceled.expect("the task").status.state, TaskState::Canceled);
        for stream in [stream, followed] {
            let rest: Vec<_> = tokio::time::timeout(nuncio_tests::PATIENCE, stream.collect()).await.expect("an end");
            assert!(rest.iter().all(Result::is_ok), "{rest:?}");
        }
    }
    until_done(&redis);
    until("both streams for replies are gone", || redis.ask(&["KEYS", "out:*"]).is_empty());
}

#[tokio::test]
async fn a_stream_of_a_silent_task_begins_and_goes_on() {
    let redis = Redis::start();
    let server = serve(&redis, "");
    let client = client(&redis, Options::default());
    let held = server.send_async("hold").await;
    server.until(nuncio_tests::id(&held), "WORKING").await;
    let mut stream = client.subscribe(nuncio_tests::id(&held).into(), Some(2)).await.expect("a stream");
    server.cancel(nuncio_tests::id(&held)).await;
    let event = tokio::time::timeout(nuncio_tests::PATIENCE, stream.next()).await.expect("an event");
    assert_eq!(event.expect("an event").expect("an event").seq, Some(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_share_one_reader() {
    let redis = Redis::start();
    let _server = serve(&redis, "");
    let client = client(&redis, Options::default());
    let calls: Vec<_> = (0..300)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move {
                let done = task(&client, &format!("m-{n}"), &format!("text {n}")).await;
                nuncio_protocol::codec::to_value(&done.artifacts[0].parts[0])["text"].clone()
            })
        })
        .collect();
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.expect("no panic"), format!("text {n}"), "everybody gets the answer that is his");
    }
    assert_eq!(redis.ask(&["KEYS", "out:*"]), "", "nothing is left when nobody waits");
}

#[tokio::test]
async fn calls_end_in_time_when_nobody_answers() {
    let mut redis = Redis::start();
    let options = Options { timeout: Duration::from_millis(300), ..Options::default() };
    let client = client(&redis, options);
    let answer = client.send(message("m", "hello")).await;
    assert!(matches!(answer, Err(ClientError::Timeout { .. })), "{answer:?}");
    let answer = client.stream(message("m", "hello")).await;
    assert!(matches!(answer, Err(ClientError::Timeout { .. })), "{:?}", answer.err());
    redis.kill();
    let answer = client.send(message("m", "hello")).await;
    let error = answer.expect_err("Redis is gone");
    assert!(matches!(error, ClientError::Unreachable { .. } | ClientError::Timeout { .. }), "{error}");
}

#[tokio::test]
async fn a_card_leads_to_redis_whoever_asks_for_that_and_shows_no_password() {
    let redis = Redis::start();
    redis.ask(&["ACL", "SETUSER", "worker", "on", ">secret-of-redis", "~*", "+@all"]);
    let yaml = config(&redis, "").replace("redis://", "redis://worker:secret-of-redis@");
    let server = nuncio_tests::Server::configured(&yaml);
    let card: Value = http()
        .get(format!("{}/.well-known/agent-card.json", server.url))
        .send()
        .await
        .expect("a card")
        .json()
        .await
        .expect("JSON");
    let text = card.to_string();
    assert!(
        text.contains("redis-streams://127.0.0.1") && !text.contains("secret") && !text.contains("worker"),
        "{text}"
    );
    let usual = Client::discover(&server.url, Options::default()).await.expect("a client");
    assert_eq!(usual.binding(), Binding::JsonRpc);
    let options = Options { binding: Some(Binding::RedisStreams), ..Options::default() };
    let client = Client::discover(&server.url, options).await.expect("a client");
    assert_eq!(client.binding(), Binding::RedisStreams);
    assert_eq!(task(&client, "m", "hello").await.status.state, TaskState::Completed);
    // With a user of Redis and a wrong password.
    let wrong = address(&redis).replace("://", "://worker:guess-of-redis@");
    let wrong = Client::direct(&wrong, Options::default()).expect("a client");
    let error = wrong.send(message("m", "hello")).await.expect_err("not let in").to_string();
    assert!(!error.contains("guess") && !error.contains("worker:"), "{error}");
}

#[tokio::test]
async fn a_token_goes_along_with_every_request() {
    let redis = Redis::start();
    let _server = serve(&redis, "token: the-secret-token-1\n");
    let open = client(&redis, Options::default());
    let error = open.send(message("m", "hello")).await.expect_err("nobody");
    assert!(matches!(error, ClientError::Unauthorized { sent: false, .. }), "{error}");
    let known = client(&redis, Options::bearer("the-secret-token-1"));
    assert_eq!(task(&known, "m", "hello").await.status.state, TaskState::Completed);
    let wrong = client(&redis, Options::bearer("another-token-1")).stream(message("m", "hello")).await;
    assert!(matches!(wrong, Err(ClientError::Unauthorized { sent: true, .. })), "{:?}", wrong.err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_take_the_address_of_a_redis() {
    let redis = Redis::start();
    let _server = serve(&redis, "");
    let run = |args: &[&str]| {
        let done = Command::new(binary()).arg("client").args(args).args(["--url", &address(&redis)]).output();
        let done = done.expect("the command runs");
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "{args:?}: {out}{err}");
        out.trim().to_owned()
    };
    assert_eq!(run(&["call", "--prompt", "hello"]), "hello");
    assert!(run(&["call", "--prompt", "stream 3", "--stream"]).contains("chunk 2"));
    assert_eq!(run(&["task-list"]).matches("completed").count(), 2);
    assert_eq!(redis.ask(&["KEYS", "out:*"]), "", "a command leaves nothing behind");
}

#[tokio::test]
async fn replies_to_others_are_left_alone() {
    let redis = Redis::start();
    let _server = serve(&redis, "");
    let client = client(&redis, Options::default());
    let caller = Caller::new(&redis, "out:mine").await;
    caller.ask("1", request("SendMessage", &said("other", "from another"))).await;
    assert_eq!(task(&client, "m", "hello").await.history[0].message_id.as_str(), "m");
    caller.only("1").await;
}
