//! Who calls: secrets, and where in a request they go.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue};

use crate::error::{ClientError, plain};
use crate::http::invalid;

/// So much of a name is repeated in an error.
const NAME_SHOWN: usize = 200;

/// Text that is sent but never shown.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(Arc<str>);

impl Secret {
    /// The text itself, to be sent.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(Arc::from(text))
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(Arc::from(text))
    }
}

/// One way to say who calls. It goes only to the origin that the user typed, and to those in
/// [`Options::origins`](crate::Options::origins).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Credential {
    /// `Authorization: Bearer …`
    Bearer(Secret),
    /// `Authorization: Basic …`
    Basic {
        /// Without a colon.
        user: String,
        /// Any text.
        password: Secret,
    },
    /// A key under a name that the agent's card says.
    ApiKey {
        /// Where it goes.
        place: KeyPlace,
        /// Of the header, the query parameter or the cookie.
        name: String,
        /// The key.
        value: Secret,
    },
    /// Any other header; it may be secret, so it is treated as if it were.
    Header {
        /// Its name.
        name: String,
        /// Its value.
        value: Secret,
    },
}

/// Where an API key goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyPlace {
    /// A header of its own.
    Header,
    /// A parameter in the address.
    Query,
    /// A cookie.
    Cookie,
}

impl KeyPlace {
    /// The place that a card's `location` names.
    pub fn from_location(location: &str) -> Option<Self> {
        match location {
            "header" => Some(Self::Header),
            "query" => Some(Self::Query),
            "cookie" => Some(Self::Cookie),
            _ => None,
        }
    }
}

/// All credentials of one caller, ready to be sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prepared {
    headers: HeaderMap,
    query: Vec<(String, Secret)>,
    secrets: Vec<Secret>,
}

impl Prepared {
    pub(crate) fn new(credentials: &[Credential]) -> Result<Self, ClientError> {
        let mut prepared = Self::default();
        let mut cookies = Vec::new();
        for credential in credentials {
            match credential {
                Credential::Bearer(token) => prepared.authorization("Bearer", token.clone())?,
                Credential::Basic { user, password } => {
                    if user.contains(':') {
                        return Err(invalid("The user's name must not hold a colon.".into()));
                    }
                    let both = STANDARD.encode(format!("{user}:{}", password.expose()));
                    prepared.secrets.push(password.clone());
                    prepared.authorization("Basic", both.into())?;
                }
                Credential::Header { name, value } | Credential::ApiKey { place: KeyPlace::Header, name, value } => {
                    let header = HeaderName::try_from(name.as_str())
                        .map_err(|_| invalid(format!("`{}` is not the name of a header.", plain(name, NAME_SHOWN))))?;
                    prepared.headers.append(header, secret_value(name, value.expose())?);
                    prepared.secrets.push(value.clone());
                }
                Credential::ApiKey { place: KeyPlace::Query, name, value } => {
                    prepared.query.push((name.clone(), value.clone()));
                    prepared.secrets.push(value.clone());
                }
                Credential::ApiKey { place: KeyPlace::Cookie, name, value } => {
                    cookies.push(cookie(name, value)?);
                    prepared.secrets.push(value.clone());
                }
            }
        }
        if !cookies.is_empty() {
            prepared.headers.insert(COOKIE, secret_value("the cookie", &cookies.join("; "))?);
        }
        Ok(prepared)
    }

    fn authorization(&mut self, scheme: &str, secret: Secret) -> Result<(), ClientError> {
        if self.headers.contains_key(AUTHORIZATION) {
            return Err(invalid("Only one token or one user and password can be sent: choose one.".into()));
        }
        let value = secret_value("the token or password", &format!("{scheme} {}", secret.expose()))?;
        self.headers.insert(AUTHORIZATION, value);
        self.secrets.push(secret);
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.query.is_empty()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The address with the keys that belong into it.
    pub(crate) fn address(&self, mut url: Url) -> Url {
        for (name, value) in &self.query {
            url.query_pairs_mut().append_pair(name, value.expose());
        }
        url
    }

    pub(crate) fn secrets(&self) -> &[Secret] {
        &self.secrets
    }
}

fn cookie(name: &str, value: &Secret) -> Result<String, ClientError> {
    let fits = |text: &str| !text.contains([';', ',', ' ', '"', '\\']) && text.chars().all(|c| c.is_ascii_graphic());
    if name.is_empty() || name.contains('=') || !fits(name) || !fits(value.expose()) {
        return Err(invalid(format!("The cookie `{}` has a name or a value that cannot be sent.", plain(name, 100))));
    }
    Ok(format!("{name}={}", value.expose()))
}

fn secret_value(name: &str, text: &str) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        invalid(format!("The value of {} cannot be sent in a header: remove line breaks.", plain(name, NAME_SHOWN)))
    })?;
    value.set_sensitive(true);
    Ok(value)
}
