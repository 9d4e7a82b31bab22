//! A real OpenID provider, whose keys change while calls go on.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nuncio_tests::{PATIENCE, Server, Value, client, installed, message};

struct Provider {
    child: Child,
    url: String,
}

impl Provider {
    fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign/oidc-provider/provider.mjs");
        let mut command = Command::new("node");
        command.arg(script).arg(installed("oidc-provider"));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("node runs");
        let mut url = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        while !url.starts_with("http") {
            url.clear();
            assert_ne!(out.read_line(&mut url).expect("it speaks"), 0, "the provider ended");
        }
        Self { child, url: url.trim().to_owned() }
    }

    async fn post(&self, path: &str) {
        let answer = client().post(format!("{}{path}", self.url)).send().await.expect("an answer");
        assert!(answer.status().is_success());
    }

    /// An access token, as any client of the provider gets one.
    async fn token(&self, who: &str, scope: &str) -> String {
        let form = format!("grant_type=client_credentials&scope={scope}");
        let request = client().post(format!("{}/token", self.url)).basic_auth(who, Some(format!("{who}-secret")));
        let request = request.header("Content-Type", "application/x-www-form-urlencoded").body(form);
        let answer: Value = request.send().await.expect("an answer").json().await.expect("JSON");
        answer["access_token"].as_str().unwrap_or_else(|| panic!("a token: {answer}")).to_owned()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn send(server: &Server, token: &str) -> u16 {
    server.post("/message:send", &message("hi")).bearer_auth(token).send().await.expect("an answer").status().as_u16()
}

async fn count(server: &Server, token: &str) -> Option<u64> {
    let answer = server.get("/tasks").bearer_auth(token).send().await.expect("an answer");
    answer.json::<Value>().await.expect("JSON")["totalSize"].as_u64()
}

/// Calls until the answer is this one: a new key is looked for at most every few seconds.
async fn until(server: &Server, token: &str, wanted: u16) {
    let end = Instant::now() + PATIENCE;
    loop {
        let status = send(server, token).await;
        if status == wanted {
            return;
        }
        assert!(Instant::now() < end, "{wanted} does not come, only {status}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn tokens_of_a_real_provider_are_taken_and_its_keys_may_change() {
    let provider = Provider::start();
    let oidc = format!("oidc: {{issuer: \"{}\", audience: agents, require-scopes: true}}\n", provider.url);
    let server = Server::configured(&oidc);
    let first = provider.token("anna", "a2a:read%20a2a:write").await;
    assert_eq!(send(&server, &first).await, 200);
    assert_eq!(count(&server, &first).await, Some(1));
    assert_eq!(count(&server, &provider.token("ben", "a2a:read").await).await, Some(0), "somebody else");
    assert_eq!(send(&server, &provider.token("ben", "a2a:read").await).await, 403, "no scope to write");
    let mut forged = first.clone();
    forged.replace_range(forged.len() - 6.., "AAAAAA");
    assert_eq!(send(&server, &forged).await, 401);

    provider.post("/rotate").await;
    let second = provider.token("anna", "a2a:read%20a2a:write").await;
    until(&server, &second, 200).await;
    assert_eq!(send(&server, &first).await, 200, "the old key is still published");

    provider.post("/rotate").await;
    provider.post("/forget").await;
    let third = provider.token("anna", "a2a:read%20a2a:write").await;
    until(&server, &third, 200).await;
    assert_eq!(send(&server, &first).await, 401, "a key that is withdrawn is gone");
    assert_eq!(send(&server, &second).await, 401);

    // A provider that is away changes nothing for keys that are known.
    drop(provider);
    assert_eq!(send(&server, &third).await, 200);
}
