//! TLS: the certificate of the server, read again when its files change, and those of its clients.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::auth::{CertificateName, Stamp, owner_of};

/// Where the certificates are.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// The certificate of the server and those above it, in PEM.
    pub cert: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
    /// Those whose certificates prove who a client is, in PEM.
    pub client_ca: Option<PathBuf>,
    /// Which part of a client's certificate is his name.
    pub client_name: CertificateName,
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read `{path}`: {what}. Give a PEM file that this user may read.")]
    Unreadable {
        /// Which one.
        path: String,
        /// Why.
        what: String,
    },
    /// Others can read a private key.
    #[error("other users can read `{path}`; run `chmod 600 {path}`")]
    Exposed {
        /// Which one.
        path: String,
    },
    /// Certificate and key do not make a server.
    #[error("`{cert}` and `{key}` cannot be used together: {what}. Check that the key belongs to the certificate.")]
    Unusable {
        /// The certificate.
        cert: String,
        /// The key.
        key: String,
        /// Why.
        what: String,
    },
}

/// What a connection needs to become a safe one.
pub struct Tls {
    options: TlsOptions,
    now: RwLock<(Arc<ServerConfig>, [Stamp; 3])>,
}

impl Tls {
    /// Reads the files.
    pub fn open(options: TlsOptions) -> Result<Self, TlsError> {
        let stamps = stamps(&options);
        let config = load(&options)?;
        Ok(Self { options, now: RwLock::new((config, stamps)) })
    }

    /// Reads the files again if one has changed. Connections that are open go on as they are. What cannot be
    /// used leaves everything as it was.
    pub(crate) fn refresh(&self) {
        let stamps = stamps(&self.options);
        if self.now.read().1 == stamps {
            return;
        }
        match load(&self.options) {
            Ok(config) => {
                *self.now.write() = (config, stamps);
                tracing::info!("the certificate was read anew");
            }
            Err(error) => {
                self.now.write().1 = stamps;
                tracing::error!(%error, "the certificate has changed and cannot be used: the old one stays");
            }
        }
    }

    /// Greets a client.
    pub(crate) async fn accept<S>(&self, stream: S) -> std::io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = self.now.read().0.clone();
        TlsAcceptor::from(config).accept(stream).await
    }

    /// Who is at the other end, if he has shown a certificate.
    pub(crate) fn client<S>(&self, stream: &TlsStream<S>) -> Option<Arc<str>> {
        let certificate = stream.get_ref().1.peer_certificates()?.first()?;
        owner_of(certificate, self.options.client_name)
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The certificates of a PEM file, as DER.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |what: String| TlsError::Unreadable { path: path.display().to_string(), what };
    let all = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.to_string()))?;
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(|error| unreadable(error.to_string()))?;
    if all.is_empty() { Err(unreadable("there is no certificate in it".into())) } else { Ok(all) }
}

/// Refuses a private key that others can read. What belongs to root may be read by the group that it was given to: so
/// keys come to servers that run as somebody else.
fn check_mode(key: &Path) -> Result<(), TlsError> {
    use std::os::unix::fs::MetadataExt;
    let path = key.display().to_string();
    let about = match key.metadata() {
        Ok(about) => about,
        Err(error) => return Err(TlsError::Unreadable { path, what: error.to_string() }),
    };
    let others = if about.uid() == 0 { 0o026 } else { 0o066 };
    if about.mode() & others == 0 {
        return Ok(());
    }
    Err(TlsError::Exposed { path })
}

fn stamps(options: &TlsOptions) -> [Stamp; 3] {
    let ca = options.client_ca.as_deref().unwrap_or(&options.cert);
    [Stamp::of(&options.cert), Stamp::of(&options.key), Stamp::of(ca)]
}

fn load(options: &TlsOptions) -> Result<Arc<ServerConfig>, TlsError> {
    let unusable = |what: String| TlsError::Unusable {
        cert: options.cert.display().to_string(),
        key: options.key.display().to_string(),
        what,
    };
    let chain = read_certificates(&options.cert)?;
    check_mode(&options.key)?;
    let key = PrivateKeyDer::from_pem_file(&options.key)
        .map_err(|error| TlsError::Unreadable { path: options.key.display().to_string(), what: error.to_string() })?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| unusable(error.to_string()))?;
    let builder = match &options.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = roots(path)?;
            // Whoever shows no certificate may still have a token; whoever shows a wrong one is turned away here.
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).allow_unauthenticated().build();
            builder.with_client_cert_verifier(verifier.map_err(|error| unusable(error.to_string()))?)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| unusable(error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn roots(path: &Path) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| TlsError::Unreadable { path: path.display().to_string(), what: error.to_string() })?;
    }
    Ok(Arc::new(roots))
}
