//! Connections, credentials and limits, for everything that leaves this crate.

use std::error::Error as _;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use nuncio_protocol::Value;
use percent_encoding::percent_decode_str;
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Method, Response, Url, redirect};

use crate::credential::{Prepared, Secret};
use crate::error::{ClientError, MOST_TEXT, plain};
use crate::options::{Options, Proxy};
use crate::wire::{framed, is_redis};

/// The type of gRPC calls.
pub(crate) const GRPC: &str = "application/grpc";
const REDIRECTS: usize = 5;
/// So much of an error's body is read, and so much of it shown.
const ERROR_BODY: usize = 64 * 1024;
const ERROR_SHOWN: usize = 200;
/// Shorter texts are not looked for in answers: they would be found everywhere.
const SHORTEST_SECRET: usize = 6;

/// One HTTP client with the credentials of one user for one origin.
#[derive(Debug)]
pub(crate) struct Http {
    client: reqwest::Client,
    /// Of HTTP/1.1 alone, which other protocols begin with: made when it is needed.
    upgrading: OnceLock<reqwest::Client>,
    /// Of HTTP/2 alone, for gRPC, which nobody negotiates: made when it is needed.
    h2: OnceLock<reqwest::Client>,
    /// What the user typed: the place for credentials.
    home: Url,
    /// Other places for them.
    trusted: Vec<Url>,
    credentials: Prepared,
    pub(crate) options: Options,
}

/// What to ask for.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Http {
    pub(crate) fn new(home: Url, options: Options) -> Result<Self, ClientError> {
        let credentials = Prepared::new(&options.credentials)?;
        let trusted = options.origins.iter().map(|origin| parse_url(origin)).collect::<Result<_, _>>()?;
        let client = client(&options, Speaks::Whatever)?;
        Ok(Self { client, upgrading: OnceLock::new(), h2: OnceLock::new(), home, trusted, credentials, options })
    }

    /// Asks for another protocol on the same connection.
    pub(crate) async fn ask_to_upgrade(&self, ask: Ask) -> Result<Response, ClientError> {
        self.ask_by(self.made(&self.upgrading, Speaks::Http1)?, ask).await
    }

    fn made<'a>(
        &self,
        place: &'a OnceLock<reqwest::Client>,
        speaks: Speaks,
    ) -> Result<&'a reqwest::Client, ClientError> {
        if let Some(client) = place.get() {
            return Ok(client);
        }
        let made = client(&self.options, speaks)?;
        Ok(place.get_or_init(|| made))
    }

    /// The client for a request.
    fn client_for(&self, ask: &Ask) -> Result<&reqwest::Client, ClientError> {
        match ask.headers.get(CONTENT_TYPE).is_some_and(|kind| kind == GRPC) {
            true => self.made(&self.h2, Speaks::Http2),
            false => Ok(&self.client),
        }
    }

    /// Refuses an address at which the user's credentials would leave the origin they were given for.
    pub(crate) fn check_origin(&self, url: &Url) -> Result<(), ClientError> {
        let nothing_to_lose = self.credentials.is_empty() && !self.options.same_origin;
        if nothing_to_lose || self.may_know(url) {
            return Ok(());
        }
        Err(ClientError::CrossOrigin {
            typed: self.home.origin().ascii_serialization(),
            other: url.origin().ascii_serialization(),
        })
    }

    fn may_know(&self, url: &Url) -> bool {
        self.options.allow_cross_origin
            || is_same_origin(url, &self.home)
            || self.trusted.iter().any(|trusted| is_same_origin(url, trusted))
    }

    /// The credentials for an address, if that is where they belong.
    pub(crate) fn known_headers(&self, url: &Url) -> Option<&HeaderMap> {
        self.may_know(url).then(|| self.credentials.headers())
    }

    /// Asks, and follows redirects inside the origin. Every status is an answer.
    pub(crate) async fn ask(&self, ask: Ask) -> Result<Response, ClientError> {
        self.ask_by(self.client_for(&ask)?, ask).await
    }

    async fn ask_by(&self, client: &reqwest::Client, mut ask: Ask) -> Result<Response, ClientError> {
        for _ in 0..=REDIRECTS {
            let known = self.may_know(&ask.url);
            let url = if known { self.credentials.address(ask.url.clone()) } else { ask.url.clone() };
            let mut request = client.request(ask.method.clone(), url).headers(ask.headers.clone());
            if known {
                request = request.headers(self.credentials.headers().clone());
            }
            if !ask.body.is_empty() {
                request = request.body(ask.body.clone());
            }
            let response = request.send().await.map_err(|error| self.network(&ask.url, error))?;
            match redirected(&ask, &response)? {
                None => return Ok(response),
                Some(url) => ask.url = url,
            }
        }
        Err(protocol(&ask.url, format!("it redirects more than {REDIRECTS} times")))
    }

    /// The file at an address that the agent names, if that is where the agent is.
    pub(crate) async fn download(&self, named: &str, interface: &str) -> Result<Bytes, ClientError> {
        let url = parse_url(named)?;
        let same = |other: &Url| other.origin() == url.origin();
        if !same(&self.home) && !self.trusted.iter().any(same) && !Url::parse(interface).is_ok_and(|url| same(&url)) {
            let (origin, home) = (url.origin().ascii_serialization(), self.home.origin().ascii_serialization());
            return Err(invalid(format!("It is at {origin}, not at {home}: fetch it yourself if you trust it.")));
        }
        let limit = self.options.max_answer;
        let fetch = async {
            let ask = Ask { method: Method::GET, url: url.clone(), headers: HeaderMap::new(), body: Bytes::new() };
            let mut response = self.ask(ask).await?;
            if response.status().is_success() {
                return self.body(&mut response, limit).await.map(Bytes::from);
            }
            let body = self.error_body(&mut response).await;
            Err(self.refused(&response, &body))
        };
        within(self.options.timeout, shown(&url), fetch).await
    }

    /// The whole body, unless it is larger than the limit.
    pub(crate) async fn body(&self, response: &mut Response, limit: usize) -> Result<Vec<u8>, ClientError> {
        let too_large = |url: &Url| ClientError::TooLarge { url: shown(url), limit };
        if response.content_length().is_some_and(|length| length > limit as u64) {
            return Err(too_large(response.url()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk(response).await? {
            if body.len() + chunk.len() > limit {
                return Err(too_large(response.url()));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// The next piece of a body.
    pub(crate) async fn chunk(&self, response: &mut Response) -> Result<Option<Bytes>, ClientError> {
        match response.chunk().await {
            Ok(chunk) => Ok(chunk),
            Err(error) => Err(self.network(response.url(), error)),
        }
    }

    /// The body of an answer that reports an error, as far as it can be had.
    pub(crate) async fn error_body(&self, response: &mut Response) -> Vec<u8> {
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = self.chunk(response).await {
            let room = ERROR_BODY - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == ERROR_BODY {
                break;
            }
        }
        body
    }

    /// An answer whose status says that something is wrong.
    pub(crate) fn refused(&self, response: &Response, body: &[u8]) -> ClientError {
        let (url, status) = (shown(response.url()), response.status().as_u16());
        let said = self.redact(plain(String::from_utf8_lossy(body).trim(), ERROR_SHOWN));
        if status != 401 && status != 403 {
            return ClientError::Http { url, status, said, retry_after: retry_after(response.headers()) };
        }
        let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let said = challenge.map_or(said, |challenge| self.redact(plain(challenge, ERROR_SHOWN)));
        ClientError::Unauthorized { url, status, sent: self.sends_credentials(response.url()), said }
    }

    pub(crate) fn sends_credentials(&self, url: &Url) -> bool {
        !self.credentials.is_empty() && self.may_know(url)
    }

    /// Foreign text without our secrets: some servers repeat what they were sent.
    pub(crate) fn redact(&self, mut text: String) -> String {
        for secret in
            self.credentials.secrets().iter().map(Secret::expose).filter(|secret| secret.len() >= SHORTEST_SECRET)
        {
            if text.contains(secret) {
                text = text.replace(secret, "***");
            }
        }
        text
    }

    /// The same for every text in a value.
    pub(crate) fn redact_all(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redact(std::mem::take(text)),
            Value::Array(values) => values.iter_mut().for_each(|value| self.redact_all(value)),
            Value::Object(members) => members.values_mut().for_each(|value| self.redact_all(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    pub(crate) fn network(&self, url: &Url, error: reqwest::Error) -> ClientError {
        if error.is_timeout() && error.is_connect() {
            let cause = format!("no connection within {:?}", self.options.connect_timeout);
            return ClientError::Unreachable { url: shown(url), cause };
        }
        ClientError::Unreachable { url: shown(url), cause: root_cause(&error.without_url()) }
    }
}

/// An HTTP client as the options want it.
/// Which HTTP.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaks {
    Whatever,
    Http1,
    Http2,
}

fn client(options: &Options, speaks: Speaks) -> Result<reqwest::Client, ClientError> {
    let builder = reqwest::Client::builder()
        .user_agent(concat!("nuncio-client/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(options.connect_timeout)
        // A peer that vanished without a word is noticed while a stream waits for the next event.
        .tcp_keepalive(Duration::from_secs(20))
        // Followed below, where the origin and the method are known.
        .redirect(redirect::Policy::none());
    let cannot = |error: reqwest::Error| invalid(format!("Cannot set up the HTTP client: {}.", root_cause(&error)));
    let builder = match &options.proxy {
        Proxy::Direct => builder.no_proxy(),
        Proxy::Environment => builder,
        Proxy::At(address) => builder.no_proxy().proxy(reqwest::Proxy::all(address).map_err(cannot)?),
    };
    let builder = match speaks {
        Speaks::Whatever => builder,
        Speaks::Http1 => builder.http1_only(),
        // Streams are silent for long, and proxies forget connections that are.
        Speaks::Http2 => builder.http2_prior_knowledge().http2_keep_alive_interval(Duration::from_secs(30)),
    };
    builder.build().map_err(cannot)
}

/// Where to go instead, if that is inside the origin and keeps the meaning of the request.
fn redirected(ask: &Ask, response: &Response) -> Result<Option<Url>, ClientError> {
    let keeps_method = ask.method == Method::GET && matches!(response.status().as_u16(), 301..=303);
    if !keeps_method && !matches!(response.status().as_u16(), 307 | 308) {
        return Ok(None);
    }
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let Some(url) = location.and_then(|location| ask.url.join(location).ok()) else {
        return Err(protocol(&ask.url, "it redirects to nowhere"));
    };
    if url.origin() != ask.url.origin() {
        return Err(ClientError::Redirect { url: shown(&ask.url), to: shown(&url) });
    }
    Ok(Some(url))
}

/// Bounds a piece of work in time.
pub(crate) async fn within<T>(
    limit: Duration,
    url: String,
    work: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    // Boxed: the state of a request is large, and every caller's future would hold it in place.
    match tokio::time::timeout(limit, Box::pin(work)).await {
        Ok(result) => result,
        Err(_) => Err(ClientError::Timeout { url, after: limit }),
    }
}

/// Whether two addresses are of the same place. Only schemes of the web have an origin of their own.
fn is_same_origin(one: &Url, other: &Url) -> bool {
    let place = |url: &Url| (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port());
    let (one, other) = (&framed::web(one), &framed::web(other));
    one.origin() == other.origin() || (is_redis(one) && place(one) == place(other)) || one == other
}

/// An address for people: without query and user, which may hold secrets.
pub(crate) fn shown(url: &Url) -> String {
    if url.scheme() == "stdio" {
        let command = percent_decode_str(url.path()).decode_utf8_lossy();
        return plain(&format!("stdio:{}", command.split_whitespace().next().unwrap_or_default()), ERROR_SHOWN);
    }
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Fails only where there is no user to remove.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    plain(url.as_str(), ERROR_SHOWN)
}

/// Reads what the user typed. Without a scheme it is http on this machine and https elsewhere.
pub(crate) fn parse_url(typed: &str) -> Result<Url, ClientError> {
    let typed = typed.trim();
    let local = match typed.split_once(':') {
        Some(("unix", path)) => Some(framed::address_of(path.strip_prefix("//").unwrap_or(path))),
        Some(("stdio", command)) => Some(framed::command_of(command)),
        _ => None,
    };
    if let Some(url) = local {
        return url
            .ok_or_else(|| invalid("The address names no path and no command, such as unix:///run/a.sock.".into()));
    }
    let absolute = match typed.split_once("://") {
        Some(_) => typed.to_owned(),
        None if is_local(typed) => format!("http://{typed}"),
        None => format!("https://{typed}"),
    };
    let known =
        |url: &Url| (matches!(url.scheme(), "http" | "https" | "ws" | "wss") || is_redis(url)) && url.has_host();
    let url = Url::parse(&absolute).ok().filter(known);
    // The text is not repeated: it may hold a password.
    let url =
        url.ok_or_else(|| invalid("The address is not an http or https URL, such as https://agent.example.".into()))?;
    // Redis has no other place for them.
    if !is_redis(&url) && (!url.username().is_empty() || url.password().is_some()) {
        return Err(invalid("The address holds a user or a password: set a token or a header instead.".into()));
    }
    Ok(url)
}

fn is_local(typed: &str) -> bool {
    ["localhost", "127.", "[::1]"].iter().any(|local| typed.starts_with(local))
}

pub(crate) fn invalid(what: String) -> ClientError {
    ClientError::Invalid { what }
}

pub(crate) fn protocol(url: &Url, what: impl Into<String>) -> ClientError {
    // What cannot be read is quoted in it, as long as it came.
    ClientError::Protocol { url: shown(url), what: plain(&what.into(), MOST_TEXT) }
}

/// When to come back, in whole seconds; dates are rare and not read.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// The innermost reason says what happened; the outer ones only who noticed.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    let mut next = error.source();
    while let Some(inner) = next {
        cause = inner;
        next = inner.source();
    }
    plain(cause.to_string().trim_end_matches('.'), ERROR_SHOWN)
}
