//! What a request says beside its body: version, extensions, keys, query parameters.

use std::borrow::Cow;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderName};
use nuncio_protocol::{Error, ErrorKind};
use percent_encoding::percent_decode_str;

use super::App;
use super::dispatch::Request;
use crate::auth::Caller;
use crate::call::{Call, Version};
use crate::store::Scope;

// Made once: looking a header up by its text reads that text first.
const VERSION: HeaderName = HeaderName::from_static("a2a-version");
const EXTENSIONS: [HeaderName; 2] =
    [HeaderName::from_static("a2a-extensions"), HeaderName::from_static("x-a2a-extensions")];
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The version that a caller asks for, if it says so.
pub(crate) fn version(parts: &Parts) -> Result<Option<Version>, Error> {
    let header = parts.headers.get(VERSION).map(|value| value.to_str().unwrap_or("?"));
    let text = match header.map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => Cow::Borrowed(text),
        None => match query(parts, "A2A-Version").filter(|text| !text.trim().is_empty()) {
            Some(text) => text,
            None => return Ok(None),
        },
    };
    Version::parse(&text).map(Some).ok_or_else(|| {
        let text = "This version of A2A is not spoken here: use 1.0 or 0.3";
        Error::new(ErrorKind::VersionNotSupported, text).fact("supportedVersions", "1.0, 0.3")
    })
}

/// A 1.0 request that does not say so counts as 0.3 by the protocol, which has no such request.
pub(crate) fn must_be_v1(app: &App, version: Option<Version>) -> Result<(), Error> {
    match version {
        Some(Version::V1) => Ok(()),
        None if app.http.lenient_version => Ok(()),
        _ => {
            let text = "This is a request of A2A 1.0: send the header `A2A-Version: 1.0` with it";
            Err(Error::new(ErrorKind::VersionNotSupported, text).fact("supportedVersions", "1.0, 0.3"))
        }
    }
}

/// The tenant below whose path a request came, kept apart from the path.
#[derive(Clone, Debug)]
pub(crate) struct PathTenant(pub(crate) Arc<str>);

/// That tenant; empty if there is none.
pub(crate) fn path_tenant(parts: &Parts) -> &str {
    parts.extensions.get::<PathTenant>().map_or("", |tenant| &tenant.0)
}

/// The tenant of the path, else of the query.
pub(crate) fn tenant(parts: &Parts) -> Cow<'_, str> {
    match path_tenant(parts) {
        "" => query(parts, "tenant").unwrap_or_default(),
        tenant => tenant.into(),
    }
}

/// The call that a request makes.
pub(crate) fn call(app: &App, parts: &Parts, caller: &Caller, version: Version, tenant: &str) -> Call {
    Call {
        scope: Scope { tenant: tenant.into(), owner: caller.owner.clone() },
        version,
        extensions: app.card(tenant).activated(&extensions(&parts.headers)),
        idempotency_key: header(&parts.headers, IDEMPOTENCY_KEY).map(Arc::from),
        traceparent: header(&parts.headers, TRACEPARENT).filter(|text| is_trace(text)).map(Arc::from),
        after: header(&parts.headers, LAST_EVENT_ID).and_then(|id| id.trim().parse().ok()),
        grants: caller.grants,
        caller: caller.name.clone(),
        way: caller.way,
        tone: app.profile.tone(version),
    }
}

/// A request for the extended card, which names the addresses that fit this caller.
pub(crate) fn extended_card(app: &App, parts: &Parts, caller: &Caller, tenant: &str) -> Request {
    let root_url = app.card(tenant).root_url(&parts.headers, caller.way.local, caller.way.peer);
    Request::ExtendedCard { tenant: tenant.to_owned(), root_url }
}

/// `00-` and the ids of trace and parent, as W3C has it.
fn is_trace(text: &str) -> bool {
    let hex = |part: &str, length| part.len() == length && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let parts: Vec<_> = text.split('-').collect();
    matches!(&*parts, [version, trace, parent, flags]
        if hex(version, 2) && hex(trace, 32) && hex(parent, 16) && hex(flags, 2))
}

fn header(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The extensions that a caller names, in both spellings of the header, each once.
pub(crate) fn extensions(headers: &HeaderMap) -> Vec<&str> {
    let mut all = Vec::new();
    for name in EXTENSIONS {
        for value in headers.get_all(name) {
            let Ok(text) = value.to_str() else { continue };
            for uri in text.split(',').map(str::trim).filter(|uri| !uri.is_empty()) {
                if !all.contains(&uri) {
                    all.push(uri);
                }
            }
        }
    }
    all
}

/// The query parameters, decoded.
pub(crate) fn pairs(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    })
}

/// One query parameter.
pub(crate) fn query<'a>(parts: &'a Parts, name: &str) -> Option<Cow<'a, str>> {
    pairs(parts.uri.query()?).find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let spaced = text.replace('+', " ");
    Cow::Owned(percent_decode_str(&spaced).decode_utf8_lossy().into_owned())
}

/// A segment of a path, decoded; `None` when it is not UTF-8.
pub(crate) fn segment(text: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(text).decode_utf8().ok()
}
