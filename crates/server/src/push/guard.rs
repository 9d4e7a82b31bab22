//! The HTTP client for addresses that a peer has named.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Uri, header};
use ipnet::IpNet;
use reqwest::{Client, redirect};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// What the operator opens beyond the public internet.
#[derive(Clone, Debug, Default)]
pub struct Openings {
    /// Hosts by name, whose addresses are then not judged.
    pub hosts: Vec<String>,
    /// Blocks of addresses that may be reached.
    pub cidrs: Vec<IpNet>,
    /// Whether plain HTTP is refused.
    pub https_only: bool,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client for webhooks cannot be set up: {0}")]
pub struct SetupError(String);

/// Why an address is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// Not a URL of HTTP.
    #[error("it must be a URL that begins with https:// or http://")]
    Scheme,
    /// Not on the public internet.
    #[error("its host is not one of the public internet; use another, or ask whoever runs this server to allow it")]
    Host,
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// It must not be sent, now or later.
    #[error("The address cannot be used: {0}.")]
    Refused(#[from] Refused),
    /// It may well work later.
    #[error("No answer: {0}.")]
    Transient(&'static str),
}

/// What a receiver says to a post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status, whatever it is.
    pub status: u16,
    /// When it wants to be asked again.
    pub retry_after: Option<Duration>,
}

/// The client. It follows no redirect and uses no proxy, which would both lead elsewhere.
#[derive(Clone)]
pub struct Guard {
    client: Client,
    openings: Openings,
}

impl Guard {
    /// A client that may reach the public internet and these.
    pub fn new(openings: Openings) -> Result<Self, SetupError> {
        let client = Client::builder().no_proxy().redirect(redirect::Policy::none()).connect_timeout(CONNECT);
        let client = client.build().map_err(|error| SetupError(error.to_string()))?;
        Ok(Self { client, openings })
    }

    /// Judges what the text of an address tells.
    pub fn check(&self, url: &str) -> Result<(), Refused> {
        let url: Uri = url.parse().map_err(|_| Refused::Scheme)?;
        let scheme = url.scheme_str().unwrap_or_default();
        let known = scheme == "https" || (scheme == "http" && !self.openings.https_only);
        let host = url.host().filter(|_| known).ok_or(Refused::Scheme)?;
        if self.openings.hosts.iter().any(|open| open.eq_ignore_ascii_case(host)) {
            return Ok(());
        }
        let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() else {
            let local = host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost");
            return if local { Err(Refused::Host) } else { Ok(()) };
        };
        let open = self.openings.cidrs.iter().any(|net| net.contains(&address));
        if open || is_public(address.to_canonical()) { Ok(()) } else { Err(Refused::Host) }
    }

    /// Posts, and reads no more of the answer than its head.
    pub async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
        deadline: Duration,
    ) -> Result<Reply, SendError> {
        self.check(url)?;
        let sent = self.client.post(url).headers(headers).body(body).timeout(deadline).send().await;
        let response = sent.map_err(|error| match error {
            error if error.is_timeout() => SendError::Transient("not complete in time"),
            error if error.is_connect() => SendError::Transient("no connection"),
            _ => SendError::Transient("the connection broke, or the answer is not HTTP"),
        })?;
        let after = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        Ok(Reply { status: response.status().as_u16(), retry_after })
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4.is_unspecified())
        }
        IpAddr::V6(v6) => {
            !(v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local())
        }
    }
}
