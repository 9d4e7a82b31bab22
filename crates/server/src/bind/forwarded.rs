//! Where a request comes from, behind proxies that are believed.

use std::net::IpAddr;

use http::HeaderMap;
use ipnet::IpNet;

/// The nearest address on the way of a request that is no trusted proxy: everything before it could be made up.
pub(crate) fn client(headers: &HeaderMap, peer: IpAddr, trusted: &[IpNet]) -> IpAddr {
    let peer = peer.to_canonical();
    let is_trusted = |address: &IpAddr| trusted.iter().any(|net| net.contains(address));
    if !is_trusted(&peer) {
        return peer;
    }
    let lines = headers.get_all("x-forwarded-for").iter().rev().filter_map(|value| value.to_str().ok());
    let mut nearest = peer;
    for text in lines.flat_map(|line| line.rsplit(',')) {
        let Some(address) = address(text.trim()) else { break };
        nearest = address;
        if !is_trusted(&address) {
            break;
        }
    }
    nearest
}

/// An address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let address = text.parse().ok().or_else(|| Some(text.parse::<std::net::SocketAddr>().ok()?.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn found(lines: &[&'static str], peer: &str) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("x-forwarded-for", HeaderValue::from_static(line));
        }
        let trusted = ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        client(&headers, peer.parse().unwrap(), &trusted).to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        assert_eq!(found(&["203.0.113.9"], "192.0.2.1"), "192.0.2.1");
        assert_eq!(found(&["203.0.113.9"], "10.0.0.1"), "203.0.113.9");
        assert_eq!(found(&["203.0.113.9:4711"], "::ffff:10.0.0.1"), "203.0.113.9");
        assert_eq!(found(&["2001:db8::1"], "fd00::1"), "2001:db8::1");
    }

    #[test]
    fn what_the_client_made_up_does_not_count() {
        assert_eq!(found(&["1.1.1.1, 203.0.113.9"], "10.0.0.1"), "203.0.113.9");
        assert_eq!(found(&["1.1.1.1", "203.0.113.9, 10.0.0.2"], "10.0.0.1"), "203.0.113.9");
        assert_eq!(found(&["1.1.1.1, nonsense, 10.0.0.2"], "10.0.0.1"), "10.0.0.2");
        assert_eq!(found(&[], "10.0.0.1"), "10.0.0.1");
    }
}
