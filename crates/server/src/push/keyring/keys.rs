//! The keys that seal secrets.

use std::fmt;
use std::time::SystemTime;

use aws_lc_rs::aead::{AES_256_GCM_SIV, RandomizedNonceKey};
use aws_lc_rs::{hkdf, rand};
use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use nuncio_protocol::{Value, codec};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::KeyError;
use super::kept::KeySet;

/// Written without padding, read with or without.
pub(in crate::push) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_encode_padding(false).with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Keys given for something else, such as Fernet, are not used as they are.
const PURPOSE: &[u8] = b"nuncio push secrets";

/// What a key is recognised by is not the key.
const FINGERPRINT: &[u8] = b"nuncio push fingerprint";

/// Several keys, of which one seals and all open.
pub(super) struct Keys {
    form: Form,
    ready: Vec<(String, RandomizedNonceKey)>,
}

/// As it is written. `fernetKey` is how iac-code calls a key.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Form {
    active_key_id: String,
    keys: Vec<KeyForm>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeyForm {
    id: String,
    #[serde(alias = "fernetKey")]
    key: String,
    /// For people; kept as it was found.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    created_at: Value,
}

impl Keys {
    pub(super) fn active(&self) -> &str {
        &self.form.active_key_id
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.form.keys.iter().map(|key| key.id.as_str())
    }

    pub(super) fn key(&self, id: &str) -> Option<&RandomizedNonceKey> {
        self.ready.iter().find(|(name, _)| name == id).map(|(_, key)| key)
    }

    pub(super) fn fingerprints(&self) -> Vec<(String, String)> {
        // Whatever is here was ready, so it can be derived from.
        let print = |key: &KeyForm| Some((key.id.clone(), BASE64.encode(key.derive(FINGERPRINT).ok()?)));
        self.form.keys.iter().filter_map(print).collect()
    }

    /// The same with one key more, which seals from now on.
    pub(super) fn with_new_key(self) -> Result<Self, KeyError> {
        let mut form = self.form;
        let new = KeyForm::generate()?;
        form.active_key_id.clone_from(&new.id);
        form.keys.push(new);
        Self::ready(form).map_err(|_| KeyError::Random)
    }

    /// The same without the keys that are not in use. The active one always is.
    pub(super) fn only(self, in_use: &[&str]) -> Result<Self, KeyError> {
        let mut form = self.form;
        form.keys.retain(|key| key.id == form.active_key_id || in_use.contains(&key.id.as_str()));
        Self::ready(form).map_err(|_| KeyError::Random)
    }

    fn ready(form: Form) -> Result<Self, &'static str> {
        let ready: Vec<_> =
            form.keys.iter().map(|key| Ok((key.id.clone(), key.ready()?))).collect::<Result<_, &'static str>>()?;
        let mut ids: Vec<&str> = form.keys.iter().map(|key| key.id.as_str()).collect();
        ids.sort_unstable();
        if ids.windows(2).any(|pair| pair[0] == pair[1]) || ids.contains(&"") {
            return Err("each key needs an id of its own");
        }
        if !ids.contains(&form.active_key_id.as_str()) {
            return Err("it does not contain its active key");
        }
        Ok(Self { form, ready })
    }
}

impl KeyForm {
    fn generate() -> Result<Self, KeyError> {
        let mut key = [0; 32];
        rand::fill(&mut key).map_err(|_| KeyError::Random)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // In the order of their making, for people.
        let id = format!("push-{}", Uuid::now_v7().simple());
        Ok(Self { id, key: BASE64.encode(key), created_at: now.as_secs().into() })
    }

    fn derive(&self, purpose: &[u8]) -> Result<[u8; 32], &'static str> {
        const WRONG: &str = "each key must be 32 bytes in base64";
        let text = self.key.trim().replace('+', "-").replace('/', "_");
        let bytes = BASE64.decode(text).ok().filter(|bytes| bytes.len() == 32).ok_or(WRONG)?;
        let mut derived = [0; 32];
        hkdf::Salt::new(hkdf::HKDF_SHA256, &[])
            .extract(&bytes)
            .expand(&[purpose], hkdf::HKDF_SHA256)
            .and_then(|key| key.fill(&mut derived))
            .map_err(|_| WRONG)?;
        Ok(derived)
    }

    fn ready(&self) -> Result<RandomizedNonceKey, &'static str> {
        let derived = self.derive(PURPOSE)?;
        // Stands a nonce that comes twice, which random ones of this length may after very many.
        RandomizedNonceKey::new(&AES_256_GCM_SIV, &derived).map_err(|_| "the key cannot be used")
    }
}

impl KeySet for Keys {
    fn read(json: &[u8]) -> Result<Self, &'static str> {
        let form = codec::decode(json)
            .map_err(|_| r#"it is not of the form {"activeKeyId": "…", "keys": [{"id": "…", "key": "…"}]}"#)?;
        Self::ready(form)
    }

    fn write(&self) -> Vec<u8> {
        codec::encode_pretty(&self.form).into_bytes()
    }

    fn first() -> Result<Self, KeyError> {
        let key = KeyForm::generate()?;
        let form = Form { active_key_id: key.id.clone(), keys: vec![key] };
        Self::ready(form).map_err(|_| KeyError::Random)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}
