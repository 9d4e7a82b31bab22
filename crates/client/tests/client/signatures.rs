//! Whose card it is.

use std::sync::Arc;

use nuncio_client::{CardKeys, Client, ClientError, Options};
use nuncio_protocol::sign::{Algorithm, Form, Reason, SigningKey, Verdict, sign};
use nuncio_protocol::{AgentCard, Value, codec, json};
use parking_lot::Mutex;

use crate::server::{Answer, Seen, Server, quick, secretive};

fn own_url(seen: &Seen) -> String {
    format!("http://{}/rpc", seen.header("host").unwrap())
}

/// A card that leads to the server, as this changes it.
fn card(seen: &Seen, change: impl Fn(&mut AgentCard)) -> Answer {
    let mut card: AgentCard = codec::from_value(json!({"name": "n", "capabilities": {"streaming": true},
        "supportedInterfaces": [{"url": own_url(seen), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}))
    .unwrap();
    change(&mut card);
    Answer::json(&codec::to_value(&card))
}

fn signed(card: &mut AgentCard, key: &SigningKey, jku: Option<&str>) {
    card.signatures.push(sign(card, key, Form::Spec, jku).unwrap());
}

fn jwks(keys: &[&SigningKey]) -> Value {
    json!({ "keys": keys.iter().filter_map(|key| key.public_jwk()).collect::<Vec<_>>() })
}

fn with(card_keys: CardKeys) -> Options {
    Options { card_keys, require_signature: true, ..quick() }
}

fn refused(result: Result<Client, ClientError>) -> Verdict {
    match result {
        Err(ClientError::CardSignature { verdict, .. }) => *verdict,
        other => panic!("a refusal, not {other:?}"),
    }
}

#[tokio::test]
async fn a_card_with_a_good_signature_is_taken() {
    let key = Arc::new(SigningKey::generate("k-1", Algorithm::Es256).unwrap());
    let public = jwks(&[&key]);
    let server = Server::start(move |seen, _| match &*seen.path {
        "/jwks" => Answer::json(&public),
        "/rpc" => {
            let mut card: AgentCard = AgentCard { name: "more".into(), ..Default::default() };
            if seen.header("x-unsigned").is_none() {
                signed(&mut card, &key, None);
            }
            seen.result(&codec::to_value(&card))
        }
        _ => card(seen, |card| signed(card, &key, None)),
    })
    .await;
    let keys = CardKeys::jwks_url(&format!("{}/jwks", server.url)).unwrap();
    let options = Options { card_keys: keys, require_signature: true, ..secretive() };
    for _ in 0..2 {
        let client = Client::discover(&server.url, options.clone()).await.unwrap();
        let verdict = client.signature().unwrap();
        assert!(matches!(verdict, Verdict::Verified { kid, alg: Algorithm::Es256, .. } if kid == "k-1"), "{verdict:?}");
        assert_eq!(client.extended_card().await.unwrap().name, "more");
    }
    let asked: Vec<Seen> = server.seen().into_iter().filter(|seen| seen.path == "/jwks").collect();
    assert_eq!(asked.len(), 1, "the keys are kept");
    assert_eq!(asked[0].header("authorization"), None, "credentials are for the agent");
    // What is required of the card is required of the extended one.
    let unsigned = nuncio_client::Credential::Header { name: "x-unsigned".into(), value: "1".into() };
    let options = Options { credentials: vec![unsigned], ..options };
    let client = Client::discover(&server.url, options).await.unwrap();
    let error = client.extended_card().await.unwrap_err();
    assert!(matches!(&error, ClientError::CardSignature { verdict, .. } if **verdict == Verdict::Absent), "{error:?}");
    assert_eq!(client.read_extended_card().await.unwrap().signature, Verdict::Absent);
}

#[tokio::test]
async fn a_card_without_signature_is_taken_unless_one_is_required() {
    let server = Server::start(|seen, _| card(seen, |_| ())).await;
    let keys = CardKeys::secret("secret").unwrap();
    let lenient = Options { card_keys: keys.clone(), ..quick() };
    let client = Client::discover(&server.url, lenient).await.unwrap();
    assert_eq!(client.signature(), Some(&Verdict::Absent));
    assert_eq!(refused(Client::discover(&server.url, with(keys)).await), Verdict::Absent);
    assert_eq!(refused(Client::discover(&server.url, with(CardKeys::default())).await), Verdict::Absent);
}

#[tokio::test]
async fn a_changed_card_is_refused_as_soon_as_keys_are_given() {
    let key = SigningKey::secret("k-1", b"secret").unwrap();
    let server = Server::start(move |seen, _| {
        card(seen, |card| {
            signed(card, &key, None);
            card.name = "changed".into();
        })
    })
    .await;
    let options = Options { card_keys: CardKeys::secret("secret").unwrap(), ..quick() };
    let verdict = refused(Client::discover(&server.url, options.clone()).await);
    assert_eq!(verdict, Verdict::Wrong(Reason::Mismatch("k-1".into())));
    // Whoever only looks is told; without keys there is nothing to say.
    assert_eq!(Client::read_card(&server.url, options).await.unwrap().signature, verdict);
    let client = Client::discover(&server.url, quick()).await.unwrap();
    assert_eq!(client.signature(), Some(&Verdict::Unverifiable(Reason::NoKeys)));
}

#[tokio::test]
async fn the_keys_that_a_card_names_itself_are_never_asked_for() {
    let forger = Arc::new(SigningKey::generate("k-1", Algorithm::EdDsa).unwrap());
    let public = jwks(&[&forger]);
    let foreign = Server::start(move |_, _| Answer::json(&public)).await;
    let jku = format!("{}/jwks", foreign.url);
    let named = jku.clone();
    let server = Server::start(move |seen, _| match &*seen.path {
        "/jwks" => Answer::json(&jwks(&[&SigningKey::generate("k-2", Algorithm::EdDsa).unwrap()])),
        _ => card(seen, |card| signed(card, &forger, Some(&named))),
    })
    .await;
    let own = CardKeys::jwks_url(&format!("{}/jwks", server.url)).unwrap();
    for keys in [own, CardKeys::secret("secret").unwrap(), CardKeys::default()] {
        let reason = Reason::ForeignKeys { kid: "k-1".into(), jku: jku.clone() };
        assert_eq!(refused(Client::discover(&server.url, with(keys)).await), Verdict::Unverifiable(reason));
    }
    assert!(foreign.seen().is_empty());
    // It is another matter if the caller trusts that address.
    let client = Client::discover(&server.url, with(CardKeys::jwks_url(&jku).unwrap())).await.unwrap();
    assert!(client.signature().unwrap().is_verified());
}

#[tokio::test]
async fn new_keys_are_fetched_when_a_card_uses_them() {
    let keys = ["k-1", "k-2"].map(|kid| Arc::new(SigningKey::generate(kid, Algorithm::EdDsa).unwrap()));
    let current = Arc::new(Mutex::new(keys[0].clone()));
    let shared = current.clone();
    let server = Server::start(move |seen, _| {
        let key = shared.lock().clone();
        match &*seen.path {
            "/jwks" => Answer::json(&jwks(&[&key])),
            _ => card(seen, |card| signed(card, &key, None)),
        }
    })
    .await;
    let options = with(CardKeys::jwks_url(&format!("{}/jwks", server.url)).unwrap());
    Client::discover(&server.url, options.clone()).await.unwrap();
    *current.lock() = keys[1].clone();
    // Just fetched: a stranger must not make us ask again and again.
    let verdict = refused(Client::discover(&server.url, options).await);
    assert_eq!(verdict, Verdict::Unverifiable(Reason::UnknownKey("k-2".into())));
    assert_eq!(server.seen().iter().filter(|seen| seen.path == "/jwks").count(), 1);
    let fresh = with(CardKeys::jwks_url(&format!("{}/jwks", server.url)).unwrap());
    Client::discover(&server.url, fresh).await.unwrap();
}

#[tokio::test]
async fn keys_that_cannot_be_had_are_said_so() {
    let key = SigningKey::generate("k-1", Algorithm::EdDsa).unwrap();
    let server = Server::start(move |seen, _| match &*seen.path {
        "/none" => Answer::status(404, "no"),
        "/large" => Answer::status(200, &" ".repeat(300_000)),
        "/secrets" => Answer::json(&json!({"keys": [{"kty": "oct", "kid": "k-1", "k": "c2VjcmV0"}]})),
        "/text" => Answer::status(200, "keys"),
        _ => card(seen, |card| signed(card, &key, None)),
    })
    .await;
    for (path, said) in [("none", "404"), ("large", "larger"), ("secrets", "no key"), ("text", "JSON")] {
        let keys = CardKeys::jwks_url(&format!("{}/{path}", server.url)).unwrap();
        let Verdict::Unverifiable(Reason::KeysUnavailable(cause)) =
            refused(Client::discover(&server.url, with(keys)).await)
        else {
            panic!("{path}")
        };
        assert!(cause.contains(said), "{path}: {cause}");
    }
}

#[test]
fn keys_come_over_https_or_from_this_machine() {
    for url in ["https://keys.example/jwks", "http://localhost:1/jwks", "http://127.0.0.1/jwks", "http://[::1]/jwks"] {
        CardKeys::jwks_url(url).unwrap();
    }
    for url in ["http://keys.example/jwks", "http://127.evil.example/jwks", "ftp://keys.example", ""] {
        assert!(matches!(CardKeys::jwks_url(url), Err(ClientError::Invalid { .. })), "{url}");
    }
    let secret = CardKeys::secret("very-secret").unwrap();
    assert!(!format!("{secret:?}").contains("very-secret"));
    CardKeys::secret("").unwrap_err();
    CardKeys::jwks(b"{}").unwrap_err();
    CardKeys::jwks_file("no/such/file".as_ref()).unwrap_err();
}
