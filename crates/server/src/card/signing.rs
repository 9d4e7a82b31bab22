//! Cards with signatures, so that whoever finds one elsewhere knows whose it is.

use nuncio_protocol::sign::{Form, SignError, SigningKey, sign};
use nuncio_protocol::{AgentCard, AgentCardSignature, Value};

use super::Card;

/// The keys that cards are signed with. Each makes a signature, so that a new key can stand beside an old one until
/// everybody knows it.
#[derive(Debug, Default)]
pub struct CardSigning {
    /// The keys, the most important first: some readers look at the first signature alone.
    pub keys: Vec<SigningKey>,
    /// Whether each also signs the form that the SDKs for Python and JavaScript verify. It differs from the
    /// specification's where required members are empty.
    pub sdk_form: bool,
}

impl CardSigning {
    /// The public halves, to be published. Secrets have none.
    pub fn public_keys(&self) -> impl Iterator<Item = Value> {
        self.keys.iter().filter_map(SigningKey::public_jwk)
    }

    /// The signatures of a card, each key's in this form first. `jku` is where the public keys are.
    fn signatures(
        &self,
        card: &AgentCard,
        first: Option<Form>,
        jku: Option<&str>,
    ) -> Result<Vec<AgentCardSignature>, SignError> {
        let usual: &[Form] = if self.sdk_form { &[Form::Spec, Form::Sdk] } else { &[Form::Spec] };
        let forms: Vec<&Form> = first.iter().chain(usual).collect();
        let mut all = Vec::with_capacity(self.keys.len() * forms.len());
        for key in &self.keys {
            // A secret is nowhere to be found.
            let jku = jku.filter(|_| key.public_jwk().is_some());
            for form in &forms {
                all.push(sign(card, key, **form, jku)?);
            }
        }
        Ok(all)
    }
}

impl Card {
    /// The card with its signatures, if there are keys.
    pub(super) fn signed(&self, mut card: AgentCard, base_url: &str) -> AgentCard {
        let Some(signing) = &self.options.signing else { return card };
        // Keys that travel in the clear could be exchanged on the way, so nobody is sent there.
        let jku = base_url.starts_with("https://").then(|| format!("{base_url}/.well-known/jwks.json"));
        match signing.signatures(&card, self.profile.first_form(), jku.as_deref()) {
            Ok(signatures) => card.signatures = signatures,
            Err(error) => tracing::error!(%error, "the card cannot be signed"),
        }
        card
    }
}
