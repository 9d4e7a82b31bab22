//! Kinds of values that name a place: hosts, URLs, stores.

use std::net::IpAddr;

use nuncio_server::store::PostgresStore;
use serde_json::{Value as Json, json};

use super::choice::Choice;
use super::kind::{Kind, Text, fail};
use super::node::Node;
use super::problem::{Problem, Spot};
use super::secret::Secret;
use super::types::Store;

/// An IP address or a host name.
pub(crate) struct Host;

impl Kind for Host {
    type Value = String;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<String> {
        let text = Text.read(node, spot, problems)?;
        let text = text.trim();
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        let name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if bare.parse::<IpAddr>().is_ok() || bare.bytes().all(name) {
            return Some(bare.to_owned());
        }
        let expected = "an IP address or a host name, without scheme and port";
        fail(problems, spot.wrong(node, expected))
    }

    fn show(&self, value: &String) -> Json {
        value.as_str().into()
    }

    fn schema(&self) -> Json {
        Text.schema()
    }
}

/// Whether only this machine can reach a host. A name that merely could be local does not count.
pub(crate) fn is_loopback(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// An absolute http or https URL, without a slash at its end.
pub(crate) struct PublicUrl;

impl Kind for PublicUrl {
    type Value = String;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<String> {
        let text = Text.read(node, spot, problems)?;
        match check_url(&text) {
            Ok(()) => Some(text.trim_end_matches('/').to_owned()),
            // The URL is not repeated: it may carry a password.
            Err(what) => fail(
                problems,
                spot.problem(format_args!(
                    "expected an absolute URL such as `https://agent.example.com`; this one {what}"
                )),
            ),
        }
    }

    fn show(&self, value: &String) -> Json {
        value.as_str().into()
    }

    fn schema(&self) -> Json {
        json!({"type": "string", "format": "uri", "pattern": "^https?://[^@?#]+$"})
    }
}

fn check_url(text: &str) -> Result<(), &'static str> {
    // `http::Uri` drops a fragment silently.
    if text.contains('#') {
        return Err("has a fragment");
    }
    let uri: http::Uri = text.parse().map_err(|_| "is not valid")?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err("does not begin with http:// or https://");
    }
    let authority = uri.authority().ok_or("has no host")?;
    if authority.as_str().contains('@') {
        return Err("has user information");
    }
    if authority.host().is_empty() {
        return Err("has no host");
    }
    if uri.query().is_some() {
        return Err("has a query");
    }
    Ok(())
}

/// Where tasks are kept.
pub(crate) struct StoreUrl;

#[derive(Clone, Copy, PartialEq)]
enum Embedded {
    Sqlite,
    Memory,
}

const EMBEDDED: Choice<Embedded> =
    Choice { what: "store", names: &[("sqlite", Embedded::Sqlite), ("memory", Embedded::Memory)] };

impl Kind for StoreUrl {
    type Value = Store;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Store> {
        let text = node.text().unwrap_or_default();
        if let Some((scheme, _)) = text.split_once("://") {
            if !matches!(scheme, "postgres" | "postgresql") {
                return fail(problems, spot.problem(unknown_store(&format!("{scheme}://"), scheme)));
            }
            return match PostgresStore::check_url(text) {
                Ok(()) => Some(Store::Postgres(Secret(text.to_owned()))),
                Err(error) => fail(problems, spot.problem(error)),
            };
        }
        match EMBEDDED.names.iter().find(|(name, _)| *name == text) {
            Some((_, Embedded::Sqlite)) => Some(Store::Sqlite),
            Some((_, Embedded::Memory)) => Some(Store::Memory),
            None if node.text().is_none() => EMBEDDED.read(node, spot, problems).and(None),
            None => fail(problems, spot.problem(unknown_store(text, text))),
        }
    }

    fn show(&self, value: &Store) -> Json {
        match value {
            Store::Sqlite => "sqlite".into(),
            Store::Memory => "memory".into(),
            Store::Postgres(url) => PostgresStore::shown_url(url.expose()).into(),
        }
    }

    fn schema(&self) -> Json {
        json!({"anyOf": [EMBEDDED.schema(), {"type": "string", "pattern": "^postgres(ql)?://"}]})
    }
}

/// Only what is a plain name is repeated: a store's URL usually carries a password, and a misspelled one does too.
fn unknown_store(shown: &str, name: &str) -> String {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let what = if is_plain { format!("unknown store `{shown}`") } else { "unknown store".to_owned() };
    format!("{what}; supported values: {}, postgres://…", EMBEDDED.list())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for host in ["127.0.0.1", "127.9.9.9", "::1", "localhost", "::ffff:127.0.0.1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["0.0.0.0", "::", "10.0.0.1", "example.com", "127.0.0.1.example"] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn public_urls_are_plain() {
        for url in ["http://a", "https://a.example:8443/agents/x/", "http://[::1]:1"] {
            assert_eq!(check_url(url), Ok(()), "{url}");
        }
        for url in [
            "a.example",
            "/path",
            "ftp://a",
            "http://",
            "http://u@a",
            "http://u:p@a/",
            "http://a?q",
            "http://a#f",
            "http://a b",
            "mailto:a@b",
        ] {
            assert!(check_url(url).is_err(), "{url}");
        }
    }
}
