//! What was registered: checked, kept, and shown again without its secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use nuncio_protocol::{AuthenticationInfo, Error, PushId, TaskId, TaskPushNotificationConfig, Violation, codec};
use serde::{Deserialize, Serialize};

use super::PushOptions;
use super::keyring::{Context, Keyring, Sealed};
use super::sign::{self, Notice};
use super::tone::Tone;
use crate::call::{Call, Version};
use crate::store::PushConfig;

/// The longest of everything that a caller may choose.
const LONGEST_ID: usize = 512;
const LONGEST_URL: usize = 2048;
const LONGEST_TOKEN: usize = 4096;
const LONGEST_SCHEME: usize = 64;
const LONGEST_CREDENTIALS: usize = 8192;

const TOKEN: HeaderName = HeaderName::from_static("a2a-notification-token");
const X_TOKEN: HeaderName = HeaderName::from_static("x-a2a-notification-token");
const EVENT_ID: HeaderName = HeaderName::from_static("a2a-event-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("nuncio/", env!("CARGO_PKG_VERSION")));

/// A webhook as it is stored. Only the secrets are sealed, so that an operator can see where it leads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Hook {
    pub(crate) url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheme: Option<String>,
    /// The trace of the call that registered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    /// Whether the token goes out as a bearer token.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    token_as_bearer: bool,
    /// Whether `bearer` and `basic` are the schemes of HTTP, whose form is given to what was registered.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) known_schemes: bool,
    /// [`Secrets`], sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed: Option<String>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Secrets {
    #[serde(skip_serializing_if = "String::is_empty")]
    token: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    credentials: String,
}

impl Secrets {
    fn is_empty(&self) -> bool {
        self.token.is_empty() && self.credentials.is_empty()
    }
}

/// Checks a webhook that a caller wants. `at` is what stands before the names of its fields.
pub(crate) fn check(config: &TaskPushNotificationConfig, options: &PushOptions, at: &str) -> Result<(), Error> {
    let mut found = Vec::new();
    let mut wrong = |field: &str, what: &str| found.push(Violation::new(format!("{at}{field}"), what));
    if config.url.is_empty() {
        wrong("url", "is required");
    } else if config.url.len() > LONGEST_URL {
        wrong("url", "is longer than 2048 characters");
    } else if let Err(refused) = options.guard.check(&config.url) {
        wrong("url", &format!("cannot be used: {refused}"));
    }
    if config.id.as_str().len() > LONGEST_ID {
        wrong("id", "is longer than 512 characters");
    } else if config.id.as_str().contains(char::is_control) {
        wrong("id", "must not have control characters");
    }
    if config.token.len() > LONGEST_TOKEN || !is_header(&config.token) {
        wrong("token", "must be one line of at most 4096 printable ASCII characters");
    }
    if let Some(AuthenticationInfo { scheme, credentials }) = &config.authentication {
        if scheme.len() > LONGEST_SCHEME || HeaderName::from_bytes(scheme.as_bytes()).is_err() && !scheme.is_empty() {
            wrong("authentication.scheme", "must be the name of an HTTP authentication scheme, such as Bearer");
        }
        if credentials.len() > LONGEST_CREDENTIALS || !is_header(credentials) {
            wrong("authentication.credentials", "must be one line of at most 8192 printable ASCII characters");
        }
    }
    Error::check(found)
}

fn is_header(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

impl Hook {
    /// Takes up what a caller wants, once it is checked.
    pub(crate) fn new(config: &TaskPushNotificationConfig, call: &Call, token_as_bearer: bool) -> (Self, String) {
        let authentication = config.authentication.clone().unwrap_or_default();
        let secrets = Secrets { token: config.token.clone(), credentials: authentication.credentials };
        let hook = Self {
            url: config.url.clone(),
            scheme: config.authentication.as_ref().map(|_| authentication.scheme),
            traceparent: call.traceparent.as_deref().map(Into::into),
            token_as_bearer,
            known_schemes: false,
            sealed: None,
        };
        let secrets = if secrets.is_empty() { String::new() } else { text(&secrets) };
        (hook, secrets)
    }

    /// The stored form.
    pub(crate) fn seal(self, id: &PushId, secrets: String, keyring: Option<&Keyring>) -> Result<bytes::Bytes, String> {
        let sealed = match keyring {
            _ if secrets.is_empty() => None,
            Some(keyring) => {
                let sealed = keyring.seal(self.context(id), secrets.as_bytes());
                Some(sealed.map_err(|error| error.to_string())?.as_str().to_owned())
            }
            None => Some(secrets),
        };
        Ok(codec::encode(&Self { sealed, ..self }))
    }

    /// Reads the stored form.
    pub(crate) fn read(config: &PushConfig) -> Result<Self, String> {
        codec::decode(&config.body).map_err(|error| error.to_string())
    }

    /// A secret is bound to where it goes.
    fn context<'a>(&'a self, id: &'a PushId) -> Context<'a> {
        Context { url: &self.url, config: id.as_str() }
    }

    /// The stored form with its secrets under the active key; nothing if they are already, or there are none.
    pub(crate) fn reseal(config: &PushConfig, keyring: &Keyring) -> Result<Option<bytes::Bytes>, String> {
        let hook = Self::read(config)?;
        let Some(sealed) = hook.sealed.clone() else { return Ok(None) };
        let sealed = keyring.reseal(hook.context(&config.id), &sealed.into()).map_err(|error| error.to_string())?;
        Ok(sealed.map(|sealed| codec::encode(&Self { sealed: Some(sealed.as_str().to_owned()), ..hook })))
    }

    /// The key that its secrets are under.
    pub(crate) fn key_id(config: &PushConfig) -> Option<String> {
        let sealed: Sealed = Self::read(config).ok()?.sealed?.into();
        sealed.key_id().ok().map(str::to_owned)
    }

    fn secrets(&self, id: &PushId, keyring: Option<&Keyring>) -> Result<Secrets, String> {
        let Some(sealed) = &self.sealed else { return Ok(Secrets::default()) };
        let opened = match keyring {
            Some(keyring) => {
                keyring.open(self.context(id), &sealed.clone().into()).map_err(|error| error.to_string())?
            }
            None => sealed.clone().into_bytes(),
        };
        codec::decode(&opened).map_err(|error| error.to_string())
    }

    /// As callers see it: with its secrets only where `secrets` says so.
    pub(crate) fn show(
        config: &PushConfig,
        task_id: &TaskId,
        options: &PushOptions,
    ) -> Result<TaskPushNotificationConfig, String> {
        let hook = Self::read(config)?;
        let Secrets { token, credentials } = if options.show_secrets {
            hook.secrets(&config.id, options.keyring.as_deref())?
        } else {
            Secrets::default()
        };
        Ok(TaskPushNotificationConfig {
            id: config.id.clone(),
            task_id: task_id.clone(),
            url: hook.url,
            token,
            authentication: hook.scheme.map(|scheme| AuthenticationInfo { scheme, credentials }),
            ..TaskPushNotificationConfig::default()
        })
    }

    /// The host that it leads to, with its port.
    pub(super) fn host(&self) -> String {
        let url = self.url.parse::<Uri>().unwrap_or_default();
        let port = if url.scheme_str() == Some("http") { 80 } else { 443 };
        format!("{}:{}", url.host().unwrap_or_default(), url.port_u16().unwrap_or(port)).to_ascii_lowercase()
    }

    fn authorization(&self, credentials: &str) -> String {
        // Without a scheme, credentials are what they nearly always are.
        let scheme = self.scheme.as_deref().filter(|scheme| !scheme.is_empty()).unwrap_or("Bearer");
        let is = |name: &str| self.known_schemes && scheme.eq_ignore_ascii_case(name);
        if is("Bearer") {
            return format!("Bearer {credentials}");
        }
        if is("Basic") {
            // What is encoded already has no colon.
            let is_plain = credentials.contains(':');
            let encoded = if is_plain { STANDARD.encode(credentials) } else { credentials.to_owned() };
            return format!("Basic {encoded}");
        }
        format!("{scheme} {credentials}")
    }

    /// The headers that are the same for every event.
    pub(super) fn headers(
        &self,
        id: &PushId,
        version: Version,
        tone: Option<Tone>,
        keyring: Option<&Keyring>,
    ) -> Result<HeaderMap, String> {
        let Secrets { mut token, credentials } = self.secrets(id, keyring)?;
        if token.is_empty() && tone.is_some_and(Tone::has_one_secret) {
            token.clone_from(&credentials);
        }
        let mut headers = HeaderMap::new();
        let media = match version {
            Version::V1 => "application/a2a+json",
            Version::V03 => "application/json",
        };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
        headers.insert(header::USER_AGENT, USER_AGENT);
        let mut secret = |name: HeaderName, text: &str| {
            let mut value = HeaderValue::from_str(text).map_err(|_| "a secret is no header value".to_owned())?;
            value.set_sensitive(true);
            headers.insert(name, value);
            Ok::<_, String>(())
        };
        if !token.is_empty() {
            secret(TOKEN, &token)?;
            secret(X_TOKEN, &token)?;
        }
        if self.token_as_bearer && !token.is_empty() {
            secret(header::AUTHORIZATION, &format!("Bearer {token}"))?;
        } else if !credentials.is_empty() {
            secret(header::AUTHORIZATION, &self.authorization(&credentials))?;
        }
        if let Some(trace) = self.traceparent.as_deref().and_then(|trace| HeaderValue::from_str(trace).ok()) {
            headers.insert(TRACEPARENT, trace);
        }
        Ok(headers)
    }
}

/// The headers of one event.
pub(super) fn headers_of(common: &HeaderMap, notice: &Notice<'_>, options: &PushOptions) -> HeaderMap {
    let mut headers = common.clone();
    if let Ok(id) = HeaderValue::from_str(notice.event_id) {
        headers.insert(EVENT_ID, id);
    }
    if let Some(signer) = &options.signer {
        match signer.sign(notice).map(HeaderValue::try_from) {
            Ok(Ok(signature)) => drop(headers.insert(sign::HEADER, signature)),
            Ok(Err(_)) => {}
            Err(error) => tracing::error!(%error, "a notification cannot be signed"),
        }
    }
    headers
}

fn text(secrets: &Secrets) -> String {
    String::from_utf8_lossy(&codec::encode(secrets)).into_owned()
}
