//! What the server signs, the client believes, with the keys that the server shows.

#![allow(missing_docs, clippy::unwrap_used)]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Empty};
use nuncio_client::{NotificationError, NotificationVerifier};
use nuncio_server::agent::demo::Demo;
use nuncio_server::push::PushOptions;
use nuncio_server::push::guard::{Guard, Openings};
use nuncio_server::push::sign::{Notice, Signer};
use nuncio_server::store::MemoryStore;
use nuncio_server::{Server, ServerOptions};

const ISSUER: &str = "https://agent.example.com";
const HOOK: &str = "https://hooks.example.com/a2a";
const BODY: &[u8] = br#"{"task":{"id":"t-1"}}"#;
const NOTICE: Notice<'static> = Notice { url: HOOK, event_id: "t-1/1", task_id: "t-1", body: BODY };

fn signer(folder: &Path) -> Arc<Signer> {
    Arc::new(Signer::open_in(folder, |_| None, ISSUER).unwrap())
}

async fn ask(signer: Option<Arc<Signer>>, method: Method) -> Response<Bytes> {
    let mut options = ServerOptions::default();
    let push = PushOptions { signer, ..PushOptions::new(Guard::new(Openings::default()).unwrap()) };
    options.engine.push = Some(push);
    let server = Server::new(Arc::new(Demo), Arc::new(MemoryStore::new()), options);
    let here = SocketAddr::from(([127, 0, 0, 1], 1));
    let request = Request::builder().method(method).uri("/.well-known/jwks.json");
    let answer = server.answer(here, here, request.body(Empty::<Bytes>::new()).unwrap()).await;
    let (parts, body) = answer.into_parts();
    Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn the_client_believes_what_the_server_signs() {
    let folder = tempfile::tempdir().unwrap();
    let signer = signer(folder.path());
    let old = signer.sign(&NOTICE).unwrap();
    signer.rotate().unwrap();
    let new = signer.sign(&NOTICE).unwrap();
    let shown = ask(Some(signer), Method::GET).await;
    assert_eq!(shown.status(), 200);
    assert_eq!(shown.headers()[header::CONTENT_TYPE], "application/jwk-set+json");
    let verifier = NotificationVerifier::with_keys(ISSUER, HOOK, shown.body()).unwrap();
    for (signature, again) in [(&old, false), (&new, true)] {
        let notification = verifier.verify(signature, BODY).await.unwrap();
        assert_eq!((&*notification.event, &*notification.task), ("t-1/1", "t-1"));
        assert_eq!(notification.seen_before, again);
    }
    assert!(matches!(verifier.verify(&new, b"{}").await, Err(NotificationError::Body)));
    let elsewhere = NotificationVerifier::with_keys(ISSUER, "https://other.example.com", shown.body()).unwrap();
    assert!(matches!(elsewhere.verify(&new, BODY).await, Err(NotificationError::Audience { .. })));
}

#[tokio::test]
async fn the_keys_are_shown_to_readers_and_only_if_there_are_any() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(ask(Some(signer(folder.path())), Method::POST).await.status(), 405);
    assert_eq!(ask(None, Method::GET).await.status(), 404);
}
