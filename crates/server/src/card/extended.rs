//! The card that only known callers see.

use std::sync::Arc;

use nuncio_protocol::{AgentCard, AgentSkill, Error, ErrorKind};

use super::{Card, MOST_ADDRESSES};

/// What known callers are shown beyond the card for everybody.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ExtendedCard {
    /// There is none, and the card says so.
    #[default]
    Off,
    /// The card announces one that nobody has set up.
    Missing,
    /// The card for everybody, with more skills.
    Skills(Vec<AgentSkill>),
}

impl ExtendedCard {
    /// Whether the card for everybody announces it.
    pub(super) fn is_announced(&self) -> bool {
        *self != Self::Off
    }
}

impl Card {
    /// The extended card for whoever reaches the server at this address, signed for itself.
    pub(crate) fn extended(&self, root_url: &str) -> Result<Arc<AgentCard>, Error> {
        let skills = match &self.options.extended {
            ExtendedCard::Off => {
                let text = "This agent has no extended card: its card says all";
                return Err(Error::new(ErrorKind::UnsupportedOperation, text));
            }
            ExtendedCard::Missing => {
                let text = "This agent announces an extended card, but none is set up: use the card for everybody";
                return Err(Error::new(ErrorKind::ExtendedAgentCardNotConfigured, text));
            }
            ExtendedCard::Skills(skills) => skills,
        };
        let base_url = format!("{root_url}{}", self.below);
        let mut all = self.extended.lock();
        if let Some(card) = all.get(&base_url) {
            return Ok(card.clone());
        }
        if all.len() >= MOST_ADDRESSES {
            all.clear();
        }
        let mut card = self.at(&base_url);
        card.skills.extend(skills.iter().cloned());
        let card = Arc::new(self.signed(card, &base_url));
        all.insert(base_url, card.clone());
        Ok(card)
    }
}
