//! Many readers of one task, and slow ones.

use std::sync::Arc;
use std::time::Duration;

use nuncio_tests::{PATIENCE, RequestBuilder, Server, Sse, SseEvent, Wire};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

const READERS: usize = 1000;
const CHUNKS: usize = 1000;

/// The bytes of a whole stream.
async fn bytes(request: RequestBuilder, opened: Option<Arc<Barrier>>) -> Vec<u8> {
    let mut response = request.header("Accept", "text/event-stream").send().await.expect("a connection");
    assert_eq!(response.status(), 200);
    let mut all = Vec::new();
    let mut opened = opened;
    loop {
        let chunk = tokio::time::timeout(2 * PATIENCE, response.chunk()).await.expect("something within the time");
        match chunk.expect("the connection holds") {
            Some(chunk) => all.extend_from_slice(&chunk),
            None => return all,
        }
        if let Some(opened) = opened.take() {
            opened.wait().await;
        }
    }
}

/// Everything behind the first event, which is the task as the reader found it.
fn behind_the_first(stream: &[u8]) -> &[u8] {
    let end = stream.windows(2).position(|pair| pair == b"\n\n").expect("an event");
    &stream[end + 2..]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_readers_get_the_same_thousand_events() {
    // A sign of life is no event, and would make one stream differ from another.
    let server = Server::configured("keep-alive: 10m\n");
    // The context is busy, so that everyone is there before the first chunk.
    let busy = server.send_params(nuncio_tests::at_once(nuncio_tests::in_context(&"here".into(), "hold"))).await;
    let params = nuncio_tests::in_context(&"here".into(), &format!("stream {CHUNKS} 5"));
    let task = server.send_params(nuncio_tests::at_once(params)).await;
    let task = nuncio_tests::id(&task).to_owned();
    let opened = Arc::new(Barrier::new(READERS + 1));
    let mut readers = JoinSet::new();
    for n in 0..READERS {
        let wire = Wire::ALL[n % 4];
        let request = wire.subscribe(&server, &task, None);
        let opened = opened.clone();
        readers.spawn(async move { (wire, bytes(request, Some(opened)).await) });
    }
    tokio::time::timeout(2 * PATIENCE, opened.wait()).await.expect("all are there");
    server.cancel(nuncio_tests::id(&busy)).await;
    let mut complete: Vec<(Wire, Vec<u8>)> = Vec::new();
    for wire in Wire::ALL {
        complete.push((wire, bytes(wire.subscribe(&server, &task, Some(1)), None).await));
    }
    for (wire, all) in &complete {
        let ends = all.windows(2).filter(|pair| pair == b"\n\n").count();
        assert_eq!(ends, CHUNKS + 2, "{wire:?}: working, the chunks, completed");
    }
    let mut counts = [0; 4];
    while let Some(read) = readers.join_next().await {
        let (wire, stream) = read.expect("no reader fails");
        let place = Wire::ALL.iter().position(|known| *known == wire).expect("one of them");
        let (read, wanted) = (behind_the_first(&stream), &complete[place].1);
        assert!(read == wanted, "{wire:?} differs: {} bytes of {}", read.len(), wanted.len());
        counts[place] += 1;
    }
    assert_eq!(counts, [READERS / 4; 4]);
    // Apart from the envelope, JSON-RPC and REST say the same.
    let lines = |n: usize| String::from_utf8(complete[n].1.clone()).expect("UTF-8");
    let (wrapped, plain) = (lines(0), lines(1));
    for (wrapped, plain) in wrapped.lines().zip(plain.lines()) {
        match plain.strip_prefix("data: ") {
            Some(event) => assert_eq!(wrapped, format!("data: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{event}}}")),
            None => assert_eq!(wrapped, plain),
        }
    }
}

fn assert_complete(events: &[SseEvent], chunks: usize) {
    assert_eq!(events.len(), chunks + 3);
    for (n, event) in events.iter().enumerate() {
        assert_eq!(event.id, Some(n as u64 + 1));
        if (2..chunks + 2).contains(&n) {
            assert_eq!(event.chunk(), Some(&*format!("chunk {}", n - 2)));
        }
    }
    assert!(events.last().expect("events").state().to_lowercase().ends_with("completed"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_gets_everything_and_holds_nobody_up() {
    let server = Server::start(&[]);
    let mut slow = Vec::new();
    for wire in Wire::ALL {
        slow.push(Sse::open(wire.stream(&server, "burst 5000")).await);
    }
    for _ in 0..3000 {
        if server.count("COMPLETED").await == 4 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(server.count("COMPLETED").await, 4, "the tasks do not wait for their readers");
    tokio::time::sleep(Duration::from_secs(2)).await;
    for stream in slow {
        assert_complete(&stream.all().await, 5000);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_chunks_arrive() {
    let server = Server::start(&[]);
    let events = server.stream("stream 10000").await.all().await;
    assert_complete(&events, 10_000);
    let task = events[0].body()["task"]["id"].as_str().expect("an id");
    let whole = server.task(task).await;
    assert_eq!(whole["artifacts"][0]["parts"].as_array().map(Vec::len), Some(10_000));
    assert!(server.log(task).await == events, "the log says the same");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signs_of_life_do_not_disturb_the_events() {
    let server = Server::configured("keep-alive: 1ms\n");
    for wire in Wire::ALL {
        let events = Sse::open(wire.stream(&server, "stream 200 3")).await.all().await;
        assert_complete(&events, 200);
    }
    let mut response = Wire::Rest.stream(&server, "sleep 0.2").send().await.expect("a stream");
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await.expect("the connection holds") {
        text.extend_from_slice(&chunk);
    }
    assert!(String::from_utf8_lossy(&text).contains(": keep-alive"), "a silent stream shows that it lives");
}
