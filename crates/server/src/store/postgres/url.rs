//! Where a database is: `postgres://user:password@host:port/database?option=value&…`.

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::Durability;
use super::error::At;

/// The schema that holds everything, unless told otherwise.
const SCHEMA: &str = "nuncio";

/// How sure to be of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Anybody may answer.
    Anybody,
    /// Whoever has a certificate of a known authority.
    Authority,
    /// The same, for the name that was asked for.
    Name,
}

/// A database, and how to reach it.
pub(super) struct Place {
    pub(super) config: Config,
    pub(super) schema: String,
    pub(super) trust: Trust,
    /// Authorities, in PEM, instead of those that this machine trusts.
    pub(super) root_cert: Option<PathBuf>,
    /// A certificate that says who this client is, and its key.
    pub(super) client: Option<(PathBuf, PathBuf)>,
    /// Most connections for reads and single writes.
    pub(super) pool: usize,
    /// Connections for batches of writes.
    pub(super) writers: usize,
    pub(super) at: At,
}

impl Place {
    /// Reads a URL. What is wrong with it is said without repeating it, because it may hold a password.
    pub(super) fn read(url: &str, password: Option<&str>) -> Result<Self, String> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut rest = Vec::new();
        let (mut schema, mut mode, mut pool, mut writers) = (SCHEMA.to_owned(), "prefer".to_owned(), 16, 2);
        let (mut root_cert, mut cert, mut key) = (None, None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let text = percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned();
            let wrong = |what: &str| format!("the option `{name}` {what}");
            let number = |most: usize| {
                let n = text.parse().ok().filter(|n| (1..=most).contains(n));
                n.ok_or_else(|| wrong(&format!("is not a number from 1 to {most}")))
            };
            match name {
                "schema" => schema = text,
                "sslmode" => mode = text,
                "sslrootcert" => root_cert = Some(PathBuf::from(text)),
                "sslcert" => cert = Some(PathBuf::from(text)),
                "sslkey" => key = Some(PathBuf::from(text)),
                "pool" => pool = number(1_000)?,
                "writers" => writers = number(64)?,
                _ => rest.push(pair),
            }
        }
        let simple = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if schema.is_empty() || schema.len() > 63 || !schema.chars().all(simple) || schema.starts_with("pg_") {
            return Err("the option `schema` is a name of small letters, digits and `_`".into());
        }
        let url = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        let unusable = |_| "not the URL of a PostgreSQL database: postgres://user:password@host:port/database";
        let mut config: Config = url.parse().map_err(unusable)?;
        if config.get_hosts().is_empty() {
            return Err("the URL names no host: postgres://user:password@host:port/database".into());
        }
        let (ssl, trust) = match mode.as_str() {
            "disable" => (SslMode::Disable, Trust::Anybody),
            "allow" | "prefer" => (SslMode::Prefer, Trust::Anybody),
            "require" => (SslMode::Require, if root_cert.is_some() { Trust::Authority } else { Trust::Anybody }),
            "verify-ca" => (SslMode::Require, Trust::Authority),
            "verify-full" => (SslMode::Require, Trust::Name),
            _ => {
                return Err("the option `sslmode` is one of: disable, prefer, require, verify-ca, verify-full".into());
            }
        };
        config.ssl_mode(ssl);
        let client = match (cert, key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => return Err("the options `sslcert` and `sslkey` need each other".into()),
        };
        if let Some(password) = password {
            config.password(password);
        }
        let at = At::new(shown(&config));
        Ok(Self { config, schema, trust, root_cert, client, pool, writers, at })
    }

    /// The settings of every connection. Plans are made for tables that will be large, however small they are now.
    pub(super) fn settle(&mut self, durability: Durability) {
        let sync = match durability {
            Durability::Full => "on",
            Durability::Normal => "off",
        };
        let theirs = self.config.get_options().unwrap_or_default().to_owned();
        self.config.options(format!(
            "{theirs} -c search_path={} -c synchronous_commit={sync} -c plan_cache_mode=force_generic_plan \
             -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c enable_bitmapscan=off -c jit=off \
             -c idle_in_transaction_session_timeout=10s",
            self.schema
        ));
        if self.config.get_application_name().is_none() {
            self.config.application_name("nuncio");
        }
        if self.config.get_connect_timeout().is_none() {
            self.config.connect_timeout(Duration::from_secs(5));
        }
        if self.config.get_tcp_user_timeout().is_none() {
            self.config.tcp_user_timeout(Duration::from_secs(15));
        }
        self.config.keepalives_idle(Duration::from_secs(15));
        // After a failover, a former primary that answers is of no use.
        if self.config.get_target_session_attrs() == TargetSessionAttrs::Any {
            self.config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
    }
}

/// A database as logs and errors may show it.
fn shown(config: &Config) -> String {
    let hosts = config.get_hosts().iter().zip(config.get_ports().iter().chain(std::iter::repeat(&5432)));
    let hosts: Vec<String> = hosts
        .map(|(host, port)| match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(path) => path.display().to_string(),
        })
        .collect();
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{user}{}/{database}", hosts.join(","))
}

#[cfg(test)]
mod tests {
    use super::{Place, Trust};

    fn wrong(url: &str) -> String {
        match Place::read(url, None) {
            Ok(_) => panic!("{url} was taken"),
            Err(error) => error,
        }
    }

    #[test]
    fn our_options_are_ours_and_the_others_are_the_drivers() {
        let url =
            "postgres://me:s%40cret@h1:1,h2:2/db?schema=x_1&sslmode=verify-full&pool=3&writers=1&connect_timeout=9";
        let place = Place::read(url, None).ok().unwrap();
        assert_eq!((place.schema.as_str(), place.trust, place.pool, place.writers), ("x_1", Trust::Name, 3, 1));
        assert_eq!(place.config.get_password(), Some(&b"s@cret"[..]));
        assert_eq!(place.config.get_connect_timeout().map(std::time::Duration::as_secs), Some(9));
        assert_eq!(place.at.failed("x").to_string(), "postgres://me@h1:1,h2:2/db: x");
        let other = Place::read("postgres://me:one@h/db", Some("two")).ok().unwrap();
        assert_eq!(other.config.get_password(), Some(&b"two"[..]));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for url in [
            "postgres://me:hunter2@h:notaport/db",
            "postgres://me:hunter2@h/db?sslmode=maybe",
            "postgres://me:hunter2@h/db?pool=0",
            "postgres://me:hunter2@h/db?writers=99",
            "postgres://me:hunter2@h/db?schema=a-b",
            "postgres://me:hunter2@h/db?schema=pg_x",
            "postgres://me:hunter2@h/db?sslcert=x",
            "postgres://me:hunter2@h/db?nonsense=hunter2",
        ] {
            assert!(!wrong(url).contains("hunter2"), "{url}: {}", wrong(url));
        }
    }
}
