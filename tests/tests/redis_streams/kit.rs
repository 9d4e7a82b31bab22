//! A server behind a Redis, and callers that write their entries by hand.

use std::collections::HashMap;
use std::time::Instant;

use nuncio_client::{Client, Options};
use nuncio_tests::{PATIENCE, Redis, Server, Value, json};
use redis::aio::MultiplexedConnection;
use redis::streams::StreamRangeReply;
use redis::{AsyncConnectionConfig, cmd, pipe};

pub(crate) const REQUESTS: &str = "in";
pub(crate) const RESPONSES: &str = "out";

/// A configuration that takes requests from a Redis as well.
pub(crate) fn config(redis: &Redis, more: &str) -> String {
    format!(
        "transport: [http, redis-streams]\nredis-url: {}\nrequest-stream: {REQUESTS}\nresponse-stream: {RESPONSES}\n\
         consumer-group: workers\n{more}",
        redis.url()
    )
}

/// A server that takes requests from a Redis as well.
pub(crate) fn serve(redis: &Redis, more: &str) -> Server {
    Server::configured(&config(redis, more))
}

/// The address for clients.
pub(crate) fn address(redis: &Redis) -> String {
    format!("redis-streams://127.0.0.1:{}/0?request-stream={REQUESTS}&response-stream={RESPONSES}", redis.port)
}

/// A client of our own.
pub(crate) fn client(redis: &Redis, options: Options) -> Client {
    Client::direct(&address(redis), options).expect("a client")
}

/// A JSON-RPC request.
pub(crate) fn request(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

/// The parameters of a send, with this id and this text.
pub(crate) fn said(id: &str, text: &str) -> Value {
    json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] } })
}

/// One reply.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) payload: Value,
    pub(crate) event: Option<u64>,
    pub(crate) is_final: bool,
}

/// Somebody who knows the streams and nothing else.
pub(crate) struct Caller {
    redis: MultiplexedConnection,
    stream: String,
}

impl Caller {
    /// One whose replies go to this stream.
    pub(crate) async fn new(redis: &Redis, stream: &str) -> Self {
        let client = redis::Client::open(redis.url()).expect("a URL");
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(PATIENCE));
        let redis = client.get_multiplexed_async_connection_with_config(&config).await.expect("Redis is there");
        Self { redis, stream: stream.to_owned() }
    }

    /// Adds an entry with these fields, whatever they are.
    pub(crate) async fn add(&self, fields: &[(&str, &str)]) {
        let mut add = cmd("XADD");
        add.arg(REQUESTS).arg("*");
        for (name, value) in fields {
            add.arg(*name).arg(*value);
        }
        let _: String = add.query_async(&mut self.redis.clone()).await.expect("Redis takes it");
    }

    /// Adds requests, each with its correlation id.
    pub(crate) async fn ask_all(&self, requests: impl IntoIterator<Item = (String, Value)>) {
        let mut all = pipe();
        for (id, payload) in requests {
            let add = all.cmd("XADD").arg(REQUESTS).arg("*").arg("correlation_id").arg(id);
            add.arg("reply_stream").arg(&self.stream).arg("payload").arg(payload.to_string()).ignore();
        }
        let () = all.query_async(&mut self.redis.clone()).await.expect("Redis takes them");
    }

    /// Adds one request.
    pub(crate) async fn ask(&self, id: &str, payload: Value) {
        self.ask_all([(id.to_owned(), payload)]).await;
    }

    /// All replies so far, by correlation id.
    pub(crate) async fn replies(&self) -> HashMap<String, Vec<Reply>> {
        let mut range = cmd("XRANGE");
        range.arg(&self.stream).arg("-").arg("+");
        let found: StreamRangeReply = range.query_async(&mut self.redis.clone()).await.expect("Redis is there");
        let mut all: HashMap<String, Vec<Reply>> = HashMap::new();
        for entry in found.ids {
            let text = |name: &str| entry.get::<String>(name);
            let reply = Reply {
                payload: serde_json::from_str(&text("payload").expect("a payload")).expect("JSON"),
                event: text("event_id").map(|number| number.parse().expect("a number")),
                is_final: match text("final").as_deref() {
                    Some("true") => true,
                    Some("false") => false,
                    other => panic!("neither final nor not: {other:?}"),
                },
            };
            all.entry(text("correlation_id").expect("an id")).or_default().push(reply);
        }
        all
    }

    /// All replies as soon as so many requests are answered in full.
    pub(crate) async fn answered(&self, count: usize) -> HashMap<String, Vec<Reply>> {
        let until = Instant::now() + 2 * PATIENCE;
        loop {
            let all = self.replies().await;
            let done = all.values().filter(|replies| replies.iter().any(|reply| reply.is_final)).count();
            if done >= count {
                return all;
            }
            assert!(Instant::now() < until, "{done} of {count} requests are answered");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    /// The only reply to a request.
    pub(crate) async fn only(&self, id: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(replies) = self.replies().await.remove(id)
                && replies.iter().any(|reply| reply.is_final)
            {
                assert_eq!(replies.len(), 1, "{replies:?}");
                return replies[0].payload.clone();
            }
            assert!(Instant::now() < until, "{id} is not answered");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}

/// Checks that a stream is whole: its events numbered without gaps, and one end.
pub(crate) fn check_stream(replies: &[Reply]) {
    let events: Vec<u64> = replies.iter().filter_map(|reply| reply.event).collect();
    assert_eq!(events, (1..=events.len() as u64).collect::<Vec<_>>());
    let (last, before) = replies.split_last().expect("replies");
    assert!(last.is_final && before.iter().all(|reply| !reply.is_final), "{replies:?}");
}

/// Nothing is left of requests.
pub(crate) fn until_done(redis: &Redis) {
    nuncio_tests::raw::until("no request is left", || {
        redis.ask(&["XLEN", REQUESTS]) == "0"
            && redis.ask(&["XPENDING", REQUESTS, "workers"]).starts_with('0')
            && redis.ask(&["KEYS", "in:entry:*"]).is_empty()
    });
}
