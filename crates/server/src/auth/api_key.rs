//! API keys: in a header, and where the operator says so, in the query or a cookie.

use std::borrow::Cow;
use std::sync::Arc;

use http::{HeaderName, header};
use percent_encoding::percent_decode_str;
use subtle::ConstantTimeEq;

use super::Shown;

/// A key, and where it may stand.
#[derive(Clone)]
pub struct ApiKey {
    key: Arc<str>,
    /// The header that it stands in.
    pub(super) header: HeaderName,
    /// The parameter of the query.
    pub(super) query: Option<String>,
    /// The cookie.
    pub(super) cookie: Option<String>,
    pub(super) name: Arc<str>,
}

impl ApiKey {
    /// A key in this header, and in a parameter of the query or a cookie if they are named.
    pub fn new(key: &str, header: HeaderName, query: Option<String>, cookie: Option<String>) -> Self {
        Self { key: key.into(), name: format!("api-key:{header}").into(), header, query, cookie }
    }

    /// Whether this key was shown; nothing if none was.
    pub(super) fn is_shown(&self, shown: &Shown<'_>) -> Option<bool> {
        let same = |text: &str| bool::from(self.key.as_bytes().ct_eq(text.as_bytes()));
        let mut seen = shown.headers.get(&self.header).map(|value| same(value.to_str().unwrap_or_default().trim()));
        if let (Some(name), Some(query)) = (&self.query, shown.query) {
            for (found, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
                if decode(found) == **name {
                    seen = Some(seen.unwrap_or_default() | same(&decode(value)));
                }
            }
        }
        if let Some(name) = &self.cookie {
            for line in shown.headers.get_all(header::COOKIE) {
                let pairs = line.to_str().unwrap_or_default().split(';').filter_map(|pair| pair.split_once('='));
                for (_, value) in pairs.filter(|(found, _)| found.trim() == name) {
                    seen = Some(seen.unwrap_or_default() | same(value.trim().trim_matches('"')));
                }
            }
        }
        seen
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiKey").field("name", &self.name).finish_non_exhaustive()
    }
}

fn decode(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn key(query: Option<&str>, cookie: Option<&str>) -> ApiKey {
        ApiKey::new("s3cret", HeaderName::from_static("x-api-key"), query.map(Into::into), cookie.map(Into::into))
    }

    fn ask(key: &ApiKey, headers: &[(&'static str, &'static str)], query: Option<&str>) -> Option<bool> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, http::HeaderValue::from_static(value));
        }
        key.is_shown(&Shown { headers: &map, query, from: None, proven: None })
    }

    #[test]
    fn a_key_counts_only_where_it_may_stand() {
        let header = key(None, None);
        assert_eq!(ask(&header, &[("x-api-key", "s3cret")], None), Some(true));
        assert_eq!(ask(&header, &[("x-api-key", "s3cre")], None), Some(false));
        assert_eq!(ask(&header, &[("authorization", "s3cret"), ("cookie", "key=s3cret")], Some("key=s3cret")), None);
        let all = key(Some("key"), Some("key"));
        assert_eq!(ask(&all, &[], Some("a=b&key=s3cret")), Some(true));
        assert_eq!(ask(&all, &[], Some("key=s3%63ret")), Some(true));
        assert_eq!(ask(&all, &[], Some("key=wrong")), Some(false));
        assert_eq!(ask(&all, &[], Some("keys=s3cret&xkey=s3cret")), None);
        assert_eq!(ask(&all, &[("cookie", "a=b; key=s3cret")], None), Some(true));
        assert_eq!(ask(&all, &[("cookie", "a=b"), ("cookie", "key=\"s3cret\"")], None), Some(true));
        assert_eq!(ask(&all, &[("cookie", "monkey=s3cret")], None), None);
        assert!(!format!("{all:?}").contains("s3cret"));
    }
}
