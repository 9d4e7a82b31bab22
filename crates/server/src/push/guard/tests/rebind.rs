//! Names that change their mind.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::HeaderMap;

use super::super::{Fault, Guard, Openings, Refused, SendError};
use super::kit::{Receiver, SOON, Script, openings};

const DONE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const DONE_AND_CLOSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

async fn post(guard: &Guard, port: u16) -> Result<u16, SendError> {
    let url = format!("http://hooks.example.com:{port}/a2a");
    guard.post(&url, HeaderMap::new(), Bytes::from_static(b"{}"), SOON).await.map(|reply| reply.status)
}

#[tokio::test]
async fn a_name_that_is_public_when_checked_and_loopback_when_used_reaches_nothing() {
    let receiver = Receiver::start("127.0.0.1:0", DONE, false).await;
    let script = Script::new([&["8.8.8.8"], &["127.0.0.1"]]);
    let guard = Guard::with_resolver(Openings::default(), script.clone()).unwrap();
    let url = format!("http://hooks.example.com:{}/a2a", receiver.at.port());
    assert_eq!(guard.check_resolved(&url).await, Ok(()));
    for _ in 0..3 {
        assert_eq!(post(&guard, receiver.at.port()).await, Err(SendError::Refused(Refused::Host)));
    }
    assert_eq!(receiver.seen(), 0);
    assert_eq!(script.asked.load(Ordering::SeqCst), 4, "once for each decision");
}

#[tokio::test]
async fn the_connection_goes_to_the_address_that_was_judged() {
    let (open, closed) = Receiver::two(DONE_AND_CLOSE).await;
    let script = Script::new([&["127.0.0.2"], &["127.0.0.1"]]);
    let guard = Guard::with_resolver(openings(&[], &["127.0.0.2/32"]), script.clone()).unwrap();
    assert_eq!(post(&guard, open.at.port()).await, Ok(200));
    assert_eq!(script.asked.load(Ordering::SeqCst), 1, "what was judged is not asked for again");
    assert_eq!(post(&guard, open.at.port()).await, Err(SendError::Refused(Refused::Host)));
    assert_eq!((open.seen(), closed.seen()), (1, 0));
}

#[tokio::test]
async fn a_kept_connection_stays_where_it_was_judged() {
    let (open, closed) = Receiver::two(DONE).await;
    let guard =
        Guard::with_resolver(openings(&[], &["127.0.0.2/32"]), Script::new([&["127.0.0.2"], &["127.0.0.1"]])).unwrap();
    assert_eq!(post(&guard, open.at.port()).await, Ok(200));
    let again = post(&guard, open.at.port()).await;
    // Either the old connection was used again, or a new one was refused.
    assert!(matches!(again, Ok(200) | Err(SendError::Refused(Refused::Host))), "{again:?}");
    assert_eq!(closed.seen(), 0);
}

#[tokio::test]
async fn one_bad_address_among_good_ones_is_enough() {
    let open = Receiver::start("127.0.0.2:0", DONE, false).await;
    for answer in [["127.0.0.2", "127.0.0.1"], ["127.0.0.1", "127.0.0.2"], ["127.0.0.2", "::ffff:127.0.0.1"]] {
        let guard = Guard::with_resolver(openings(&[], &["127.0.0.2/32"]), Script::new([&answer])).unwrap();
        assert_eq!(post(&guard, open.at.port()).await, Err(SendError::Refused(Refused::Host)), "{answer:?}");
    }
    assert_eq!(open.seen(), 0);
}

#[tokio::test]
async fn a_closed_address_looks_the_same_whether_something_listens_or_not() {
    let receiver = Receiver::start("127.0.0.1:0", DONE, false).await;
    let silent = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let guard = Guard::with_resolver(Openings::default(), Script::new([&["127.0.0.1"]])).unwrap();
    let texts = [receiver.at.port(), silent].map(|port| format!("http://127.0.0.1:{port}/"));
    let mut said = Vec::new();
    for url in &texts {
        said.push(guard.post(url, HeaderMap::new(), Bytes::new(), SOON).await.expect_err(url).to_string());
    }
    for port in [receiver.at.port(), silent] {
        said.push(post(&guard, port).await.expect_err("closed").to_string());
    }
    said.dedup();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(!said[0].contains("127.") && !said[0].contains("resolve"), "{said:?}");
    assert_eq!(receiver.seen(), 0);
}

#[tokio::test]
async fn a_name_without_an_address_may_have_one_later() {
    let guard = Guard::with_resolver(Openings::default(), Script::new([])).unwrap();
    assert_eq!(post(&guard, 8080).await, Err(SendError::Transient(Fault::Name)));
    // At registration it looks like any other host that is not public.
    assert_eq!(guard.check_resolved("http://hooks.example.com/").await, Err(Refused::Host));
}

#[tokio::test]
async fn a_named_host_is_reached_wherever_it_is_and_shares_no_connection() {
    let receiver = Receiver::start("127.0.0.1:0", DONE, false).await;
    let port = receiver.at.port();
    let named = format!("hooks.example.com:{port}");
    let guard = Guard::with_resolver(openings(&[&named], &[]), Script::new([&["127.0.0.1"]])).unwrap();
    assert_eq!(post(&guard, port).await, Ok(200));
    let other = Receiver::start("127.0.0.1:0", DONE, false).await;
    assert_eq!(post(&guard, other.at.port()).await, Err(SendError::Refused(Refused::Host)));
    assert_eq!((receiver.seen(), other.seen()), (1, 0));
}
