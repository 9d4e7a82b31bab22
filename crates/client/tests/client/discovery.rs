//! From an address to an interface.

use std::time::Duration;

use nuncio_client::{Binding, Client, ClientError, Credential, KeyPlace, Options, Secret, Version};
use nuncio_protocol::{GetTaskRequest, json};

use crate::server::{Answer, Seen, Server, Step, card, quick, secretive, task};

const WELL_KNOWN: &str = "/.well-known/agent-card.json";

fn own_url(seen: &Seen) -> String {
    format!("http://{}/rpc", seen.header("host").unwrap())
}

/// Serves a card that leads to the server itself, and one task.
fn agent(seen: &Seen, _: usize) -> Answer {
    match &*seen.path {
        WELL_KNOWN => card(&json!([
            {"url": own_url(seen), "protocolBinding": "SLIMRPC", "protocolVersion": "1.0"},
            {"url": own_url(seen), "protocolBinding": "JSONRPC", "protocolVersion": "2.0"},
            {"url": "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": own_url(seen), "protocolBinding": "jsonrpc", "protocolVersion": "1.0.1", "tenant": "blue"},
            {"url": own_url(seen), "protocolBinding": "HTTP+JSON", "protocolVersion": "0.3"},
            {"url": "http://elsewhere.invalid", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        ])),
        "/rpc" => seen.result(&task("WORKING")),
        _ => Answer::status(404, "nothing here"),
    }
}

#[tokio::test]
async fn takes_the_first_interface_it_speaks_and_remembers_the_tenant() {
    let server = Server::start(agent).await;
    let options = Options { extensions: vec!["urn:a".into(), "urn:b".into()], ..secretive() };
    let client = Client::discover(&server.url, options).await.unwrap();
    assert_eq!((client.binding(), client.version(), client.tenant()), (Binding::JsonRpc, Version::V1_0, "blue"));
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
            {"url": "h.test:443", "protocolBinding": "SLIMRPC", "protocolVersion": "1.0"},
            {"url": "https://h.test/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "0.2"},
        ]))
    })
    .await;
    let error = Client::discover(&server.url, quick()).await.unwrap_err();
    assert!(matches!(&error, ClientError::NoInterface { offers, .. } if offers.len() == 2));
    let text = error.to_string();
    assert!(text.contains("SLIMRPC 1.0 at h.test:443, JSONRPC 0.2 at https://h.test/rpc"), "{text}");
}

#[tokio::test]
async fn never_goes_below_what_the_caller_asked_for() {
    let server = Server::start(agent).await;
    let rest = Options { binding: Some(Binding::Rest), ..quick() };
    let client = Client::discover(&server.url, rest.clone()).await.unwrap();
    assert_eq!((client.binding(), client.version()), (Binding::Rest, Version::V0_3));
    let old = Client::discover(&server.url, Options { version: Some(Version::V0_3), ..quick() }).await.unwrap();
    assert_eq!(old.binding(), Binding::Rest);
    let error = Client::discover(&server.url, Options { version: Some(Version::V1_0), ..rest }).await.unwrap_err();
    assert!(error.to_string().contains("You asked for HTTP+JSON 1.0"), "{error}");
    assert!(matches!(error, ClientError::NoInterface { .. }));
}

#[tokio::test]
async fn a_card_of_03_names_its_interfaces_otherwise() {
    let server = Server::start(|seen, _| {
        let url = own_url(seen);
        Answer::json(&json!({"name": "old", "protocolVersion": "0.3.0", "url": url,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}, "security": [{"bearer": []}],
            "additionalInterfaces": [{"url": url, "transport": "JSONRPC"}, {"url": url, "transport": "HTTP+JSON"}]}))
    })
    .await;
    let client = Client::discover(&server.url, quick()).await.unwrap();
    assert_eq!((client.binding(), client.version()), (Binding::JsonRpc, Version::V0_3));
    assert_eq!(client.card().unwrap().supported_interfaces.len(), 2);
    assert!(client.card_json().unwrap().starts_with(b"{\"name\":\"old\""));
    let client = Client::discover(&server.url, Options { binding: Some(Binding::Rest), ..quick() }).await.unwrap();
    assert_eq!(client.binding(), Binding::Rest);
}

#[tokio::test]
async fn extensions_that_the_agent_requires_must_be_active() {
    let server = Server::start(|seen, _| {
        let mut answer = json!({"name": "n", "supportedInterfaces":
            [{"url": own_url(seen), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]});
        answer["capabilities"] = json!({"extensions": [{"uri": "urn:a", "required": true}, {"uri": "urn:b"}]});
        Answer::json(&answer)
    })
    .await;
    let error = Client::discover(&server.url, quick()).await.unwrap_err();
    assert!(matches!(&error, ClientError::ExtensionsRequired { missing, .. } if missing == &["urn:a"]), "{error:?}");
    Client::discover(&server.url, Options { extensions: vec!["urn:a".into()], ..quick() }).await.unwrap();
}

#[tokio::test]
async fn a_card_is_kept_as_long_as_its_server_allows() {
    let server = Server::start(|seen, n| {
        let fresh = match seen.path.as_str() {
            "/fresh.json" => "public, max-age=60",
            "/stale.json" => "max-age=0",
            "/checked.json" => "no-cache, max-age=60",
            _ => "no-store",
        };
        if seen.header("if-none-match").is_some() {
            assert_eq!(seen.header("if-none-match"), Some("\"v1\""));
            return Answer::status(304, "").with("cache-control", fresh);
        }
        agent(&Seen { path: WELL_KNOWN.into(), ..seen.clone() }, n).with("cache-control", fresh).with("etag", "\"v1\"")
    })
    .await;
    let options = quick();
    for (path, asked) in [("/fresh.json", 1), ("/stale.json", 3), ("/checked.json", 3), ("/never.json", 3)] {
        for _ in 0..3 {
            let client = Client::discover(&format!("{}{path}", server.url), options.clone()).await.unwrap();
            assert_eq!(client.tenant(), "blue");
        }
        let of_path: Vec<Seen> = server.seen().into_iter().filter(|seen| seen.path == path).collect();
        assert_eq!(of_path.len(), asked, "{path}");
        let conditional = of_path.iter().filter(|seen| seen.header("if-none-match").is_some()).count();
        assert_eq!(conditional, if path == "/never.json" { 0 } else { asked - 1 }, "{path}");
    }
    // Another caller may see another card.
    let other = Options { cards: options.cards.clone(), ..secretive() };
    Client::discover(&format!("{}/fresh.json", server.url), other).await.unwrap();
    assert_eq!(server.seen().iter().filter(|seen| seen.path == "/fresh.json").count(), 2);
    options.cards.clear();
    Client::discover(&format!("{}/fresh.json", server.url), options).await.unwrap();
    assert_eq!(server.seen().iter().filter(|seen| seen.path == "/fresh.json").count(), 3);
}

#[tokio::test]
async fn every_kind_of_credential_goes_to_its_place() {
    let server = Server::start(|seen, _| match &*seen.path {
        WELL_KNOWN => agent(seen, 0),
        path if path.starts_with("/.well-known") => agent(&Seen { path: WELL_KNOWN.into(), ..seen.clone() }, 0),
        _ => seen.result(&task("WORKING")),
    })
    .await;
    for credential in [
        Credential::Basic { user: "me".into(), password: "pass word".into() },
        Credential::Header { name: "x-more".into(), value: "v".into() },
        key(KeyPlace::Header),
        key(KeyPlace::Query),
        key(KeyPlace::Cookie),
    ] {
        let before = server.seen().len();
        let options = Options { credentials: vec![credential.clone()], ..quick() };
        let client = Client::discover(&server.url, options).await.unwrap();
        client.get(GetTaskRequest { id: "T1".into(), ..Default::default() }).await.unwrap();
        for seen in &server.seen()[before..] {
            let arrived = match &credential {
                Credential::Basic { .. } => seen.header("authorization") == Some("Basic bWU6cGFzcyB3b3Jk"),
                Credential::Header { .. } => seen.header("x-more") == Some("v"),
                Credential::ApiKey { place: KeyPlace::Header, .. } => seen.header("k") == Some("very-secret"),
                Credential::ApiKey { place: KeyPlace::Query, .. } => seen.path.ends_with("?k=very-secret"),
                Credential::ApiKey { place: KeyPlace::Cookie, .. } => seen.header("cookie") == Some("k=very-secret"),
                Credential::Bearer(_) => false,
            };
            assert!(arrived, "{credential:?}: {seen:?}");
        }
    }
}

fn key(place: KeyPlace) -> Credential {
    Credential::ApiKey { place, name: "k".into(), value: "very-secret".into() }
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
        Credential::Bearer("very-secret".into()),
        Credential::Basic { user: "me".into(), password: "very-secret".into() },
        Credential::Header { name: "x-api-key".into(), value: "very-secret".into() },
        key(KeyPlace::Header),
        key(KeyPlace::Query),
        key(KeyPlace::Cookie),
    ] {
        let options = Options { credentials: vec![options], ..quick() };
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
    let leave = Options { allow_cross_origin: true, ..secretive() };
    let named = Options { origins: vec![other.url.clone()], ..secretive() };
    for options in [quick(), leave, named] {
        let client = Client::discover(&server.url, options).await.unwrap();
        client.get(GetTaskRequest { id: "T1".into(), ..Default::default() }).await.unwrap();
    }
    let sent: Vec<bool> = other.seen().iter().map(|seen| seen.header("authorization").is_some()).collect();
    assert_eq!(sent, [false, true, true]);
}

#[tokio::test]
async fn a_card_leads_to_redis_or_to_a_socket_of_this_machine_for_nobody_who_did_not_ask() {
    let other = Server::start(|seen, _| seen.result(&task("WORKING"))).await;
    let place = other.url.trim_start_matches("http://").to_owned();
    for (binding, scheme) in [
        ("redis-streams", "redis-streams"),
        ("redis-streams", "http"),
        ("redis-streams", "https"),
        ("redis-streams", "ws"),
        ("JSONRPC", "redis-streams"),
        ("unix", "unix"),
        ("unix", "http"),
        ("stdio", "http"),
        ("stdio", "stdio"),
    ] {
        let url = format!("{scheme}://{place}");
        let server = Server::start(move |_, _| {
            card(&json!([{"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}]))
        })
        .await;
        let error = Client::discover(&server.url, quick()).await.unwrap_err();
        assert!(matches!(error, ClientError::NoInterface { .. }), "{binding} at {scheme}: {error:?}");
    }
    // Whoever asks for Redis gets no other place under its name.
    let url = other.url.clone();
    let server = Server::start(move |_, _| {
        card(&json!([{"url": url, "protocolBinding": "redis-streams", "protocolVersion": "1.0"}]))
    })
    .await;
    let asked = Options { binding: Some(Binding::RedisStreams), ..quick() };
    let error = Client::discover(&server.url, asked).await.unwrap_err();
    assert!(matches!(error, ClientError::NoInterface { .. }), "{error:?}");
    assert!(other.seen().is_empty());
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
    let options = secretive;
    Client::discover(&format!("{}/inside.json", server.url), options()).await.unwrap();
    let error = Client::discover(&format!("{}/outside.json", server.url), options()).await.unwrap_err();
    assert!(matches!(error, ClientError::Redirect { .. }), "{error:?}");
    assert!(other.seen().is_empty());
    let error = Client::discover(&format!("{}/for-ever.json", server.url), options()).await.unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
}

#[tokio::test]
async fn what_cannot_be_used_is_said_before_anything_is_sent() {
    let with = |credential| Options { credentials: vec![credential], ..quick() };
    let header = |name: &str, value: &str| with(Credential::Header { name: name.into(), value: Secret::from(value) });
    for (url, options) in [
        ("ftp://h.test", quick()),
        ("http://", quick()),
        ("https://me:secret@h.test", quick()),
        ("http://h.test", header("x-key", "secret\nline")),
        ("http://h.test", header("no name", "secret")),
        ("http://h.test", with(Credential::Bearer("secret\r\nline".into()))),
        ("http://h.test", with(Credential::Basic { user: "a:b".into(), password: "secret".into() })),
        (
            "http://h.test",
            with(Credential::ApiKey { place: KeyPlace::Cookie, name: "k".into(), value: "secret;x".into() }),
        ),
        ("http://h.test", Options { origins: vec!["ftp://secret".into()], ..quick() }),
    ] {
        let error = Client::direct(url, options).unwrap_err();
        assert!(matches!(error, ClientError::Invalid { .. }), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    }
}
