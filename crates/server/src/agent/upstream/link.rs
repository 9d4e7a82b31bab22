//! Finds the agent by its card, and remembers both.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nuncio_client::{Client, ClientError, Options};
use nuncio_protocol::AgentCard;
use parking_lot::Mutex;
use tokio::time::Instant;

/// So long a card is believed before it is looked at again.
const FRESH: Duration = Duration::from_secs(60);
/// The pauses between attempts to get the first card.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often a turn that goes on after a restart looks for its agent.
const TRIES: u32 = 8;

/// The way to the agent.
pub(super) struct Link {
    url: String,
    options: Options,
    found: Mutex<Option<Found>>,
    revision: AtomicU64,
}

#[derive(Clone)]
struct Found {
    client: Client,
    card: Arc<AgentCard>,
    at: Instant,
    /// Whether nothing speaks against it.
    fresh: bool,
}

impl Link {
    pub(super) fn new(url: String, options: Options) -> Result<Self, ClientError> {
        // Says at once what is wrong with the address or the credentials.
        Client::direct(&url, options.clone())?;
        Ok(Self { url, options, found: Mutex::default(), revision: AtomicU64::new(0) })
    }

    /// The card, if it was ever read.
    pub(super) fn card(&self) -> Option<Arc<AgentCard>> {
        self.found.lock().as_ref().map(|found| found.card.clone())
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Tries until the card was read once.
    pub(super) async fn introduce(&self) {
        let mut pause = FIRST_PAUSE;
        while self.card().is_none() {
            match self.reach().await {
                Ok(_) => return,
                Err(error) => tracing::warn!(%error, "the upstream agent cannot be reached; it is tried again"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// A client for the agent. One that was reached before need not be there at the moment: its client knows how
    /// to wait for it.
    pub(super) async fn reach(&self) -> Result<Client, ClientError> {
        let known = self.found.lock().clone();
        if let Some(known) = known.as_ref().filter(|known| known.fresh && known.at.elapsed() < FRESH) {
            return Ok(known.client.clone());
        }
        match (self.discover().await, known) {
            (Ok(client), known) => Ok(self.keep(client, known)),
            (Err(error), Some(known)) if error.is_transient() => Ok(known.client),
            (Err(error), _) => Err(error),
        }
    }

    /// Something went wrong: the next turn looks at the card anew.
    pub(super) fn doubt(&self) {
        self.options.cards.clear();
        if let Some(found) = &mut *self.found.lock() {
            found.fresh = false;
        }
    }

    /// The same for a turn that is under way already: an agent that was restarted together with this server gets
    /// time to come back.
    pub(super) async fn reach_again(&self) -> Result<Client, ClientError> {
        let mut pause = FIRST_PAUSE;
        for _ in 0..TRIES {
            match self.reach().await {
                Err(error) if error.is_transient() => tokio::time::sleep(pause).await,
                other => return other,
            }
            pause *= 2;
        }
        self.reach().await
    }

    /// Extensions that the agent requires are activated: our card requires them from our callers too.
    async fn discover(&self) -> Result<Client, ClientError> {
        match Client::discover(&self.url, self.options.clone()).await {
            Err(ClientError::ExtensionsRequired { missing, .. }) => {
                let extensions = [self.options.extensions.clone(), missing].concat();
                Client::discover(&self.url, Options { extensions, ..self.options.clone() }).await
            }
            other => other,
        }
    }

    /// Remembers a client; the old one with its connections, if the card is still the same.
    fn keep(&self, client: Client, known: Option<Found>) -> Client {
        let at = Instant::now();
        let same = known.filter(|known| known.client.card_json() == client.card_json());
        let changed = same.is_none();
        let found = match same {
            Some(known) => Found { at, fresh: true, ..known },
            None => {
                let card = Arc::new(client.card().cloned().unwrap_or_default());
                Found { client, card, at, fresh: true }
            }
        };
        let client = found.client.clone();
        *self.found.lock() = Some(found);
        if changed {
            self.revision.fetch_add(1, Ordering::Release);
            tracing::info!(binding = %client.binding(), version = %client.version(), "the upstream agent was found");
        }
        client
    }
}
