//! The HTTP client for every address that a peer has named: webhooks, key sets, cards.
//!
//! Whoever may name an address could otherwise make this server speak to its own inside network. So the scheme,
//! the host, the port and every address that the name resolves to are judged, and the connection is made to an
//! address that was judged, with the original name in `Host` and in TLS. There are no redirects and no proxies,
//! which would both lead elsewhere, and everything is bounded in size and time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;
use reqwest::{Client, Method, Response, redirect, retry};

mod address;
mod error;
mod resolve;
mod target;
#[cfg(test)]
mod tests;

pub use self::error::{Fault, Refused, SendError};
use self::resolve::{Checked, Unresolved, checked};
pub use self::resolve::{Resolver, SystemResolver};
use self::target::{OpenHost, Target, judge};

/// How long a connection may take, with the name, TCP and TLS.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an unused connection is kept.
const IDLE: Duration = Duration::from_secs(30);
const IDLE_PER_HOST: usize = 16;
/// So much of the answer to a post is read, so that its connection can be used again.
const SMALL_TALK: usize = 16 << 10;
const SMALL_TALK_TIME: Duration = Duration::from_secs(1);
const MAX_HEADERS: usize = 64;
const MAX_HEADER_LIST: u32 = 32 << 10;
/// No receiver decides that we come back later than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// What HTTP itself says about a connection is not the caller's to set.
const OWN_HEADERS: &[HeaderName] = &[
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::EXPECT,
    header::PROXY_AUTHORIZATION,
];

/// What the operator opens beyond the public internet.
#[derive(Clone, Debug, Default)]
pub struct Openings {
    /// Hosts by `name` or `name:port`, whose addresses are then not judged.
    pub hosts: Vec<String>,
    /// Blocks of addresses that may be reached.
    pub cidrs: Vec<IpNet>,
    /// Whether plain HTTP is refused.
    pub https_only: bool,
    /// Certificates in PEM that are trusted beside those of the system.
    pub certificates: Vec<u8>,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// An entry of the allowed hosts.
    #[error("`{0}` is not a host: write a name or name:port, without scheme and path.")]
    Host(String),
    /// The certificates, or those of the system.
    #[error("The HTTP client cannot be set up: {0}. Check the certificates that are trusted.")]
    Client(String),
}

/// The client. Cheap to clone.
#[derive(Clone)]
pub struct Guard(Arc<Inner>);

struct Inner {
    openings: Openings,
    hosts: Vec<OpenHost>,
    resolver: Arc<dyn Resolver>,
    /// Connections to addresses that were judged. They are kept apart from the others, so that none is used for
    /// a request that needs more than it was opened for.
    judged: Client,
    /// Connections to hosts that the operator has named.
    trusted: Client,
}

/// What a receiver says to a post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status, whatever it is.
    pub status: u16,
    /// When it wants to be asked again, at most a day from now.
    pub retry_after: Option<Duration>,
}

/// What a server says to a get.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status, whatever it is.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// All of its body.
    pub body: Bytes,
}

impl Guard {
    /// A client that uses the resolver of the system.
    pub fn new(openings: Openings) -> Result<Self, SetupError> {
        Self::with_resolver(openings, Arc::new(SystemResolver))
    }

    /// A client that asks `resolver` for addresses.
    pub fn with_resolver(openings: Openings, resolver: Arc<dyn Resolver>) -> Result<Self, SetupError> {
        let read = |text: &String| OpenHost::read(text).ok_or_else(|| SetupError::Host(text.clone()));
        let hosts = openings.hosts.iter().map(read).collect::<Result<_, _>>()?;
        let judged = client(&openings, Checked { resolver: resolver.clone(), open: Some((*openings.cidrs).into()) })?;
        let trusted = client(&openings, Checked { resolver: resolver.clone(), open: None })?;
        Ok(Self(Arc::new(Inner { openings, hosts, resolver, judged, trusted })))
    }

    /// Judges what the text of an address tells.
    pub fn check(&self, url: &str) -> Result<(), Refused> {
        self.judge(url).map(drop)
    }

    /// Judges an address together with what its name resolves to now. A name without an address is refused
    /// like one with a closed address, so that nobody learns which names exist inside.
    pub async fn check_resolved(&self, url: &str) -> Result<(), Refused> {
        let target = self.judge(url)?;
        let Some(name) = target.url.domain().filter(|_| !target.trusted) else { return Ok(()) };
        let look = checked(&*self.0.resolver, name, Some(&self.0.openings.cidrs));
        match tokio::time::timeout(CONNECT, look).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(Unresolved::Refused(refused))) => Err(refused),
            Ok(Err(Unresolved::Unknown)) | Err(_) => Err(Refused::Host),
        }
    }

    /// Posts, and reads no more of the answer than its head. Every status is an answer, a redirect too.
    pub async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
        deadline: Duration,
    ) -> Result<Reply, SendError> {
        let mut response = self.send(Method::POST, url, headers, body, deadline).await?;
        let reply = Reply { status: response.status().as_u16(), retry_after: retry_after(response.headers()) };
        // The answer is known: what goes wrong from here on costs the connection, nothing else.
        let rest = async {
            let mut room = SMALL_TALK;
            while let Ok(Some(chunk)) = response.chunk().await {
                let Some(left) = room.checked_sub(chunk.len()) else { break };
                room = left;
            }
        };
        let _ = tokio::time::timeout(SMALL_TALK_TIME, rest).await;
        Ok(reply)
    }

    /// Gets a body of at most `limit` bytes.
    pub async fn get(
        &self,
        url: &str,
        headers: HeaderMap,
        limit: usize,
        deadline: Duration,
    ) -> Result<Answer, SendError> {
        let mut response = self.send(Method::GET, url, headers, Bytes::new(), deadline).await?;
        if response.content_length().is_some_and(|length| length > limit as u64) {
            return Err(SendError::TooLarge { limit });
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > limit {
                return Err(SendError::TooLarge { limit });
            }
            body.extend_from_slice(&chunk);
        }
        let headers = std::mem::take(response.headers_mut());
        Ok(Answer { status: response.status().as_u16(), headers, body: body.into() })
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        mut headers: HeaderMap,
        body: Bytes,
        deadline: Duration,
    ) -> Result<Response, SendError> {
        let target = self.judge(url)?;
        for name in OWN_HEADERS {
            headers.remove(name);
        }
        let client = if target.trusted { &self.0.trusted } else { &self.0.judged };
        // The deadline covers the body of the answer, too.
        let request = client.request(method, target.url).headers(headers).timeout(deadline);
        let request = if body.is_empty() { request } else { request.body(body) };
        Ok(Box::pin(request.send()).await?)
    }

    fn judge(&self, url: &str) -> Result<Target, Refused> {
        judge(url, &self.0.openings, &self.0.hosts)
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("openings", &self.0.openings).finish_non_exhaustive()
    }
}

/// Text from a peer as the value of a header: printable ASCII, so that it cannot become a second header.
pub fn header_value(text: &str) -> Result<HeaderValue, Refused> {
    if !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err(Refused::Header);
    }
    let mut value = HeaderValue::from_str(text).map_err(|_| Refused::Header)?;
    // It is a secret more often than not.
    value.set_sensitive(true);
    Ok(value)
}

fn client(openings: &Openings, resolver: Checked) -> Result<Client, SetupError> {
    let cannot = |error: reqwest::Error| SetupError::Client(error.to_string());
    let certificates = reqwest::Certificate::from_pem_bundle(&openings.certificates).map_err(cannot)?;
    Client::builder()
        .user_agent(concat!("nuncio/", env!("CARGO_PKG_VERSION")))
        .dns_resolver(resolver)
        .no_proxy()
        .redirect(redirect::Policy::none())
        .referer(false)
        // Whether to try again is the caller's to say.
        .retry(retry::never())
        .tls_certs_merge(certificates)
        .connect_timeout(CONNECT)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_PER_HOST)
        .http1_max_headers(MAX_HEADERS)
        .http2_max_header_list_size(MAX_HEADER_LIST)
        .build()
        .map_err(cannot)
}

/// Seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let pause = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        // More digits than a number has.
        Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => LONGEST_PAUSE,
        Err(_) => {
            let until = httpdate::parse_http_date(text).ok()?;
            until.duration_since(std::time::SystemTime::now()).unwrap_or_default()
        }
    };
    Some(pause.min(LONGEST_PAUSE))
}
