//! A stream whose connection is cut again and again carries the same text as one that is left alone.

#![allow(clippy::panic, reason = "a panic is how a test reports")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use nuncio_client::{Binding, Client, Options, Retry, SendOptions, Version};
use nuncio_protocol::{Message, Part, SendMessageRequest, StreamResponse, TaskState};
use nuncio_tests::{PATIENCE, Random, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const CUTS: u64 = 100;

/// Stands between a client and a server, and cuts the first connections after some bytes of the answers.
struct Cutter {
    url: String,
    cuts: Arc<AtomicU64>,
    _running: JoinSet<()>,
}

impl Cutter {
    async fn before(server: &Server, mut random: Random) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let to = server.url.trim_start_matches("http://").to_owned();
        let cuts = Arc::new(AtomicU64::new(0));
        let counter = cuts.clone();
        let mut running = JoinSet::new();
        running.spawn(async move {
            let mut pipes = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&to).await.expect("the server listens");
                pipes.spawn(pipe(client, server, random.below(1200), counter.clone()));
            }
        });
        Self { url, cuts, _running: running }
    }
}

/// Passes bytes on, until so many came back and there may still be a cut.
async fn pipe(client: TcpStream, server: TcpStream, most: u64, cuts: Arc<AtomicU64>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let mut asks = JoinSet::new();
    asks.spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let mut left = usize::try_from(most).unwrap_or_default();
    let mut buffer = vec![0; 4096];
    while let Ok(n @ 1..) = from_server.read(&mut buffer).await {
        let may_cut = n > left
            && cuts
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |cuts| (cuts < CUTS).then_some(cuts + 1))
                .is_ok();
        let passed = if may_cut { left } else { n };
        if to_client.write_all(&buffer[..passed]).await.is_err() || may_cut {
            // Both connections end with what holds them.
            return;
        }
        left = if n > left { usize::MAX } else { left - n };
    }
}

/// The text of the answer, piece by piece.
async fn answer(url: &str, options: Options) -> Vec<String> {
    let client = Client::direct(url, options).expect("an address");
    let message = Message::from_user(vec![Part::text("stream 900 1")]);
    let request = SendMessageRequest { message: Some(message), ..Default::default() };
    let how = SendOptions::key("the same message");
    let mut events = client.stream_with(request, &how).await.expect("a stream");
    let (mut text, mut state) = (Vec::new(), TaskState::default());
    while let Some(event) = events.next().await {
        match event.expect("the stream goes on").response {
            StreamResponse::Task(task) => state = task.status.state,
            StreamResponse::StatusUpdate(update) => state = update.status.state,
            StreamResponse::ArtifactUpdate(update) => {
                text.extend(update.artifact.parts.iter().filter_map(Part::as_text).map(str::to_owned));
            }
            StreamResponse::Message(message) => panic!("a task, not {message:?}"),
        }
    }
    assert_eq!(state, TaskState::Completed);
    text
}

#[tokio::test]
async fn a_stream_that_is_cut_a_hundred_times_loses_and_repeats_nothing() {
    for binding in [Binding::JsonRpc, Binding::Rest] {
        for version in [Version::V1_0, Version::V0_3] {
            let (binding, version) = (Some(binding), Some(version));
            // Some cuts come before anything of use: those in a row are no reason to give up.
            let retry = Retry { tries: 50, first: Duration::from_millis(1), most: Duration::from_millis(5) };
            let options = Options { binding, version, retry, ..Options::default() };
            let whole = Server::start(&["--store", "memory"]);
            let uncut = tokio::time::timeout(PATIENCE, answer(&whole.url, options.clone())).await.expect("in time");
            let server = Server::start(&["--store", "memory"]);
            let cutter = Cutter::before(&server, Random::new()).await;
            let cut = tokio::time::timeout(2 * PATIENCE, answer(&cutter.url, options)).await.expect("in time");
            assert_eq!(cutter.cuts.load(Ordering::Relaxed), CUTS, "{binding:?} {version:?}");
            assert_eq!(cut.concat(), uncut.concat(), "{binding:?} {version:?}");
            assert_eq!(server.count("COMPLETED").await, 1, "{binding:?} {version:?}");
        }
    }
}
