//! The secrets of webhooks, encrypted where they are kept.
//!
//! Whoever gets a copy of the database gets no token out of it. A sealed secret is bound to the webhook it
//! belongs to, so that nobody who can write to the database can have it sent elsewhere by giving it to another.

use std::fmt;
use std::path::{Path, PathBuf};

use aws_lc_rs::aead::{Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine;
use serde::{Deserialize, Serialize};

pub(in crate::push) mod kept;
mod keys;
#[cfg(test)]
mod tests;

use self::kept::Kept;
pub(in crate::push) use self::keys::BASE64;
use self::keys::Keys;

/// The variables that may hold the keys, the first one that is set counts.
pub const VARIABLES: &[&str] = &["NUNCIO_PUSH_KEYRING", "IAC_CODE_A2A_PUSH_KEYRING"];
/// The name of the file below the data folder.
pub const FILE: &str = "push-keyring.json";

/// How a sealed text begins.
const VERSION: &str = "nk1";

/// Why keys or what they seal cannot be used. For the operator: it may name a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file is not the owner's alone.
    #[error(
        "{} holds keys and can be read by others. Run `chmod 600 {}`, and rotate the keys if somebody may have read it.",
        path.display(), path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read or written.
    #[error("{} cannot be read or written: {cause}. Check the folder and who owns it.", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: String,
    },
    /// The text is no set of keys.
    #[error("{place} does not hold keys: {what}. Restore it from a backup: what was sealed with lost keys is lost.")]
    Malformed {
        /// Where it comes from.
        place: String,
        /// What is wrong.
        what: &'static str,
    },
    /// The keys are somebody else's to change.
    #[error("The keys come from the variable {variable} and cannot be changed here. Change the variable, and restart.")]
    Managed {
        /// Which.
        variable: &'static str,
    },
    /// Sealed with a key that is not there.
    #[error("The key `{id}` that sealed a secret is not in the keyring. Add it, or register the webhook again.")]
    Unknown {
        /// Which.
        id: String,
    },
    /// Not a sealed text, changed since, or of another webhook.
    #[error(
        "A sealed secret cannot be opened: it was changed, or belongs to another webhook. Register the webhook again."
    )]
    Broken,
    /// A URL without an origin.
    #[error("The address of the receiver has no origin.")]
    Audience,
    /// The system has no random numbers.
    #[error("The system cannot make a key. Try again.")]
    Random,
}

/// Which webhook a secret belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context<'a> {
    /// Where it leads.
    pub url: &'a str,
    /// Its id inside of the task.
    pub config: &'a str,
}

/// A secret that only the keyring can read.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sealed(String);

impl Sealed {
    /// As it is stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key that it was sealed with, and the rest.
    fn split(&self) -> Result<(&str, &str), KeyError> {
        let rest = self.0.strip_prefix(VERSION).and_then(|rest| rest.strip_prefix(':'));
        rest.and_then(|rest| rest.rsplit_once(':')).ok_or(KeyError::Broken)
    }

    /// The id of the key that it was sealed with.
    pub fn key_id(&self) -> Result<&str, KeyError> {
        self.split().map(|(id, _)| id)
    }
}

impl From<String> for Sealed {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealed")
    }
}

/// Seals and opens secrets.
pub struct Keyring(Kept<Keys>);

impl Keyring {
    /// Keys from the environment if they are there, else from `FILE` in this folder, which is made on first use.
    pub fn open_in(folder: &Path, environment: impl Fn(&str) -> Option<String>) -> Result<Self, KeyError> {
        Kept::find(&folder.join(FILE), VARIABLES, environment).map(Self)
    }

    /// Encrypts a secret. Not with a key that another process has just replaced: that one may be forgotten soon.
    pub fn seal(&self, context: Context<'_>, plain: &[u8]) -> Result<Sealed, KeyError> {
        let keys = self.0.refresh()?;
        let id = keys.active();
        let key = keys.key(id).ok_or(KeyError::Random)?;
        let mut text = plain.to_vec();
        let nonce =
            key.seal_in_place_append_tag(Aad::from(bound(id, context)), &mut text).map_err(|_| KeyError::Random)?;
        text.splice(0..0, *nonce.as_ref());
        Ok(Sealed(format!("{VERSION}:{id}:{}", BASE64.encode(text))))
    }

    /// Decrypts a secret of the same context.
    pub fn open(&self, context: Context<'_>, sealed: &Sealed) -> Result<Vec<u8>, KeyError> {
        let (id, text) = sealed.split()?;
        let text = BASE64.decode(text).map_err(|_| KeyError::Broken)?;
        let keys = self.0.now();
        if let Some(key) = keys.key(id) {
            return decrypt(key, id, context, &text);
        }
        // Another process may have just begun to use a new key.
        let keys = self.0.refresh()?;
        let key = keys.key(id).ok_or_else(|| KeyError::Unknown { id: id.to_owned() })?;
        decrypt(key, id, context, &text)
    }

    /// Makes a new key, which seals from now on; the old ones still open. Returns its id.
    pub fn rotate(&self) -> Result<String, KeyError> {
        Ok(self.0.change(Keys::with_new_key)?.active().to_owned())
    }

    /// The same secret under the active key; nothing if it is already.
    pub fn reseal(&self, context: Context<'_>, sealed: &Sealed) -> Result<Option<Sealed>, KeyError> {
        if sealed.key_id()? == self.0.now().active() {
            return Ok(None);
        }
        let plain = self.open(context, sealed)?;
        self.seal(context, &plain).map(Some)
    }

    /// Removes all keys but the active one and those that are still in use.
    pub fn forget_all_but(&self, in_use: &[&str]) -> Result<(), KeyError> {
        self.0.change(|keys| keys.only(in_use)).map(drop)
    }

    /// The ids of all keys, each with what tells it from others of the same id, and tells nothing else of it.
    pub fn fingerprints(&self) -> Vec<(String, String)> {
        self.0.now().fingerprints()
    }

    /// The ids of all keys, the active one first.
    pub fn ids(&self) -> Vec<String> {
        let keys = self.0.now();
        let others = keys.ids().filter(|id| *id != keys.active());
        std::iter::once(keys.active()).chain(others).map(str::to_owned).collect()
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keyring").field(&self.0.now()).finish()
    }
}

fn decrypt(key: &RandomizedNonceKey, id: &str, context: Context<'_>, text: &[u8]) -> Result<Vec<u8>, KeyError> {
    let (nonce, text) = text.split_first_chunk::<NONCE_LEN>().ok_or(KeyError::Broken)?;
    let mut text = text.to_vec();
    let aad = Aad::from(bound(id, context));
    let plain =
        key.open_in_place(Nonce::assume_unique_for_key(*nonce), aad, &mut text).map_err(|_| KeyError::Broken)?;
    let length = plain.len();
    text.truncate(length);
    Ok(text)
}

/// What a secret is bound to. Each part has its length before it, so that no two contexts look the same.
fn bound(id: &str, context: Context<'_>) -> Vec<u8> {
    let parts = [VERSION, id, context.url, context.config];
    parts.iter().flat_map(|part| (part.len() as u64).to_be_bytes().into_iter().chain(part.bytes())).collect()
}
