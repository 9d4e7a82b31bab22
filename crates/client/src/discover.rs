//! From an address to a card, and from the card to the interface to use.

use bytes::Bytes;
use nuncio_protocol::{AgentCard, AgentInterface, Value, codec};
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode, Url};

use crate::error::{ClientError, plain};
use crate::http::{Ask, Http, protocol, shown, within};
use crate::wire::{Binding, VERSION_HEADER};

const WELL_KNOWN: &str = "/.well-known/agent-card.json";
/// No honest card is larger.
const MAX_CARD: usize = 1024 * 1024;

/// What a card says, and what of it is used.
pub(crate) struct Found {
    pub(crate) card: AgentCard,
    pub(crate) interface: AgentInterface,
    pub(crate) binding: Binding,
    pub(crate) url: Url,
}

/// Fetches the card and chooses an interface.
pub(crate) async fn discover(http: &Http, typed: &Url) -> Result<Found, ClientError> {
    let (at, body) = fetch(http, typed).await?;
    let wrong = |error: codec::DecodeError| protocol(&at, format!("its card cannot be read: {error}"));
    let tree: Value = codec::decode(&body).map_err(wrong)?;
    if let Some(offers) = offers_of_03(&tree) {
        return Err(ClientError::NoInterface { url: shown(&at), offers });
    }
    let card: AgentCard = codec::decode(&body).map_err(wrong)?;
    let (interface, binding, url) = choose(&card, &at)?;
    http.check_origin(&url)?;
    Ok(Found { interface, binding, url, card })
}

/// The card below the address, else the one of the origin: people also type the address of an interface.
async fn fetch(http: &Http, typed: &Url) -> Result<(Url, Vec<u8>), ClientError> {
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

async fn card_at(http: &Http, url: Url) -> Result<(Url, Vec<u8>), ClientError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    // Some servers answer with the card of the version that is asked for.
    headers.insert(VERSION_HEADER, HeaderValue::from_static("1.0"));
    let ask = Ask { method: Method::GET, url: url.clone(), headers, body: Bytes::new() };
    let fetch = async {
        let mut response = http.ask(ask).await?;
        if response.status() != StatusCode::OK {
            let body = http.error_body(&mut response).await;
            return Err(http.refused(&response, &body));
        }
        http.body(&mut response, MAX_CARD).await
    };
    let body = within(http.options.timeout, shown(&url), fetch).await?;
    Ok((url, body))
}

/// The first interface, in the card's order, that this client can use.
fn choose(card: &AgentCard, at: &Url) -> Result<(AgentInterface, Binding, Url), ClientError> {
    let usable = card.supported_interfaces.iter().find_map(|interface| {
        let binding = Binding::of(interface)?;
        let url = parse_absolute(&interface.url)?;
        Some((interface.clone(), binding, url))
    });
    usable.ok_or_else(|| {
        let offers = card
            .supported_interfaces
            .iter()
            .map(|interface| offer(&interface.protocol_binding, &interface.protocol_version, &interface.url));
        ClientError::NoInterface { url: shown(at), offers: offers.collect() }
    })
}

/// Whoever wrote the card has no business in naming a user for us.
fn parse_absolute(url: &str) -> Option<Url> {
    let url = Url::parse(url).ok()?;
    let fits = matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    fits.then_some(url)
}

fn offer(binding: &str, version: &str, url: &str) -> String {
    let or = |text: &str, none: &str| plain(if text.is_empty() { none } else { text }, 100);
    let url = Url::parse(url).map_or_else(|_| plain(url, 100), |url| shown(&url));
    format!("{} {} at {}", or(binding, "(no binding)"), or(version, "(no version)"), or(&url, "(no address)"))
}

/// What a card of 0.3, which has no list of interfaces, offers.
fn offers_of_03(card: &Value) -> Option<Vec<String>> {
    let has_list = ["supportedInterfaces", "supported_interfaces"]
        .iter()
        .any(|name| card.get(name).and_then(Value::as_array).is_some_and(|list| !list.is_empty()));
    let text = |of: &Value, name| of.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let url = text(card, "url");
    if has_list || url.is_empty() {
        return None;
    }
    let version = match text(card, "protocolVersion") {
        version if version.is_empty() => "0.3".to_owned(),
        version => version,
    };
    let transport = match text(card, "preferredTransport") {
        transport if transport.is_empty() => "JSONRPC".to_owned(),
        transport => transport,
    };
    let mut offers = vec![offer(&transport, &version, &url)];
    for more in card.get("additionalInterfaces").and_then(Value::as_array).into_iter().flatten() {
        let next = offer(&text(more, "transport"), &version, &text(more, "url"));
        if !offers.contains(&next) {
            offers.push(next);
        }
    }
    Some(offers)
}
