//! What is asked of the signatures on a card.

use nuncio_client::{CardKeys, Options};

use super::connect::failure;
use super::settings::Settings;
use crate::failure::Failure;

/// Sets whose signatures count, and whether there must be one.
pub(crate) fn verification(settings: &Settings, options: Options) -> Result<Options, Failure> {
    let mut card_keys = CardKeys::default();
    if let Some(secret) = &settings.verify_card_secret {
        card_keys = card_keys.and(CardKeys::secret(secret.expose()).map_err(failure)?);
    }
    if let Some(path) = &settings.verify_card_jwks {
        card_keys = card_keys.and(CardKeys::jwks_file(path).map_err(failure)?);
    }
    if let Some(url) = &settings.verify_card_jwks_url {
        card_keys = card_keys.and(CardKeys::jwks_url(url).map_err(failure)?);
    }
    if settings.require_card_signature && card_keys.is_empty() {
        let text = "require-card-signature needs keys to check with: \
                    verify-card-secret, verify-card-jwks-url or verify-card-jwks";
        return Err(Failure::usage(vec![text.into()]));
    }
    Ok(Options { card_keys, require_signature: settings.require_card_signature, ..options })
}
