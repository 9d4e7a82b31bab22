//! A2A by streams in Redis: requests go into one that workers share, replies come back by one of our own.
//!
//! Our stream has a name that nobody else has, and is read from its very beginning: a reply cannot be missed however
//! early it comes. One reader serves all calls.

mod desk;
mod replies;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nuncio_protocol::{MessageId, codec};
use percent_encoding::percent_decode_str;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{ErrorKind, RedisError, cmd};
use reqwest::Url;
use reqwest::header::HeaderMap;
use tokio::sync::OnceCell;

use crate::error::ClientError;
use crate::http::{Ask, Http, invalid, shown};
use desk::{Desk, WAIT};
pub(super) use replies::{Replies, Reply};

/// The names of streams that nobody has given others.
const REQUESTS: &str = "iac-code:a2a:requests";
const RESPONSES: &str = "iac-code:a2a:responses";

/// Whether an address is one of streams in Redis.
pub(crate) fn is_redis(url: &Url) -> bool {
    matches!(url.scheme(), "redis-streams" | "rediss-streams")
}

/// The streams of one agent, and our own.
pub(super) struct Redis {
    client: redis::Client,
    /// For people: without user and password.
    shown: String,
    requests: String,
    /// Where our replies arrive.
    replies: String,
    connect_timeout: Duration,
    /// How long Redis may be away before calls that wait are given up.
    patience: Duration,
    connection: OnceCell<ConnectionManager>,
    desk: Arc<Desk>,
    numbers: AtomicU64,
}

impl Redis {
    /// Streams at `redis-streams://[USER:PASSWORD@]HOST[:PORT][/DB][?request-stream=NAME&response-stream=NAME]`;
    /// with `rediss-streams` over TLS. Nothing is sent yet.
    pub(super) fn new(http: &Http, url: &Url) -> Result<Self, ClientError> {
        let mut names = (REQUESTS.to_owned(), RESPONSES.to_owned());
        for (name, value) in url.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('=')) {
            let value: Cow<'_, str> = percent_decode_str(value).decode_utf8_lossy();
            match name {
                "request-stream" => names.0 = value.into_owned(),
                "response-stream" => names.1 = value.into_owned(),
                _ => {}
            }
        }
        let scheme = if url.scheme() == "rediss-streams" { "rediss" } else { "redis" };
        let mut plain = url.clone();
        plain.set_query(None);
        plain.set_fragment(None);
        let (_, rest) = plain.as_str().split_once(':').unwrap_or_default();
        // What is wrong with it may quote it, with its password.
        let wrong = |_| invalid("The address is not one of Redis, such as redis-streams://localhost:6379/0.".into());
        Ok(Self {
            client: redis::Client::open(format!("{scheme}:{rest}")).map_err(wrong)?,
            shown: shown(url),
            requests: names.0,
            replies: format!("{}:{}", names.1, MessageId::fresh()),
            connect_timeout: http.options.connect_timeout,
            patience: http.options.timeout,
            connection: OnceCell::new(),
            desk: Arc::default(),
            numbers: AtomicU64::new(1),
        })
    }

    /// Writes a request, and listens for what comes back.
    pub(super) async fn ask(self: &Arc<Self>, http: &Http, ask: &Ask) -> Result<Replies, ClientError> {
        let mut redis = self.connection.get_or_try_init(|| self.connect()).await?.clone();
        let number = self.numbers.fetch_add(1, Ordering::Relaxed).to_string();
        let mut replies = Replies::new(self.clone(), self.desk.expect(&number));
        let mut add = cmd("XADD");
        add.arg(&self.requests).arg("*").arg("correlation_id").arg(&number).arg("reply_stream").arg(&self.replies);
        add.arg("payload").arg(&ask.body[..]);
        add.arg("headers").arg(&headers(&ask.headers, http.known_headers(&ask.url))[..]);
        let id = add.query_async(&mut redis).await;
        replies.entry = id.map_err(|error| self.unreachable(&error))?;
        Ok(replies)
    }

    /// A connection, and a reader with one of its own.
    async fn connect(&self) -> Result<ConnectionManager, ClientError> {
        let config = |patience| {
            ConnectionManagerConfig::new()
                .set_connection_timeout(Some(self.connect_timeout))
                .set_response_timeout(Some(patience))
                .set_number_of_retries(1)
        };
        let open = |patience| ConnectionManager::new_lazy_with_config(self.client.clone(), config(patience));
        let both = open(self.connect_timeout).and_then(|redis| Ok((redis, open(self.connect_timeout + WAIT)?)));
        let (redis, reader) = both.map_err(|error| self.unreachable(&error))?;
        let reading = desk::read(self.desk.clone(), reader, redis.clone(), self.replies.clone(), self.patience);
        tokio::spawn(reading);
        Ok(redis)
    }

    fn unreachable(&self, error: &RedisError) -> ClientError {
        self.gone(&reason(error))
    }

    fn gone(&self, cause: &str) -> ClientError {
        ClientError::Unreachable { url: self.shown.clone(), cause: cause.to_owned() }
    }

    /// Whether a worker that was heard of lately has a request in hand.
    async fn is_in_hand(&self, entry: &str) -> Result<bool, ClientError> {
        let Some(redis) = self.connection.get() else { return Ok(false) };
        let mut both = redis::pipe();
        both.cmd("HGET").arg(format!("{}:entry:{entry}", self.requests)).arg("until").cmd("TIME");
        let asked = both.query_async(&mut redis.clone()).await;
        let (until, (seconds, _)): (Option<u64>, (u64, u64)) = asked.map_err(|error| self.unreachable(&error))?;
        Ok(until.is_some_and(|until| until / 1000 >= seconds))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.desk.close();
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("at", &self.shown).field("requests", &self.requests).finish_non_exhaustive()
    }
}

/// What is wrong, without the address, which may hold a password.
fn reason(error: &RedisError) -> String {
    match error.kind() {
        ErrorKind::AuthenticationFailed => "Redis does not accept the user or the password".into(),
        _ => match error.code() {
            Some(code) => format!("Redis says {} ({code})", error.category()),
            None => format!("Redis: {}", error.category()),
        },
    }
}

/// The headers as one JSON object of texts.
fn headers(own: &HeaderMap, credentials: Option<&HeaderMap>) -> Vec<u8> {
    let mut all = std::collections::BTreeMap::new();
    for (name, value) in own.iter().chain(credentials.into_iter().flatten()) {
        // What only HTTP needs says nothing here.
        if !matches!(name.as_str(), "accept" | "content-type")
            && let Ok(value) = value.to_str()
        {
            all.insert(name.as_str(), value);
        }
    }
    codec::encode(&all).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn streams(url: &str) -> Redis {
        let url = Url::parse(url).expect("a URL");
        Redis::new(&Http::new(url.clone(), Options::default()).expect("a client"), &url).expect("streams")
    }

    #[test]
    fn an_address_says_where_redis_is_and_what_its_streams_are_called() {
        let usual = streams("redis-streams://localhost");
        assert_eq!(usual.requests, REQUESTS);
        assert!(usual.replies.starts_with("iac-code:a2a:responses:") && usual.replies.len() < 256);
        let named = streams("rediss-streams://u:p%40ss@cache:7000/2?request-stream=a%3Ab&response-stream=c&x=y#z");
        assert_eq!(named.requests, "a:b");
        assert!(named.replies.starts_with("c:"));
        let info = named.client.get_connection_info();
        assert_eq!(info.addr().to_string(), "cache:7000");
        assert_eq!(info.redis_settings().db(), 2);
        assert_eq!((info.redis_settings().username(), info.redis_settings().password()), (Some("u"), Some("p@ss")));
    }

    #[test]
    fn no_two_clients_share_a_stream_for_replies() {
        assert_ne!(streams("redis-streams://localhost").replies, streams("redis-streams://localhost").replies);
    }

    #[test]
    fn a_password_is_never_shown() {
        let streams = streams("redis-streams://user:secret@localhost:1/0?request-stream=a");
        let error = streams.gone("no").to_string();
        assert!(error.contains("localhost:1") && !error.contains("secret") && !error.contains("user"), "{error}");
        assert!(!format!("{streams:?}").contains("secret"));
    }
}
