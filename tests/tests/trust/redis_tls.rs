//! Redis over TLS: the transport and the jobs of webhooks, and whom they believe.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nuncio_tests::{PATIENCE, Server, Value, at_once, binary, json, message};

use crate::kit::{Authority, install};

/// A Redis of our own that speaks nothing but TLS.
struct SafeRedis {
    child: Child,
    port: u16,
    authority: Authority,
    _data: tempfile::TempDir,
}

impl SafeRedis {
    fn start() -> Self {
        let (authority, data) = (Authority::new("redis"), tempfile::tempdir().expect("a folder"));
        let (cert, key) = (authority.file("cert.pem"), authority.file("key.pem"));
        install(&cert, &key, &authority.issue("redis"));
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let port = free.port();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", "0", "--save", "", "--requirepass", "pass-of-redis"]);
        command.args(["--tls-port", &port.to_string(), "--tls-auth-clients", "no", "--dir"]).arg(data.path());
        command.arg("--tls-cert-file").arg(cert).arg("--tls-key-file").arg(key);
        command.arg("--tls-ca-cert-file").arg(authority.file("ca.pem")).stdout(Stdio::null()).stdin(Stdio::null());
        let child = command.spawn().expect("redis-server is missing: apt-get install redis-server");
        let mut redis = Self { child, port, authority, _data: data };
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = redis.child.try_wait().expect("it can be asked");
            assert!(ended.is_none(), "this redis-server has no TLS: apt-get install redis-server");
            assert!(Instant::now() < until, "Redis does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
        redis
    }

    /// Its address, with this scheme.
    fn url(&self, scheme: &str) -> String {
        format!("{scheme}://:pass-of-redis@127.0.0.1:{}/0", self.port)
    }

    /// The file with the authority that vouches for it.
    fn trusted(&self) -> String {
        self.authority.file("ca.pem").display().to_string()
    }
}

impl Drop for SafeRedis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Calls with the command, which believes the authorities in this file alone.
fn call(url: &str, trusted: &str) -> (Option<i32>, String) {
    let mut command = Command::new(binary());
    command.args(["client", "call", "--prompt", "hello", "--timeout", "20", "--url", url]);
    let done = command.env("SSL_CERT_FILE", trusted).stdin(Stdio::null()).output().expect("it runs");
    let said = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_travel_by_a_redis_over_tls() {
    let redis = SafeRedis::start();
    let yaml = format!("transport: [http, redis-streams]\nredis-url: \"{}\"\n", redis.url("rediss"));
    let server = Server::configured_in(&yaml, &[("SSL_CERT_FILE", &redis.trusted())]);
    let card: Value =
        server.get("/.well-known/agent-card.json").send().await.expect("the card").json().await.expect("it");
    let named: Vec<_> =
        card["supportedInterfaces"].as_array().expect("a list").iter().map(|i| i["url"].clone()).collect();
    let safe = format!("rediss-streams://127.0.0.1:{}/0", redis.port);
    assert!(named.iter().any(|url| url.as_str().is_some_and(|url| url.starts_with(&safe))), "{named:?}");
    assert!(!card.to_string().contains("pass-of-redis"), "{card}");
    let (code, said) = call(&redis.url("rediss-streams"), &redis.trusted());
    assert!(code == Some(0) && said.contains("hello"), "{code:?} {said}");
    // Whoever is vouched for by others is not believed, and nobody speaks without TLS.
    let others = Authority::new("others");
    let untrusted = others.file("ca.pem").display().to_string();
    for (url, trusted) in [(redis.url("rediss-streams"), &untrusted), (redis.url("redis-streams"), &redis.trusted())] {
        let (code, said) = call(&url, trusted);
        assert!(code == Some(3), "{code:?} {said}");
        assert!(!said.contains("pass-of-redis"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_webhooks_travel_by_a_redis_over_tls() {
    let redis = SafeRedis::start();
    let receiver = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let yaml = format!(
        "push-notifications: true\npush-allowed-cidrs: [127.0.0.1/32]\npush-queue: redis-streams\n\
         push-redis-url: \"{}\"\n",
        redis.url("rediss")
    );
    let server = Server::configured_in(&yaml, &[("SSL_CERT_FILE", &redis.trusted())]);
    let mut params = at_once(message("sleep 0.1"));
    let url = format!("http://{}/hook", receiver.local_addr().expect("an address"));
    params["configuration"]["taskPushNotificationConfig"] = json!({ "url": url });
    server.send_params(params).await;
    let (mut stream, _) = tokio::time::timeout(PATIENCE, receiver.accept()).await.expect("in time").expect("a call");
    let mut head = vec![0; 4096];
    let read = tokio::io::AsyncReadExt::read(&mut stream, &mut head).await.expect("a request");
    assert!(head[..read].starts_with(b"POST /hook "), "{}", String::from_utf8_lossy(&head[..read]));
}
