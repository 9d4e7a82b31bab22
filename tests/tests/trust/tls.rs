//! Safe connections: certificates that change, old versions, certificates of clients.

use std::time::Duration;

use nuncio_tests::raw::{Connection, Wire, until};
use nuncio_tests::{PATIENCE, Value, json};
use reqwest::{Certificate, Client, Identity};

use crate::kit::{Authority, TOKENS, install};

/// A client that trusts one authority, with a certificate of its own if one is given.
fn client(trusted: &Authority, own: Option<(String, String)>) -> Client {
    let root = Certificate::from_pem(trusted.pem().as_bytes()).expect("a certificate");
    let mut builder = Client::builder().no_proxy().tls_certs_only([root]).timeout(PATIENCE);
    if let Some((cert, key)) = own {
        builder = builder.identity(Identity::from_pem(format!("{cert}{key}").as_bytes()).expect("an identity"));
    }
    builder.build().expect("a client")
}

fn at(wire: &Wire, path: &str) -> String {
    format!("https://{}{path}", wire.address)
}

async fn send(client: &Client, wire: &Wire) -> (u16, Value) {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "file a.bin 300000" }] });
    let request = client.post(at(wire, "/message:send")).header("A2A-Version", "1.0");
    let answer = request.json(&json!({ "message": message })).send().await.expect("an answer");
    (answer.status().as_u16(), answer.json().await.expect("JSON"))
}

#[tokio::test]
async fn everything_is_served_over_tls_and_says_so() {
    let authority = Authority::new("authority");
    let wire = Wire::start(&authority.config());
    let client = client(&authority, None);
    let card = client.get(at(&wire, "/.well-known/agent-card.json")).send().await.expect("the card");
    assert_eq!(card.version(), reqwest::Version::HTTP_2, "both sides know it");
    let card: Value = card.json().await.expect("JSON");
    for interface in card["supportedInterfaces"].as_array().expect("interfaces") {
        let url = interface["url"].as_str().expect("an address");
        assert!(!url.starts_with("http:"), "{url}");
    }
    let (status, answer) = send(&client, &wire).await;
    assert_eq!(status, 200, "{answer}");
    let url = answer["task"]["artifacts"][0]["parts"][0]["url"].as_str().expect("an address");
    assert!(url.starts_with("https://"), "{url}");
    assert_eq!(client.get(url).send().await.expect("the file").status(), 200);
    // An empty message of gRPC: no compression, no length.
    let grpc = client.post(at(&wire, "/lf.a2a.v1.A2AService/ListTasks")).body(vec![0; 5]);
    let grpc = grpc.header("content-type", "application/grpc").header("te", "trailers").header("a2a-version", "1.0");
    let grpc = grpc.send().await.expect("an answer");
    assert_eq!(grpc.headers()["content-type"], "application/grpc");
    let message = grpc.bytes().await.expect("a message");
    let length = u32::from_be_bytes(message[1..5].try_into().expect("four bytes"));
    assert!(message[0] == 0 && length > 0 && message.len() == 5 + length as usize, "a page with one task: {message:?}");
    let plain = reqwest::Client::builder().no_proxy().build().expect("a client");
    assert!(plain.get(format!("http://{}/health", wire.address)).send().await.is_err(), "nothing is served without");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_takes_every_way_over_tls() {
    let authority = Authority::new("authority");
    let wire = Wire::start(&format!("{}transport: [http, grpc-jsonrpc]\n", authority.config()));
    let run = |args: &[&str], trusted: &str| {
        let mut command = std::process::Command::new(nuncio_tests::binary());
        let done = command.arg("client").args(args).env("SSL_CERT_FILE", trusted).output().expect("it runs");
        (done.status.code(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
    };
    let (trusted, others) = (authority.file("ca.pem"), Authority::new("others"));
    let (trusted, untrusted) = (trusted.display().to_string(), others.file("ca.pem").display().to_string());
    for transport in ["jsonrpc", "rest", "grpc", "grpc-jsonrpc", "websocket"] {
        let url = at(&wire, "");
        let call = ["call", "--prompt", "stream 3 1", "--url", &url, "--transport", transport];
        let (code, said) = run(&call, &trusted);
        assert!(code == Some(0) && said.contains("chunk 0chunk 1chunk 2"), "{transport}: {code:?} {said}");
    }
    let address = wire.address;
    for url in [format!("grpcs-jsonrpc://{address}"), format!("wss://{address}/ws")] {
        let (code, card) = run(&["discover", "--output", "json", "--url", &url], &trusted);
        assert_eq!(code, Some(0), "{card}");
        for way in [format!("https://{address}/"), format!("wss://{address}/ws"), format!("grpcs-jsonrpc://{address}")]
        {
            assert!(card.contains(&format!("\"{way}\"")), "{url} does not lead to {way}: {card}");
        }
        assert!(!card.contains("\"http://") && !card.contains("\"ws://"), "{card}");
    }
    for url in [format!("grpcs://{address}"), format!("grpcs-jsonrpc://{address}"), format!("wss://{address}/ws")] {
        assert_eq!(run(&["call", "--prompt", "hi", "--url", &url], &trusted).0, Some(0), "{url}");
        assert_eq!(run(&["call", "--prompt", "hi", "--url", &url], &untrusted).0, Some(3), "{url}: of strangers");
    }
}

#[tokio::test]
async fn a_new_certificate_is_taken_up_while_calls_go_on() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let wire = Wire::start(&old.config());
    let staying = client(&old, None);
    let health = |client: Client| {
        let asked = client.get(at(&wire, "/health")).send();
        async { asked.await.map(|answer| answer.status()) }
    };
    assert_eq!(health(staying.clone()).await.ok(), Some(reqwest::StatusCode::OK));
    // A stream that is open all the time.
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hold" }] });
    let stream = staying.post(at(&wire, "/message:stream")).header("A2A-Version", "1.0").timeout(2 * PATIENCE);
    let mut stream = stream.json(&json!({ "message": message })).send().await.expect("a stream");
    let first = stream.chunk().await.expect("it is open").expect("an event");
    let first = String::from_utf8_lossy(&first).into_owned();
    let event: Value = first.lines().find_map(|line| line.strip_prefix("data: ")?.parse().ok()).expect("an event");
    let (cert, key) = (old.file("cert.pem"), old.file("key.pem"));

    std::fs::write(&key, "no key at all").expect("the file can be written");
    wire.signal("HUP");
    until("the mistake is told", || wire.log().contains("the old one stays"));
    assert!(health(client(&old, None)).await.is_ok(), "what was good goes on");

    install(&cert, &key, &new.issue("server"));
    let mode = |mode| std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(mode));
    mode(0o644).expect("it has a mode");
    wire.signal("HUP");
    until("everybody could read it", || wire.log().contains("other users can read"));
    assert!(health(client(&old, None)).await.is_ok(), "a key that everybody knows is not taken");

    mode(0o600).expect("it has a mode");
    wire.signal("HUP");
    let mut taken_up = false;
    let end = std::time::Instant::now() + PATIENCE;
    while !taken_up && std::time::Instant::now() < end {
        taken_up = health(client(&new, None)).await.is_ok();
        assert!(health(staying.clone()).await.is_ok(), "open connections go on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(taken_up, "new connections get the new certificate");
    assert!(health(client(&old, None)).await.is_err(), "and no longer the old one");
    let task = event["task"]["id"].as_str().expect("a task");
    let cancel = staying.post(at(&wire, &format!("/tasks/{task}:cancel"))).header("A2A-Version", "1.0");
    assert_eq!(cancel.send().await.expect("an answer").status(), 200);
    let mut rest = String::new();
    while let Ok(Some(chunk)) = stream.chunk().await {
        rest.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(rest.contains("TASK_STATE_CANCELED"), "the stream ends as it should: {rest}");
}

#[test]
fn old_versions_and_slow_greetings_are_refused() {
    let authority = Authority::new("authority");
    let wire = Wire::start(&format!("{}header-timeout: 1s\n", authority.config()));
    // A greeting of TLS 1.1: record, handshake, version, random, no session, two ciphers, no compression.
    let mut hello = vec![0x03, 0x02];
    hello.extend([7; 32]);
    hello.extend([0, 0, 4, 0x00, 0x2f, 0xc0, 0x13, 1, 0]);
    let length = u8::try_from(hello.len()).expect("a short one");
    let mut record = vec![0x16, 0x03, 0x01, 0, length + 4, 0x01, 0, 0, length];
    record.extend(hello);
    let mut connection = Connection::to(wire.address);
    connection.send(&record);
    let answer = connection.rest();
    assert_eq!((answer.first(), answer.get(5)), (Some(&0x15), Some(&2)), "a fatal alert: {answer:?}");
    let mut silent = Connection::to(wire.address);
    silent.closed();
    let mut slow = Connection::to(wire.address);
    slow.send(&record[..8]);
    slow.closed();
    assert_eq!(wire.log().matches("panicked").count(), 0);
}

#[tokio::test]
async fn certificates_of_clients_say_who_they_are() {
    let (servers, people, others) = (Authority::new("servers"), Authority::new("people"), Authority::new("others"));
    let ca = people.file("ca.pem");
    let wire = Wire::start(&format!("{TOKENS}{}client-ca: \"{}\"\n", servers.config(), ca.display()));
    let anna = client(&servers, Some(people.issue("anna")));
    let ben = client(&servers, Some(people.issue("ben")));
    let nobody = client(&servers, None);
    assert_eq!(send(&anna, &wire).await.0, 200);
    let count = |client: Client, token: &'static str| {
        let mut request = client.get(at(&wire, "/tasks")).header("A2A-Version", "1.0");
        if !token.is_empty() {
            request = request.bearer_auth(token);
        }
        async {
            let answer = request.send().await.expect("an answer");
            let status = answer.status().as_u16();
            (status, answer.json::<Value>().await.expect("JSON")["totalSize"].as_u64())
        }
    };
    assert_eq!(count(anna, "").await, (200, Some(1)));
    assert_eq!(count(ben, "").await, (200, Some(0)), "another name, other tasks");
    assert_eq!(count(nobody.clone(), "").await.0, 401);
    let token = "aaaaaaaaaaaaaaaaaaaaaaaa";
    assert_eq!(count(nobody.clone(), token).await, (200, Some(0)), "the token of the same name is somebody else");
    let card = nobody.get(at(&wire, "/.well-known/agent-card.json")).header("A2A-Version", "1.0");
    let card: Value = card.send().await.expect("the card").json().await.expect("JSON");
    assert_eq!(card["securitySchemes"]["mutualTls"], json!({ "mtlsSecurityScheme": {} }), "{card}");
    let stranger = client(&servers, Some(others.issue("anna")));
    assert!(stranger.get(at(&wire, "/health")).send().await.is_err(), "whom nobody vouches for is not greeted");
}

#[test]
fn a_server_without_its_key_says_why_it_does_not_start() {
    let authority = Authority::new("authority");
    let config = authority.config();
    let other = authority.issue("other");
    let run = |command: &str| {
        let file = authority.file("nuncio.yml");
        std::fs::write(&file, format!("port: 0\nstore: memory\n{config}")).expect("the file can be written");
        let mut run = std::process::Command::new(nuncio_tests::binary());
        let done = run.arg(command).arg("--config").arg(&file).output().expect("it runs");
        let text = [done.stdout, done.stderr].concat();
        (done.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let (code, said) = run("doctor");
    assert!(code == Some(0) && said.contains("more days"), "{said}");
    for (what, key) in [("nothing", None), ("no key", Some("no key")), ("another key", Some(&*other.1))] {
        match key {
            None => std::fs::remove_file(authority.file("key.pem")).expect("it was there"),
            Some(text) => std::fs::write(authority.file("key.pem"), text).expect("the file can be written"),
        }
        let (code, said) = run("serve");
        assert_eq!(code, Some(2), "{what}: {said}");
        assert!(said.contains("key.pem") && !said.contains("PRIVATE KEY"), "{what}: {said}");
        assert_ne!(run("doctor").0, Some(0), "{what}");
    }
}
