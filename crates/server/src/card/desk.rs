//! The cards of a server, made anew when an agent describes itself differently.

use std::sync::{Arc, OnceLock};

use ipnet::IpNet;
use parking_lot::RwLock;

use super::{CardOptions, CardSigning, Cards, Ways};
use crate::auth::Security;
use crate::engine::EngineOptions;
use crate::engine::roster::Roster;
use crate::profile::Profile;

/// Where the cards lie.
pub(crate) struct Desk {
    roster: Roster,
    engine: EngineOptions,
    options: CardOptions,
    profile: Profile,
    security: Arc<Security>,
    ways: Arc<OnceLock<Ways>>,
    /// The path of WebSocket.
    ws_path: Option<String>,
    /// With the revision of the agents that they describe.
    cards: RwLock<(u64, Arc<Cards>)>,
}

impl Desk {
    pub(crate) fn new(
        roster: Roster,
        engine: &EngineOptions,
        options: CardOptions,
        profile: Profile,
        security: Arc<Security>,
        ws_path: Option<String>,
    ) -> Self {
        let ways = Arc::default();
        let cards = Cards::new(&roster, engine, &options, profile, &security, &ways, ws_path.as_deref());
        let cards = Arc::new(cards);
        let cards = RwLock::new((revision(&roster), cards));
        Self { roster, engine: engine.clone(), options, profile, security, ways, ws_path, cards }
    }

    /// Notes which ways in are open, before anybody can come in.
    pub(crate) fn serving(&self, ways: Ways) {
        // A server runs once.
        let _ = self.ways.set(ways);
    }

    /// What cards are signed with.
    pub(crate) fn signing(&self) -> Option<&CardSigning> {
        self.options.signing.as_deref()
    }

    /// The proxies that are believed.
    pub(crate) fn trusted_proxies(&self) -> &[IpNet] {
        &self.options.trusted_proxies
    }

    /// The cards as they are now.
    pub(crate) fn cards(&self) -> Arc<Cards> {
        let revision = revision(&self.roster);
        {
            let made = self.cards.read();
            if made.0 == revision {
                return made.1.clone();
            }
        }
        let (profile, security, ws_path) = (self.profile, &self.security, self.ws_path.as_deref());
        let cards = Cards::new(&self.roster, &self.engine, &self.options, profile, security, &self.ways, ws_path);
        let cards = Arc::new(cards);
        *self.cards.write() = (revision, cards.clone());
        cards
    }
}

/// Grows when one of the agents has another card.
fn revision(roster: &Roster) -> u64 {
    roster.all().map(|served| served.agent.revision()).sum()
}
