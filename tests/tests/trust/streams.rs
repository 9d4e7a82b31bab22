//! The operations of the matrix as entries in a stream of Redis.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nuncio_tests::raw::{Answer, Wire};
use nuncio_tests::{PATIENCE, Redis, Value, json};
use redis::cmd;
use redis::streams::StreamRangeReply;

/// The configuration of a server that takes requests from this Redis beside its other ways.
pub(crate) fn config(redis: &Redis) -> String {
    let url = redis.url();
    format!("redis-url: {url}\nrequest-stream: in\nresponse-stream: out\nconsumer-group: workers\n")
}

/// Adds one request, credentials beside it, and waits for its last reply. Replies have no status and no headers.
pub(crate) fn entry(wire: &Wire, who: &str, call: &str) -> Option<Answer> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // A message that was sent before is not sent again: every one has an id of its own.
    let id = format!("00000000-0000-7000-8000-{:012x}", 0xe000 + NEXT.fetch_add(1, Ordering::Relaxed));
    let mut call: Value = call.parse().expect("JSON");
    if let Some(message) = call["params"].get_mut("message") {
        message["messageId"] = json!(id);
    }
    let headers = who.trim_end().split_once(": ").map(|(name, value)| json!({ name: value }).to_string());
    let card = wire.get("/.well-known/agent-card.json", "").text();
    let (_, address) = card.split_once("redis-streams://").expect("the card names the streams");
    let (address, _) = address.split_once('?').expect("the names of the streams");
    let client = redis::Client::open(format!("redis://{address}")).expect("a URL");
    let mut redis = client.get_connection().expect("Redis is there");
    let stream = format!("out:{id}");
    let mut add = cmd("XADD");
    add.arg("in").arg("*").arg("correlation_id").arg(&id).arg("reply_stream").arg(&stream);
    add.arg("payload").arg(call.to_string()).arg("headers").arg(headers.unwrap_or_default());
    let _: String = add.query(&mut redis).expect("Redis takes it");
    let until = Instant::now() + PATIENCE;
    loop {
        let found: StreamRangeReply = cmd("XRANGE").arg(&stream).arg("-").arg("+").query(&mut redis).expect("replies");
        let field = |at: usize, name: &str| found.ids[at].get::<String>(name).unwrap_or_default();
        if (0..found.ids.len()).any(|at| field(at, "final") == "true") {
            let replies =
                (0..found.ids.len()).map(|at| format!("{} {}\n", field(at, "event_id"), field(at, "payload")));
            return Some(Answer { status: 200, headers: Vec::new(), body: replies.collect::<String>().into_bytes() });
        }
        assert!(Instant::now() < until, "no answer in time to {call}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
