//! What the text of an address alone tells: scheme, host and port.

use std::net::IpAddr;

use ipnet::IpNet;
use reqwest::Url;

use super::address::permitted;
use super::{Openings, Refused};

/// No honest address is longer.
const LONGEST: usize = 2048;

/// Endings of names that mean something inside of a network only.
const INSIDE: &[&str] = &[
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
    "svc",
    "onion",
    "invalid",
];

/// Public names under which clouds serve the secrets of a machine.
const METADATA: &[&str] =
    &["metadata.goog", "metadata.tencentyun.com", "metadata.platformequinix.com", "metadata.packet.net"];

/// Ports of other protocols, most of them taken from the list that browsers keep: an HTTP request that is sent
/// there may be read as something else.
const FOREIGN_PORTS: &[u16] = &[
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 138, 139, 143, 161, 179, 389, 427, 445, 465, 512, 513, 514, 515, 526,
    530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 873, 989, 990, 993, 995, 1433, 1521, 1719, 1720, 1723, 2049,
    2375, 2376, 2379, 2380, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432, 5672, 6000, 6379, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 9042, 9200, 9300, 10080, 10250, 11211, 27017,
];

/// An address that may be used.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) url: Url,
    /// Whether the operator has named this host, so that its addresses are not judged.
    pub(super) trusted: bool,
}

/// A host that the operator has opened, on one port or on all but those of other protocols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpenHost {
    name: String,
    port: Option<u16>,
}

impl OpenHost {
    /// Reads `name` or `name:port`; nothing if it is neither.
    pub(super) fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        // An IPv6 address stands alone, or in brackets before its port.
        let url = match text.parse::<std::net::Ipv6Addr>() {
            Ok(_) => Url::parse(&format!("http://[{text}]/")),
            Err(_) => Url::parse(&format!("http://{text}/")),
        };
        let url = url.ok().filter(|url| url.path() == "/" && url.username().is_empty() && url.password().is_none())?;
        // Asked of the text, because a URL does not show the port that its scheme has anyway.
        let after = &text[text.rfind(']').map_or(0, |end| end + 1)..];
        let named = text.parse::<std::net::Ipv6Addr>().is_err() && after.contains(':');
        let port = if named { url.port_or_known_default() } else { None };
        (url.query().is_none() && url.fragment().is_none()).then(|| Self { name: plain_host(&url), port })
    }
}

/// Reads an address and judges everything that can be judged without asking anyone.
pub(super) fn judge(text: &str, openings: &Openings, hosts: &[OpenHost]) -> Result<Target, Refused> {
    if text.len() > LONGEST {
        return Err(Refused::Malformed);
    }
    // A reader of URLs skips some of these silently; nobody means them.
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(Refused::Malformed);
    }
    let url = Url::parse(text).map_err(|_| Refused::Malformed)?;
    if !matches!(url.scheme(), "http" | "https") || (openings.https_only && url.scheme() != "https") {
        return Err(Refused::Scheme { https_only: openings.https_only });
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refused::UserInfo);
    }
    let (Some(_), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(Refused::Malformed);
    };
    let name = plain_host(&url);
    let opened = || hosts.iter().filter(|host| host.name == name);
    if opened().any(|host| host.port == Some(port)) {
        return Ok(Target { url, trusted: true });
    }
    if FOREIGN_PORTS.contains(&port) {
        return Err(Refused::Port);
    }
    if opened().any(|host| host.port.is_none()) {
        return Ok(Target { url, trusted: true });
    }
    if is_outside(&name, &openings.cidrs) { Ok(Target { url, trusted: false }) } else { Err(Refused::Host) }
}

/// The host as the URL's reader has understood it: small letters, ASCII, one spelling for each address.
fn plain_host(url: &Url) -> String {
    url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned()
}

fn is_outside(name: &str, open: &[IpNet]) -> bool {
    if let Ok(address) = name.parse::<IpAddr>() {
        return permitted(address, open);
    }
    let inside = |ending: &str| name.strip_suffix(ending).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    // A dot at the end means the same name to resolvers and another one to everybody else.
    name.contains('.')
        && !name.ends_with('.')
        && !name.contains("..")
        && !INSIDE.iter().chain(METADATA).any(|ending| inside(ending))
}
