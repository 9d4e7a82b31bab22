//! The agent card: one description, a form for each version, and the caching that HTTP asks for.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use ipnet::IpNet;
use nuncio_protocol::{AgentCard, AgentExtension, AgentSkill, codec, v03};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::auth::Security;
use crate::bind::body::Body;
use crate::bind::params;
use crate::call::Version;
use crate::engine::EngineOptions;
use crate::engine::roster::{Roster, Served};
use crate::present;
use crate::profile::Profile;

mod desk;
mod extended;
mod signing;
mod tenants;
mod ways;

pub(crate) use desk::Desk;
pub use extended::ExtendedCard;
pub use signing::CardSigning;
pub(crate) use ways::Ways;

use tenants::Tenant;

/// How many addresses a server may be known under before the oldest card is made anew.
const MOST_ADDRESSES: usize = 64;

/// Which form of the card is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CardFormat {
    /// 1.0 to whoever asks for it, and a card that readers of both versions understand to all others.
    #[default]
    Union,
    /// Only 1.0.
    V1,
    /// Only 0.3.
    V03,
}

/// How the card and the listener show themselves.
#[derive(Clone, Debug, Default)]
pub struct CardOptions {
    /// Which form is published.
    pub format: CardFormat,
    /// The address under which clients reach the server, if it is not the listener's own.
    pub public_url: Option<String>,
    /// Proxies whose `X-Forwarded-*` headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Extensions to declare beside the agent's own.
    pub extensions: Vec<AgentExtension>,
    /// Whether streams are offered.
    pub no_streaming: bool,
    /// What known callers are shown beyond the card for everybody.
    pub extended: ExtendedCard,
    /// The keys that cards are signed with; without it, they are not.
    pub signing: Option<Arc<CardSigning>>,
    /// Whether clients come by TLS.
    pub https: bool,
}

/// The card as it is served.
pub(crate) struct Card {
    /// Everything but the addresses.
    base: AgentCard,
    options: CardOptions,
    profile: Profile,
    /// The path below which the agent is found; empty for the root.
    below: String,
    /// The tenant whose agent it is; empty for everybody's.
    tenant: Arc<str>,
    /// The tenants that it names beside its addresses, where nobody comes to the agent without one.
    only: Option<Vec<Tenant>>,
    /// The ways in, once they are open. Until then HTTP is taken for the only one.
    ways: Arc<OnceLock<Ways>>,
    modified: HeaderValue,
    made: Mutex<HashMap<(String, Form), Arc<Made>>>,
    /// The extended card for each address.
    extended: Mutex<HashMap<String, Arc<AgentCard>>>,
}

/// The cards of a server: one for everybody, and one for each tenant with an agent of its own. Where only some
/// tenants exist, each of them has one.
pub(crate) struct Cards {
    all: Arc<Card>,
    pub(crate) tenants: HashMap<Arc<str>, Arc<Card>>,
}

impl Cards {
    pub(crate) fn new(
        roster: &Roster,
        engine: &EngineOptions,
        options: &CardOptions,
        profile: Profile,
        security: &Security,
        ways: &Arc<OnceLock<Ways>>,
        ws_path: Option<&str>,
    ) -> Self {
        let only = tenants::only(roster, engine, profile, ws_path);
        let card = |served: &[&Served], tenant: Option<&Tenant>, only: Option<Vec<Tenant>>| {
            let mut card = merged(served);
            let extensions = &mut card.capabilities.extensions;
            extensions.retain(|extension| engine.exposure.shows(&extension.uri));
            let own = present::extensions(engine.manners.style, engine.exposure);
            // An agent elsewhere may know the same ones.
            let new = own.into_iter().filter(|own| !extensions.iter().any(|known| known.uri == own.uri));
            let new: Vec<AgentExtension> = new.collect();
            extensions.extend(new);
            card.capabilities.push_notifications = Some(engine.push.is_some());
            profile.shape(&mut card);
            let card = Card::new(card, options.clone(), profile, security, tenant, ways.clone());
            Arc::new(Card { only, ..card })
        };
        let exists = |tenant: &&Arc<str>| engine.tenants.as_ref().is_none_or(|all| all.contains(&***tenant));
        let own = roster.all().filter_map(|served| served.tenant.as_ref()).filter(exists);
        let found = only.iter().flatten().filter(|tenant| tenant.below.is_some()).map(|tenant| &tenant.name);
        let tenants: HashSet<&Arc<str>> = own.chain(found).collect();
        let of_tenant = |name: &Arc<str>| {
            let tenant = Tenant::new(name.clone(), profile, ws_path);
            // Without a path of its own, it is named beside the usual addresses.
            let only = tenant.below.is_none().then(|| vec![tenant.clone()]);
            (name.clone(), card(&roster.of_tenant(name), Some(&tenant), only))
        };
        let mut everybody = match &only {
            None => roster.of_tenant(""),
            Some(only) => roster.of_any(only.iter().map(|tenant| &*tenant.name)),
        };
        if everybody.is_empty() {
            everybody.push(roster.first());
        }
        let tenants = tenants.into_iter().map(of_tenant).collect();
        Self { all: card(&everybody, None, only.clone()), tenants }
    }

    /// The card that a tenant is shown.
    pub(crate) fn of(&self, tenant: &str) -> Arc<Card> {
        self.tenants.get(tenant).unwrap_or(&self.all).clone()
    }

    /// A tenant with a card of its own, below whose name there are paths.
    pub(crate) fn tenant(&self, name: &str) -> Option<Arc<str>> {
        let found = self.tenants.get_key_value(name).filter(|(_, card)| !card.below.is_empty());
        found.map(|(tenant, _)| tenant.clone())
    }
}

/// The card of the first agent, with the skills of them all.
fn merged(served: &[&Served]) -> AgentCard {
    let mut cards = served.iter().map(|served| served.agent.card());
    let mut card = cards.next().unwrap_or_default();
    for other in cards {
        let new = |skill: &AgentSkill| !card.skills.iter().any(|known| known.id == skill.id);
        let skills: Vec<AgentSkill> = other.skills.into_iter().filter(new).collect();
        card.skills.extend(skills);
    }
    card
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    V1,
    V03,
    Union,
}

struct Made {
    body: Bytes,
    etag: HeaderValue,
}

impl Card {
    fn new(
        agent: AgentCard,
        options: CardOptions,
        profile: Profile,
        security: &Security,
        tenant: Option<&Tenant>,
        ways: Arc<OnceLock<Ways>>,
    ) -> Self {
        let mut base = agent;
        base.capabilities.streaming = Some(!options.no_streaming);
        base.capabilities.extensions.extend(options.extensions.iter().cloned());
        base.capabilities.extended_agent_card = options.extended.is_announced().then_some(true);
        security.declare(&mut base);
        let modified = httpdate::fmt_http_date(std::time::SystemTime::now());
        let modified = HeaderValue::from_str(&modified).unwrap_or_else(|_| HeaderValue::from_static(""));
        let below = tenant.and_then(|tenant| tenant.below.clone()).unwrap_or_default();
        let tenant = tenant.map(|tenant| tenant.name.clone()).unwrap_or_default();
        let (made, extended) = Default::default();
        Self { base, options, profile, below, tenant, only: None, ways, modified, made, extended }
    }

    /// What is said of the agent itself.
    pub(crate) fn agent(&self) -> &AgentCard {
        &self.base
    }

    /// Whether the agent streams.
    pub(crate) fn streaming(&self) -> bool {
        !self.options.no_streaming
    }

    /// Of the extensions that a caller names, those that the agent declares.
    pub(crate) fn activated(&self, named: &[&str]) -> Vec<Arc<str>> {
        let declared = &self.base.capabilities.extensions;
        named.iter().filter(|uri| declared.iter().any(|e| e.uri == **uri)).map(|uri| Arc::from(*uri)).collect()
    }

    /// An extension that clients must name and this one does not.
    pub(crate) fn missing_extension(&self, activated: &[Arc<str>]) -> Option<&str> {
        let mut required = self.base.capabilities.extensions.iter().filter(|extension| extension.required);
        required.find(|extension| !activated.iter().any(|uri| **uri == *extension.uri)).map(|e| e.uri.as_str())
    }

    /// The extensions that clients must name.
    pub(crate) fn required_extensions(&self) -> Vec<&str> {
        let all = self.base.capabilities.extensions.iter();
        all.filter(|extension| extension.required).map(|extension| extension.uri.as_str()).collect()
    }

    /// Answers a GET or HEAD of the card.
    pub(crate) fn response(&self, parts: &Parts, local: SocketAddr, remote: SocketAddr) -> Response<Body> {
        let version = params::version(parts).ok().flatten();
        let form = match (self.options.format, version) {
            (CardFormat::V1, _) | (CardFormat::Union, Some(Version::V1)) => Form::V1,
            (CardFormat::V03, _) => Form::V03,
            (CardFormat::Union, _) => Form::Union,
        };
        let base_url = self.root_url(&parts.headers, Some(local), Some(remote)) + &self.below;
        let made = self.made(&base_url, form);
        let unchanged = is_unchanged(&parts.headers, &made.etag, &self.modified);
        let mut response = Response::new(if unchanged || parts.method == http::Method::HEAD {
            Body::empty()
        } else {
            Body::Full(made.body.clone())
        });
        let headers = response.headers_mut();
        headers.insert(header::ETAG, made.etag.clone());
        headers.insert(header::LAST_MODIFIED, self.modified.clone());
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"));
        headers.insert(header::VARY, HeaderValue::from_static("A2A-Version"));
        if unchanged {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CONTENT_LENGTH, made.body.len().into());
        response
    }

    /// The card for whoever came in another way than by HTTP.
    pub(crate) fn json(&self) -> Bytes {
        let form = match self.options.format {
            CardFormat::V1 => Form::V1,
            CardFormat::V03 => Form::V03,
            CardFormat::Union => Form::Union,
        };
        let at = self.ways.get().and_then(|ways| ways.http);
        let reached = at.is_some() || self.options.public_url.is_some();
        let root = if reached { self.root_url(&HeaderMap::new(), at, None) } else { String::new() };
        self.made(&(root + &self.below), form).body.clone()
    }

    fn made(&self, base_url: &str, form: Form) -> Arc<Made> {
        let mut all = self.made.lock();
        let key = (base_url.to_owned(), form);
        if let Some(made) = all.get(&key) {
            return made.clone();
        }
        if all.len() >= MOST_ADDRESSES {
            all.clear();
        }
        let made = Arc::new(self.make(base_url, form));
        all.insert(key, made.clone());
        made
    }

    /// The card with its addresses.
    fn at(&self, base_url: &str) -> AgentCard {
        let (usual, open) = (Ways::default(), self.ways.get());
        let base_url = Some(base_url).filter(|_| open.is_none_or(|ways| ways.http.is_some()));
        let (ways, rpc_path) = (open.unwrap_or(&usual), self.profile.rpc_path());
        let mut supported_interfaces = match &self.only {
            Some(only) => tenants::interfaces(ways, base_url, rpc_path, only),
            None => ways.interfaces(base_url, rpc_path, &self.tenant),
        };
        if self.options.format == CardFormat::V1 {
            supported_interfaces.retain(|i| i.protocol_version == Version::V1.as_str());
        }
        AgentCard { supported_interfaces, ..self.base.clone() }
    }

    fn make(&self, base_url: &str, form: Form) -> Made {
        let card = self.at(base_url);
        let mut body = Vec::new();
        match form {
            Form::V1 => codec::encode_into(&self.signed(card, base_url), &mut body),
            // There is no form of a 0.3 card that a signature could cover.
            Form::V03 => _ = v03::json::write_card(&card, &mut body),
            Form::Union => v03::union_card(&self.signed(card, base_url), &mut body),
        }
        if self.profile.has_more_card(form == Form::V1)
            && let Ok(mut tree) = codec::decode(&body)
        {
            let below = self.only.iter().flatten().find_map(|tenant| tenant.below.as_deref()).unwrap_or_default();
            self.profile.finish_card(&mut tree, &format!("{base_url}{below}"));
            body.clear();
            codec::encode_into(&tree, &mut body);
        }
        let hash = Sha256::digest(&body);
        let tag: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let etag = HeaderValue::from_str(&format!("\"{tag}\"")).unwrap_or_else(|_| HeaderValue::from_static("\"0\""));
        Made { body: body.into(), etag }
    }

    /// The address that clients should use: the configured one, what a trusted proxy says, or where
    /// this connection arrived.
    pub(crate) fn root_url(
        &self,
        headers: &HeaderMap,
        local: Option<SocketAddr>,
        remote: Option<SocketAddr>,
    ) -> String {
        if let Some(url) = &self.options.public_url {
            return url.trim_end_matches('/').to_owned();
        }
        let is_trusted = |remote: SocketAddr| {
            self.options.trusted_proxies.iter().any(|net| net.contains(&remote.ip().to_canonical()))
        };
        if remote.is_some_and(is_trusted)
            && let Some(url) = forwarded(headers)
        {
            return url;
        }
        let scheme = if self.options.https { "https" } else { "http" };
        match local {
            Some(local) => format!("{scheme}://{}", SocketAddr::new(local.ip().to_canonical(), local.port())),
            None => format!("{scheme}://localhost"),
        }
    }
}

/// The address that a proxy says the client used.
fn forwarded(headers: &HeaderMap) -> Option<String> {
    let first = |name: &str| {
        let value = headers.get(name)?.to_str().ok()?.split(',').next()?.trim();
        (!value.is_empty()).then_some(value)
    };
    let host = first("x-forwarded-host")?;
    let proto = first("x-forwarded-proto").filter(|p| matches!(*p, "http" | "https")).unwrap_or("http");
    let port = first("x-forwarded-port").and_then(|port| port.parse::<u16>().ok());
    let prefix = first("x-forwarded-prefix").unwrap_or_default().trim_end_matches('/');
    let has_port = has_port(host)?;
    if !is_plain_path(prefix) {
        return None;
    }
    let usual = if proto == "https" { 443 } else { 80 };
    let port = match port {
        Some(port) if !has_port && port != usual => format!(":{port}"),
        _ => String::new(),
    };
    Some(format!("{proto}://{host}{port}{prefix}"))
}

/// Whether a host names its port; `None` for what is no host.
fn has_port(host: &str) -> Option<bool> {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    let good = match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(v6) => v6.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !name.is_empty() && name.bytes().all(is_name),
    };
    (good && port.is_none_or(|port| port.parse::<u16>().is_ok())).then_some(port.is_some())
}

/// Whether some text is empty or a path without anything that a reader could take for more.
fn is_plain_path(path: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'-' | b'_' | b'~' | b'%');
    path.is_empty() || (path.starts_with('/') && !path.starts_with("//") && path.bytes().all(is_plain))
}

/// Whether the caller has this card already. `If-None-Match` counts before `If-Modified-Since`.
fn is_unchanged(headers: &HeaderMap, etag: &HeaderValue, modified: &HeaderValue) -> bool {
    if headers.contains_key(header::IF_NONE_MATCH) {
        let strip = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let ours = strip(etag.to_str().unwrap_or_default());
        let all = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        return all.flat_map(|value| value.split(',')).any(|tag| tag.trim() == "*" || strip(tag) == ours);
    }
    let since = headers.get(header::IF_MODIFIED_SINCE).and_then(|value| value.to_str().ok());
    let since = since.and_then(|text| httpdate::parse_http_date(text).ok());
    let modified = modified.to_str().ok().and_then(|text| httpdate::parse_http_date(text).ok());
    matches!((since, modified), (Some(since), Some(modified)) if since >= modified)
}
