//! Every way to reach one server.

use nuncio_client::{Binding, Client, Credential, Options, Version};
use nuncio_tests::{Redis, Server, binary};

/// Two callers and an unknown one.
pub(crate) const ANNA: &str = "token-of-anna";
pub(crate) const BEN: &str = "token-of-ben";

/// One server that is reached in every way.
pub(crate) struct House {
    server: Server,
    redis: Redis,
    /// The Unix socket, and what a server on stdio is started with.
    folder: tempfile::TempDir,
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
        let folder = tempfile::tempdir().expect("a temporary folder");
        let common = format!(
            "tokens:\n- {{name: anna, token: {ANNA}}}\n- {{name: ben, token: {BEN}}}\nthinking-exposure: all\n\
             push-notifications: true\npush-allowed-cidrs: [127.0.0.1/32]\nmax-running-turns: 500\n"
        );
        let (redis_url, path) = (redis.url(), folder.path().display());
        let ways =
            format!("transport: [http, unix, redis-streams]\nsocket-path: {path}/socket\nredis-url: {redis_url}\n");
        let stdio = format!("transport: stdio\nstore: memory\ndata-dir: {path}/data\n{common}");
        std::fs::write(folder.path().join("stdio.yml"), stdio).expect("the file can be written");
        Self { server: Server::configured(&(ways + &common)), redis, folder }
    }

    /// Fresh clients for Anna.
    pub(crate) fn ways(&self) -> Vec<Way> {
        let url = &self.server.url;
        let streams = format!("redis-streams://127.0.0.1:{}", self.redis.port);
        let path = self.folder.path().display();
        let all = [
            ("JSON-RPC", url.clone(), Binding::JsonRpc),
            ("REST", url.clone(), Binding::Rest),
            ("gRPC", url.replace("http://", "grpc://"), Binding::Grpc),
            ("gRPC envelopes", url.replace("http://", "grpc-jsonrpc://"), Binding::GrpcJsonRpc),
            ("WebSocket", url.replace("http://", "ws://") + "/ws", Binding::WebSocket),
            ("Unix socket", format!("unix://{path}/socket"), Binding::Unix),
            ("stdio", format!("stdio:{} serve --config {path}/stdio.yml", binary().display()), Binding::Stdio),
            ("Redis Streams", streams, Binding::RedisStreams),
        ];
        let both = |(name, address, binding): &(&'static str, String, Binding)| {
            [Version::V1_0, Version::V0_3].map(|version| Way::new(name, address.clone(), *binding, version))
        };
        all.iter().flat_map(both).collect()
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
