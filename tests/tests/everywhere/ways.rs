//! Every way to reach one server.

use nuncio_client::{Binding, Client, Credential, Options, Version};
use nuncio_tests::{Redis, Server};

/// Two callers and an unknown one.
pub(crate) const ANNA: &str = "token-of-anna";
pub(crate) const BEN: &str = "token-of-ben";

/// One server that is reached in every way.
pub(crate) struct House {
    server: Server,
    redis: Redis,
}

/// One way, as seen by Anna.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) client: Client,
    address: String,
    binding: Binding,
}

impl House {
    pub(crate) async fn start() -> Self {
        let redis = Redis::start();
        let yaml = format!(
            "transport: [http, redis-streams]\nredis-url: {}\ntokens:\n- {{name: anna, token: {ANNA}}}\n- {{name: ben, token: {BEN}}}\n\
             thinking-exposure: all\npush-notifications: true\npush-allowed-cidrs: [127.0.0.1/32]\nmax-running-turns: 500\n",
            redis.url()
        );
        Self { server: Server::configured(&yaml), redis }
    }

    /// Fresh clients for Anna.
    pub(crate) fn ways(&self) -> Vec<Way> {
        let url = &self.server.url;
        let streams = format!("redis-streams://127.0.0.1:{}", self.redis.port);
        let all = [
            ("JSON-RPC", url.clone(), Binding::JsonRpc, Version::V1_0),
            ("REST", url.clone(), Binding::Rest, Version::V1_0),
            ("gRPC", url.replace("http://", "grpc://"), Binding::Grpc, Version::V1_0),
            ("JSON-RPC", url.clone(), Binding::JsonRpc, Version::V0_3),
            ("REST", url.clone(), Binding::Rest, Version::V0_3),
            ("gRPC", url.replace("http://", "grpc://"), Binding::Grpc, Version::V0_3),
            ("Redis Streams", streams.clone(), Binding::RedisStreams, Version::V1_0),
            ("Redis Streams", streams, Binding::RedisStreams, Version::V0_3),
        ];
        all.into_iter().map(|(name, address, binding, version)| Way::new(name, address, binding, version)).collect()
    }
}

impl Way {
    fn new(name: &'static str, address: String, binding: Binding, version: Version) -> Self {
        let client = connect(&address, binding, version, options(Some(ANNA)));
        Self { name, client, address, binding }
    }

    /// The same way for somebody else, or for nobody in particular; with other options.
    pub(crate) fn with(&self, token: Option<&str>, change: impl FnOnce(&mut Options)) -> Client {
        let mut options = options(token);
        change(&mut options);
        connect(&self.address, self.binding, self.client.version(), options)
    }

    /// Whether callers can be told apart on it.
    pub(crate) fn has_callers(&self) -> bool {
        !matches!(self.name, "stdio")
    }

    pub(crate) fn is_v1(&self) -> bool {
        self.client.version() == Version::V1_0
    }

    /// Whether 0.3 has a listing on it.
    pub(crate) fn lists(&self) -> bool {
        self.is_v1()
    }
}

fn options(token: Option<&str>) -> Options {
    let credentials = token.map(|token| Credential::Bearer(token.into()));
    Options { credentials: credentials.into_iter().collect(), ..Options::default() }
}

fn connect(address: &str, binding: Binding, version: Version, options: Options) -> Client {
    let options = Options { binding: Some(binding), version: Some(version), ..options };
    Client::direct(address, options).expect("a client")
}
