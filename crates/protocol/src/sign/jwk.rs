//! Keys that check signatures, as JSON Web Keys write them.

use std::fmt;

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::{Algorithm, SignError};
use crate::codec::{self, Value};

/// More keys than this make no sense in a set.
const MOST_KEYS: usize = 200;

/// A key that checks signatures, of one algorithm only.
#[derive(Clone)]
pub struct VerifyingKey {
    kid: Option<String>,
    /// From when to when it counts, in seconds since 1970.
    not_before: Option<u64>,
    expires: Option<u64>,
    material: Material,
}

#[derive(Clone)]
enum Material {
    Secret(Box<hmac::Key>),
    Point(Vec<u8>),
    Rsa { n: Vec<u8>, e: Vec<u8> },
    Edwards(Vec<u8>),
}

/// Whether a set may hold secrets. One that is published must not: everybody could sign with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// They count.
    Allowed,
    /// They are passed over.
    Ignored,
}

#[derive(Deserialize)]
struct Jwk {
    #[serde(default)]
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
    k: Option<String>,
    nbf: Option<f64>,
    exp: Option<f64>,
}

impl VerifyingKey {
    /// A secret that signer and verifier share; without a `kid` it is tried for any.
    pub fn secret(kid: Option<&str>, secret: &[u8]) -> Result<Self, SignError> {
        if secret.is_empty() {
            return Err(SignError::Key("the secret is empty".into()));
        }
        let material = Material::Secret(Box::new(hmac::Key::new(hmac::HMAC_SHA256, secret)));
        Ok(Self { kid: kid.map(str::to_owned), not_before: None, expires: None, material })
    }

    /// The same key, which counts only from and until these seconds since 1970.
    #[must_use]
    pub fn valid(self, not_before: Option<u64>, expires: Option<u64>) -> Self {
        Self { not_before: not_before.or(self.not_before), expires: expires.or(self.expires), ..self }
    }

    /// Its name, if it has one.
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// The only algorithm it is used with, whatever a signature says.
    pub fn algorithm(&self) -> Algorithm {
        match &self.material {
            Material::Secret(_) => Algorithm::Hs256,
            Material::Point(_) => Algorithm::Es256,
            Material::Rsa { .. } => Algorithm::Rs256,
            Material::Edwards(_) => Algorithm::EdDsa,
        }
    }

    pub(super) fn not_before(&self) -> Option<u64> {
        self.not_before
    }

    pub(super) fn expires(&self) -> Option<u64> {
        self.expires
    }

    pub(super) fn verifies(&self, input: &[u8], signature: &[u8]) -> bool {
        match &self.material {
            Material::Secret(key) => hmac::verify(key, input, signature).is_ok(),
            Material::Point(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(input, signature).is_ok()
            }
            Material::Edwards(point) => UnparsedPublicKey::new(&ED25519, point).verify(input, signature).is_ok(),
            Material::Rsa { n, e } => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, input, signature).is_ok()
            }
        }
    }

    /// What a key means, if it can be used here.
    fn from_jwk(jwk: Jwk, secrets: Secrets) -> Option<Self> {
        let bytes = |text: Option<String>| URL_SAFE_NO_PAD.decode(text?.trim_end_matches('=')).ok();
        let for_signatures = jwk.purpose.as_deref().is_none_or(|purpose| purpose == "sig")
            && jwk.key_ops.is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        if !for_signatures {
            return None;
        }
        let material = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("oct", _) if secrets == Secrets::Allowed => {
                let secret = bytes(jwk.k).filter(|secret| !secret.is_empty())?;
                Material::Secret(Box::new(hmac::Key::new(hmac::HMAC_SHA256, &secret)))
            }
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(jwk.x)?, bytes(jwk.y)?);
                (x.len() == 32 && y.len() == 32).then(|| Material::Point([&[4], &x[..], &y[..]].concat()))?
            }
            ("RSA", _) => Material::Rsa { n: bytes(jwk.n)?, e: bytes(jwk.e)? },
            ("OKP", Some("Ed25519")) => Material::Edwards(bytes(jwk.x).filter(|x| x.len() == 32)?),
            _ => return None,
        };
        let key = Self { kid: jwk.kid, not_before: seconds(jwk.nbf), expires: seconds(jwk.exp), material };
        let fits = jwk.alg.as_deref().is_none_or(|alg| Algorithm::from_name(alg) == Some(key.algorithm()));
        fits.then_some(key)
    }
}

/// Times may have fractions; what is before 1970 is 1970.
fn seconds(time: Option<f64>) -> Option<u64> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a cast from a float saturates
    time.map(|time| time as u64)
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("VerifyingKey");
        out.field("kid", &self.kid).field("alg", &self.algorithm()).field("expires", &self.expires);
        out.finish_non_exhaustive()
    }
}

/// Keys whose signatures count.
#[derive(Clone, Debug, Default)]
pub struct KeySet(Vec<VerifyingKey>);

impl KeySet {
    /// Reads a set of JSON Web Keys, or a single one. Keys that are for something else, or of a kind that is not
    /// supported, are passed over; a set without any other is an error.
    pub fn from_jwks(json: &[u8], secrets: Secrets) -> Result<Self, SignError> {
        let wrong = |what: &str| SignError::Key(what.into());
        let value: Value = codec::decode(json).map_err(|error| SignError::Key(error.to_string()))?;
        let list = match value {
            Value::Object(mut members) if members.contains_key("keys") => members.remove("keys").unwrap_or_default(),
            single @ Value::Object(_) => Value::Array(vec![single]),
            other => other,
        };
        let Value::Array(list) = list else { return Err(wrong("it is not a set of JSON Web Keys")) };
        let keys = list.into_iter().take(MOST_KEYS);
        let keys = keys.filter_map(|key| VerifyingKey::from_jwk(codec::from_value(key).ok()?, secrets));
        let keys: Vec<VerifyingKey> = keys.collect();
        if keys.is_empty() {
            let kinds = "it holds no key for signatures with ES256, RS256 or EdDSA";
            return Err(wrong(if secrets == Secrets::Allowed { "it holds no usable key" } else { kinds }));
        }
        Ok(Self(keys))
    }

    /// The keys.
    pub fn keys(&self) -> &[VerifyingKey] {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<VerifyingKey> for KeySet {
    fn from_iter<T: IntoIterator<Item = VerifyingKey>>(keys: T) -> Self {
        Self(keys.into_iter().collect())
    }
}

impl Extend<VerifyingKey> for KeySet {
    fn extend<T: IntoIterator<Item = VerifyingKey>>(&mut self, keys: T) {
        self.0.extend(keys);
    }
}

impl IntoIterator for KeySet {
    type Item = VerifyingKey;
    type IntoIter = std::vec::IntoIter<VerifyingKey>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
