//! Many wrong credentials: those who have right ones notice nothing, and nothing grows.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nuncio_tests::raw::{Connection, V1, Wire};
use nuncio_tests::{Value, json};

use crate::kit::{ANNA, Mint, TOKENS, bearer};

/// So many attackers at once, each on a connection of its own: together 10,000 wrong ones a second, for ten seconds.
const ATTACKERS: usize = 8;
const BATCH: usize = 50;
const BATCHES: usize = 250;
const EVERY: Duration = Duration::from_millis(40);
/// So many batches from each at least, however slow the machine is.
const AT_LEAST: usize = 10;
/// How often a right caller calls meanwhile, and for as long.
const CALLS: u32 = 500;
/// What the right calls may take up in the server, and much more.
const ROOM_KIB: u64 = 24 << 10;

/// Sends wrong credentials on one connection, a batch whenever it is time for it, and none any more when time is up.
/// Returns how often each status came.
fn attack(wire: &Wire, credentials: impl Fn(usize) -> String) -> BTreeMap<u16, usize> {
    let mut connection = Connection::to(wire.address);
    let mut seen = BTreeMap::new();
    let begun = Instant::now();
    let whole = EVERY * BATCHES as u32;
    for batch in 0..BATCHES {
        let early = (EVERY * batch as u32).saturating_sub(begun.elapsed());
        std::thread::sleep(early);
        if batch >= AT_LEAST && begun.elapsed() > whole {
            break;
        }
        let asks = (0..BATCH).map(|n| {
            let who = credentials(batch * BATCH + n);
            format!("GET /tasks HTTP/1.1\r\nHost: localhost\r\n{V1}{who}\r\n")
        });
        connection.send(asks.collect::<String>());
        for _ in 0..BATCH {
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

/// Calls as often as a caller does who notices nothing. Returns how long each call took, the longest last.
fn right_calls(wire: &Wire, count: u32) -> Vec<Duration> {
    let begun = Instant::now();
    let call = |n: u32| {
        std::thread::sleep((EVERY / 2 * n).saturating_sub(begun.elapsed()));
        let asked = Instant::now();
        right_call(wire);
        asked.elapsed()
    };
    let mut took: Vec<_> = (0..count).map(call).collect();
    took.sort_unstable();
    took
}

fn flood(wire: &Wire, credentials: impl Fn(usize, usize) -> String + Sync) {
    let before = right_calls(wire, 50);
    let resident = wire.resident_kib();
    let begun = Instant::now();
    let (seen, meanwhile, took) = std::thread::scope(|scope| {
        let attackers: Vec<_> = (0..ATTACKERS)
            .map(|attacker| {
                let credentials = &credentials;
                scope.spawn(move || attack(wire, |n| credentials(attacker, n)))
            })
            .collect();
        let right = scope.spawn(|| right_calls(wire, CALLS));
        let mut seen = BTreeMap::<u16, usize>::new();
        for attacker in attackers {
            for (status, count) in attacker.join().expect("an attacker") {
                *seen.entry(status).or_default() += count;
            }
        }
        let took = begun.elapsed().as_secs_f64();
        (seen, right.join().expect("a right caller"), took)
    });
    let sent = seen.values().sum::<usize>();
    println!("{sent} wrong ones in {took:.1} s ({:.0} a second)", sent as f64 / took);
    for (when, took) in [("before", &before), ("meanwhile", &meanwhile)] {
        println!("right calls {when}: {}, median {:?}, longest {:?}", took.len(), took[took.len() / 2], took.last());
    }
    assert!(sent >= ATTACKERS * AT_LEAST * BATCH, "everybody got an answer: {seen:?}");
    assert!(seen.keys().all(|status| matches!(status, 401 | 429)), "nobody came in: {seen:?}");
    assert!(seen.get(&429).is_some_and(|slowed| *slowed > sent / 2), "most were told to wait: {seen:?}");
    let grown = wire.resident_kib().saturating_sub(resident);
    println!("grown by {grown} KiB");
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
