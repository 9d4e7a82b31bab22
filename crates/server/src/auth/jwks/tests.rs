use std::sync::atomic::{AtomicUsize, Ordering};

use nuncio_protocol::codec::json;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A point on the curve P-256, which is all that a key is.
const X: &str = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
const Y: &str = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";

fn key(id: &str) -> codec::Value {
    json!({ "kty": "EC", "crv": "P-256", "kid": id, "use": "sig", "x": X, "y": Y })
}

fn set(keys: &[codec::Value]) -> Vec<u8> {
    codec::encode(&json!({ "keys": keys })).to_vec()
}

#[test]
fn only_keys_that_sign_count() {
    let mut encrypts = key("e");
    encrypts["use"] = json!("enc");
    let mut other = key("o");
    other["alg"] = json!("ES384");
    let secret = json!({ "kty": "oct", "kid": "s", "k": "c2VjcmV0" });
    let unknown = json!({ "kty": "AKP", "kid": "u", "alg": "ML-DSA-44", "pub": "AA" });
    let keys = read_keys(&set(&[key("a"), key("b"), encrypts, other, secret, unknown])).expect("two good ones");
    let count = |id, algorithm| fitting(&keys, id, algorithm).map_or(0, |found| found.len());
    assert_eq!(count(Some("a"), Algorithm::ES256), 1);
    assert_eq!(count(None, Algorithm::ES256), 2, "a token without an id may be of any of them");
    assert_eq!(count(Some("a"), Algorithm::RS256), 0, "a key is not used for another kind of algorithm");
    assert_eq!(count(Some("o"), Algorithm::ES256), 0, "nor for another one than it says");
    for id in ["e", "s", "u", "z"] {
        assert_eq!(count(Some(id), Algorithm::ES256) + count(Some(id), Algorithm::HS256), 0, "{id}");
    }
    assert!(read_keys(b"{}").is_err() && read_keys(&set(&[])).is_err());
}

/// A provider that counts how often it is asked.
struct Provider {
    url: String,
    asked: Arc<AtomicUsize>,
    says: Arc<Mutex<String>>,
}

fn answer(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

async fn provider(says: String) -> Provider {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/keys", listener.local_addr().expect("an address"));
    let provider = Provider { url, asked: Arc::default(), says: Arc::new(Mutex::new(says)) };
    let (asked, says) = (provider.asked.clone(), provider.says.clone());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            asked.fetch_add(1, Ordering::SeqCst);
            let says = says.lock().clone();
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(says.as_bytes()).await;
        }
    });
    provider
}

fn text(keys: &[codec::Value]) -> String {
    answer(&String::from_utf8(set(keys)).expect("UTF-8"))
}

#[tokio::test]
async fn unknown_keys_are_asked_for_but_not_again_and_again() {
    let provider = provider(text(&[key("first")])).await;
    let keys = Fetched::new(&provider.url, None).expect("an address");
    let find = |id| keys.find(Some(id), Algorithm::ES256);
    assert!(find("first").await.is_ok());
    assert!(find("first").await.is_ok());
    assert_eq!(provider.asked.load(Ordering::SeqCst), 1);
    *provider.says.lock() = text(&[key("second")]);
    for n in 0..100 {
        let id = format!("none-{n}");
        assert_eq!(keys.find(Some(&id), Algorithm::ES256).await.map(drop), Err(NoKey::Unknown));
    }
    assert_eq!(provider.asked.load(Ordering::SeqCst), 1, "whoever names keys does not make us ask");
    // As if the pause were over.
    keys.now.write().asked = None;
    let many = futures_util::future::join_all((0..50).map(|_| find("second"))).await;
    assert!(many.iter().all(Result::is_ok), "a new key is found");
    assert_eq!(provider.asked.load(Ordering::SeqCst), 2, "many at once ask once");
    assert_eq!(find("first").await.map(drop), Err(NoKey::Unknown), "a key that is withdrawn is gone");
}

#[tokio::test]
async fn a_provider_that_is_away_is_not_a_wrong_token() {
    let provider = provider("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n".into()).await;
    let keys = Fetched::new(&provider.url, None).expect("an address");
    assert_eq!(keys.find(Some("a"), Algorithm::ES256).await.map(drop), Err(NoKey::Unavailable));
    *provider.says.lock() = text(&[key("a")]);
    keys.now.write().asked = None;
    assert!(keys.find(Some("a"), Algorithm::ES256).await.is_ok());
    *provider.says.lock() = answer("nonsense");
    keys.now.write().asked = None;
    assert_eq!(keys.find(Some("b"), Algorithm::ES256).await.map(drop), Err(NoKey::Unknown));
    assert!(keys.find(Some("a"), Algorithm::ES256).await.is_ok(), "keys that were good stay");
}

#[tokio::test]
async fn providers_lead_nowhere_else() {
    let inside = provider(text(&[key("a")])).await;
    let moved = format!("HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", inside.url);
    let provider = provider(moved).await;
    let keys = Fetched::new(&provider.url, None).expect("an address");
    assert!(keys.find(Some("a"), Algorithm::ES256).await.is_err(), "redirects are not followed");
    let issuer = provider.url.trim_end_matches("/keys").to_owned();
    let described = |jwks: &str, issuer: &str| answer(&json!({ "issuer": issuer, "jwks_uri": jwks }).to_string());
    for says in [
        described(&inside.url, &issuer),
        described(&provider.url, "https://evil.example"),
        described("file:///etc/passwd", &issuer),
        answer(&" ".repeat(LARGEST + 1)),
    ] {
        *provider.says.lock() = says;
        let keys = Fetched::new(&provider.url, Some(&issuer)).expect("an address");
        assert_eq!(keys.find(Some("a"), Algorithm::ES256).await.map(drop), Err(NoKey::Unavailable));
    }
    assert_eq!(inside.asked.load(Ordering::SeqCst), 0, "nobody inside is asked on a provider's word");
}
