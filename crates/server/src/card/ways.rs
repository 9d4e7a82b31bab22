//! The interfaces on the card: every way in that is really open.

use std::net::SocketAddr;

use nuncio_protocol::AgentInterface;

use crate::call::Version;

/// The ways in, as the card lists them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ways {
    /// Where HTTP arrives, if it does.
    pub(crate) http: Option<SocketAddr>,
    /// All others: address and name of the binding.
    pub(crate) others: Vec<(String, &'static str)>,
}

impl Ways {
    /// The interfaces for whoever reaches HTTP at `base_url`. JSON-RPC first, because most clients know it; the
    /// same addresses again for 0.3.
    ///
    /// The name of a tenant stands beside addresses that have no paths.
    pub(crate) fn interfaces(&self, base_url: Option<&str>, tenant: &str) -> Vec<AgentInterface> {
        let mut all: Vec<(String, &str, &str)> = Vec::new();
        if let Some(base_url) = base_url {
            all.push((format!("{base_url}/"), "JSONRPC", ""));
            all.push((base_url.to_owned(), "HTTP+JSON", ""));
        }
        all.extend(self.others.iter().map(|(url, binding)| (url.clone(), *binding, tenant)));
        let of_version = |version: Version| {
            all.iter().map(move |(url, binding, tenant)| AgentInterface {
                url: url.clone(),
                protocol_binding: (*binding).into(),
                tenant: (*tenant).into(),
                protocol_version: version.as_str().into(),
            })
        };
        of_version(Version::V1).chain(of_version(Version::V03)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_listed_for_both_versions_and_a_tenant_is_named_where_there_are_no_paths() {
        let ways = Ways { http: None, others: vec![("unix:///run/a.sock".into(), "unix")] };
        let listed = |base: Option<&str>, tenant: &str| -> Vec<String> {
            let line = |i: AgentInterface| {
                format!("{} {} {} {}", i.protocol_binding, i.protocol_version, i.url, i.tenant).trim().to_owned()
            };
            ways.interfaces(base, tenant).into_iter().map(line).collect()
        };
        assert_eq!(listed(None, ""), ["unix 1.0 unix:///run/a.sock", "unix 0.3 unix:///run/a.sock"]);
        let all = listed(Some("http://a/t"), "t");
        assert_eq!(all[..3], ["JSONRPC 1.0 http://a/t/", "HTTP+JSON 1.0 http://a/t", "unix 1.0 unix:///run/a.sock t"]);
        assert_eq!(all.len(), 6);
    }
}
