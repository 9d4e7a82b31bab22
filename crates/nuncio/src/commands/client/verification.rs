//! What is asked of the signatures on a card.

use std::path::PathBuf;

use nuncio_client::Client;

use super::settings::Settings;
use crate::config::Secret;
use crate::failure::Failure;

/// The keys that a card may be signed with, and whether it must be.
#[derive(Clone, Debug)]
pub(crate) struct Verification {
    pub(crate) secret: Option<Secret>,
    pub(crate) jwks: Option<PathBuf>,
    pub(crate) jwks_url: Option<String>,
    pub(crate) required: bool,
}

impl Verification {
    fn has_keys(&self) -> bool {
        self.secret.is_some() || self.jwks.is_some() || self.jwks_url.is_some()
    }
}

/// What the settings ask for; nothing if they ask for nothing.
pub(crate) fn verification(settings: &Settings) -> Result<Option<Verification>, Failure> {
    let verification = Verification {
        secret: settings.verify_card_secret.clone(),
        jwks: settings.verify_card_jwks.clone(),
        jwks_url: settings.verify_card_jwks_url.clone(),
        required: settings.require_card_signature,
    };
    if verification.required && !verification.has_keys() {
        let text = "require-card-signature needs keys to check with: \
                    verify-card-secret, verify-card-jwks-url or verify-card-jwks";
        return Err(Failure::usage(vec![text.into()]));
    }
    Ok(Some(verification).filter(Verification::has_keys))
}

/// Refuses a card that is not what was asked for.
pub(crate) fn check(verification: Option<&Verification>, client: &Client) -> Result<(), Failure> {
    let (Some(verification), Some(card)) = (verification, client.card()) else { return Ok(()) };
    let refuse = |reason: &str| Failure::failed(format!("A2A Agent Card verification failed: {reason}"));
    if card.signatures.is_empty() {
        // Only who insists is refused: an unsigned card claims nothing.
        return if verification.required { Err(refuse("the card is not signed")) } else { Ok(()) };
    }
    Err(refuse("this version cannot check signatures"))
}
