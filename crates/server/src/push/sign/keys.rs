//! The keys that sign.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use nuncio_protocol::{Value, codec, json};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::push::keyring::kept::KeySet;
use crate::push::keyring::{BASE64, KeyError};

/// One key that signs, and the public halves of those that did.
pub(super) struct Keys {
    form: Form,
    active: Active,
}

/// The key in use.
pub(super) struct Active {
    pair: EcdsaKeyPair,
    pub(super) id: String,
    /// The first part of every token, as it is sent.
    pub(super) header: String,
}

/// As it is written.
#[derive(Clone, Serialize, Deserialize)]
struct Form {
    keys: Vec<KeyForm>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeyForm {
    /// PKCS #8; gone when the key is retired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    private_key: Option<String>,
    public_key: Public,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retired_at: Option<u64>,
}

/// A public key: its coordinates in base64.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Public {
    x: String,
    y: String,
}

impl Public {
    fn of(pair: &EcdsaKeyPair) -> Option<Self> {
        let (form, point) = pair.public_key().as_ref().split_first()?;
        let (x, y) = point.split_at_checked(32)?;
        (*form == 4 && y.len() == 32).then(|| Self { x: BASE64.encode(x), y: BASE64.encode(y) })
    }

    /// The thumbprint of RFC 7638, so that a key has the same name wherever it is.
    fn id(&self) -> String {
        let text = format!(r#"{{"crv":"P-256","kty":"EC","x":"{}","y":"{}"}}"#, self.x, self.y);
        BASE64.encode(Sha256::digest(text))
    }

    fn jwk(&self) -> Value {
        json!({
            "kty": "EC", "crv": "P-256", "x": self.x, "y": self.y,
            "use": "sig", "alg": "ES256", "kid": self.id(),
        })
    }
}

impl Active {
    pub(super) fn sign(&self, text: &[u8]) -> Result<Vec<u8>, KeyError> {
        let signature = self.pair.sign(&SystemRandom::new(), text).map_err(|_| KeyError::Random)?;
        Ok(signature.as_ref().to_vec())
    }

    fn read(key: &KeyForm) -> Result<Self, &'static str> {
        const WRONG: &str = "the private key is not one of P-256 in PKCS #8 and base64";
        let text = key.private_key.as_deref().unwrap_or_default();
        let bytes = BASE64.decode(text).map_err(|_| WRONG)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &bytes).map_err(|_| WRONG)?;
        if Public::of(&pair).as_ref() != Some(&key.public_key) {
            return Err("the two halves of the key do not belong together");
        }
        let id = key.public_key.id();
        let header = BASE64.encode(codec::encode(&json!({ "alg": "ES256", "typ": "JWT", "kid": id })));
        Ok(Self { pair, id, header })
    }
}

impl Keys {
    pub(super) fn active(&self) -> &Active {
        &self.active
    }

    /// The set of public keys that are in use or were at that time or later.
    pub(super) fn public(&self, since: u64) -> Value {
        let shown = self.form.keys.iter().filter(|key| key.retired_at.is_none_or(|at| at >= since));
        json!({ "keys": shown.map(|key| key.public_key.jwk()).collect::<Vec<_>>() })
    }

    /// With a new key, the old one retired now, and those that were retired before `since` gone.
    pub(super) fn rotated(mut self, now: u64, since: u64) -> Result<Self, KeyError> {
        for key in &mut self.form.keys {
            key.private_key = None;
            key.retired_at.get_or_insert(now);
        }
        self.form.keys.retain(|key| key.retired_at.is_some_and(|at| at >= since));
        self.form.keys.insert(0, generate()?);
        Self::ready(self.form).map_err(|_| KeyError::Random)
    }

    fn ready(form: Form) -> Result<Self, &'static str> {
        let mut usable = form.keys.iter().filter(|key| key.retired_at.is_none());
        let active = usable.next().ok_or("no key is in use")?;
        if usable.next().is_some() {
            return Err("more than one key is in use; the others need `retiredAt`");
        }
        let active = Active::read(active)?;
        Ok(Self { form, active })
    }
}

fn generate() -> Result<KeyForm, KeyError> {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(|_| KeyError::Random)?;
    let private = pair.to_pkcs8v1().map_err(|_| KeyError::Random)?;
    let public_key = Public::of(&pair).ok_or(KeyError::Random)?;
    Ok(KeyForm { private_key: Some(BASE64.encode(private.as_ref())), public_key, retired_at: None })
}

impl KeySet for Keys {
    fn read(json: &[u8]) -> Result<Self, &'static str> {
        let form = codec::decode(json).map_err(
            |_| r#"it is not of the form {"keys": [{"privateKey": "…", "publicKey": {"x": "…", "y": "…"}}]}"#,
        )?;
        Self::ready(form)
    }

    fn write(&self) -> Vec<u8> {
        codec::encode_pretty(&self.form).into_bytes()
    }

    fn first() -> Result<Self, KeyError> {
        Self::ready(Form { keys: vec![generate()?] }).map_err(|_| KeyError::Random)
    }
}
