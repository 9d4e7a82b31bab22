//! The cards of a server, made anew when an agent describes itself differently.

use std::sync::Arc;

use parking_lot::RwLock;

use super::{CardOptions, Cards};
use crate::auth::Security;
use crate::engine::EngineOptions;
use crate::engine::roster::Roster;

/// Where the cards lie.
pub(crate) struct Desk {
    roster: Roster,
    engine: EngineOptions,
    options: CardOptions,
    security: Arc<Security>,
    /// With the revision of the agents that they describe.
    cards: RwLock<(u64, Arc<Cards>)>,
}

impl Desk {
    pub(crate) fn new(roster: Roster, engine: &EngineOptions, options: CardOptions, security: Arc<Security>) -> Self {
        let cards = Arc::new(Cards::new(&roster, engine, &options, &security));
        let cards = RwLock::new((revision(&roster), cards));
        Self { roster, engine: engine.clone(), options, security, cards }
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
        let cards = Arc::new(Cards::new(&self.roster, &self.engine, &self.options, &self.security));
        *self.cards.write() = (revision, cards.clone());
        cards
    }
}

/// Grows when one of the agents has another card.
fn revision(roster: &Roster) -> u64 {
    roster.all().map(|served| served.agent.revision()).sum()
}
