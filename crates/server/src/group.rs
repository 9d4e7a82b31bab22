//! A consumer group on a Redis stream, as one of its members sees it.
//!
//! What a member has taken stays its own until it is acknowledged, or until the member has not been heard of for the
//! length of its lease: then any other may take it over.

use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::streams::{StreamAutoClaimReply, StreamId, StreamReadReply};
use redis::{Client, RedisError, cmd};

/// How long Redis may take for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait for an entry before looking after other things.
const WAIT: Duration = Duration::from_secs(1);

/// One member of a group.
pub(crate) struct Group {
    /// For everything that is answered at once.
    redis: ConnectionManager,
    /// For the one call that waits.
    reader: ConnectionManager,
    pub(crate) stream: String,
    pub(crate) name: String,
    pub(crate) consumer: String,
    pub(crate) lease: Duration,
    /// Where the search for what others left behind goes on.
    searched: Mutex<String>,
}

impl Group {
    /// A member of a group at this place. Redis need not be there yet; the URL must be one. Needs a Tokio runtime.
    pub(crate) fn new(
        url: &str,
        stream: &str,
        name: &str,
        consumer: &str,
        lease: Duration,
    ) -> Result<Self, RedisError> {
        let client = Client::open(url)?;
        let config = |patience| {
            ConnectionManagerConfig::new()
                .set_connection_timeout(Some(PATIENCE))
                .set_response_timeout(Some(patience))
                .set_number_of_retries(1)
        };
        Ok(Self {
            redis: ConnectionManager::new_lazy_with_config(client.clone(), config(PATIENCE))?,
            reader: ConnectionManager::new_lazy_with_config(client, config(PATIENCE + WAIT))?,
            stream: stream.to_owned(),
            name: name.to_owned(),
            consumer: consumer.to_owned(),
            lease,
            searched: Mutex::new("0-0".to_owned()),
        })
    }

    /// A connection for what is answered at once.
    pub(crate) fn redis(&self) -> ConnectionManager {
        self.redis.clone()
    }

    /// The lease in milliseconds.
    pub(crate) fn lease(&self) -> u64 {
        millis(self.lease)
    }

    /// Makes the group if it is missing, and says whether it was.
    pub(crate) async fn create(&self) -> Result<bool, RedisError> {
        let mut create = cmd("XGROUP");
        create.arg("CREATE").arg(&self.stream).arg(&self.name).arg("0").arg("MKSTREAM");
        match create.query_async::<()>(&mut self.redis()).await {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Some("BUSYGROUP") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits a moment for new entries.
    pub(crate) async fn next(&self, most: usize) -> Result<Vec<StreamId>, RedisError> {
        self.read(most, Some(WAIT), ">").await
    }

    /// Entries after this id that this member took and has not finished.
    pub(crate) async fn own(&self, most: usize, after: &str) -> Result<Vec<StreamId>, RedisError> {
        self.read(most, None, after).await
    }

    async fn read(&self, most: usize, wait: Option<Duration>, after: &str) -> Result<Vec<StreamId>, RedisError> {
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP").arg(&self.name).arg(&self.consumer).arg("COUNT").arg(most);
        if let Some(wait) = wait {
            read.arg("BLOCK").arg(millis(wait));
        }
        read.arg("STREAMS").arg(&self.stream).arg(after);
        let reply: Option<StreamReadReply> = read.query_async(&mut self.reader.clone()).await?;
        Ok(reply.into_iter().flat_map(|reply| reply.keys).flat_map(|key| key.ids).collect())
    }

    /// Takes entries over from members that are no longer heard of.
    pub(crate) async fn claim(&self, most: usize) -> Result<Vec<StreamId>, RedisError> {
        let from = self.searched.lock().clone();
        let mut claim = cmd("XAUTOCLAIM");
        claim.arg(&self.stream).arg(&self.name).arg(&self.consumer).arg(self.lease()).arg(from);
        claim.arg("COUNT").arg(most);
        let reply: StreamAutoClaimReply = claim.query_async(&mut self.redis()).await?;
        *self.searched.lock() = reply.next_stream_id;
        Ok(reply.claimed)
    }

    /// There is nothing left to do for an entry.
    pub(crate) async fn finish(&self, id: &str) -> Result<(), RedisError> {
        let mut both = redis::pipe();
        both.cmd("XACK").arg(&self.stream).arg(&self.name).arg(id).ignore();
        both.cmd("XDEL").arg(&self.stream).arg(id).ignore();
        both.query_async(&mut self.redis()).await
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// What is wrong, without the URL, which may hold a password.
pub(crate) fn category(error: &RedisError) -> String {
    match error.code() {
        Some(code) => format!("{} ({code})", error.category()),
        None => error.category().to_owned(),
    }
}
