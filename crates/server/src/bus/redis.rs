//! Hints by pub/sub in Redis. Several servers of Redis share the tasks among them; all nodes listen at all of them.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, RedisError, Script};
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use super::{Bus, Hint, words};
use crate::group::{PATIENCE, category};

/// So many texts wait for a Redis that is slow; those beyond are lost.
const MOST_WAITING: usize = 1024;
/// So many texts are sent in one go.
const TOGETHER: usize = 64;
/// How often to see whether a silent connection still lives.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// How long to wait before connecting again, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

static BORROW: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("redis/borrow.lua")));

/// A bus over one or more servers of Redis.
pub struct RedisBus {
    shards: Vec<Shard>,
    heard: Mutex<mpsc::Receiver<String>>,
    /// What this process signs its hints with.
    own: String,
    /// What all keys begin with.
    name: String,
    _at_work: JoinSet<()>,
}

struct Shard {
    texts: mpsc::Sender<String>,
    redis: ConnectionManager,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    speaks: AtomicBool,
    listens: AtomicBool,
}

impl fmt::Debug for RedisBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBus").field("shards", &self.shards.len()).finish_non_exhaustive()
    }
}

impl RedisBus {
    /// A bus at these places for the servers on one store. Redis need not be there yet; the URLs must be such. Needs a
    /// Tokio runtime.
    pub fn open(urls: &[String], store: &str) -> Result<Self, RedisError> {
        let mark: String = Sha256::digest(store.as_bytes())[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("nuncio:{mark}");
        let own = uuid::Uuid::new_v4().simple().to_string();
        let (ear, heard) = mpsc::channel(MOST_WAITING);
        let (mut shards, mut at_work) = (Vec::new(), JoinSet::new());
        for url in urls {
            let client = Client::open(url.as_str())?;
            let config = ConnectionManagerConfig::new()
                .set_connection_timeout(Some(PATIENCE))
                .set_response_timeout(Some(PATIENCE))
                .set_number_of_retries(1);
            let redis = ConnectionManager::new_lazy_with_config(client.clone(), config)?;
            let (texts, waiting) = mpsc::channel(MOST_WAITING);
            let (state, channel) = (Arc::new(State::default()), format!("{name}:hints"));
            at_work.spawn(speak(redis.clone(), channel.clone(), waiting, state.clone()));
            at_work.spawn(listen(client, channel, ear.clone(), state.clone()));
            shards.push(Shard { texts, redis, state });
        }
        Ok(Self { shards, heard: Mutex::new(heard), own, name, _at_work: at_work })
    }

    fn shard_of(&self, hint: &Hint) -> usize {
        let mut hasher = DefaultHasher::new();
        match hint {
            Hint::Reached(task, _) => task.hash(&mut hasher),
            Hint::Orders(node) => node.hash(&mut hasher),
            // To one that works, if there is one.
            Hint::Work => return self.shards.iter().position(|shard| shard.state.is_well()).unwrap_or_default(),
        }
        usize::try_from(hasher.finish() % self.shards.len().max(1) as u64).unwrap_or_default()
    }
}

impl State {
    fn is_well(&self) -> bool {
        self.speaks.load(Ordering::Relaxed) && self.listens.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Bus for RedisBus {
    fn tell(&self, hints: &[Hint]) {
        for (n, shard) in self.shards.iter().enumerate() {
            let mut own = hints.iter().filter(|hint| self.shard_of(hint) == n).peekable();
            if own.peek().is_none() {
                continue;
            }
            for text in words::write(&self.own, own) {
                // Nobody waits for a hint.
                let _ = shard.texts.try_send(text);
            }
        }
    }

    async fn heard(&self) -> Vec<Hint> {
        let mut heard = self.heard.lock().await;
        loop {
            let Some(text) = heard.recv().await else { return std::future::pending().await };
            let mut hints = words::read(&self.own, &text);
            while let Ok(text) = heard.try_recv() {
                hints.extend(words::read(&self.own, &text));
            }
            if !hints.is_empty() {
                return hints;
            }
        }
    }

    async fn borrow(&self, who: &str, interval: Duration, slack: Duration, want: u32) -> Option<Option<u32>> {
        let mut hasher = DefaultHasher::new();
        who.hash(&mut hasher);
        let shard = usize::try_from(hasher.finish() % self.shards.len().max(1) as u64).unwrap_or_default();
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let mut call = BORROW.key(format!("{}:rate:{who}", self.name));
        call.arg(micros(interval).max(1)).arg(micros(slack)).arg(want);
        let mut redis = self.shards.get(shard)?.redis.clone();
        let granted = tokio::time::timeout(Duration::from_millis(500), call.invoke_async(&mut redis)).await;
        Some(granted.ok().and_then(Result::ok))
    }

    fn trouble(&self) -> Option<&'static str> {
        let well = self.shards.iter().filter(|shard| shard.state.is_well()).count();
        match well {
            well if well == self.shards.len() => None,
            0 => Some("unreachable"),
            _ => Some("partly unreachable"),
        }
    }

    fn kind(&self) -> &'static str {
        "redis"
    }
}

/// Publishes texts as they come, those that wait together.
async fn speak(mut redis: ConnectionManager, channel: String, mut texts: mpsc::Receiver<String>, state: Arc<State>) {
    let mut some = Vec::new();
    loop {
        // Without anything to say, it is seen from time to time whether it could.
        let waited = tokio::time::timeout(LOOK_EVERY, texts.recv_many(&mut some, TOGETHER)).await;
        let mut commands = redis::pipe();
        match waited {
            Ok(0) => return,
            Ok(_) => {
                for text in some.drain(..) {
                    commands.publish(&channel, text).ignore();
                }
            }
            Err(_) => {
                commands.cmd("PING").ignore();
            }
        }
        let said = commands.query_async::<()>(&mut redis).await;
        note(&state.speaks, said.map_err(|error| category(&error)), "hints cannot be sent by Redis");
    }
}

/// Hears what is published, whatever becomes of connections.
async fn listen(client: Client, channel: String, ear: mpsc::Sender<String>, state: Arc<State>) {
    let mut pause = PAUSES.0;
    loop {
        let heard = listen_once(&client, &channel, &ear, || {
            pause = PAUSES.0;
            note(&state.listens, Ok(()), "");
        });
        let why = heard.await.map_or_else(|error| category(&error), |()| "the connection was closed".to_owned());
        note(&state.listens, Err(why), "hints cannot be received by Redis");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

async fn listen_once(
    client: &Client,
    channel: &str,
    ear: &mpsc::Sender<String>,
    begun: impl FnOnce(),
) -> Result<(), RedisError> {
    let late = || RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
    let connected = tokio::time::timeout(PATIENCE, async {
        let mut pubsub = client.get_async_pubsub().await?;
        pubsub.subscribe(channel).await?;
        Ok::<_, RedisError>(pubsub)
    });
    let (mut sink, mut stream) = connected.await.map_err(|_| late())??.split();
    begun();
    loop {
        match tokio::time::timeout(LOOK_EVERY, stream.next()).await {
            Ok(Some(message)) => {
                // Whoever does not keep up looks by itself.
                let _ = ear.try_send(message.get_payload()?);
            }
            Ok(None) => return Ok(()),
            Err(_) => {
                // The answer to it comes by the stream, which must be read meanwhile.
                let (mut ping, mut heard) = (Box::pin(sink.ping::<()>()), Vec::new());
                let alive = tokio::time::timeout(PATIENCE, async {
                    loop {
                        tokio::select! {
                            pong = &mut ping => return pong,
                            Some(message) = stream.next() => heard.push(message),
                        }
                    }
                });
                alive.await.map_err(|_| late())??;
                for message in heard {
                    let _ = ear.try_send(message.get_payload()?);
                }
            }
        }
    }
}

/// Remembers whether something works, and says so when that changes.
fn note(works: &AtomicBool, outcome: Result<(), String>, what: &str) {
    let now = outcome.is_ok();
    let before = works.swap(now, Ordering::Relaxed);
    match outcome {
        Err(error) if before => tracing::warn!(error, "{what}: tasks on other servers are seen with delay"),
        Err(error) => tracing::debug!(error, "{what}"),
        Ok(()) => {}
    }
}
