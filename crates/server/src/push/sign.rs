//! A signature on every notification, so that a receiver knows who sent it, to whom, when, and what.
//!
//! It is a JWT (ES256) in the header [`HEADER`]. The receiver finds the public keys at
//! `/.well-known/jwks.json`, also those that were in use until a while ago.

use std::fmt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use base64::Engine;
use bytes::Bytes;
use nuncio_protocol::{Value, codec};
use reqwest::Url;
use serde::Serialize;
use sha2::{Digest, Sha256};

mod keys;
#[cfg(test)]
mod tests;

use self::keys::Keys;
use super::keyring::kept::Kept;
use super::keyring::{BASE64, KeyError};
use crate::workspace::parts::hex;

/// The header that carries the signature.
pub const HEADER: &str = "a2a-notification-signature";
/// The variable that may hold the keys.
pub const VARIABLE: &str = "NUNCIO_PUSH_SIGNING_KEYS";
/// The name of the file below the data folder.
pub const FILE: &str = "push-signing-keys.json";

/// How long a signature is good for. Every attempt is signed anew.
const LIFETIME: Duration = Duration::from_secs(5 * 60);
/// How long a public key is shown after its last use: longer than any signature lives and any cache keeps.
const SHOWN: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Signs notifications in the name of one issuer.
pub struct Signer {
    keys: Kept<Keys>,
    issuer: String,
}

/// What is signed.
#[derive(Clone, Copy, Debug)]
pub struct Notice<'a> {
    /// Where it is posted; its origin is the audience.
    pub url: &'a str,
    /// The id of the event, the same in every attempt.
    pub event_id: &'a str,
    /// The task it tells of.
    pub task_id: &'a str,
    /// The body, byte for byte.
    pub body: &'a [u8],
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    aud: &'a str,
    iat: u64,
    exp: u64,
    jti: &'a str,
    #[serde(rename = "taskId")]
    task: &'a str,
    request_body_sha256: &'a str,
}

impl Signer {
    /// Keys from the environment if they are there, else from `FILE` in this folder, which is made on first use.
    /// `issuer` is the public URL of this server.
    pub fn open_in(
        folder: &Path,
        environment: impl Fn(&str) -> Option<String>,
        issuer: impl Into<String>,
    ) -> Result<Self, KeyError> {
        let keys = Kept::find(&folder.join(FILE), &[VARIABLE], environment)?;
        Ok(Self { keys, issuer: issuer.into() })
    }

    /// The value of [`HEADER`] for a notification that is sent now.
    pub fn sign(&self, notice: &Notice<'_>) -> Result<String, KeyError> {
        self.sign_at(notice, now())
    }

    fn sign_at(&self, notice: &Notice<'_>, now: u64) -> Result<String, KeyError> {
        let claims = Claims {
            iss: &self.issuer,
            aud: &origin(notice.url)?,
            iat: now,
            exp: now.saturating_add(LIFETIME.as_secs()),
            jti: notice.event_id,
            task: notice.task_id,
            request_body_sha256: &hex(&Sha256::digest(notice.body)),
        };
        let keys = self.keys.now();
        let active = keys.active();
        let mut token = format!("{}.{}", active.header, BASE64.encode(codec::encode(&claims)));
        let signature = active.sign(token.as_bytes())?;
        token.push('.');
        token.push_str(&BASE64.encode(signature));
        Ok(token)
    }

    /// The ids of all keys, each with what tells it from others, which is the same.
    pub fn fingerprints(&self) -> Vec<(String, String)> {
        let id = |key: &Value| key.get("kid").and_then(Value::as_str).map(|id| (id.to_owned(), id.to_owned()));
        self.public_keys().iter().filter_map(id).collect()
    }

    /// The public keys, for `/.well-known/jwks.json`.
    pub fn jwks(&self) -> Bytes {
        self.jwks_at(now())
    }

    fn jwks_at(&self, now: u64) -> Bytes {
        codec::encode(&self.keys.now().public(now.saturating_sub(SHOWN.as_secs())))
    }

    /// The same, one by one.
    pub(crate) fn public_keys(&self) -> Vec<Value> {
        let mut set = self.keys.now().public(now().saturating_sub(SHOWN.as_secs()));
        match set.get_mut("keys").map(Value::take) {
            Some(Value::Array(keys)) => keys,
            _ => Vec::new(),
        }
    }

    /// Makes a new key, which signs from now on. The old one is shown for a while; its private half is gone.
    /// Returns the id of the new one.
    pub fn rotate(&self) -> Result<String, KeyError> {
        self.rotate_at(now())
    }

    fn rotate_at(&self, now: u64) -> Result<String, KeyError> {
        let keys = self.keys.change(|keys| keys.rotated(now, now.saturating_sub(SHOWN.as_secs())))?;
        Ok(keys.active().id.clone())
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// Scheme, host and port: all of an address that its owner must be sure of.
fn origin(url: &str) -> Result<String, KeyError> {
    let origin = Url::parse(url).map_err(|_| KeyError::Audience)?.origin();
    if origin.is_tuple() { Ok(origin.ascii_serialization()) } else { Err(KeyError::Audience) }
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}
