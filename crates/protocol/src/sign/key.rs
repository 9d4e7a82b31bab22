//! Keys that make signatures.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents,
};
use aws_lc_rs::{encoding::AsDer, hmac, rsa::KeySize};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::{Algorithm, SignError};
use crate::codec::{Value, json};
use crate::jcs;

/// A key that makes signatures, and the name under which others find its counterpart.
pub struct SigningKey {
    kid: String,
    pair: Pair,
}

enum Pair {
    Hs256(Box<hmac::Key>),
    Es256(EcdsaKeyPair),
    Rs256(RsaKeyPair),
    EdDsa(Ed25519KeyPair),
}

impl SigningKey {
    /// A secret that signer and verifier share.
    pub fn secret(kid: impl Into<String>, secret: &[u8]) -> Result<Self, SignError> {
        if secret.is_empty() {
            return Err(SignError::Key("the secret is empty".into()));
        }
        Ok(Self { kid: kid.into(), pair: Pair::Hs256(Box::new(hmac::Key::new(hmac::HMAC_SHA256, secret))) })
    }

    /// A new key. There are no new secrets: whoever shares one has made it.
    pub fn generate(kid: impl Into<String>, algorithm: Algorithm) -> Result<Self, SignError> {
        let failed = |_| SignError::Key("no key can be made".into());
        let pair = match algorithm {
            Algorithm::Hs256 => return Err(SignError::Key("a secret is given, not made".into())),
            Algorithm::Es256 => {
                EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map(Pair::Es256).map_err(failed)?
            }
            Algorithm::Rs256 => RsaKeyPair::generate(KeySize::Rsa3072).map(Pair::Rs256).map_err(failed)?,
            Algorithm::EdDsa => Ed25519KeyPair::generate().map(Pair::EdDsa).map_err(failed)?,
        };
        Ok(Self { kid: kid.into(), pair })
    }

    /// Reads a private key: P-256, RSA from 2048 bits, or Ed25519. Which one it is decides the algorithm.
    pub fn from_pem(kid: impl Into<String>, pem: &str) -> Result<Self, SignError> {
        let der = private_der(pem)?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der)
            .map(Pair::EdDsa)
            .or_else(|_| EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, &der).map(Pair::Es256))
            .or_else(|_| RsaKeyPair::from_pkcs8(&der).or_else(|_| RsaKeyPair::from_der(&der)).map(Pair::Rs256))
            .map_err(|_| SignError::Key("the key is neither P-256, nor RSA from 2048 bits, nor Ed25519".into()))?;
        Ok(Self { kid: kid.into(), pair })
    }

    /// The private key for a file that only its owner may read; secrets have no such form.
    pub fn to_pem(&self) -> Option<String> {
        let text = |der: &[u8]| {
            let encoded = STANDARD.encode(der);
            let lines: Vec<&str> =
                (0..encoded.len()).step_by(64).filter_map(|i| encoded.get(i..(i + 64).min(encoded.len()))).collect();
            format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
        };
        match &self.pair {
            Pair::Hs256(_) => None,
            Pair::Es256(pair) => pair.to_pkcs8v1().ok().map(|der| text(der.as_ref())),
            Pair::Rs256(pair) => {
                AsDer::<aws_lc_rs::encoding::Pkcs8V1Der<'_>>::as_der(pair).ok().map(|der| text(der.as_ref()))
            }
            Pair::EdDsa(pair) => pair.to_pkcs8v1().ok().map(|der| text(der.as_ref())),
        }
    }

    /// The same key under another name.
    #[must_use]
    pub fn named(self, kid: impl Into<String>) -> Self {
        Self { kid: kid.into(), ..self }
    }

    /// The thumbprint of RFC 7638: a name that the key has wherever it is. A secret has none.
    pub fn thumbprint(&self) -> Option<String> {
        let mut jwk = self.public_jwk()?;
        jwk.as_object_mut()?.retain(|name, _| matches!(name.as_str(), "crv" | "e" | "kty" | "n" | "x" | "y"));
        Some(URL_SAFE_NO_PAD.encode(digest(&SHA256, &jcs::canonical(&jwk))))
    }

    /// Its name.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// What it signs with.
    pub fn algorithm(&self) -> Algorithm {
        match &self.pair {
            Pair::Hs256(_) => Algorithm::Hs256,
            Pair::Es256(_) => Algorithm::Es256,
            Pair::Rs256(_) => Algorithm::Rs256,
            Pair::EdDsa(_) => Algorithm::EdDsa,
        }
    }

    /// The public half as a JSON Web Key, to be published; a secret has none.
    pub fn public_jwk(&self) -> Option<Value> {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let mut jwk = match &self.pair {
            Pair::Hs256(_) => return None,
            Pair::Es256(pair) => {
                // One byte that says "uncompressed", then both coordinates.
                let (x, y) = pair.public_key().as_ref().get(1..65)?.split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "x": text(x), "y": text(y) })
            }
            Pair::Rs256(pair) => {
                let key = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                json!({ "kty": "RSA", "n": text(&key.n), "e": text(&key.e) })
            }
            Pair::EdDsa(pair) => json!({ "kty": "OKP", "crv": "Ed25519", "x": text(pair.public_key().as_ref()) }),
        };
        jwk["kid"] = self.kid.as_str().into();
        jwk["alg"] = self.algorithm().name().into();
        jwk["use"] = "sig".into();
        Some(jwk)
    }

    pub(super) fn sign(&self, input: &[u8]) -> Result<Vec<u8>, SignError> {
        let random = SystemRandom::new();
        let failed = |_| SignError::Key("the key does not sign".into());
        match &self.pair {
            Pair::Hs256(key) => Ok(hmac::sign(key, input).as_ref().to_vec()),
            Pair::Es256(pair) => pair.sign(&random, input).map(|s| s.as_ref().to_vec()).map_err(failed),
            Pair::EdDsa(pair) => Ok(pair.sign(input).as_ref().to_vec()),
            Pair::Rs256(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, input, &mut signature).map_err(failed)?;
                Ok(signature)
            }
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("kid", &self.kid).field("alg", &self.algorithm()).finish_non_exhaustive()
    }
}

/// The bytes of the first private key in a PEM file.
fn private_der(pem: &str) -> Result<Vec<u8>, SignError> {
    const END: &str = "-----";
    let missing = || SignError::Key("there is no `-----BEGIN PRIVATE KEY-----` in it".into());
    if pem.contains("ENCRYPTED") {
        return Err(SignError::Key("the key is encrypted: decrypt it first".into()));
    }
    // Also `EC PRIVATE KEY` and `RSA PRIVATE KEY`; OpenSSL puts `EC PARAMETERS` before the former.
    let (_, rest) = pem.split_once("PRIVATE KEY-----").ok_or_else(missing)?;
    let (body, _) = rest.split_once(END).ok_or_else(missing)?;
    let body: String = body.split_whitespace().collect();
    STANDARD.decode(body).map_err(|_| SignError::Key("the text between its lines is not base64".into()))
}
