//! Web pages. A browser carries requests of any page to any server that its user can reach, also to those on
//! loopback addresses, and a page can give its own name to such an address. So a request must be for a name
//! that this server has, and one that a page has made must come from a page that may.

use std::net::{IpAddr, SocketAddr};

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use nuncio_protocol::codec;

use super::body::Body;
use super::http::bytes_response;

/// How long a browser may remember what a page may do.
const REMEMBER: HeaderValue = HeaderValue::from_static("600");
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, DELETE");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const A_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");
const CORP: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");
/// What pages may read of an answer beside its body.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "a2a-extensions, x-a2a-extensions, content-disposition, content-range, etag, retry-after, www-authenticate",
);

/// Which names and pages there are.
#[derive(Debug, Default)]
pub(crate) struct Browser {
    /// Names of this server, in lower case and without ports.
    hosts: Vec<String>,
    /// Whether it has no others, wherever it is reached.
    names_hosts: bool,
    origins: Vec<HeaderValue>,
    any_origin: bool,
    /// Whether browsers are told to come by TLS alone.
    https_only: bool,
}

impl Browser {
    /// `public_url` names the server as well, and if it begins with https, it is meant.
    pub(crate) fn new(hosts: &[String], origins: &[String], public_url: Option<&str>) -> Self {
        let public = public_url.and_then(|url| url.parse::<http::Uri>().ok());
        let public = public.as_ref().and_then(http::Uri::host).map(str::to_owned);
        let names_hosts = !hosts.is_empty();
        let hosts = hosts.iter().cloned().chain(public);
        Self {
            names_hosts,
            hosts: hosts.map(|host| name_of(&host).to_ascii_lowercase()).collect(),
            origins: origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()).collect(),
            any_origin: origins.iter().any(|origin| origin == "*"),
            https_only: public_url.is_some_and(|url| url.starts_with("https://")),
        }
    }

    /// Answers what must go no further: requests for other names and of other pages, and questions of browsers.
    pub(crate) fn stop(&self, parts: &Parts, local: SocketAddr) -> Option<Response<Body>> {
        if !self.is_ours(parts, local) {
            return Some(refuse(
                "This server is not known by that name: use its address, or add the name to allowed-hosts",
            ));
        }
        let origin = parts.headers.get(header::ORIGIN)?;
        if !self.may(origin) {
            if is_same(origin, parts) {
                return None;
            }
            return Some(refuse("This web page may not use this server: its origin is not among cors-origins"));
        }
        let is_question =
            parts.method == Method::OPTIONS && parts.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        is_question.then(|| preflight(&parts.headers))
    }

    /// Puts on an answer what browsers need to know.
    pub(crate) fn dress(&self, request: &Headers, response: &mut Response<Body>) {
        let headers = response.headers_mut();
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        headers.insert(CORP, SAME_ORIGIN);
        // What a caller reads is his own, and stays in no cache on the way.
        if request.is_get && !headers.contains_key(header::CACHE_CONTROL) {
            headers.insert(header::CACHE_CONTROL, NO_STORE);
        }
        if self.https_only {
            headers.insert(header::STRICT_TRANSPORT_SECURITY, A_YEAR);
        }
        if let Some(origin) = request.origin.as_ref().filter(|origin| self.may(origin)) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        }
        if !self.origins.is_empty() {
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
        }
    }

    /// Names are checked where a browser could be led: on loopback addresses, and wherever the operator says
    /// which names there are.
    fn is_ours(&self, parts: &Parts, local: SocketAddr) -> bool {
        let local = local.ip().to_canonical();
        if !local.is_loopback() && !self.names_hosts {
            return true;
        }
        let Some(host) = authority(parts) else { return true };
        let name = name_of(host);
        match name.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback() || address.to_canonical() == local || self.has(name),
            Err(_) => name.eq_ignore_ascii_case("localhost") || self.has(name),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
    }

    fn may(&self, origin: &HeaderValue) -> bool {
        self.any_origin || self.origins.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(origin.as_bytes()))
    }
}

/// What of a request its answer depends on.
pub(crate) struct Headers {
    origin: Option<HeaderValue>,
    is_get: bool,
}

impl Headers {
    pub(crate) fn of(parts: &Parts) -> Self {
        Self { origin: parts.headers.get(header::ORIGIN).cloned(), is_get: parts.method == Method::GET }
    }
}

/// Says what a page may send. Whether its credentials are good is seen when it does.
fn preflight(asked: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, REMEMBER);
    // A page that may come may bring whatever headers it likes: none of them makes it more than it is.
    if let Some(wanted) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    if asked.contains_key(PRIVATE_NETWORK) {
        headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }
    response
}

fn refuse(text: &str) -> Response<Body> {
    let body = codec::encode(&codec::json!({ "error": text }));
    bytes_response(StatusCode::FORBIDDEN, HeaderValue::from_static("application/json"), body)
}

/// The host that a request is for, with its port.
fn authority(parts: &Parts) -> Option<&str> {
    // What cannot be read as text is no name of ours.
    let header = parts.headers.get(header::HOST).map(|host| host.to_str().unwrap_or("?"));
    parts.uri.authority().map(http::uri::Authority::as_str).or(header)
}

/// A host without its port and brackets.
fn name_of(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    match host.rsplit_once(':') {
        // More than one colon: an address of IPv6 without a port.
        Some((name, _)) if !name.contains(':') => name,
        _ => host,
    }
}

/// Whether a page is one of this very server.
fn is_same(origin: &HeaderValue, parts: &Parts) -> bool {
    let origin = origin.to_str().unwrap_or_default();
    let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    matches!((host, authority(parts)), (Some(origin), Some(host)) if origin.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().method(method).uri("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    fn stops(browser: &Browser, local: &str, headers: &[(&str, &str)]) -> bool {
        browser.stop(&asked("POST", headers), local.parse().expect("an address")).is_some()
    }

    #[test]
    fn loopback_servers_answer_to_their_own_names_alone() {
        let browser = Browser::new(&["agent.test".into()], &[], Some("https://public.example/x"));
        let at = "127.0.0.1:41242";
        for host in [
            "127.0.0.1:41242",
            "localhost",
            "LOCALHOST:1",
            "[::1]:41242",
            "::1",
            "127.0.0.2",
            "agent.test:80",
            "PUBLIC.example",
        ] {
            assert!(!stops(&browser, at, &[("host", host)]), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:41242", "10.0.0.1", "", ":80"] {
            assert!(stops(&browser, at, &[("host", host)]), "{host}");
        }
        assert!(!stops(&browser, at, &[]), "no browser leaves it out");
        let open = Browser::new(&[], &[], None);
        assert!(!stops(&open, "192.0.2.1:80", &[("host", "any.example")]), "others know their names best");
        assert!(stops(&open, at, &[("host", "any.example")]));
        let public = Browser::new(&[], &[], Some("https://public.example"));
        assert!(!stops(&public, "192.0.2.1:80", &[("host", "inside.example")]), "proxies have names of their own");
        assert!(stops(&browser, "192.0.2.1:80", &[("host", "inside.example")]), "unless the operator names them all");
        assert!(!stops(&browser, "192.0.2.1:80", &[("host", "192.0.2.1")]));
    }

    #[test]
    fn pages_come_in_from_known_origins_alone() {
        let browser = Browser::new(&[], &["https://console.example".into()], None);
        let at = "127.0.0.1:41242";
        let host = ("host", "127.0.0.1:41242");
        assert!(!stops(&browser, at, &[host, ("origin", "https://console.example")]));
        assert!(!stops(&browser, at, &[host, ("origin", "http://127.0.0.1:41242")]), "its own pages");
        for origin in [
            "null",
            "https://evil.example",
            "http://console.example",
            "https://console.example:8443",
            "https://console.example.evil",
            "http://127.0.0.1:9999",
            "http://localhost:41242",
            "",
        ] {
            assert!(stops(&browser, at, &[host, ("origin", origin)]), "{origin}");
        }
        let any = Browser::new(&[], &["*".into()], None);
        assert!(!stops(&any, at, &[host, ("origin", "https://evil.example")]));
    }

    #[test]
    fn known_pages_are_told_what_they_may() {
        let browser = Browser::new(&[], &["https://console.example".into()], None);
        let parts = asked(
            "OPTIONS",
            &[
                ("origin", "https://console.example"),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", "authorization, a2a-version"),
            ],
        );
        let mut answer = browser.stop(&parts, "127.0.0.1:1".parse().expect("an address")).expect("an answer");
        browser.dress(&Headers::of(&parts), &mut answer);
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        assert_eq!(header("access-control-allow-origin"), Some("https://console.example"));
        assert_eq!(header("access-control-allow-headers"), Some("authorization, a2a-version"));
        assert_eq!(header("access-control-allow-credentials"), None, "cookies of the server are not the page's");
        assert_eq!(header("vary"), Some("Origin"));
    }
}
