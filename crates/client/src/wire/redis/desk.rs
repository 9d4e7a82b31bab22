//! Who waits for replies, and the one reader that brings them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redis::aio::ConnectionManager;
use redis::streams::{StreamId, StreamReadReply};
use redis::{RedisError, Script, cmd};
use tokio::sync::{Notify, mpsc};

use super::reason;
use super::replies::Reply;

/// How long to wait for replies before looking whether anybody still waits for them.
pub(super) const WAIT: Duration = Duration::from_secs(1);
/// Most replies taken at once.
const BATCH: usize = 256;
/// Replies that may wait for one call. Whoever lets more of them wait has to ask again for what is missing.
const ROOM: usize = 512;
/// How long to wait for Redis at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// So many replies that were read may stay in the stream.
const LITTER: usize = 1000;

/// Deletes the stream unless there is more in it than was read.
static TIDY: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1) \
         if last[1] and last[1][1] == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
    )
});

/// What a call gets: replies, or why there are no more.
pub(super) type Arrival = Result<Reply, String>;

/// The calls that wait.
#[derive(Default)]
pub(super) struct Desk {
    waiting: Mutex<Waiting>,
    news: Notify,
}

#[derive(Default)]
struct Waiting {
    calls: HashMap<String, mpsc::Sender<Arrival>>,
    closed: bool,
}

/// A place at the desk, given up when it is dropped.
pub(super) struct Place {
    number: String,
    desk: Arc<Desk>,
    pub(super) arrivals: mpsc::Receiver<Arrival>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.desk.waiting.lock().calls.remove(&self.number);
    }
}

impl Desk {
    /// A place for a call.
    pub(super) fn expect(self: &Arc<Self>, number: &str) -> Place {
        let (sender, arrivals) = mpsc::channel(ROOM);
        self.waiting.lock().calls.insert(number.to_owned(), sender);
        self.news.notify_one();
        Place { number: number.to_owned(), desk: self.clone(), arrivals }
    }

    /// Nobody will wait any more.
    pub(super) fn close(&self) {
        self.waiting.lock().closed = true;
        self.news.notify_one();
    }

    /// Waits until somebody waits. False when nobody ever will again.
    async fn is_wanted(&self) -> bool {
        loop {
            {
                let waiting = self.waiting.lock();
                if waiting.closed || !waiting.calls.is_empty() {
                    return !waiting.closed;
                }
            }
            self.news.notified().await;
        }
    }

    /// Whether these replies are the last that anybody waits for.
    fn is_served_by(&self, replies: &[(String, Reply)]) -> bool {
        let waiting = self.waiting.lock();
        let done = |number: &String| replies.iter().any(|(known, reply)| known == number && reply.is_final);
        waiting.calls.keys().all(done)
    }

    fn deliver(&self, (number, reply): (String, Reply)) {
        let mut waiting = self.waiting.lock();
        let last = reply.is_final;
        let Some(call) = waiting.calls.get(&number) else { return };
        // A call without room is over for now: the end of its channel tells.
        if call.try_send(Ok(reply)).is_err() || last {
            waiting.calls.remove(&number);
        }
    }

    fn fail_all(&self, why: &str) {
        for (_, call) in self.waiting.lock().calls.drain() {
            let _ = call.try_send(Err(why.to_owned()));
        }
    }
}

/// Brings replies to whoever waits for them, until nobody can wait any more; then removes the stream.
pub(super) async fn read(
    desk: Arc<Desk>,
    mut reader: ConnectionManager,
    mut redis: ConnectionManager,
    stream: String,
    patience: Duration,
) {
    let (mut last, mut litter) = ("0-0".to_owned(), 0);
    let (mut pause, mut away) = (PAUSES.0, None::<Instant>);
    while desk.is_wanted().await {
        let found = match next(&mut reader, &stream, &last).await {
            Ok(found) => found,
            Err(error) => {
                if away.get_or_insert_with(Instant::now).elapsed() >= patience {
                    desk.fail_all(&reason(&error));
                    away = None;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSES.1);
                continue;
            }
        };
        (pause, away) = (PAUSES.0, None);
        litter += found.len();
        if let Some(entry) = found.last() {
            last.clone_from(&entry.id);
        }
        let replies: Vec<_> = found.iter().filter_map(reply).collect();
        if !replies.is_empty() && desk.is_served_by(&replies) {
            // Before the call is told: the program may end with it.
            if let Ok(true) = TIDY.key(&stream).arg(&last).invoke_async(&mut redis).await {
                // The next stream of this name begins anew.
                (last, litter) = ("0-0".to_owned(), 0);
            }
        } else if litter >= LITTER {
            let mut trim = cmd("XTRIM");
            trim.arg(&stream).arg("MINID").arg("~").arg(&last);
            if trim.query_async::<()>(&mut redis).await.is_ok() {
                litter = 0;
            }
        }
        replies.into_iter().for_each(|reply| desk.deliver(reply));
    }
    let _ = cmd("DEL").arg(&stream).query_async::<()>(&mut redis).await;
}

async fn next(reader: &mut ConnectionManager, stream: &str, after: &str) -> Result<Vec<StreamId>, RedisError> {
    let mut read = cmd("XREAD");
    read.arg("COUNT").arg(BATCH).arg("BLOCK").arg(WAIT.as_secs() * 1000).arg("STREAMS").arg(stream).arg(after);
    let reply: Option<StreamReadReply> = read.query_async(reader).await?;
    Ok(reply.into_iter().flat_map(|reply| reply.keys).flat_map(|key| key.ids).collect())
}

/// Reads an entry, and for whom it is. What is none is nobody's.
fn reply(entry: &StreamId) -> Option<(String, Reply)> {
    let reply = Reply {
        payload: entry.get::<Vec<u8>>("payload")?,
        event: entry.get::<String>("event_id").and_then(|number| number.parse().ok()),
        is_final: entry.get::<String>("final").is_some_and(|last| last == "true"),
    };
    Some((entry.get::<String>("correlation_id")?, reply))
}
