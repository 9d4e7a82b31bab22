//! Signatures of cards: detached JSON Web Signatures over a canonical form of the card.
//!
//! * [`sign`] makes one, [`verify`] judges those that a card has;
//! * [`SigningKey`] makes signatures, [`KeySet`] holds the keys whose signatures count;
//! * [`Form`] says which bytes of the card are covered.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::card::{AgentCard, AgentCardSignature};
use crate::codec::json;
use crate::jcs;

mod form;
mod jwk;
mod key;
mod python;
mod verify;

#[cfg(test)]
mod tests;

pub use form::{Form, covered};
pub use jwk::{KeySet, Secrets, VerifyingKey};
pub use key::SigningKey;
pub use verify::{Reason, Verdict, verify};

/// How a signature is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// HMAC with SHA-256: signer and verifier share a secret.
    Hs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// RSA (PKCS #1 v1.5) with SHA-256.
    Rs256,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Hs256, Self::Es256, Self::Rs256, Self::EdDsa];

    /// The name in headers and keys.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hs256 => "HS256",
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The one with this name. `Ed25519` is the newer name of `EdDSA` with that curve.
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "Ed25519" {
            return Some(Self::EdDsa);
        }
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why there is no key or no signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The key cannot be used.
    #[error("the key cannot be used: {0}")]
    Key(String),
}

/// Signs a card as it is, in one form. `jku` is where the public key is published, if it is.
///
/// The specification's form is the one to use; a second signature in the form of the SDKs lets them verify the
/// card, too, where it has required members that are empty.
pub fn sign(
    card: &AgentCard,
    key: &SigningKey,
    form: Form,
    jku: Option<&str>,
) -> Result<AgentCardSignature, SignError> {
    let mut header = json!({ "alg": key.algorithm().name(), "kid": key.kid(), "typ": "JOSE" });
    if let Some(jku) = jku {
        header["jku"] = jku.into();
    }
    let protected = URL_SAFE_NO_PAD.encode(jcs::canonical(&header));
    let input = format!("{protected}.{}", URL_SAFE_NO_PAD.encode(form::payload(card, form)));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(input.as_bytes())?);
    Ok(AgentCardSignature { protected, signature, ..AgentCardSignature::default() })
}
