//! The public keys of a sender.

use std::time::{Duration, Instant};

use bytes::Bytes;
use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::JwkSet;
use nuncio_protocol::codec;
use reqwest::header::HeaderMap;
use reqwest::{Method, Url};
use tokio::sync::Mutex;

use super::NotificationError;
use crate::error::ClientError;
use crate::http::{Ask, Http, invalid, parse_url, protocol, shown, within};
use crate::options::Options;

/// How long keys are used without a look whether they still are.
const FRESH: Duration = Duration::from_secs(60 * 60);
/// How long to wait before the next look, whatever keys a sender of nonsense may name.
const PAUSE: Duration = Duration::from_secs(10);
/// No honest set of keys is larger.
const LARGEST: usize = 256 * 1024;

/// Where keys come from.
#[derive(Debug)]
pub(super) enum Keys {
    Given(JwkSet),
    Fetched(Box<Fetched>),
}

#[derive(Debug)]
pub(super) struct Fetched {
    http: Http,
    url: Url,
    /// Held while the keys are fetched, so that many notifications at once ask once.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    keys: JwkSet,
    /// When the keys were last had.
    had: Option<Instant>,
    /// When they were last asked for.
    asked: Option<Instant>,
}

impl Keys {
    pub(super) fn given(jwks: &[u8]) -> Result<Self, ClientError> {
        codec::decode(jwks).map(Self::Given).map_err(|error| invalid(format!("The keys are not a JWKS: {error}.")))
    }

    pub(super) fn at(url: &str) -> Result<Self, ClientError> {
        let url = parse_url(url)?;
        let http = Http::new(url.clone(), Options { timeout: Duration::from_secs(10), ..Options::default() })?;
        Ok(Self::Fetched(Box::new(Fetched { http, url, state: Mutex::default() })))
    }

    /// The key with this id; nothing if the sender does not have it.
    pub(super) async fn find(&self, id: &str) -> Result<Option<DecodingKey>, NotificationError> {
        match self {
            Self::Given(keys) => Ok(pick(keys, id)),
            Self::Fetched(fetched) => fetched.find(id).await,
        }
    }
}

impl Fetched {
    async fn find(&self, id: &str) -> Result<Option<DecodingKey>, NotificationError> {
        let mut state = self.state.lock().await;
        let known = pick(&state.keys, id);
        let within = |at: Option<Instant>, limit| at.is_some_and(|at| at.elapsed() < limit);
        if known.is_some() && within(state.had, FRESH) {
            return Ok(known);
        }
        if within(state.asked, PAUSE) && state.had.is_some() {
            return Ok(known);
        }
        state.asked = Some(Instant::now());
        match self.fetch().await {
            Ok(keys) => {
                state.keys = keys;
                state.had = Some(Instant::now());
                Ok(pick(&state.keys, id))
            }
            // A key that was good does not become bad because its server is away.
            Err(_) if known.is_some() => Ok(known),
            Err(error) => Err(NotificationError::Keys(error)),
        }
    }

    async fn fetch(&self) -> Result<JwkSet, ClientError> {
        let ask = Ask { method: Method::GET, url: self.url.clone(), headers: HeaderMap::new(), body: Bytes::new() };
        let work = async {
            let mut response = self.http.ask(ask).await?;
            if !response.status().is_success() {
                let body = self.http.error_body(&mut response).await;
                return Err(self.http.refused(&response, &body));
            }
            self.http.body(&mut response, LARGEST).await
        };
        let body = within(self.http.options.timeout, shown(&self.url), work).await?;
        codec::decode(&body).map_err(|error| protocol(&self.url, format!("its keys cannot be read: {error}")))
    }
}

fn pick(keys: &JwkSet, id: &str) -> Option<DecodingKey> {
    DecodingKey::from_jwk(keys.find(id)?).ok()
}

#[cfg(test)]
impl Fetched {
    /// As if the pause were over.
    pub(super) async fn forget_pause(&self) {
        self.state.lock().await.asked = None;
    }
}
