//! From a name to addresses that may be used.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolving};

use super::Refused;
use super::address::permitted;

/// Who knows the addresses of a name.
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    /// All of them. Called once for every connection.
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// Why a name leads nowhere.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(super) enum Unresolved {
    /// It has an address that must not be reached.
    #[error(transparent)]
    Refused(Refused),
    /// It has none, at least now.
    #[error("the name has no address")]
    Unknown,
}

/// Asks once, and judges every answer. What it returns is what the connection is made to, so that a name that
/// answers differently the next time gains nothing.
pub(super) async fn checked(
    resolver: &dyn Resolver,
    name: &str,
    open: Option<&[IpNet]>,
) -> Result<Vec<IpAddr>, Unresolved> {
    let addresses = resolver.addresses(name).await.map_err(|error| {
        tracing::debug!(name, %error, "a name cannot be resolved");
        Unresolved::Unknown
    })?;
    if addresses.is_empty() {
        return Err(Unresolved::Unknown);
    }
    match open {
        Some(open) if !addresses.iter().all(|&address| permitted(address, open)) => {
            tracing::warn!(name, ?addresses, "a name that a peer has given leads to an address that is closed");
            Err(Unresolved::Refused(Refused::Host))
        }
        _ => Ok(addresses),
    }
}

/// The same for the HTTP client, which asks for each connection that it makes to a name.
pub(super) struct Checked {
    pub(super) resolver: Arc<dyn Resolver>,
    /// The blocks that are open; `None` for hosts whose addresses are not judged.
    pub(super) open: Option<Arc<[IpNet]>>,
}

impl reqwest::dns::Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let (resolver, open) = (self.resolver.clone(), self.open.clone());
        Box::pin(async move {
            let addresses = checked(&*resolver, name.as_str(), open.as_deref()).await?;
            // The client puts the port of the URL in the place of a zero.
            let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}
