//! Addresses that are refused by their text, and their good neighbours.

use super::super::{Guard, Openings, Refused, SetupError};
use super::kit::openings;

/// Hosts that nobody outside may name.
const INSIDE: &[&str] = &[
    "127.0.0.1",
    "127.0.0.2",
    "127.255.255.254",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.9",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.168.1.5",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.7",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "168.63.129.16",
    // Other spellings of the same.
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "127.1",
    "127.0.1",
    "0",
    "0x0",
    "0x7F.0x0.0x0.0x1",
    "127.0.0.1.",
    "%31%32%37.0.0.1",
    "127.0.0.%31",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "１２７.0.0.1",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "10.1",
    "3232235777",
    "0xc0a80101",
    // IPv6, and IPv4 inside of it.
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::FFFF:10.0.0.1]",
    "[::ffff:8.8.8.8]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[::ffff:0:7f00:1]",
    "[64:ff9b::10.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::1]",
    "[2002:7f00:1::]",
    "[2002:0a00:0001::]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[2001::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fdff::1]",
    "[fe80::1]",
    "[febf::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[ff0e::1]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[100::1]",
    "[5f00::1]",
    "[2a00:1450::5efe:10.0.0.1]",
    // Names.
    "localhost",
    "LOCALHOST",
    "localhost.",
    "loc%61lhost",
    "ｌocalhost",
    "a.localhost",
    "localhost.localdomain",
    "ip6-localhost",
    "intranet",
    "metadata",
    "instance-data",
    "rancher-metadata",
    "metadata.google.internal",
    "METADATA.GOOGLE.INTERNAL",
    "metadata.google.internal.",
    "instance-data.ec2.internal",
    "metadata.tencentyun.com",
    "metadata.goog",
    "printer.local",
    "db.corp",
    "nas.lan",
    "router.home",
    "fritz.home.arpa",
    "wiki.intranet",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "host.docker.internal",
    "redis",
    "a..b.com",
    "hooks.example.com.",
];

const GOOD: &[&str] = &[
    "https://hooks.example.com/a2a",
    "http://hooks.example.com:8080/a2a?x=1#y",
    "https://8.8.8.8/hook",
    "https://[2a00:1450:4001:81b::200e]/",
    "https://bücher.example/hook",
    "https://xn--bcher-kva.example/",
    "HTTPS://HOOKS.EXAMPLE.COM/",
    "https://localhost.example.com/",
    "https://internal.example.com/",
    "https://mylocal.example/",
    "https://hooks.example.com:443/",
    "https://hooks.example.com/a%0d%0ab",
];

fn guard() -> Guard {
    Guard::new(Openings::default()).unwrap()
}

#[test]
fn hosts_inside_are_refused_in_every_spelling_and_with_one_text() {
    let guard = guard();
    assert!(INSIDE.len() >= 60);
    let mut texts = std::collections::BTreeSet::new();
    for host in INSIDE {
        for (scheme, port) in [("http", ""), ("https", ""), ("http", ":8080"), ("https", ":65535")] {
            let url = format!("{scheme}://{host}{port}/hook");
            let refused = guard.check(&url).expect_err(&url);
            assert_eq!(refused, Refused::Host, "{url}");
            texts.insert(refused.to_string());
        }
    }
    assert_eq!(texts.len(), 1);
}

#[test]
fn public_hosts_are_accepted() {
    for url in GOOD {
        assert_eq!(guard().check(url), Ok(()), "{url}");
    }
}

#[test]
fn what_is_no_web_address_is_refused() {
    let scheme = Refused::Scheme { https_only: false };
    for (url, refused) in [
        ("", Refused::Malformed),
        ("garbage", Refused::Malformed),
        ("//hooks.example.com/", Refused::Malformed),
        ("http://", Refused::Malformed),
        ("http:///", Refused::Malformed),
        ("http://[::1", Refused::Malformed),
        ("http://[fe80::1%25eth0]/", Refused::Malformed),
        ("http://[fe80::1%eth0]/", Refused::Malformed),
        ("http://1.2.3.4.5/", Refused::Malformed),
        ("http://256.0.0.1/", Refused::Malformed),
        ("http://hooks.example.com:99999/", Refused::Malformed),
        ("http://hooks.exa\u{0}mple.com/", Refused::Malformed),
        ("http://hooks.example.com/\r\nX-A: b", Refused::Malformed),
        ("http://hooks.example.com/\u{85}", Refused::Malformed),
        ("ht\ntp://hooks.example.com/", Refused::Malformed),
        (" http://hooks.example.com/", Refused::Malformed),
        ("ftp://hooks.example.com/", scheme),
        ("file:///etc/passwd", scheme),
        ("gopher://hooks.example.com/", scheme),
        ("data:text/plain,x", scheme),
        ("javascript:alert(1)", scheme),
        ("ws://hooks.example.com/", scheme),
        ("http://user@hooks.example.com/", Refused::UserInfo),
        ("http://user:pass@hooks.example.com/", Refused::UserInfo),
        ("http://:pass@hooks.example.com/", Refused::UserInfo),
        ("http://hooks.example.com@127.0.0.1/", Refused::UserInfo),
        ("http://127.0.0.1\\@hooks.example.com/", Refused::Host),
        ("http:\\\\127.0.0.1\\", Refused::Host),
        ("http:127.0.0.1", Refused::Host),
        ("http://hooks.example.com:0/", Refused::Port),
        ("http://hooks.example.com:22/", Refused::Port),
        ("http://hooks.example.com:25/", Refused::Port),
        ("https://hooks.example.com:6379/", Refused::Port),
    ] {
        assert_eq!(guard().check(url), Err(refused), "{url:?}");
    }
    let long = format!("https://hooks.example.com/{}", "a".repeat(2048));
    assert_eq!(guard().check(&long), Err(Refused::Malformed));
}

#[test]
fn plain_http_can_be_refused() {
    let guard = Guard::new(Openings { https_only: true, ..Openings::default() }).unwrap();
    assert_eq!(guard.check("http://hooks.example.com/"), Err(Refused::Scheme { https_only: true }));
    assert_eq!(guard.check("https://hooks.example.com/"), Ok(()));
}

#[test]
fn named_hosts_are_open() {
    let guard = Guard::new(openings(&["Automaker-Server", "db.internal:7860", "10.0.0.9", "fd00::7"], &[])).unwrap();
    for url in [
        "http://automaker-server:7860/hook",
        "http://AUTOMAKER-SERVER/",
        "http://db.internal:7860/",
        "http://10.0.0.9:81/",
        "http://[fd00::7]/",
    ] {
        assert_eq!(guard.check(url), Ok(()), "{url}");
    }
    for url in ["http://db.internal/", "http://automaker/", "http://10.0.0.8/"] {
        assert_eq!(guard.check(url), Err(Refused::Host), "{url}");
    }
    // A port of another protocol must be named with its host.
    assert_eq!(guard.check("http://automaker-server:22/"), Err(Refused::Port));
    let guard = Guard::new(openings(&["cache:6379", "plain:80"], &[])).unwrap();
    assert_eq!(guard.check("http://cache:6379/"), Ok(()));
    assert_eq!(guard.check("http://plain/"), Ok(()));
    assert_eq!(guard.check("http://plain:81/"), Err(Refused::Host));
}

#[test]
fn blocks_of_addresses_are_open() {
    let guard = Guard::new(openings(&[], &["10.0.0.0/8", "fd00::/8"])).unwrap();
    for url in ["http://10.0.0.1/", "http://0x0a000001/", "http://[fd00::1]:8080/"] {
        assert_eq!(guard.check(url), Ok(()), "{url}");
    }
    for url in ["http://192.168.0.1/", "http://[::ffff:10.0.0.1]/", "http://[fe80::1]/", "http://localhost/"] {
        assert_eq!(guard.check(url), Err(Refused::Host), "{url}");
    }
}

#[test]
fn an_opening_that_is_no_host_is_reported() {
    for text in ["http://a.example", "a.example/path", "user@a.example", "", "a b", "a.example?x", "[::1"] {
        let error = Guard::new(openings(&[text], &[])).expect_err(text);
        assert!(matches!(&error, SetupError::Host(found) if found == text), "{text}: {error}");
    }
}

#[test]
fn header_values_are_one_plain_line() {
    assert_eq!(super::super::header_value("Bearer abc-123").unwrap(), "Bearer abc-123");
    for text in ["a\r\nX-B: c", "a\nb", "a\rb", "a\0b", "a\tb", "a\u{7f}b", "ä", "a\u{2028}b"] {
        assert_eq!(super::super::header_value(text), Err(Refused::Header), "{text:?}");
    }
}
