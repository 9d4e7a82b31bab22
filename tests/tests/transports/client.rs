//! Our client over each of them: the library, and the commands.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt;
use nuncio_client::{Binding, Client, ClientError, Event, Options, SendOptions, Version};
use nuncio_protocol::{
    GetTaskRequest, Message, Part, SendMessageRequest, SendMessageResponse, StreamResponse, TaskState,
};
use nuncio_tests::binary;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::kit::{House, Talk, until};

fn request(text: &str) -> SendMessageRequest {
    SendMessageRequest { message: Some(Message::from_user(vec![Part::text(text)])), ..Default::default() }
}

fn addresses(house: &House) -> [String; 3] {
    [
        format!("ws://{}/ws", house.address()),
        format!("unix://{}", house.socket().display()),
        format!("stdio:{} serve --transport stdio --store memory 2>/dev/null", binary().display()),
    ]
}

async fn texts(client: &Client, text: &str) -> (usize, Option<u64>) {
    let mut events = client.stream(request(text)).await.expect("a stream");
    let (mut count, mut last) = (0, None);
    while let Some(event) = events.next().await {
        let event = event.expect("an event");
        if matches!(event.response, StreamResponse::ArtifactUpdate(_)) {
            count += 1;
        }
        last = event.seq.or(last);
    }
    (count, last)
}

#[tokio::test]
async fn the_library_calls_and_streams_in_both_versions() {
    let house = House::open("");
    for url in addresses(&house) {
        for version in [Version::V1_0, Version::V0_3] {
            let options = Options { version: Some(version), ..Options::default() };
            let client = Client::discover(&url, options).await.expect("an agent");
            assert_eq!(client.card().map(|card| card.name.as_str()), Some("nuncio demo"), "{url}");
            let answer = client.send(request("hi")).await.expect("an answer");
            let SendMessageResponse::Task(task) = answer else { panic!("a task: {answer:?}") };
            let got = client.get(GetTaskRequest { id: task.id.clone(), ..Default::default() }).await.expect("it");
            assert_eq!(got.id, task.id, "{url} {version}");
            assert_eq!(texts(&client, "stream 4 5").await, (4, Some(7)), "{url} {version}");
            let missing = client.get(GetTaskRequest { id: "nobody".into(), ..Default::default() }).await;
            assert!(matches!(missing, Err(ClientError::Agent(_))), "{url} {version}: {missing:?}");
        }
    }
}

#[tokio::test]
async fn many_calls_share_one_connection() {
    let house = House::open("");
    for url in addresses(&house) {
        let client = Client::direct(&url, Options::default()).expect("a client");
        let calls = (0..100).map(|n| {
            let client = client.clone();
            async move { client.send(request(&format!("sleep 0.{}", n % 3))).await }
        });
        let (answers, streamed) = tokio::join!(futures_util::future::join_all(calls), texts(&client, "stream 20 5"));
        assert!(answers.iter().all(Result::is_ok), "{url}");
        assert_eq!(streamed.0, 20, "{url}");
        if !url.starts_with("stdio") {
            assert!(house.server.metric("nuncio_connections").await <= 4.0, "{url}");
        }
    }
}

#[tokio::test]
async fn a_stream_survives_the_death_of_its_server() {
    for by in ["ws", "unix"] {
        let mut house = House::open("agent: demo");
        let url = addresses(&house).into_iter().find(|url| url.starts_with(by)).expect("an address");
        let client = Client::discover(&url, Options::default()).await.expect("an agent");
        let mut events = client.stream_with(request("hold"), &SendOptions::key("k")).await.expect("a stream");
        let mut seqs = Vec::new();
        for _ in 0..2 {
            seqs.push(events.next().await.expect("an event").expect("no error").seq.expect("a number"));
        }
        house.server.kill();
        house.server.restart();
        // What a crash means is the engine's to say: the stream tells it without a gap.
        while let Some(event) = events.next().await {
            seqs.extend(event.expect("no error").seq);
        }
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "{by}");
        assert!(seqs.len() > 2, "{by}: {seqs:?}");
    }
}

/// Stands between a client and the house, and counts who comes. Returns the addresses of both ways through it.
async fn counted(house: &House) -> ([String; 2], Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let web = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let between = house.socket().with_extension("between");
    let unix = UnixListener::bind(&between).expect("a socket");
    let addresses =
        [format!("ws://{}/ws", web.local_addr().expect("an address")), format!("unix://{}", between.display())];
    let (counter, address) = (count.clone(), house.address().to_owned());
    tokio::spawn(async move {
        while let Ok((mut near, _)) = web.accept().await {
            counter.fetch_add(1, Ordering::Relaxed);
            let mut far = TcpStream::connect(&address).await.expect("a connection");
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
        }
    });
    let (counter, socket) = (count.clone(), house.socket());
    tokio::spawn(async move {
        while let Ok((mut near, _)) = unix.accept().await {
            counter.fetch_add(1, Ordering::Relaxed);
            let mut far = UnixStream::connect(&socket).await.expect("a connection");
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
        }
    });
    (addresses, count)
}

#[tokio::test]
async fn a_stream_that_is_dropped_ends_alone() {
    let house = House::open("");
    let (addresses, connections) = counted(&house).await;
    for url in addresses {
        let before = connections.load(Ordering::Relaxed);
        let client = Client::direct(&url, Options::default()).expect("a client");
        let mut dropped = client.stream(request("hold")).await.expect("a stream");
        let kept = client.stream(request("hold")).await.expect("a stream");
        let Some(Ok(Event { response: StreamResponse::Task(task), .. })) = dropped.next().await else {
            panic!("{url}: a task comes first");
        };
        until("both are open", async || house.server.metric("nuncio_subscribers").await == 2.0).await;
        drop(dropped);
        until("one is left", async || house.server.metric("nuncio_subscribers").await == 1.0).await;
        let task = client.get(GetTaskRequest { id: task.id, ..Default::default() }).await.expect("the task");
        assert_eq!(task.status.state, TaskState::Working, "{url}");
        drop(kept);
        until("none is left", async || house.server.metric("nuncio_subscribers").await == 0.0).await;
        client.send(request("hi")).await.expect("the connection is of use");
        assert_eq!(connections.load(Ordering::Relaxed), before + 1, "{url}: all of it on one connection");
    }
}

#[tokio::test]
async fn a_card_never_starts_a_program_and_leads_to_local_sockets_only_whoever_asks() {
    let house = House::open("");
    let card = house.server.url.clone();
    let by = |binding| {
        let options = Options { binding: Some(binding), ..Options::default() };
        Client::discover(&card, options)
    };
    assert_eq!(by(Binding::WebSocket).await.expect("it is in the card").binding(), Binding::WebSocket);
    assert_eq!(by(Binding::Unix).await.expect("it is in the card").binding(), Binding::Unix);
    assert!(matches!(by(Binding::Stdio).await, Err(ClientError::NoInterface { .. })));
    assert_eq!(Client::discover(&card, Options::default()).await.expect("it").binding(), Binding::JsonRpc);
}

#[tokio::test]
async fn errors_say_what_is_wrong() {
    let gone = Client::discover("unix:///nowhere/a.sock", Options::default()).await.expect_err("an error");
    assert!(matches!(gone, ClientError::Unreachable { .. }), "{gone}");
    let dead = Client::discover("stdio:echo secret-argument >&2; exit 3", Options::default()).await;
    let dead = dead.expect_err("an error").to_string();
    assert!(dead.contains("stdio:echo") && !dead.contains("secret-argument"), "{dead}");
    let house = House::open("token: t-1\n");
    for url in addresses(&house).iter().take(2) {
        let refused = Client::discover(
            url,
            Options { retry: nuncio_client::Retry { tries: 0, ..Default::default() }, ..Options::default() },
        );
        assert!(refused.await.is_err(), "{url}");
        let known = Client::discover(url, Options::bearer("t-1")).await.expect("with a token");
        known.send(request("hi")).await.expect("an answer");
        let wrong = Client::discover(url, Options::bearer("wrong")).await.expect_err("an error");
        assert!(matches!(wrong, ClientError::Unauthorized { .. }), "{url}: {wrong}");
    }
}

#[tokio::test]
async fn every_command_works_with_each_address() {
    let house = House::open("");
    for url in addresses(&house) {
        let run = |args: &[&str]| {
            let done = Command::new(binary())
                .arg("client")
                .args(args)
                .args(["--url", &url])
                .stdin(Stdio::null())
                .output()
                .expect("it runs");
            let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            (done.status.code(), out.into_owned(), err.into_owned())
        };
        let (code, out, err) = run(&["call", "--prompt", "stream 3 5", "--stream"]);
        assert!(code == Some(0) && out.contains("chunk 0chunk 1chunk 2"), "{url}: {code:?} {out} {err}");
        let (code, out, err) = run(&["call", "--prompt", "hello"]);
        assert!(code == Some(0) && out.trim() == "hello", "{url}: {code:?} {out} {err}");
        let (code, out, err) = run(&["discover", "--output", "json"]);
        assert!(code == Some(0) && out.contains("\"nuncio demo\""), "{url}: {code:?} {out} {err}");
        let (code, _, err) = run(&["task-get", "--task-id", "nobody"]);
        assert!(code == Some(1), "{url}: {code:?} {err}");
        let (code, _, err) = run(&["task-list", "--output", "json"]);
        assert!(code == Some(0), "{url}: {code:?} {err}");
    }
    // The server that the last command started has gone with it.
    let mut talk = Talk::open(&house, crate::kit::By::Unix).await;
    talk.send("still here").await;
}
