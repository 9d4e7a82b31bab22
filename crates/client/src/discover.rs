//! From an address to a card, and from the card to the interface to use.

use bytes::Bytes;
use nuncio_protocol::sign::{Verdict, covered};
use nuncio_protocol::{AgentCard, AgentInterface, codec, v03};
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode, Url};

use crate::cache::Entry;
use crate::error::{ClientError, plain};
use crate::http::{Ask, Http, protocol, shown, within};
use crate::options::Options;
use crate::wire::{Binding, VERSION_HEADER, Version, grpc, spoken};

const WELL_KNOWN: &str = "/.well-known/agent-card.json";
/// No honest card is larger.
const MAX_CARD: usize = 1024 * 1024;

/// A card, before anything is done with it.
#[derive(Clone, Debug)]
pub struct FoundCard {
    /// Where it was.
    pub url: String,
    /// What it says. Of a card whose signature covers only what A2A 1.0 knows, only that is read.
    pub card: AgentCard,
    /// The card byte for byte, as it came.
    pub json: Bytes,
    /// What its signatures are worth.
    pub signature: Verdict,
}

/// What a card says, and what of it is used.
pub(crate) struct Found {
    pub(crate) card: FoundCard,
    pub(crate) tenant: String,
    pub(crate) binding: Binding,
    pub(crate) version: Version,
    pub(crate) url: Url,
}

/// Fetches the card and chooses an interface.
pub(crate) async fn discover(http: &Http, typed: &Url) -> Result<Found, ClientError> {
    let (at, json) = fetch(http, typed).await?;
    let card = read(http, &at, json).await?;
    card.accept(&http.options)?;
    let (interface, binding, version, url) = choose(&card.card, &at, &http.options)?;
    let tenant = interface.tenant.clone();
    check_extensions(&card.card, &at, &http.options)?;
    http.check_origin(&url)?;
    Ok(Found { tenant, binding, version, url, card })
}

/// Fetches the card and does nothing else with it.
pub(crate) async fn find(http: &Http, typed: &Url) -> Result<FoundCard, ClientError> {
    let (at, json) = fetch(http, typed).await?;
    read(http, &at, json).await
}

/// Reads a card that came from an address.
pub(crate) async fn read(http: &Http, at: &Url, json: Bytes) -> Result<FoundCard, ClientError> {
    let wrong = |error: codec::DecodeError| protocol(at, http.redact(format!("its card cannot be read: {error}")));
    let signature = http.options.card_keys.judge(&json, &http.options).await;
    let strict = match &signature {
        // Members of 0.3 that nobody vouches for must not say where the agent is.
        Verdict::Verified { uncovered, .. } => match covered(&json, uncovered) {
            Ok(card) => (!uncovered.is_empty() || !card.supported_interfaces.is_empty()).then_some(card),
            Err(_) if uncovered.is_empty() => None,
            Err(error) => return Err(wrong(error)),
        },
        _ => None,
    };
    let card = match strict {
        Some(card) => card,
        // Reads cards of 0.3, of 1.0, and of both at once.
        None => match (v03::json::read_card(&json), codec::mend_card(&json)) {
            (Err(_), Some(mended)) => v03::json::read_card(&mended).map_err(wrong)?,
            (read, _) => read.map_err(wrong)?,
        },
    };
    Ok(FoundCard { url: shown(at), card, json, signature })
}

impl FoundCard {
    /// Refuses a card that is not from whom the caller wants it to be.
    pub(crate) fn accept(&self, options: &Options) -> Result<(), ClientError> {
        let fine = match &self.signature {
            Verdict::Verified { .. } => true,
            Verdict::Absent | Verdict::Unverifiable(_) => !options.require_signature,
            Verdict::Wrong(_) => !options.require_signature && options.card_keys.is_empty(),
        };
        if fine {
            return Ok(());
        }
        Err(ClientError::CardSignature { url: self.url.clone(), verdict: Box::new(self.signature.clone()) })
    }
}

/// The card below the address, else the one of the origin: people also type the address of an interface.
pub(crate) async fn fetch(http: &Http, typed: &Url) -> Result<(Url, Bytes), ClientError> {
    if typed.path().ends_with(".json") {
        return card_at(http, typed.clone()).await;
    }
    let path = typed.path().trim_end_matches('/');
    let nearest = card_at(http, with_path(typed, &format!("{path}{WELL_KNOWN}"))).await;
    match nearest {
        Err(ClientError::Http { status: 404 | 405, .. }) if !path.is_empty() => {
            card_at(http, with_path(typed, WELL_KNOWN)).await
        }
        other => other,
    }
}

fn with_path(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// The card at an address, from the cache as far as its server allows.
async fn card_at(http: &Http, url: Url) -> Result<(Url, Bytes), ClientError> {
    // Some servers answer with the card of the version that is asked for.
    let version = http.options.version.unwrap_or(Version::V1_0).name();
    let cache = &http.options.cards;
    let key = cache.key(url.as_str(), version, &http.options.credentials);
    let kept = cache.get(&key);
    if let Some(kept) = kept.as_ref().filter(|kept| kept.is_fresh()) {
        return Ok((url, kept.body.clone()));
    }
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(VERSION_HEADER, HeaderValue::from_static(version));
    headers.extend(kept.iter().flat_map(Entry::conditions));
    let ask = Ask { method: Method::GET, url: url.clone(), headers, body: Bytes::new() };
    let fetch = async {
        let mut response = http.ask(ask).await?;
        match (response.status(), kept) {
            (StatusCode::OK, _) => {
                let body = Bytes::from(http.body(&mut response, MAX_CARD).await?);
                cache.put(key, body.clone(), response.headers());
                Ok(body)
            }
            (StatusCode::NOT_MODIFIED, Some(kept)) => {
                let headers = kept.confirmed(response.headers().clone());
                cache.put(key, kept.body.clone(), &headers);
                Ok(kept.body)
            }
            _ => {
                let body = http.error_body(&mut response).await;
                Err(http.refused(&response, &body))
            }
        }
    };
    let body = within(http.options.timeout, shown(&url), fetch).await?;
    Ok((url, body))
}

/// The first interface, in the card's order, that this client can use and that the caller does not exclude.
fn choose<'a>(
    card: &'a AgentCard,
    at: &Url,
    options: &Options,
) -> Result<(&'a AgentInterface, Binding, Version, Url), ClientError> {
    let usable = card.supported_interfaces.iter().find_map(|interface| {
        let (binding, version) = spoken(interface)?;
        let asked = options.binding.is_none_or(|asked| asked == binding)
            && options.version.is_none_or(|asked| asked == version);
        let url = match binding {
            Binding::Grpc | Binding::GrpcJsonRpc => parse_absolute(&grpc::named(&interface.url, at)),
            _ => parse_absolute(&interface.url),
        };
        let url = url.filter(|url| asked && is_wanted(binding, url, options))?;
        Some((interface, binding, version, url))
    });
    usable.ok_or_else(|| {
        let offers = card
            .supported_interfaces
            .iter()
            .map(|interface| offer(&interface.protocol_binding, &interface.protocol_version, &interface.url));
        let wanted = [options.binding.map(Binding::name), options.version.map(Version::name)];
        let wanted: Vec<&str> = wanted.into_iter().flatten().collect();
        ClientError::NoInterface { url: shown(at), wanted: wanted.join(" "), offers: offers.collect() }
    })
}

/// An agent that requires an extension is not talked to without it.
fn check_extensions(card: &AgentCard, at: &Url, options: &Options) -> Result<(), ClientError> {
    let required = card.capabilities.extensions.iter().filter(|extension| extension.required);
    let missing = required.filter(|extension| !options.extensions.contains(&extension.uri));
    let missing: Vec<String> = missing.map(|extension| plain(&extension.uri, 200)).collect();
    if missing.is_empty() { Ok(()) } else { Err(ClientError::ExtensionsRequired { url: shown(at), missing }) }
}

/// A card leads to Redis or to a socket of this machine only whoever asks for that: its author may have no business
/// there, whether the name of the binding leads there or the scheme. It never starts a program.
fn is_wanted(binding: Binding, url: &Url, options: &Options) -> bool {
    match (binding, Binding::of_scheme(url)) {
        (Binding::Stdio, _) | (_, Some(Binding::Stdio)) => false,
        (Binding::RedisStreams | Binding::Unix, scheme) => scheme == Some(binding) && options.binding == scheme,
        (_, scheme) => !matches!(scheme, Some(Binding::RedisStreams | Binding::Unix)),
    }
}

/// Whoever wrote the card has no business in naming a user for us.
fn parse_absolute(url: &str) -> Option<Url> {
    let url = Url::parse(url).ok()?;
    let known = matches!(url.scheme(), "http" | "https") || Binding::of_scheme(&url).is_some();
    let fits = known && url.username().is_empty() && url.password().is_none();
    fits.then_some(url)
}

fn offer(binding: &str, version: &str, url: &str) -> String {
    let or = |text: &str, none: &str| plain(if text.is_empty() { none } else { text }, 100);
    let url = Url::parse(url).ok().filter(Url::has_host).map_or_else(|| plain(url, 100), |url| shown(&url));
    format!("{} {} at {}", or(binding, "(no binding)"), or(version, "(no version)"), or(&url, "(no address)"))
}
