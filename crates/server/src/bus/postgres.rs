//! Hints by LISTEN and NOTIFY, on a connection of their own to the database that holds the log.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use super::{Bus, Hint, words};
use crate::store::postgres::notice::Notices;

/// So many texts wait for a database that is slow; those beyond are lost.
const MOST_WAITING: usize = 1024;
/// So many texts are sent in one statement.
const TOGETHER: usize = 64;
/// How often to see whether a silent connection still lives.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// How long to wait before connecting again, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// A bus over the database.
pub struct PostgresBus {
    texts: mpsc::Sender<String>,
    heard: Mutex<mpsc::Receiver<String>>,
    /// What this process signs its hints with.
    own: String,
    up: Arc<AtomicBool>,
    _at_work: JoinSet<()>,
}

impl fmt::Debug for PostgresBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresBus").finish_non_exhaustive()
    }
}

impl PostgresBus {
    /// A bus for the servers on one store, at the database with this URL. It need not be there yet. Needs a Tokio runtime.
    pub fn open(url: &str, password: Option<String>, store: &str) -> Self {
        let mark: String = Sha256::digest(store.as_bytes())[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        let (texts, waiting) = mpsc::channel(MOST_WAITING);
        let (ear, heard) = mpsc::channel(MOST_WAITING);
        let up = Arc::new(AtomicBool::new(false));
        let mut at_work = JoinSet::new();
        let talk = Talk { url: url.to_owned(), password, channel: format!("nuncio_{mark}"), ear, up: up.clone() };
        at_work.spawn(talk.run(waiting));
        let own = uuid::Uuid::new_v4().simple().to_string();
        Self { texts, heard: Mutex::new(heard), own, up, _at_work: at_work }
    }
}

#[async_trait]
impl Bus for PostgresBus {
    fn tell(&self, hints: &[Hint]) {
        for text in words::write(&self.own, hints) {
            // Nobody waits for a hint.
            let _ = self.texts.try_send(text);
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

    fn trouble(&self) -> Option<&'static str> {
        (!self.up.load(Ordering::Relaxed)).then_some("unreachable")
    }

    fn kind(&self) -> &'static str {
        "postgres"
    }
}

/// The one who talks to the database.
struct Talk {
    url: String,
    password: Option<String>,
    channel: String,
    ear: mpsc::Sender<String>,
    up: Arc<AtomicBool>,
}

impl Talk {
    /// Sends and hears, whatever becomes of connections.
    async fn run(self, mut texts: mpsc::Receiver<String>) {
        let mut pause = PAUSES.0;
        loop {
            match Notices::open(&self.url, self.password.as_deref(), &self.channel).await {
                Ok(notices) => {
                    self.up.store(true, Ordering::Relaxed);
                    pause = PAUSES.0;
                    self.once(notices, &mut texts).await;
                    tracing::warn!("the bus has lost its connection: tasks on other servers are seen with delay");
                }
                Err(error) => tracing::debug!(%error, "the bus cannot be reached"),
            }
            self.up.store(false, Ordering::Relaxed);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
            // Old hints are of no use.
            while texts.try_recv().is_ok() {}
        }
    }

    /// Until the connection is gone.
    async fn once(&self, mut notices: Notices, texts: &mut mpsc::Receiver<String>) {
        let mut some = Vec::new();
        loop {
            let said = tokio::select! {
                heard = notices.next() => match heard {
                    Some(text) => {
                        let _ = self.ear.try_send(text);
                        continue;
                    }
                    None => return,
                },
                _ = texts.recv_many(&mut some, TOGETHER) => notices.send(&some).await,
                // Nothing to say: is anybody there?
                () = tokio::time::sleep(LOOK_EVERY) => notices.send(&[]).await,
            };
            some.clear();
            if !said {
                return;
            }
        }
    }
}
