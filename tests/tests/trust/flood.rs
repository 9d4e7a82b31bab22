//! Many wrong credentials: those who have right ones notice nothing, and nothing grows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nuncio_tests::raw::{Connection, V1, Wire};
use nuncio_tests::{Value, json};

use crate::kit::{ANNA, Mint, TOKENS, bearer};

/// So many attackers at once, each on a connection of its own, as fast as they can: 100,000 wrong ones or ten seconds of
/// them, whichever comes first.
const ATTACKERS: usize = 8;
const EACH: usize = 12_500;
const LONG: Duration = Duration::from_secs(10);
/// So many from each at least, however slow the machine is.
const AT_LEAST: usize = 500;
/// What one call by a right caller may take up in the server, and much more.
const ROOM_KIB: u64 = 48 << 10;

/// Sends wrong credentials on one connection, in small batches. Returns how often each status came.
fn attack(wire: &Wire, credentials: impl Fn(usize) -> String) -> BTreeMap<u16, usize> {
    let mut connection = Connection::to(wire.address);
    let mut seen = BTreeMap::new();
    let begun = Instant::now();
    for batch in 0..EACH / 50 {
        if batch * 50 >= AT_LEAST && begun.elapsed() > LONG {
            break;
        }
        let asks = (0..50).map(|n| {
            let who = credentials(batch * 50 + n);
            format!("GET /tasks HTTP/1.1\r\nHost: localhost\r\n{V1}{who}\r\n")
        });
        connection.send(asks.collect::<String>());
        for _ in 0..50 {
            let answer = connection.answer();
            if answer.status == 429 {
                let wait = answer.header("retry-after").and_then(|wait| wait.parse::<u64>().ok());
                assert!(wait.is_some_and(|wait| (1..=60).contains(&wait)), "when to come back: {wait:?}");
            }
            *seen.entry(answer.status).or_default() += 1;
        }
    }
    seen
}

fn right_call(wire: &Wire) {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hi" }] });
    let answer = wire.post("/message:send", &format!("{V1}{ANNA}"), &json!({ "message": message }).to_string());
    assert_eq!(answer.status, 200, "a right caller from the same address: {}", answer.text());
    assert_eq!(answer.json()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
}

fn flood(wire: &Wire, credentials: impl Fn(usize, usize) -> String + Sync) {
    (0..20).for_each(|_| right_call(wire));
    let before = wire.resident_kib();
    let over = AtomicBool::new(false);
    let begun = Instant::now();
    let (seen, served) = std::thread::scope(|scope| {
        let attackers: Vec<_> = (0..ATTACKERS)
            .map(|attacker| {
                let credentials = &credentials;
                scope.spawn(move || attack(wire, |n| credentials(attacker, n)))
            })
            .collect();
        let right = scope.spawn(|| {
            let mut calls = 0;
            while !over.load(Ordering::Relaxed) && calls < 100_000 {
                right_call(wire);
                calls += 1;
            }
            calls
        });
        let mut seen = BTreeMap::<u16, usize>::new();
        for attacker in attackers {
            for (status, count) in attacker.join().expect("an attacker") {
                *seen.entry(status).or_default() += count;
            }
        }
        over.store(true, Ordering::Relaxed);
        (seen, right.join().expect("a right caller"))
    });
    let (sent, took) = (seen.values().sum::<usize>(), begun.elapsed().as_secs_f64());
    println!("{sent} wrong ones in {took:.1} s ({:.0} a second), {served} right calls meanwhile", sent as f64 / took);
    assert!(served > 0, "right callers are served meanwhile");
    assert!(sent >= ATTACKERS * AT_LEAST, "everybody got an answer: {seen:?}");
    assert!(seen.keys().all(|status| matches!(status, 401 | 429)), "nobody came in: {seen:?}");
    assert!(seen.get(&429).is_some_and(|slowed| *slowed > sent / 2), "most were told to wait: {seen:?}");
    let grown = wire.resident_kib().saturating_sub(before);
    assert!(grown < ROOM_KIB, "the server has grown by {grown} KiB");
    let lines = wire.log().lines().filter(|line| line.contains("credentials")).count();
    assert!(lines < 1000, "the log has not grown either: {lines} lines");
}

#[test]
fn wrong_tokens_by_the_thousand_bother_nobody() {
    let wire = Wire::start(TOKENS);
    flood(&wire, |attacker, n| bearer(&format!("wrong-{attacker}-{n}")));
}

#[test]
fn tokens_with_made_up_keys_bother_nobody() {
    let mint = Mint::new();
    let wire = Wire::start(&format!("{TOKENS}{}", mint.config("")));
    let good = mint.token(&json!({}));
    let (_, rest) = good.split_once('.').expect("a header");
    let rest = rest.to_owned();
    flood(&wire, move |attacker, n| {
        let header: Value = json!({ "alg": "ES256", "kid": format!("k-{attacker}-{n}") });
        bearer(&format!("{}.{rest}", base64_url(&header.to_string())))
    });
}

fn base64_url(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
}
