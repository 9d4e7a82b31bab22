//! What carries hints between servers on the same store.

use std::sync::Arc;

use nuncio_server::bus::{Bus, PostgresBus, RedisBus};
use nuncio_server::store::Store;

use super::store_password;
use crate::config::{self, Config};
use crate::failure::Failure;

/// Opens the bus that the configuration names. Where nobody shares the store, there is none.
pub(crate) fn open(config: &Config, store: &dyn Store) -> Result<Option<Arc<dyn Bus>>, Failure> {
    let Some(shared) = store.shared() else { return Ok(None) };
    Ok(match (&config.bus, &config.store) {
        (config::Bus::Redis(urls), _) => {
            let urls: Vec<String> = urls.iter().map(|url| url.expose().to_owned()).collect();
            // What is wrong with it may quote it, with its password.
            let unusable = |_| Failure::usage(vec!["bus: not the URL of a Redis server".to_owned()]);
            Some(Arc::new(RedisBus::open(&urls, shared.name()).map_err(unusable)?))
        }
        (config::Bus::Postgres, config::Store::Postgres(url)) => {
            Some(Arc::new(PostgresBus::open(url.expose(), store_password(config)?, shared.name())))
        }
        (config::Bus::Local | config::Bus::Postgres, _) => None,
    })
}
