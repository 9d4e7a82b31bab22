//! Several servers that are one.

use std::fmt::Write as _;
use std::fs;

use crate::{Balancer, Postgres, Redis, Server};

/// What carries hints between the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bus {
    /// A Redis of their own.
    Redis,
    /// The database.
    Postgres,
    /// Nothing: they look into the database from time to time.
    None,
}

/// Keys that have to be the same on all of them.
const KEYS: [&str; 2] = ["push-keyring.json", "push-signing-keys.json"];

/// Several servers with one database and one bus.
pub struct Cluster {
    /// The servers; the first made the keys that all have.
    pub replicas: Vec<Server>,
    /// Redis, if that is the bus.
    pub redis: Option<Redis>,
    /// The address of the database.
    pub database: String,
    yaml: String,
}

impl Cluster {
    /// So many servers with this configuration, beside that of store and bus.
    pub fn start(count: usize, bus: Bus, yaml: &str) -> Self {
        Self::start_on(Postgres::shared(), count, bus, yaml)
    }

    /// The same, on this PostgreSQL.
    pub fn start_on(postgres: &Postgres, count: usize, bus: Bus, yaml: &str) -> Self {
        let database = postgres.database();
        let redis = (bus == Bus::Redis).then(Redis::start);
        let mut all = format!("store: {database}\n");
        let _ = match (&redis, bus) {
            (Some(redis), _) => writeln!(all, "bus: {}", redis.url()),
            (None, Bus::Postgres) => writeln!(all, "bus: postgres"),
            _ => Ok(()),
        };
        all.push_str(yaml);
        let mut cluster = Self { replicas: Vec::new(), redis, database, yaml: all };
        for _ in 0..count {
            cluster.join("");
        }
        cluster
    }

    /// One more server, with more lines of configuration.
    pub fn join(&mut self, more: &str) -> &Server {
        let server = self.another(more);
        self.replicas.push(server);
        &self.replicas[self.replicas.len() - 1]
    }

    /// One more server that is not among the replicas.
    pub fn another(&self, more: &str) -> Server {
        let data = tempfile::tempdir().expect("a temporary folder");
        if let Some(first) = self.replicas.first() {
            for name in KEYS {
                let from = first.data_dir().join(name);
                if from.exists() {
                    fs::copy(from, data.path().join(name)).expect("a key can be copied");
                }
            }
        }
        let config = data.path().join("nuncio.yml");
        fs::write(&config, format!("{}{more}", self.yaml)).expect("the file can be written");
        Server::start_at(data, &["--config", config.to_str().expect("a plain path")], &[])
    }

    /// One address for all.
    pub async fn balancer(&self) -> Balancer {
        Balancer::start(self.replicas.iter().map(Server::port).collect()).await
    }
}
