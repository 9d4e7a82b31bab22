//! Servers that answer too much, too slowly, or with somewhere else to go.

use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};

use super::super::{Fault, Guard, SendError, retry_after};
use super::kit::{Receiver, SOON, open_at};

const HERE: &str = "127.0.0.1";
/// Short enough to wait for an answer that does not come.
const BRIEF: Duration = Duration::from_millis(700);

fn url(receiver: &Receiver) -> String {
    format!("http://hooks.example.com:{}/a2a?x=1", receiver.at.port())
}

async fn receiver(answer: impl Into<Vec<u8>>, hold: bool) -> (Guard, Receiver) {
    (open_at(HERE), Receiver::start((HERE, 0), answer, hold).await)
}

#[tokio::test]
async fn a_post_carries_the_original_host_and_what_it_was_given() {
    let (guard, receiver) = receiver("HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno", false).await;
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer abc"));
    headers.insert(header::HOST, HeaderValue::from_static("evil.example"));
    headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("1"));
    let reply = guard.post(&url(&receiver), headers, Bytes::from_static(b"hello"), SOON).await.unwrap();
    assert_eq!((reply.status, reply.retry_after), (429, Some(Duration::from_secs(7))));
    let request = receiver.requests.lock()[0].clone();
    let head = request.to_ascii_lowercase();
    assert!(request.starts_with("POST /a2a?x=1 HTTP/1.1\r\n"), "{request}");
    assert!(head.contains(&format!("\r\nhost: hooks.example.com:{}\r\n", receiver.at.port())), "{request}");
    assert!(head.contains("\r\nauthorization: bearer abc\r\n") && head.contains("\r\ncontent-length: 5\r\n"), "{head}");
    assert!(!head.contains("evil") && !head.contains("chunked") && request.ends_with("\r\n\r\nhello"), "{request}");
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let (guard, receiver) = receiver("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false).await;
    for _ in 0..5 {
        guard.post(&url(&receiver), HeaderMap::new(), Bytes::from_static(b"1"), SOON).await.unwrap();
        // The connection goes back to the pool when its task has run.
        tokio::task::yield_now().await;
    }
    assert_eq!(receiver.requests.lock().len(), 5);
    assert!(receiver.seen() < 5, "{}", receiver.seen());
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_not_followed() {
    let elsewhere = Receiver::start((HERE, 0), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false).await;
    for status in [301, 302, 303, 307, 308] {
        let port = elsewhere.at.port();
        let answer =
            format!("HTTP/1.1 {status} Go\r\nLocation: http://hooks.example.com:{port}/\r\nContent-Length: 0\r\n\r\n");
        let (guard, receiver) = receiver(answer, false).await;
        let reply = guard.post(&url(&receiver), HeaderMap::new(), Bytes::from_static(b"1"), SOON).await.unwrap();
        assert_eq!(reply.status, status);
        let answer = guard.get(&url(&receiver), HeaderMap::new(), 100, SOON).await.unwrap();
        assert_eq!(answer.status, status);
    }
    assert_eq!(elsewhere.seen(), 0);
}

#[tokio::test]
async fn a_huge_answer_is_cut() {
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n".to_vec();
    answer.resize(1 << 20, b'x');
    let (guard, receiver) = receiver(answer, true).await;
    // The rest never comes: a post that waited for it would end by its deadline, and say so.
    let reply = guard.post(&url(&receiver), HeaderMap::new(), Bytes::from_static(b"1"), SOON).await.unwrap();
    assert_eq!(reply.status, 200);
    let error = guard.get(&url(&receiver), HeaderMap::new(), 1000, SOON).await.unwrap_err();
    assert_eq!(error, SendError::TooLarge { limit: 1000 });
}

#[tokio::test]
async fn a_huge_answer_of_unknown_length_is_cut() {
    let mut answer = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    answer.resize(200_000, b'x');
    let (guard, receiver) = receiver(answer, true).await;
    let error = guard.get(&url(&receiver), HeaderMap::new(), 100_000, SOON).await.unwrap_err();
    assert_eq!(error, SendError::TooLarge { limit: 100_000 });
}

#[tokio::test]
async fn endless_headers_are_cut() {
    let mut answer = b"HTTP/1.1 200 OK\r\n".to_vec();
    for i in 0..100_000 {
        answer.extend_from_slice(format!("X-{i}: y\r\n").as_bytes());
    }
    let (guard, receiver) = receiver(answer, true).await;
    let error = guard.post(&url(&receiver), HeaderMap::new(), Bytes::new(), SOON).await.unwrap_err();
    assert_eq!(error, SendError::Transient(Fault::Broken));
}

#[tokio::test]
async fn a_silent_or_slow_server_is_left() {
    let (guard, silent) = receiver("", true).await;
    let error = guard.post(&url(&silent), HeaderMap::new(), Bytes::new(), BRIEF).await.unwrap_err();
    assert_eq!(error, SendError::Transient(Fault::Timeout));
    let (guard, slow) = receiver("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", true).await;
    let error = guard.get(&url(&slow), HeaderMap::new(), 100, BRIEF).await.unwrap_err();
    assert_eq!(error, SendError::Transient(Fault::Timeout));
    // Its status was there, and nothing else matters to a post.
    let reply = guard.post(&url(&slow), HeaderMap::new(), Bytes::new(), SOON).await.unwrap();
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn what_is_not_http_or_not_there_is_a_transient_fault() {
    let (guard, rude) = receiver("220 mail.example ESMTP\r\n", false).await;
    let error = guard.post(&url(&rude), HeaderMap::new(), Bytes::new(), SOON).await.unwrap_err();
    assert_eq!(error, SendError::Transient(Fault::Broken));
    let gone = std::net::TcpListener::bind((HERE, 0)).unwrap().local_addr().unwrap().port();
    let url = format!("http://hooks.example.com:{gone}/");
    let error = guard.post(&url, HeaderMap::new(), Bytes::new(), SOON).await.unwrap_err();
    assert_eq!(error, SendError::Transient(Fault::Connect));
}

#[test]
fn retry_after_is_a_number_or_a_date_and_never_more_than_a_day() {
    let read = |text: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, text.parse().unwrap());
        retry_after(&headers)
    };
    let day = Some(Duration::from_secs(86_400));
    assert_eq!(read("120"), Some(Duration::from_secs(120)));
    assert_eq!(read("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
    assert_eq!(read("Fri, 31 Dec 9999 23:59:59 GMT"), day);
    assert_eq!((read("18446744073709551615"), read("99999999999999999999999999")), (day, day));
    assert_eq!((read("soon"), read("-1"), read("")), (None, None, None));
    assert_eq!(retry_after(&HeaderMap::new()), None);
}

/// The environment belongs to a whole process, so this runs itself in another.
#[tokio::test]
async fn a_proxy_in_the_environment_is_ignored() {
    const CHILD: &str = "NUNCIO_TEST_GUARD_TARGET";
    let name = "push::guard::tests::server::a_proxy_in_the_environment_is_ignored";
    if let Ok(target) = std::env::var(CHILD) {
        let reply = open_at(HERE).post(&target, HeaderMap::new(), Bytes::from_static(b"1"), SOON).await.unwrap();
        assert_eq!(reply.status, 204);
        return;
    }
    let receiver = Receiver::start((HERE, 0), "HTTP/1.1 204 No\r\n\r\n", false).await;
    let proxy = Receiver::start((HERE, 0), "HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n", false).await;
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", name]).env(CHILD, url(&receiver));
    for variable in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        child.env(variable, format!("http://{}", proxy.at));
    }
    let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!((receiver.seen(), proxy.seen()), (1, 0));
}
