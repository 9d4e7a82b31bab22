//! The interfaces on the card: every way in that is really open.

use std::net::SocketAddr;

use nuncio_protocol::AgentInterface;

use crate::call::Version;

const GRPC: &str = "GRPC";

/// The ways in, as the card lists them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ways {
    /// Where HTTP arrives, if it does.
    pub(crate) http: Option<SocketAddr>,
    /// The path of WebSocket there.
    pub(crate) ws_path: Option<String>,
    /// Where gRPC arrives, if not where HTTP does.
    pub(crate) grpc: Option<SocketAddr>,
    /// Whether JSON-RPC in gRPC is listed: it answers wherever gRPC does, but few look for it.
    pub(crate) grpc_jsonrpc: bool,
    /// Whether ports have TLS.
    pub(crate) https: bool,
    /// All others: address and name of the binding.
    pub(crate) others: Vec<(String, &'static str)>,
}

impl Ways {
    /// The interfaces for whoever reaches HTTP at `base_url`. JSON-RPC first, because most clients know it; the
    /// same addresses again for 0.3.
    ///
    /// The name of a tenant stands beside addresses that have no paths.
    pub(crate) fn interfaces(&self, base_url: Option<&str>, rpc_path: &str, tenant: &str) -> Vec<AgentInterface> {
        let mut all: Vec<(String, &str, &str)> = Vec::new();
        if let Some(base_url) = base_url {
            all.push((format!("{base_url}{rpc_path}"), "JSONRPC", ""));
            all.push((base_url.to_owned(), "HTTP+JSON", ""));
            // `http` becomes `ws`, and `https` becomes `wss`.
            if let (Some(path), Some(rest)) = (&self.ws_path, base_url.strip_prefix("http")) {
                all.push((format!("ws{rest}{path}"), "websocket", ""));
            }
        }
        if let Some(address) = self.grpc(base_url, tenant) {
            let scheme = if self.is_safe(base_url) { "grpcs-jsonrpc" } else { "grpc-jsonrpc" };
            let envelopes = self.grpc_jsonrpc.then(|| (format!("{scheme}://{address}"), "grpc-jsonrpc", tenant));
            all.push((address, GRPC, tenant));
            all.extend(envelopes);
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
        // 0.3 has no tenants, and gRPC no paths to name them by.
        let old = of_version(Version::V03).filter(|i| i.protocol_binding != GRPC || i.tenant.is_empty());
        of_version(Version::V1).chain(old).collect()
    }

    /// Whether gRPC is reached over TLS: where it has no port of its own, as HTTP is.
    fn is_safe(&self, base_url: Option<&str>) -> bool {
        match base_url {
            Some(base_url) if self.grpc.is_none() => base_url.starts_with("https:"),
            _ => self.https,
        }
    }

    /// `host:port` of gRPC: that of HTTP, unless it has a port of its own. Below a path it cannot be reached.
    fn grpc(&self, base_url: Option<&str>, tenant: &str) -> Option<String> {
        let Some((scheme, rest)) = base_url.and_then(|url| url.split_once("://")) else {
            return self.grpc.map(|address| address.to_string());
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => (authority, if scheme == "https" { "443" } else { "80" }),
        };
        if let Some(own) = self.grpc {
            return Some(format!("{host}:{}", own.port()));
        }
        let below = if tenant.is_empty() { path.is_empty() } else { !path.contains('/') };
        below.then(|| format!("{host}:{port}"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_way_is_listed_for_both_versions_and_a_tenant_is_named_where_there_are_no_paths() {
        let ways = Ways {
            ws_path: Some("/ws".into()),
            grpc_jsonrpc: true,
            others: vec![("unix:///run/a.sock".into(), "unix")],
            ..Ways::default()
        };
        let listed = |base: Option<&str>, tenant: &str| -> Vec<String> {
            let line = |i: AgentInterface| {
                format!("{} {} {} {}", i.protocol_binding, i.protocol_version, i.url, i.tenant).trim().to_owned()
            };
            ways.interfaces(base, "/", tenant).into_iter().map(line).collect()
        };
        assert_eq!(listed(None, ""), ["unix 1.0 unix:///run/a.sock", "unix 0.3 unix:///run/a.sock"]);
        let all = listed(Some("http://a/t"), "t");
        let new = ["JSONRPC 1.0 http://a/t/", "HTTP+JSON 1.0 http://a/t", "websocket 1.0 ws://a/t/ws"];
        assert_eq!(all[..3], new);
        let others = ["GRPC 1.0 a:80 t", "grpc-jsonrpc 1.0 grpc-jsonrpc://a:80 t", "unix 1.0 unix:///run/a.sock t"];
        assert_eq!(all[3..6], others);
        assert_eq!(all.len(), 11, "0.3 has no tenants over gRPC");
    }

    #[test]
    fn grpc_is_a_host_and_a_port() {
        let at = |base: &str, own: Option<&str>| {
            let ways = Ways { grpc: own.map(|own| own.parse().unwrap()), ..Ways::default() };
            ways.grpc(Some(base), "")
        };
        assert_eq!(at("http://127.0.0.1:8080", None).as_deref(), Some("127.0.0.1:8080"));
        assert_eq!(at("https://agent.example", None).as_deref(), Some("agent.example:443"));
        assert_eq!(at("http://[::1]", None).as_deref(), Some("[::1]:80"));
        assert_eq!(at("http://[::1]:9", None).as_deref(), Some("[::1]:9"));
        assert_eq!(at("https://agent.example/below", None), None, "gRPC has no paths");
        assert_eq!(at("https://agent.example/below", Some("0.0.0.0:50051")).as_deref(), Some("agent.example:50051"));
    }

    #[test]
    fn envelopes_say_whether_their_port_is_safe() {
        let at = |base: Option<&str>, own: Option<&str>, https: bool| {
            let grpc = own.map(|own| own.parse().unwrap());
            let ways = Ways { grpc, grpc_jsonrpc: true, https, ..Ways::default() };
            let all = ways.interfaces(base, "/", "");
            all.into_iter().find(|i| i.protocol_binding == "grpc-jsonrpc").map(|i| i.url)
        };
        assert_eq!(at(Some("http://a:1"), None, false).as_deref(), Some("grpc-jsonrpc://a:1"));
        // A proxy has the certificate.
        assert_eq!(at(Some("https://a"), None, false).as_deref(), Some("grpcs-jsonrpc://a:443"));
        assert_eq!(at(Some("https://a"), Some("0.0.0.0:2"), false).as_deref(), Some("grpc-jsonrpc://a:2"));
        assert_eq!(at(None, Some("127.0.0.1:2"), true).as_deref(), Some("grpcs-jsonrpc://127.0.0.1:2"));
    }
}
