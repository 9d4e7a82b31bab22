//! Notifications that are good, and many that are not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
use nuncio_protocol::{Value, codec, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

const ISSUER: &str = "https://agent.example.com";
const RECEIVER: &str = "https://hooks.example.com:8443/a2a";
const BODY: &[u8] = br#"{"statusUpdate":{}}"#;

/// Two keys in PKCS #8, made for these tests.
const OURS: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgnMHHAFzjAPJauaapndALl4Bg0cAhxkWbkHeRKH8hFfKhRANCAAQr_iaiNUZMfrY6ymFg0zXKullU6M-Xc3ucwgFmw7ZFfcLOJujs0Tio5smHtlx-AhnD6atzLUA3o1iR35QditTc";
const FOREIGN: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg2bRUL2jQOWxDrCfqnJjv-ut8QjT1N-ERzf1EALAol-ehRANCAATjIgKe5nlFmV9b8BpKTOuDy1aeYI77TWmh3o0tnKFt1NM4azpCbZgjTfXEVOQkAxHZb0hjz3b3aa3Cp4IRmUdF";

fn key(text: &str) -> EncodingKey {
    EncodingKey::from_ec_der(&URL_SAFE_NO_PAD.decode(text).unwrap())
}

fn jwks(keys: &[(&str, &str)]) -> Vec<u8> {
    let jwk = |(id, text): &(&str, &str)| {
        let mut jwk = Jwk::from_encoding_key(&key(text), Algorithm::ES256).unwrap();
        jwk.common.key_id = Some((*id).to_owned());
        jwk
    };
    codec::encode(&JwkSet { keys: keys.iter().map(jwk).collect() }).to_vec()
}

fn claims() -> Value {
    let now = get_current_timestamp();
    json!({
        "iss": ISSUER, "aud": "https://hooks.example.com:8443", "iat": now, "exp": now + 300, "jti": "t-1/7",
        "taskId": "t-1", "request_body_sha256": hex(&Sha256::digest(BODY)),
    })
}

fn sign(claims: &Value, id: &str, text: &str) -> String {
    let header = Header { kid: Some(id.to_owned()), ..Header::new(Algorithm::ES256) };
    encode(&header, claims, &key(text)).unwrap()
}

fn verifier() -> NotificationVerifier {
    NotificationVerifier::with_keys(ISSUER, RECEIVER, &jwks(&[("k", OURS)])).unwrap()
}

async fn reject(token: &str, body: &[u8]) -> NotificationError {
    verifier().verify(token, body).await.expect_err(token)
}

fn with(name: &str, value: impl Into<Value>) -> String {
    let mut claims = claims();
    claims[name] = value.into();
    sign(&claims, "k", OURS)
}

#[tokio::test]
async fn a_good_one_is_taken_and_recognised_the_second_time() {
    let verifier = verifier();
    let token = sign(&claims(), "k", OURS);
    let first = verifier.verify(&token, BODY).await.unwrap();
    assert_eq!((&*first.event, &*first.task, first.seen_before), ("t-1/7", "t-1", false));
    assert!(verifier.verify(&token, BODY).await.unwrap().seen_before);
    assert!(!verifier.verify(&with("jti", "t-1/8"), BODY).await.unwrap().seen_before);
}

#[tokio::test]
async fn a_changed_body_is_noticed() {
    let token = sign(&claims(), "k", OURS);
    for body in [&b""[..], b"{}", br#"{"statusUpdate": {}}"#] {
        assert!(matches!(reject(&token, body).await, NotificationError::Body));
    }
}

#[tokio::test]
async fn a_rejected_one_is_not_remembered() {
    let verifier = verifier();
    let token = sign(&claims(), "k", OURS);
    verifier.verify(&token, b"changed").await.unwrap_err();
    assert!(!verifier.verify(&token, BODY).await.unwrap().seen_before);
}

#[tokio::test]
async fn wrong_claims_are_refused() {
    let now = get_current_timestamp();
    for aud in ["https://hooks.example.com", "https://evil.example.com:8443", "http://hooks.example.com:8443", ""] {
        assert!(matches!(reject(&with("aud", aud), BODY).await, NotificationError::Audience { .. }), "{aud}");
    }
    assert!(matches!(reject(&with("iss", "https://evil.example"), BODY).await, NotificationError::Issuer { .. }));
    assert!(matches!(reject(&with("exp", now - 61), BODY).await, NotificationError::Time));
    assert!(matches!(reject(&with("iat", now + 200), BODY).await, NotificationError::Time));
    let verifier = verifier();
    // Clocks differ a little.
    verifier.verify(&with("exp", now - 5), BODY).await.unwrap();
    verifier.verify(&with("iat", now + 5), BODY).await.unwrap();
    let strict = super::tests::verifier().leeway(Duration::ZERO);
    assert!(matches!(strict.verify(&with("exp", now - 5), BODY).await, Err(NotificationError::Time)));
}

#[tokio::test]
async fn a_missing_claim_is_refused() {
    for name in ["iss", "aud", "exp", "iat", "jti", "taskId", "request_body_sha256"] {
        let mut claims = claims();
        claims.as_object_mut().unwrap().remove(name);
        let token = sign(&claims, "k", OURS);
        assert!(matches!(reject(&token, BODY).await, NotificationError::Malformed), "{name}");
    }
}

#[tokio::test]
async fn foreign_keys_are_refused() {
    assert!(matches!(reject(&sign(&claims(), "k", FOREIGN), BODY).await, NotificationError::Signature));
    assert!(matches!(reject(&sign(&claims(), "other", OURS), BODY).await, NotificationError::UnknownKey { .. }));
}

#[tokio::test]
async fn other_algorithms_are_refused() {
    let encode_part = |value: &Value| URL_SAFE_NO_PAD.encode(codec::encode(value));
    for alg in ["none", "None", "NONE", "HS256", "RS256", "ES384", "EdDSA", ""] {
        let token = format!("{}.{}.", encode_part(&json!({ "alg": alg, "kid": "k" })), encode_part(&claims()));
        assert!(matches!(reject(&token, BODY).await, NotificationError::Algorithm), "{alg}");
    }
    // The public key as a shared secret.
    let header = Header { kid: Some("k".into()), ..Header::new(Algorithm::HS256) };
    let token = encode(&header, &claims(), &EncodingKey::from_secret(&jwks(&[("k", OURS)]))).unwrap();
    assert!(matches!(reject(&token, BODY).await, NotificationError::Algorithm));
}

#[tokio::test]
async fn nonsense_is_refused() {
    let good = sign(&claims(), "k", OURS);
    let (text, _) = good.rsplit_once('.').unwrap();
    for token in ["", "a.b", "a.b.c.d", &format!("{text}."), &format!("{text}.AAAA"), &"a.".repeat(5000)] {
        let error = reject(token, BODY).await;
        assert!(
            matches!(error, NotificationError::Malformed | NotificationError::Algorithm | NotificationError::Signature),
            "{error:?}"
        );
    }
}

/// Serves a set of keys over HTTP, and counts how often; empties it when told.
async fn key_server(keys: Arc<Mutex<Vec<u8>>>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/.well-known/jwks.json", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let asked = count.clone();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            asked.fetch_add(1, Ordering::SeqCst);
            let _ = socket.read(&mut [0; 4096]).await;
            let body = keys.lock().clone();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = socket.write_all(&[head.as_bytes(), &body].concat()).await;
        }
    });
    (url, count)
}

#[tokio::test]
async fn keys_are_fetched_once_and_again_for_a_new_key() {
    let keys = Arc::new(Mutex::new(jwks(&[("k", OURS)])));
    let (url, count) = key_server(keys.clone()).await;
    let verifier = NotificationVerifier::with_keys_at(ISSUER, RECEIVER, &url).unwrap();
    for _ in 0..3 {
        verifier.verify(&sign(&claims(), "k", OURS), BODY).await.unwrap();
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
    // Whoever invents key ids does not make us ask again and again.
    *keys.lock() = jwks(&[("new", FOREIGN), ("k", OURS)]);
    for id in ["a", "b", "c"] {
        let refused = verifier.verify(&sign(&claims(), id, OURS), BODY).await;
        assert!(matches!(refused, Err(NotificationError::UnknownKey { .. })), "{refused:?}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
    // After a pause a new key is found.
    if let Keys::Fetched(fetched) = &verifier.keys {
        fetched.forget_pause().await;
    }
    verifier.verify(&sign(&claims(), "new", FOREIGN), BODY).await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn keys_that_cannot_be_had_are_another_matter_than_a_wrong_signature() {
    let keys = Arc::new(Mutex::new(b"garbage".to_vec()));
    let (url, _) = key_server(keys.clone()).await;
    let verifier = NotificationVerifier::with_keys_at(ISSUER, RECEIVER, &url).unwrap();
    let token = sign(&claims(), "k", OURS);
    assert!(matches!(verifier.verify(&token, BODY).await, Err(NotificationError::Keys(_))));
    // They are there a moment later.
    *keys.lock() = jwks(&[("k", OURS)]);
    verifier.verify(&token, BODY).await.unwrap();
}
