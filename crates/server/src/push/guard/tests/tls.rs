//! TLS: the name in the URL is the one that is asked for and checked.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::super::{Fault, Guard, Openings, SendError};
use super::kit::{SOON, Script, openings, read_request};

/// Server names and requests, in the order of their connections.
type Seen = Arc<Mutex<Vec<(Option<String>, Option<String>)>>>;

/// Serves TLS under a certificate for `name`; returns its port and the certificate.
async fn serve(name: &str) -> (u16, Vec<u8>, Seen) {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![made.cert.der().clone()],
            PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Seen::default();
    let kept = seen.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let Ok(mut socket) = acceptor.accept(socket).await else {
                kept.lock().push((None, None));
                continue;
            };
            let asked = socket.get_ref().1.server_name().map(str::to_owned);
            let request = read_request(&mut socket).await;
            kept.lock().push((asked, request));
            let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
            let _ = socket.shutdown().await;
        }
    });
    (port, made.cert.pem().into_bytes(), seen)
}

fn guard(certificates: Vec<u8>) -> Guard {
    let openings = Openings { certificates, ..openings(&[], &["127.0.0.1/32"]) };
    Guard::with_resolver(openings, Script::new([&["127.0.0.1"]])).unwrap()
}

#[tokio::test]
async fn host_and_server_name_are_the_original_ones() {
    let (port, certificate, seen) = serve("hooks.example.com").await;
    let url = format!("https://hooks.example.com:{port}/a2a");
    let reply = guard(certificate).post(&url, HeaderMap::new(), Bytes::from_static(b"{}"), SOON).await.unwrap();
    assert_eq!(reply.status, 200);
    let (asked, request) = seen.lock()[0].clone();
    assert_eq!(asked.as_deref(), Some("hooks.example.com"));
    let request = request.unwrap().to_ascii_lowercase();
    assert!(request.contains(&format!("\r\nhost: hooks.example.com:{port}\r\n")), "{request}");
}

#[tokio::test]
async fn a_certificate_for_another_name_or_from_nobody_is_not_taken() {
    let (port, certificate, seen) = serve("hooks.example.com").await;
    let post = async |guard: Guard, host: &str| {
        guard.post(&format!("https://{host}:{port}/"), HeaderMap::new(), Bytes::from_static(b"secret"), SOON).await
    };
    let failed = Err(SendError::Transient(Fault::Connect));
    assert_eq!(post(guard(certificate), "other.example.com").await, failed);
    assert_eq!(post(guard(Vec::new()), "hooks.example.com").await, failed);
    assert!(seen.lock().iter().all(|(_, request)| request.is_none()), "nothing was sent");
}
