//! Which addresses belong to the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// The IPv4 blocks of IANA's special-purpose registry, multicast, and what clouds serve from elsewhere.
const CLOSED_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 52, 193, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(192, 175, 48, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
    // Azure's host, which answers every virtual machine there.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
];

/// What is special inside 2000::/3. Everything outside of that block is closed anyway: unspecified,
/// loopback, mapped, compatible, translated, discard, unique local, link local, site local, multicast.
const CLOSED_V6: &[(Ipv6Addr, u32)] = &[
    // Protocol assignments, with Teredo, ORCHID and benchmarking among them.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Whether a connection to this address is allowed. An IPv4 address inside of it is judged as well: opening a
/// block of translated addresses does not open the inside network behind the translator.
pub(super) fn permitted(address: IpAddr, open: &[IpNet]) -> bool {
    let opened = open.iter().any(|block| block.contains(&address));
    if !opened && !is_public(address) {
        return false;
    }
    match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => embedded(address).into_iter().flatten().all(|inner| permitted(inner.into(), open)),
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            !CLOSED_V4.iter().any(|(block, length)| (address.to_bits() ^ block.to_bits()) >> (32 - length) == 0)
        }
        IpAddr::V6(address) => {
            address.to_bits() >> 125 == 1
                && !CLOSED_V6.iter().any(|(block, length)| (address.to_bits() ^ block.to_bits()) >> (128 - length) == 0)
        }
    }
}

/// The IPv4 addresses that an IPv6 address leads to.
fn embedded(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let join = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // Mapped, compatible, translated (SIIT), NAT64 by its well-known prefix, and 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..]
        // ISATAP, in any network.
        | [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => [Some(join(high, low)), None],
        // NAT64 by the prefix for local use: the address goes around the byte that must be zero.
        [0x64, 0xff9b, 1, high, low, rest, ..] => [Some(join(high, low << 8 | rest >> 8)), None],
        // Teredo: the server, and the client in reverse.
        [0x2001, 0, high, low, _, _, not_high, not_low] => [Some(join(high, low)), Some(join(!not_high, !not_low))],
        _ => [None, None],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn ask(address: &str, open: &[&str]) -> bool {
        permitted(address.parse().unwrap(), &nets(open))
    }

    #[test]
    fn both_ends_of_every_block_are_closed_and_their_neighbours_are_not() {
        for (first, last, before, after) in [
            ("0.0.0.0", "0.255.255.255", None, Some("1.0.0.0")),
            ("10.0.0.0", "10.255.255.255", Some("9.255.255.255"), Some("11.0.0.0")),
            ("100.64.0.0", "100.127.255.255", Some("100.63.255.255"), Some("100.128.0.0")),
            ("127.0.0.0", "127.255.255.255", Some("126.255.255.255"), Some("128.0.0.0")),
            ("169.254.0.0", "169.254.255.255", Some("169.253.255.255"), Some("169.255.0.0")),
            ("172.16.0.0", "172.31.255.255", Some("172.15.255.255"), Some("172.32.0.0")),
            ("192.0.0.0", "192.0.0.255", Some("191.255.255.255"), Some("192.0.1.0")),
            ("192.0.2.0", "192.0.2.255", Some("192.0.1.255"), Some("192.0.3.0")),
            ("192.88.99.0", "192.88.99.255", Some("192.88.98.255"), Some("192.88.100.0")),
            ("192.168.0.0", "192.168.255.255", Some("192.167.255.255"), Some("192.169.0.0")),
            ("198.18.0.0", "198.19.255.255", Some("198.17.255.255"), Some("198.20.0.0")),
            ("198.51.100.0", "198.51.100.255", Some("198.51.99.255"), Some("198.51.101.0")),
            ("203.0.113.0", "203.0.113.255", Some("203.0.112.255"), Some("203.0.114.0")),
            ("224.0.0.0", "255.255.255.255", Some("223.255.255.255"), None),
            ("168.63.129.16", "168.63.129.16", Some("168.63.129.15"), Some("168.63.129.17")),
            ("::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None, Some("2000::")),
            ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", Some("2000:ffff::"), Some("2001:200::")),
            ("2001:db8::", "2001:db8:ffff::1", Some("2001:db7:ffff::1"), Some("2001:db9::")),
            ("2002::", "2002:ffff::1", Some("2001:ffff::1"), Some("2003::")),
            ("3fff::", "3fff:fff:ffff::1", Some("3ffe:ffff::1"), Some("3fff:1000::")),
            ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Some("3fff:ffff::1"), None),
        ] {
            assert!(!ask(first, &[]), "{first}");
            assert!(!ask(last, &[]), "{last}");
            for neighbour in [before, after].into_iter().flatten() {
                assert!(ask(neighbour, &[]), "{neighbour}");
            }
        }
    }

    #[test]
    fn a_block_can_be_opened() {
        assert!(ask("10.1.2.3", &["10.0.0.0/8"]));
        assert!(!ask("10.1.2.3", &["10.2.0.0/16"]));
        assert!(ask("fd00::1", &["fd00::/8"]));
        assert!(!ask("fd00::1", &["10.0.0.0/8"]));
    }

    #[test]
    fn what_is_inside_of_an_opened_address_is_judged_too() {
        let translated = &["64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96", "::ffff:0:0/96"];
        for (good, bad) in [
            ("64:ff9b::8.8.8.8", "64:ff9b::10.0.0.1"),
            ("64:ff9b:1:808:8:800::", "64:ff9b:1:a00:0:100::"),
            ("2002:808:808::1", "2002:7f00:1::1"),
            ("2001:0:808:808:0:0:f7f7:f7f7", "2001:0:808:808:0:0:80ff:fffe"),
            ("2001:0:808:808:0:0:f7f7:f7f7", "2001:0:a00:1:0:0:f7f7:f7f7"),
            ("::8.8.8.8", "::169.254.169.254"),
            ("::ffff:8.8.8.8", "::ffff:127.0.0.1"),
        ] {
            assert!(!ask(good, &[]), "{good} is closed unless it is opened");
            assert!(ask(good, translated), "{good}");
            assert!(!ask(bad, translated), "{bad}");
        }
        assert!(ask("64:ff9b::10.0.0.1", &["64:ff9b::/96", "10.0.0.0/8"]));
    }

    #[test]
    fn isatap_leads_inside_from_any_network() {
        assert!(ask("2a00:1450::5efe:808:808", &[]));
        assert!(!ask("2a00:1450::5efe:a00:1", &[]));
        assert!(!ask("2a00:1450::200:5efe:7f00:1", &[]));
    }
}
