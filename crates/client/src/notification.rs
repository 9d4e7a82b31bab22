//! Webhooks from the receiver's side: is this notification from the agent, for us, fresh and unchanged?

use std::time::{Duration, SystemTime};

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use parking_lot::Mutex;
use reqwest::Url;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::error::{ClientError, plain};
use crate::http::parse_url;

mod keys;
mod seen;
#[cfg(test)]
mod tests;

use self::keys::Keys;
use self::seen::Seen;

/// The header of a notification that carries its signature.
pub const NOTIFICATION_SIGNATURE: &str = "a2a-notification-signature";

/// No signature of ours is longer.
const LONGEST: usize = 8 * 1024;
/// How far the clocks of two machines may be apart.
const LEEWAY: Duration = Duration::from_secs(60);

/// Checks the signatures of notifications.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use nuncio_client::{NOTIFICATION_SIGNATURE, NotificationVerifier};
///
/// // Once: who sends, where it receives, and where the sender shows its keys.
/// let verifier = NotificationVerifier::with_keys_at(
///     "https://agent.example.com",
///     "https://hooks.example.com/a2a",
///     "https://agent.example.com/.well-known/jwks.json",
/// )?;
///
/// // For each request: the header and the body, byte for byte.
/// # let (headers, body) = (reqwest::header::HeaderMap::new(), b"{}");
/// let signature = headers.get(NOTIFICATION_SIGNATURE).and_then(|value| value.to_str().ok()).unwrap_or_default();
/// let notification = verifier.verify(signature, body).await?;
/// if !notification.seen_before {
///     println!("task {} has news: {}", notification.task, String::from_utf8_lossy(body));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct NotificationVerifier {
    issuer: String,
    audience: String,
    keys: Keys,
    leeway: Duration,
    seen: Mutex<Seen>,
}

/// A notification that is what it seems to be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notification {
    /// The id of the event. Another delivery of the same event has the same.
    pub event: String,
    /// The task that it tells of.
    pub task: String,
    /// When this delivery was signed.
    pub signed_at: SystemTime,
    /// Whether this verifier remembers the event. Events may come twice: then it was delivered again because the
    /// first answer got lost, or somebody has recorded and repeated it. Answer with success, and do nothing.
    pub seen_before: bool,
}

/// Why a notification is not to be believed. Answer with 401, and do nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotificationError {
    /// No signature, or not of the expected form.
    #[error("The notification carries no readable signature in the header `{NOTIFICATION_SIGNATURE}`.")]
    Malformed,
    /// Not ES256. Nothing else is taken, least of all none.
    #[error("The signature uses another algorithm than ES256.")]
    Algorithm,
    /// Signed with a key that the sender does not show.
    #[error("The key `{id}` that signed the notification is not among those of the sender.")]
    UnknownKey {
        /// Which.
        id: String,
    },
    /// The signature is not one of this key.
    #[error("The signature is wrong.")]
    Signature,
    /// Somebody else's.
    #[error("The notification comes from another issuer than {expected}. Check the public URL of the sender.")]
    Issuer {
        /// Who was expected.
        expected: String,
    },
    /// For somebody else.
    #[error("The notification was meant for another receiver than {expected}.")]
    Audience {
        /// Who we are.
        expected: String,
    },
    /// Too old, or from the future.
    #[error("The signature is not valid at this time. If that happens often, compare the clocks.")]
    Time,
    /// Another body than the one that was signed.
    #[error("The body is not the one that was signed. Pass it as it came, byte for byte.")]
    Body,
    /// The sender's keys cannot be had. Answer with 503, so that the notification comes again.
    #[error("The keys of the sender cannot be read: {0}")]
    Keys(#[source] ClientError),
}

#[derive(Deserialize)]
struct Claims {
    iat: u64,
    jti: String,
    #[serde(rename = "taskId")]
    task: String,
    request_body_sha256: String,
}

impl NotificationVerifier {
    /// A verifier with given keys, as a JWKS document. `issuer` is the public URL of the sender, `receiver` the
    /// URL of this webhook.
    pub fn with_keys(issuer: impl Into<String>, receiver: &str, jwks: &[u8]) -> Result<Self, ClientError> {
        Self::new(issuer.into(), receiver, Keys::given(jwks)?)
    }

    /// A verifier that fetches the keys from `jwks_url` when it needs them, and now and then again.
    pub fn with_keys_at(issuer: impl Into<String>, receiver: &str, jwks_url: &str) -> Result<Self, ClientError> {
        Self::new(issuer.into(), receiver, Keys::at(jwks_url)?)
    }

    fn new(issuer: String, receiver: &str, keys: Keys) -> Result<Self, ClientError> {
        let audience = parse_url(receiver).map(|url: Url| url.origin().ascii_serialization())?;
        Ok(Self { issuer, audience, keys, leeway: LEEWAY, seen: Mutex::default() })
    }

    /// How far the clocks may be apart; a minute by default.
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway = leeway;
        self
    }

    /// Checks one notification: the value of the header, and the body as it came.
    pub async fn verify(&self, signature: &str, body: &[u8]) -> Result<Notification, NotificationError> {
        let signature = signature.trim();
        // The header only tells which key to look for; what it says is not believed.
        let id = key_id(signature)?;
        let Some(key) = self.keys.find(&id).await? else {
            return Err(NotificationError::UnknownKey { id: plain(&id, 100) });
        };
        let claims = self.check(signature, &key)?;
        if !claims.request_body_sha256.eq_ignore_ascii_case(&hex(&Sha256::digest(body))) {
            return Err(NotificationError::Body);
        }
        let signed_at = SystemTime::UNIX_EPOCH + Duration::from_secs(claims.iat);
        let seen_before = self.seen.lock().put(&claims.jti);
        Ok(Notification { event: claims.jti, task: claims.task, signed_at, seen_before })
    }

    fn check(&self, signature: &str, key: &DecodingKey) -> Result<Claims, NotificationError> {
        let mut rules = Validation::new(Algorithm::ES256);
        rules.set_required_spec_claims(&["iss", "aud", "exp"]);
        rules.set_issuer(&[&self.issuer]);
        rules.set_audience(&[&self.audience]);
        rules.leeway = self.leeway.as_secs();
        let claims: Claims = decode(signature, key, &rules).map_err(|error| self.explain(error.kind()))?.claims;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        if claims.iat > (now + self.leeway).as_secs() {
            return Err(NotificationError::Time);
        }
        Ok(claims)
    }

    fn explain(&self, kind: &ErrorKind) -> NotificationError {
        match kind {
            ErrorKind::InvalidSignature => NotificationError::Signature,
            ErrorKind::InvalidIssuer => NotificationError::Issuer { expected: self.issuer.clone() },
            ErrorKind::InvalidAudience => NotificationError::Audience { expected: self.audience.clone() },
            ErrorKind::ExpiredSignature | ErrorKind::ImmatureSignature => NotificationError::Time,
            ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName | ErrorKind::UnsupportedAlgorithm => {
                NotificationError::Algorithm
            }
            _ => NotificationError::Malformed,
        }
    }
}

/// Which key a token names, if it is one of the only algorithm that is taken.
fn key_id(signature: &str) -> Result<String, NotificationError> {
    if signature.len() > LONGEST || signature.matches('.').count() != 2 {
        return Err(NotificationError::Malformed);
    }
    // A header with an algorithm that nobody knows, such as `none`, cannot be read at all.
    let header = decode_header(signature).map_err(|_| NotificationError::Algorithm)?;
    if header.alg != Algorithm::ES256 {
        return Err(NotificationError::Algorithm);
    }
    header.kid.filter(|id| !id.is_empty()).ok_or(NotificationError::Malformed)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
