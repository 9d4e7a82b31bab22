//! Whatever the spelling, a private address is refused; whatever the text, nothing breaks.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use proptest::prelude::*;

use super::super::{Guard, Openings, header_value};

static GUARD: LazyLock<Guard> = LazyLock::new(|| Guard::new(Openings::default()).unwrap());

/// One number in one of the bases that old address parsers read.
fn spelled(number: u32, base: u8) -> String {
    match base {
        0 => format!("{number}"),
        1 => format!("0{number:o}"),
        2 => format!("0x{number:x}"),
        3 => format!("0X{number:X}"),
        _ => format!("000000{number:o}"),
    }
}

/// An address in one to four parts, each in a base of its own.
fn parts(address: Ipv4Addr, count: usize, bases: [u8; 4]) -> String {
    let octets = address.octets();
    let mut texts: Vec<String> = (0..count - 1).map(|i| spelled(octets[i].into(), bases[i])).collect();
    let rest = octets[count - 1..].iter().fold(0, |sum, &octet| sum << 8 | u32::from(octet));
    texts.push(spelled(rest, bases[count - 1]));
    texts.join(".")
}

/// Some of the characters in another form that means the same to a reader of URLs.
fn disguised(text: &str, how: &[u8]) -> String {
    let disguise = |(i, c): (usize, char)| match (how.get(i % how.len().max(1)), c) {
        (Some(1), c) => format!("%{:02x}", c as u32),
        (Some(2), '0'..='9') => char::from_u32(0xff10 + c as u32 - 0x30).into_iter().collect(),
        (Some(2), '.') => "。".into(),
        (Some(3), '.') => "．".into(),
        (Some(3), c) => c.to_ascii_uppercase().to_string(),
        (_, c) => c.to_string(),
    };
    text.chars().enumerate().map(disguise).collect()
}

fn private() -> impl Strategy<Value = Ipv4Addr> {
    let block = |base: [u8; 4], length: u32| {
        any::<u32>().prop_map(move |bits| {
            Ipv4Addr::from_bits(Ipv4Addr::from_octets(base).to_bits() | bits.checked_shr(length).unwrap_or(0))
        })
    };
    prop_oneof![
        block([0, 0, 0, 0], 8),
        block([10, 0, 0, 0], 8),
        block([100, 64, 0, 0], 10),
        block([127, 0, 0, 0], 8),
        block([169, 254, 0, 0], 16),
        block([172, 16, 0, 0], 12),
        block([192, 168, 0, 0], 16),
        block([198, 18, 0, 0], 15),
        block([224, 0, 0, 0], 4),
        block([240, 0, 0, 0], 4),
    ]
}

proptest! {
    #[test]
    fn any_spelling_of_a_private_address_is_refused(
        address in private(),
        count in 1_usize..=4,
        bases in any::<[u8; 4]>().prop_map(|bases| bases.map(|base| base % 5)),
        how in proptest::collection::vec(0_u8..4, 1..8),
        dot in any::<bool>(),
        https in any::<bool>(),
    ) {
        let host = disguised(&parts(address, count, bases), &how);
        let (scheme, dot) = (if https { "https" } else { "http" }, if dot { "." } else { "" });
        for url in [format!("{scheme}://{host}{dot}/hook"), format!("{scheme}://{host}{dot}:8080")] {
            prop_assert!(GUARD.check(&url).is_err(), "{url} is {address}");
        }
    }

    #[test]
    fn a_private_address_inside_of_ipv6_is_refused(address in private(), form in 0..7, compressed in any::<bool>()) {
        let [a, b, c, d] = address.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let segments = match form {
            0 => [0, 0, 0, 0, 0, 0xffff, high, low],
            1 => [0, 0, 0, 0, 0, 0, high, low],
            2 => [0x64, 0xff9b, 0, 0, 0, 0, high, low],
            3 => [0x2002, high, low, 0, 0, 0, 0, 1],
            4 => [0x2001, 0, 0x808, 0x808, 0, 0, !high, !low],
            5 => [0x2a00, 0x1450, 0, 0, 0, 0x5efe, high, low],
            _ => [0, 0, 0, 0, 0xffff, 0, high, low],
        };
        let address = Ipv6Addr::from_segments(segments);
        let text = if compressed {
            address.to_string()
        } else {
            segments.map(|segment| format!("{segment:04X}")).join(":")
        };
        prop_assert!(GUARD.check(&format!("http://[{text}]/")).is_err(), "{}", text);
    }

    #[test]
    fn no_text_breaks_the_check(text in any::<String>(), host in "\\PC{0,40}") {
        let _ = GUARD.check(&text);
        let _ = GUARD.check(&format!("http://{host}/{text}"));
        let _ = GUARD.check(&format!("https://{host}:{text}"));
        let _ = super::super::OpenHost::read(&text);
    }

    #[test]
    fn a_header_value_never_holds_a_control_character(text in any::<String>()) {
        if let Ok(value) = header_value(&text) {
            prop_assert!(value.as_bytes().iter().all(|byte| (b' '..=b'~').contains(byte)));
        }
    }
}
