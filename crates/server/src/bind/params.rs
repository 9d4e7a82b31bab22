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

/// The call that a request makes. The tenant is the one that is named beside the request, else the one in it.
pub(crate) fn call(
    app: &App,
    parts: &Parts,
    caller: &Caller,
    version: Version,
    beside: &str,
    request: Option<&Request>,
) -> Call {
    let tenant = match (beside, request) {
        ("", Some(request)) => request.tenant(),
        _ => beside,
    };
    let said = said(&parts.headers);
    Call {
        scope: Scope { tenant: tenant.into(), owner: caller.owner.clone() },
        version,
        extensions: app.card(tenant).activated(&said.extensions),
        idempotency_key: said.idempotency_key.map(Arc::from),
        traceparent: said.traceparent.filter(|text| is_trace(text)).map(Arc::from),
        after: said.last_event_id.and_then(|id| id.trim().parse().ok()),
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

/// What headers say about a call that most calls say nothing about.
#[derive(Default)]
struct Said<'a> {
    /// The extensions that a caller names, in both spellings of the header, each once.
    extensions: Vec<&'a str>,
    idempotency_key: Option<&'a str>,
    traceparent: Option<&'a str>,
    last_event_id: Option<&'a str>,
}

/// Reads all of them in one go, which costs less than looking for each. Of one that is repeated the first counts.
fn said(headers: &HeaderMap) -> Said<'_> {
    let mut said = Said::default();
    for (name, value) in headers {
        let single = match name.as_str() {
            "a2a-extensions" | "x-a2a-extensions" => {
                for uri in value.to_str().unwrap_or_default().split(',').map(str::trim) {
                    if !uri.is_empty() && !said.extensions.contains(&uri) {
                        said.extensions.push(uri);
                    }
                }
                continue;
            }
            "idempotency-key" => &mut said.idempotency_key,
            "traceparent" => &mut said.traceparent,
            "last-event-id" => &mut said.last_event_id,
            _ => continue,
        };
        *single = single.or(value.to_str().ok());
    }
    said
}

/// The extensions that a caller names, each once.
pub(crate) fn extensions(headers: &HeaderMap) -> Vec<&str> {
    said(headers).extensions
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

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn headers_are_read_in_one_go() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "localhost"),
            ("X-A2A-Extensions", "urn:b, urn:a ,,"),
            ("Idempotency-Key", "first"),
            ("idempotency-key", "second"),
            ("a2a-extensions", "urn:a"),
            ("a2a-extensions", "urn:c"),
            ("traceparent", "00-0"),
            ("Last-Event-ID", "7"),
        ] {
            headers.append(HeaderName::from_bytes(name.as_bytes()).expect("a name"), HeaderValue::from_static(value));
        }
        headers.append("a2a-extensions", HeaderValue::from_bytes(b"\xff").expect("a value"));
        let said = said(&headers);
        assert_eq!(said.extensions.len(), 3);
        assert!(["urn:a", "urn:b", "urn:c"].iter().all(|uri| said.extensions.contains(uri)));
        assert_eq!(
            (said.idempotency_key, said.traceparent, said.last_event_id),
            (Some("first"), Some("00-0"), Some("7"))
        );
    }
}
