//! From an address to an interface.

use std::time::Duration;

use nuncio_client::{Client, ClientError, Options};
use nuncio_protocol::{GetTaskRequest, json};

use crate::server::{Answer, Seen, Server, Step, card, quick, task};

const WELL_KNOWN: &str = "/.well-known/agent-card.json";

fn own_url(seen: &Seen) -> String {
    format!("http://{}/rpc", seen.header("host").unwrap())
}

/// Serves a card that leads to the server itself, and one task.
fn agent(seen: &Seen, _: usize) -> Answer {
    match &*seen.path {
        WELL_KNOWN => card(&json!([
            {"url": own_url(seen), "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            {"url": own_url(seen), "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
            {"url": own_url(seen), "protocolBinding": "jsonrpc", "protocolVersion": "1.0.1", "tenant": "blue"},
            {"url": "http://elsewhere.invalid", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        ])),
        "/rpc" => seen.result(&task("WORKING")),
        _ => Answer::status(404, "nothing here"),
    }
}

#[tokio::test]
async fn takes_the_first_interface_it_speaks_and_remembers_the_tenant() {
    let server = Server::start(agent).await;
    let options =
        Options { token: Some("very-secret".into()), extensions: vec!["urn:a".into(), "urn:b".into()], ..quick() };
    let client = Client::discover(&server.url, options).await.unwrap();
    assert_eq!((client.binding(), client.version(), client.tenant()), ("JSONRPC", "1.0", "blue"));
    assert_eq!(client.url(), format!("{}/rpc", server.url));
    assert_eq!(client.card().unwrap().name, "n");

    client.get(GetTaskRequest { id: "T1".into(), ..Default::default() }).await.unwrap();
    let call = &server.seen()[1];
    assert_eq!(call.body["params"], json!({"tenant": "blue", "id": "T1"}));
    assert_eq!(call.header("a2a-version"), Some("1.0"));
    assert_eq!(call.header("a2a-extensions"), Some("urn:a, urn:b"));
    assert_eq!(call.header("authorization"), Some("Bearer very-secret"));
    assert_eq!(call.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn looks_below_the_address_first_and_at_the_origin_then() {
    let server = Server::start(agent).await;
    Client::discover(&format!("{}/a2a/?x=1", server.url), quick()).await.unwrap();
    let paths: Vec<String> = server.seen().into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths, ["/a2a/.well-known/agent-card.json", WELL_KNOWN]);
}

#[tokio::test]
async fn an_address_that_ends_in_json_is_the_card() {
    let server = Server::start(|seen, _| {
        card(&json!([{"url": own_url(seen), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]))
    })
    .await;
    Client::discover(&format!("{}/cards/mine.json?v=2", server.url), quick()).await.unwrap();
    assert_eq!(server.seen()[0].path, "/cards/mine.json?v=2");
}

#[tokio::test]
async fn an_address_needs_no_scheme() {
    let server = Server::start(agent).await;
    Client::discover(server.url.trim_start_matches("http://"), quick()).await.unwrap();
}

#[tokio::test]
async fn says_what_the_card_offers_when_nothing_fits() {
    let server = Server::start(|_, _| {
        card(&json!([
            {"url": "h.test:443", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
            {"url": "https://h.test/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
        ]))
    })
    .await;
    let error = Client::discover(&server.url, quick()).await.unwrap_err();
    assert!(matches!(&error, ClientError::NoInterface { offers, .. } if offers.len() == 2));
    let text = error.to_string();
    assert!(text.contains("GRPC 1.0 at h.test:443, JSONRPC 0.3 at https://h.test/rpc"), "{text}");
}

#[tokio::test]
async fn says_that_a_card_is_of_03() {
    let server = Server::start(|_, _| {
        Answer::json(&json!({"name": "old", "protocolVersion": "0.3.0", "url": "https://h.test/a2a",
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}, "security": [{"bearer": []}],
            "additionalInterfaces": [{"url": "https://h.test/a2a", "transport": "JSONRPC"},
                {"url": "https://h.test/rest", "transport": "HTTP+JSON"}]}))
    })
    .await;
    let text = Client::discover(&server.url, quick()).await.unwrap_err().to_string();
    assert!(text.contains("JSONRPC 0.3.0 at https://h.test/a2a, HTTP+JSON 0.3.0 at https://h.test/rest"), "{text}");
}

#[tokio::test]
async fn a_card_has_a_largest_size() {
    let server = Server::start(|seen, _| {
        let filler = Step::Bytes(vec![b' '; 600 * 1024]);
        match &*seen.path {
            "/announced.json" => Answer::status(200, "").with("content-length", "2000000"),
            _ => Answer::status(200, "").steps(vec![filler.clone(), filler]),
        }
    })
    .await;
    for path in ["", "/announced.json"] {
        let error = Client::discover(&format!("{}{path}", server.url), quick()).await.unwrap_err();
        assert!(matches!(error, ClientError::TooLarge { limit: 1_048_576, .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_card_that_does_not_come_is_a_timeout() {
    let server = Server::start(|_, _| Answer::status(200, "").steps(vec![Step::Pause(Duration::from_secs(30))])).await;
    let options = Options { timeout: Duration::from_millis(100), ..quick() };
    let error = Client::discover(&server.url, options).await.unwrap_err();
    assert!(matches!(error, ClientError::Timeout { .. }), "{error:?}");
}

#[tokio::test]
async fn something_else_than_a_card_is_a_protocol_error() {
    let server = Server::start(|_, _| Answer::status(200, "<html>welcome</html>")).await;
    let error = Client::discover(&server.url, quick()).await.unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = Client::discover(&format!("http://{closed}"), quick()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error:?}");
    assert!(error.is_transient());
    assert!(error.to_string().contains("refused"), "{error}");
}

/// A server whose card leads to another one.
async fn card_that_leads_to(other: &Server) -> Server {
    let url = other.url.clone();
    Server::start(move |_, _| card(&json!([{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}])))
        .await
}

#[tokio::test]
async fn credentials_stay_at_the_origin_they_were_given_for() {
    let other = Server::start(|seen, _| seen.result(&task("WORKING"))).await;
    let server = card_that_leads_to(&other).await;
    for options in [
        Options { token: Some("very-secret".into()), ..quick() },
        Options { headers: vec![("x-api-key".into(), "very-secret".into())], ..quick() },
    ] {
        let error = Client::discover(&server.url, options).await.unwrap_err();
        let ClientError::CrossOrigin { typed, other: named } = &error else { panic!("{error:?}") };
        assert_eq!((typed, named), (&server.url, &other.url));
        assert!(!format!("{error} {error:?}").contains("very-secret"));
    }
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn another_origin_is_fine_without_credentials_or_with_leave() {
    let other = Server::start(|seen, _| seen.result(&task("WORKING"))).await;
    let server = card_that_leads_to(&other).await;
    let leave = Options { token: Some("very-secret".into()), allow_cross_origin: true, ..quick() };
    for options in [quick(), leave] {
        let client = Client::discover(&server.url, options).await.unwrap();
        client.get(GetTaskRequest { id: "T1".into(), ..Default::default() }).await.unwrap();
    }
    let sent: Vec<bool> = other.seen().iter().map(|seen| seen.header("authorization").is_some()).collect();
    assert_eq!(sent, [false, true]);
}

#[tokio::test]
async fn redirects_are_followed_inside_the_origin_only() {
    let other = Server::start(agent).await;
    let elsewhere = format!("{}/moved", other.url);
    let server = Server::start(move |seen, n| match &*seen.path {
        "/inside.json" => Answer::status(302, "").with("location", WELL_KNOWN),
        "/outside.json" => Answer::status(301, "").with("location", &elsewhere),
        "/for-ever.json" => Answer::status(308, "").with("location", "/for-ever.json"),
        _ => agent(seen, n),
    })
    .await;
    let options = || Options { token: Some("very-secret".into()), ..quick() };
    Client::discover(&format!("{}/inside.json", server.url), options()).await.unwrap();
    let error = Client::discover(&format!("{}/outside.json", server.url), options()).await.unwrap_err();
    assert!(matches!(error, ClientError::Redirect { .. }), "{error:?}");
    assert!(other.seen().is_empty());
    let error = Client::discover(&format!("{}/for-ever.json", server.url), options()).await.unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
}

#[tokio::test]
async fn what_cannot_be_used_is_said_before_anything_is_sent() {
    let bad_header = Options { headers: vec![("x-key".into(), "secret\nline".into())], ..quick() };
    for (url, options) in [
        ("ftp://h.test", quick()),
        ("http://", quick()),
        ("https://me:secret@h.test", quick()),
        ("http://h.test", bad_header),
        ("http://h.test", Options { headers: vec![("no name".into(), "secret".into())], ..quick() }),
        ("http://h.test", Options { token: Some("secret\r\nline".into()), ..quick() }),
    ] {
        let error = Client::direct(url, options).unwrap_err();
        assert!(matches!(error, ClientError::Invalid { .. }), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    }
}
