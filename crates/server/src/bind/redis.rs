//! Requests that come by a Redis stream, and replies that go back by others.
//!
//! Whoever calls adds an entry with `correlation_id`, `reply_stream`, `payload` and perhaps `headers` to the request
//! stream; workers of one consumer group take entries, and add replies with `correlation_id`, `payload`, `final` and
//! `event_id` to the reply stream. An entry stays with its worker until it is answered in full. What a dead worker
//! leaves behind another one takes over: messages are recognised by their ids, streams go on after the last event.
//!
//! | key | |
//! |---|---|
//! | the request stream | entries; answered ones are deleted |
//! | the reply streams | of limited length; gone some time after the last reply |
//! | `REQUESTS:entry:ID` | what is known of an entry that is being answered: `home`, the log; `event`, the last one sent;
//! `until`, when a worker that is not heard of by then is gone, in milliseconds |

mod carry;
pub mod entry;
mod worker;

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use redis::{ConnectionAddr, IntoConnectionInfo, RedisError, Script, ScriptInvocation};
use sha2::{Digest, Sha256};

use self::entry::{ReplyTo, Rules, hex};
use super::App;
use crate::group::{Group, millis};

pub(crate) use self::worker::run;

/// So many replies stay in a stream.
const LONGEST: usize = 10_000;
/// So long replies stay after the last one.
const REPLIES_LAST: Duration = Duration::from_secs(600);
/// So long it is known what became of an entry that nobody takes up.
const NOTES_LAST: Duration = Duration::from_secs(7 * 24 * 3600);
/// Workers that were not heard of for so long, and have nothing in hand, are forgotten.
const MEMBERS_LAST: Duration = Duration::from_secs(24 * 3600);

static BEGIN: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("redis/begin.lua")));
static EMIT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("redis/emit.lua")));
static FINISH: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("redis/finish.lua")));
static KEEP: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("redis/keep.lua")));
static PRUNE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("redis/prune.lua")));

/// What names of streams cannot have in an address.
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b':').remove(b'-').remove(b'_').remove(b'.');

/// Where requests come from. The workers of one request stream share all of it but their names and, with one log
/// each, their homes.
#[derive(Clone)]
pub struct RedisStreams {
    /// `redis://` or `rediss://`; it may hold a password.
    pub url: String,
    /// The stream of requests.
    pub requests: String,
    /// The stream for replies to whoever names no other; those that callers name begin with it and a colon.
    pub responses: String,
    /// The consumer group.
    pub group: String,
    /// The name of this worker. No two that run may have the same; one that is started again should have its old one.
    pub consumer: String,
    /// The log that this worker writes to. A request that was begun in one log is not begun again in another.
    pub home: String,
    /// How long a worker that is no longer heard of keeps what it has in hand.
    pub lease: Duration,
    /// Requests in hand at the same time.
    pub concurrent: usize,
}

/// A home that is gone with its worker.
const PASSING: &str = "passing/";

impl RedisStreams {
    /// The usual names, for a worker on this log: the only one on it at a time. Without a log that lasts, what the
    /// worker has begun cannot be taken up by any other.
    pub fn new(url: String, log: Option<&str>) -> Self {
        let mark = match log {
            Some(log) => hex(&Sha256::digest(log.as_bytes())[..6]),
            None => uuid::Uuid::new_v4().simple().to_string()[..12].to_owned(),
        };
        Self {
            url,
            requests: "iac-code:a2a:requests".into(),
            responses: "iac-code:a2a:responses".into(),
            group: "iac-code".into(),
            consumer: format!("consumer-{mark}"),
            home: if log.is_some() { mark } else { format!("{PASSING}{mark}") },
            lease: Duration::from_secs(15),
            concurrent: 1000,
        }
    }
}

impl fmt::Debug for RedisStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStreams").field("requests", &self.requests).finish_non_exhaustive()
    }
}

/// The streams, as one worker sees them.
pub struct Streams {
    group: Group,
    options: RedisStreams,
}

/// What is known of an entry that this worker takes up.
struct Begun {
    /// How often it was taken; never if it is another worker's now.
    times: u64,
    /// Where it was begun.
    home: String,
    /// The last event that was sent.
    event: u64,
    /// For how long nobody can have been at it.
    late: Duration,
}

/// What became of an attempt to reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replied {
    Yes,
    /// Another worker has the entry, or it is finished.
    NotOurs,
    /// There is something else where replies should go.
    Nowhere,
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options.fmt(f)
    }
}

impl Streams {
    /// The streams at this place. Redis need not be there yet; the URL must be one. Needs a Tokio runtime.
    pub fn new(options: RedisStreams) -> Result<Self, RedisError> {
        let RedisStreams { url, requests, group, consumer, lease, .. } = &options;
        Ok(Self { group: Group::new(url, requests, group, consumer, *lease)?, options })
    }

    /// Where requests can be brought, for cards: without user and password.
    pub(crate) fn address(&self) -> String {
        let RedisStreams { url, requests, responses, .. } = &self.options;
        let Ok(info) = url.as_str().into_connection_info() else { return String::new() };
        let (scheme, place) = match info.addr() {
            ConnectionAddr::TcpTls { host, port, .. } => ("rediss-streams", format!("{host}:{port}")),
            ConnectionAddr::Tcp(host, port) => ("redis-streams", format!("{host}:{port}")),
            other => ("redis-streams", other.to_string()),
        };
        let name = |name| utf8_percent_encode(name, NAME);
        let (db, requests, responses) = (info.redis_settings().db(), name(requests), name(responses));
        format!("{scheme}://{place}/{db}?request-stream={requests}&response-stream={responses}")
    }

    fn rules(&self, app: &App) -> Rules<'_> {
        Rules {
            requests: &self.options.requests,
            responses: &self.options.responses,
            max_body: app.http.max_body,
            max_header: app.http.max_header,
        }
    }

    async fn begin(&self, id: &str) -> Result<Begun, RedisError> {
        let mut call = BEGIN.key(&self.group.stream);
        call.key(self.note(id)).arg(&self.group.name).arg(&self.group.consumer).arg(id);
        call.arg(&self.options.home).arg(millis(NOTES_LAST)).arg(2 * self.group.lease());
        let (times, home, event, late) = call.invoke_async(&mut self.group.redis()).await?;
        Ok(Begun { times, home, event, late: Duration::from_millis(late) })
    }

    /// Sends events with their numbers; those that were sent before are left out.
    async fn emit(&self, id: &str, to: &ReplyTo, events: &[(u64, Vec<u8>)]) -> Result<Replied, RedisError> {
        let mut call = EMIT.key(&self.group.stream);
        call.key(self.note(id)).key(&to.stream).arg(&self.group.name).arg(&self.group.consumer).arg(id);
        call.arg(&to.correlation).arg(LONGEST).arg(millis(REPLIES_LAST)).arg(millis(NOTES_LAST));
        for (number, payload) in events {
            call.arg(*number).arg(&payload[..]);
        }
        self.reply(&call).await
    }

    /// Sends the last replies and removes the entry.
    async fn finish(&self, id: &str, to: &ReplyTo, payloads: &[Vec<u8>]) -> Result<Replied, RedisError> {
        let mut call = FINISH.key(&self.group.stream);
        call.key(self.note(id)).key(&to.stream).arg(&self.group.name).arg(id);
        call.arg(&to.correlation).arg(LONGEST).arg(millis(REPLIES_LAST));
        for payload in payloads {
            call.arg(&payload[..]);
        }
        self.reply(&call).await
    }

    async fn reply(&self, call: &ScriptInvocation<'_>) -> Result<Replied, RedisError> {
        let done: i64 = call.invoke_async(&mut self.group.redis()).await?;
        Ok(match done {
            1 => Replied::Yes,
            0 => Replied::NotOurs,
            _ => Replied::Nowhere,
        })
    }

    /// Keeps entries for another lease, and answers those that are not this worker's any more. Whoever outlives an
    /// entry for so long may well be given it again.
    async fn keep(&self, ids: &[String]) -> Result<Vec<String>, RedisError> {
        let mut call = KEEP.key(&self.group.stream);
        call.arg(&self.group.name).arg(&self.group.consumer).arg(0).arg(1).arg(2 * self.group.lease()).arg(ids);
        call.invoke_async(&mut self.group.redis()).await
    }

    /// Lets others have an entry at once, as if it had not been taken.
    async fn give_back(&self, id: &str, times: u64) -> Result<(), RedisError> {
        let mut call = KEEP.key(&self.group.stream);
        call.arg(&self.group.name).arg(&self.group.consumer).arg(self.group.lease()).arg(times.saturating_sub(1));
        let _: Vec<String> = call.arg(0).arg(id).invoke_async(&mut self.group.redis()).await?;
        Ok(())
    }

    /// Forgets workers that are gone for good.
    async fn prune(&self) -> Result<(), RedisError> {
        let mut call = PRUNE.key(&self.group.stream);
        call.arg(&self.group.name).arg(&self.group.consumer).arg(millis(MEMBERS_LAST));
        call.invoke_async(&mut self.group.redis()).await
    }

    fn note(&self, id: &str) -> String {
        format!("{}:entry:{id}", self.group.stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(url: &str, log: Option<&str>) -> Streams {
        Streams::new(RedisStreams::new(url.into(), log)).expect("a URL")
    }

    #[tokio::test]
    async fn a_card_says_where_redis_is_and_not_how_to_get_in() {
        let address = streams("redis://user:secret@cache:7000/2", None).address();
        let names = "request-stream=iac-code:a2a:requests&response-stream=iac-code:a2a:responses";
        assert_eq!(address, format!("redis-streams://cache:7000/2?{names}"));
        assert!(streams("rediss://:secret@cache", None).address().starts_with("rediss-streams://cache:6379/0?"));
        let shown = format!("{:?}", streams("redis://user:secret@cache", None));
        assert!(!shown.contains("secret"), "{shown}");
    }

    #[test]
    fn a_worker_is_known_again_by_its_log_and_only_by_that() {
        let worker = |log| RedisStreams::new(String::new(), log);
        assert_eq!(worker(Some("a")).consumer, worker(Some("a")).consumer);
        assert_eq!(worker(Some("a")).home, worker(Some("a")).home);
        assert_ne!(worker(Some("a")).home, worker(Some("b")).home);
        assert_ne!(worker(None).consumer, worker(None).consumer);
        assert!(worker(None).home.starts_with(PASSING) && !worker(Some("a")).home.starts_with(PASSING));
    }
}
