//! TLS to the database, by the same library as everywhere else.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256, Sha384, Sha512};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::{TlsConnector, client};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::super::StoreError;
use super::url::{Place, Trust};
use crate::tls::read_certificates;

/// Makes connections safe.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    pub(super) fn new(place: &Place) -> Result<Self, StoreError> {
        let wrong = |error: &dyn std::fmt::Display| place.at.failed(error);
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match place.trust {
            Trust::Anybody => Arc::new(Lenient { inner: None, provider: provider.clone() }),
            Trust::Authority | Trust::Name => {
                let roots = Arc::new(roots(place)?);
                let strict = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
                let strict = strict.map_err(|error| wrong(&error))?;
                if place.trust == Trust::Name {
                    strict
                } else {
                    Arc::new(Lenient { inner: Some(strict), provider: provider.clone() })
                }
            }
        };
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| wrong(&error))?;
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = match &place.client {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => {
                let chain = read_certificates(cert).map_err(|error| wrong(&error))?;
                let file = PrivateKeyDer::from_pem_file(key);
                let key = file.map_err(|error| wrong(&format_args!("sslkey {}: {error}", key.display())))?;
                builder.with_client_auth_cert(chain, key).map_err(|error| wrong(&error))?
            }
        };
        // For servers that take TLS without being asked in their own protocol first.
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

fn roots(place: &Place) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = &place.root_cert {
        for certificate in read_certificates(path).map_err(|error| place.at.failed(error))? {
            let added = roots.add(certificate);
            added.map_err(|error| place.at.failed(format_args!("sslrootcert {}: {error}", path.display())))?;
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err(place.at.failed("this machine trusts no authorities: name theirs with `sslrootcert`"));
        }
    }
    Ok(roots)
}

/// Checks less than everything: that the certificate is of a known authority, or only that its owner is there.
#[derive(Debug)]
struct Lenient {
    inner: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(inner) = &self.inner else { return Ok(ServerCertVerified::assertion()) };
        match inner.verify_server_cert(end, chain, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl<S> MakeTlsConnect<S> for Tls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        // The name only matters where it is checked; a socket in the file system has none.
        let name = if host.is_empty() { "localhost" } else { host };
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        Ok(Handshake { connector: self.0.clone(), name })
    }
}

pub(super) struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { Ok(Stream(Box::new(self.connector.connect(self.name, stream).await?))) })
    }
}

pub(super) struct Stream<S>(Box<client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    /// Ties the password's proof to this very connection, where the certificate says how.
    fn channel_binding(&self) -> ChannelBinding {
        let certificate = self.0.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let hash = certificate.and_then(|certificate| end_point(certificate));
        hash.map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

/// The certificate under the hash of its own signature, as RFC 5929 has it. Nothing for signatures without one.
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    Some(match parsed.signature_algorithm.algorithm.to_id_string().as_str() {
        // RSA and ECDSA, with SHA-1 or SHA-256, SHA-384 and SHA-512.
        "1.2.840.113549.1.1.5" | "1.2.840.113549.1.1.11" | "1.2.840.10045.4.1" | "1.2.840.10045.4.3.2" => {
            Sha256::digest(certificate).to_vec()
        }
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => Sha384::digest(certificate).to_vec(),
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => Sha512::digest(certificate).to_vec(),
        _ => return None,
    })
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}
