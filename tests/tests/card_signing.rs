//! Signed cards: ours, theirs, and keys that come and go.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use base64::Engine as _;
use nuncio_protocol::sign::{KeySet, Secrets, Verdict, verify};
use nuncio_tests::raw::{V1, Wire};
use nuncio_tests::{Server, Value, answer, client, installed, json, nuncio};

const ALGORITHMS: [&str; 3] = ["ES256", "RS256", "EdDSA"];
const CARD: &str = "/.well-known/agent-card.json";
const JWKS: &str = "/.well-known/jwks.json";

/// A folder with a key of each algorithm, named like it.
struct Keys(tempfile::TempDir);

impl Keys {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = Self(folder);
        for name in ALGORITHMS {
            keys.add(name, name);
        }
        keys
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(format!("{name}.pem"))
    }

    /// Makes one more key.
    fn add(&self, name: &str, algorithm: &str) {
        let out = self.path(name);
        let made = run(&["card", "keygen", "--algorithm", algorithm, "--id", name, "--out", text(&out)]);
        let jwk: Value = serde_json::from_slice(&made.stdout).unwrap();
        assert_eq!((jwk["kid"].as_str(), jwk["alg"].as_str()), (Some(name), Some(algorithm)));
        assert!(jwk.get("d").is_none(), "only the public half is printed");
    }

    /// The configuration with these keys.
    fn yaml(&self, names: &[&str]) -> String {
        let entry = |name: &&str| format!("  - {{id: {name}, key-file: {}}}\n", text(&self.path(name)));
        format!("store: memory\nsigning-keys:\n{}", names.iter().map(entry).collect::<String>())
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs a command that must do.
fn run(args: &[&str]) -> Output {
    let done = nuncio(args);
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    done
}

async fn bytes(server: &Server, path: &str, version: &str) -> Vec<u8> {
    let request = client().get(format!("{}{path}", server.url)).header("A2A-Version", version);
    request.send().await.unwrap().bytes().await.unwrap().to_vec()
}

async fn keys_of(server: &Server) -> KeySet {
    KeySet::from_jwks(&bytes(server, JWKS, "1.0").await, Secrets::Ignored).unwrap()
}

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

fn header(signature: &Value) -> Value {
    let protected = signature["protected"].as_str().unwrap();
    let header = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(protected).unwrap();
    serde_json::from_slice(&header).unwrap()
}

#[tokio::test]
async fn every_form_of_the_card_is_signed_with_every_key() {
    let keys = Keys::new();
    let server = Server::configured(&(keys.yaml(&ALGORITHMS) + "signing-secret: s3cret-of-the-card\n"));
    let published = keys_of(&server).await;
    assert_eq!(published.keys().len(), 3, "secrets are not published");
    let jwks = String::from_utf8(bytes(&server, JWKS, "1.0").await).unwrap();
    assert!(!jwks.contains("s3cret") && !jwks.contains("\"d\"") && !jwks.contains("oct"), "{jwks}");
    for version in ["1.0", ""] {
        let card = bytes(&server, CARD, version).await;
        let value: Value = serde_json::from_slice(&card).unwrap();
        let signatures = value["signatures"].as_array().unwrap();
        let algorithms: Vec<Value> = signatures.iter().map(|signature| header(signature)["alg"].clone()).collect();
        assert_eq!(algorithms, ["ES256", "RS256", "EdDSA", "HS256"]);
        for (key, name) in published.keys().iter().zip(ALGORITHMS) {
            let verdict = verify(&card, &KeySet::from_iter([key.clone()]), now());
            assert!(matches!(&verdict, Verdict::Verified { kid, .. } if kid == name), "{verdict:?}");
        }
        let file = keys.write("card.json", &card);
        run(&["card", "verify", text(&file), "--secret", "s3cret-of-the-card"]);
        let wrong = nuncio(&["card", "verify", text(&file), "--secret", "another"]);
        assert_eq!(wrong.status.code(), Some(1), "{}", String::from_utf8_lossy(&wrong.stdout));
    }
    assert!(!String::from_utf8(bytes(&server, CARD, "0.3").await).unwrap().contains("s3cret"));
}

#[tokio::test]
async fn signatures_are_made_once() {
    let keys = Keys::new();
    let server = Server::configured(&keys.yaml(&["ES256"]));
    // ES256 never makes the same signature twice.
    assert_eq!(bytes(&server, CARD, "1.0").await, bytes(&server, CARD, "1.0").await);
    assert_ne!(bytes(&server, CARD, "1.0").await, bytes(&server, CARD, "").await);
}

#[tokio::test]
async fn a_changed_card_is_not_believed() {
    let keys = Keys::new();
    let server = Server::configured(&keys.yaml(&["EdDSA"]));
    let mut card: Value = serde_json::from_slice(&bytes(&server, CARD, "1.0").await).unwrap();
    card["supportedInterfaces"][0]["url"] = json!("https://elsewhere.example/");
    let file = keys.write("card.json", card.to_string());
    let jwks = format!("{}{JWKS}", server.url);
    let done = nuncio(&["card", "verify", text(&file), "--jwks-url", &jwks, "--output", "json"]);
    assert_eq!(done.status.code(), Some(1));
    let verdict: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(verdict["verdict"], "wrong");
    let done = run(&["card", "verify", &server.url, "--jwks-url", &jwks, "--output", "json"]);
    let verdict: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&verdict["verdict"], &verdict["kid"]), (&json!("verified"), &json!("EdDSA")));
}

#[tokio::test]
async fn keys_can_be_exchanged_without_a_gap() {
    let keys = Keys::new();
    keys.add("next", "ES256");
    let pinned = |names: &[&str]| {
        let named: Vec<String> = names.iter().map(|name| format!("{name}={}", text(&keys.path(name)))).collect();
        let mut args = vec!["card", "jwks"];
        args.extend(named.iter().flat_map(|key| ["--key", key.as_str()]));
        keys.write(&format!("{}.json", names.join("-")), run(&args).stdout)
    };
    let (old, both, new) = (pinned(&["ES256"]), pinned(&["ES256", "next"]), pinned(&["next"]));
    // (the keys of the server, the keys that a client knows, whether it believes the card)
    let steps: [(&[&str], &Path, bool); 5] = [
        (&["ES256"], &old, true),
        (&["ES256", "next"], &old, true),
        (&["ES256", "next"], &new, true),
        (&["next"], &both, true),
        (&["next"], &old, false),
    ];
    for (signing, known, believed) in steps {
        let server = Server::configured(&keys.yaml(signing));
        let done = nuncio(&["card", "verify", &server.url, "--jwks", text(known)]);
        assert_eq!(done.status.success(), believed, "{signing:?}: {}", String::from_utf8_lossy(&done.stdout));
    }
}

#[tokio::test]
async fn the_extended_card_is_signed_for_itself() {
    let keys = Keys::new();
    let server = Server::configured(&(keys.yaml(&["ES256"]) + "token: known\n"));
    let request = server.get("/extendedAgentCard").bearer_auth("known").send().await.unwrap();
    let extended = request.bytes().await.unwrap();
    let verdict = verify(&extended, &keys_of(&server).await, now());
    assert!(verdict.is_verified(), "{verdict:?}");
    let value: Value = serde_json::from_slice(&extended).unwrap();
    let public: Value = serde_json::from_slice(&bytes(&server, CARD, "1.0").await).unwrap();
    assert_ne!(value["signatures"], public["signatures"]);
    assert!(value["skills"].as_array().unwrap().len() > public["skills"].as_array().unwrap().len());
}

#[tokio::test]
async fn the_keys_of_webhooks_are_in_the_same_set() {
    let keys = Keys::new();
    let yaml = keys.yaml(&["EdDSA"]).replace("store: memory\n", "push-notifications: true\n");
    let server = Server::configured(&yaml);
    let set: Value = serde_json::from_slice(&bytes(&server, JWKS, "1.0").await).unwrap();
    let algorithms: Vec<&Value> = set["keys"].as_array().unwrap().iter().map(|key| &key["alg"]).collect();
    assert_eq!(algorithms, ["ES256", "EdDSA"]);
    let none = Server::configured("store: memory\nsigning-secret: only-a-secret\n");
    assert_eq!(client().get(format!("{}{JWKS}", none.url)).send().await.unwrap().status(), 404);
}

#[test]
fn the_address_of_the_keys_is_named_where_it_is_safe() {
    let keys = Keys::new();
    let yaml = keys.yaml(&["ES256"]) + "signing-secret: shared-by-two\n";
    let jku = |public_url: &str| {
        let wire = Wire::start(&format!("{yaml}public-url: {public_url}\n"));
        let card = wire.get(CARD, V1).json();
        let signatures = card["signatures"].as_array().unwrap();
        signatures.iter().map(|signature| header(signature)["jku"].clone()).collect::<Vec<_>>()
    };
    let there = json!("https://agents.example/x/.well-known/jwks.json");
    assert_eq!(jku("https://agents.example/x"), [there, Value::Null]);
    assert_eq!(jku("http://agents.example"), [Value::Null, Value::Null]);
}

#[tokio::test]
async fn the_client_insists_on_a_signature() {
    let keys = Keys::new();
    keys.add("other", "ES256");
    let server = Server::configured(&keys.yaml(&["ES256"]));
    let jwks = format!("{}{JWKS}", server.url);
    let other = format!("other={}", text(&keys.path("other")));
    let other = keys.write("other.json", run(&["card", "jwks", "--key", &other]).stdout);
    let discover = |more: &[&str]| {
        let mut args = vec!["client", "discover", "--url", server.url.as_str()];
        args.extend(more);
        nuncio(&args)
    };
    let strict = "--require-card-signature";
    let done = discover(&[strict, "--verify-card-jwks-url", &jwks]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(String::from_utf8_lossy(&done.stderr).contains("verified (key \"ES256\""));
    let done = discover(&[strict, "--verify-card-jwks", text(&other)]);
    assert!(!done.status.success() && done.stdout.is_empty());
    let unsigned = Server::start(&["--store", "memory"]);
    let args = ["client", "call", "--url", &unsigned.url, "--prompt", "hi", strict, "--verify-card-jwks-url", &jwks];
    assert!(!nuncio(&args).status.success(), "a card without a signature");
    let args = ["client", "call", "--url", &server.url, "--prompt", "hi", strict, "--verify-card-jwks-url", &jwks];
    assert_eq!(String::from_utf8_lossy(&run(&args).stdout).trim(), "hi");
}

#[test]
fn keys_and_cards_are_handled_with_care_on_the_command_line() {
    use std::os::unix::fs::PermissionsExt;
    let keys = Keys::new();
    let path = keys.path("ES256");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let again = nuncio(&["card", "keygen", "--out", text(&path)]);
    assert_eq!(again.status.code(), Some(2), "a key is never written over");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = nuncio(&["card", "jwks", "--key", &format!("k={}", text(&path))]);
    assert_eq!(open.status.code(), Some(2), "a key that others can read");
    let card = json!({
        "name": "n", "description": "", "version": "1", "capabilities": {}, "skills": [],
        "supportedInterfaces": [{ "url": "https://a.example", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "x-vendor": 1,
    });
    let card = keys.write("card.json", card.to_string());
    let key = format!("rsa={}", text(&keys.path("RS256")));
    let signed = run(&["card", "sign", text(&card), "--key", &key, "--sdk-form"]);
    let value: Value = serde_json::from_slice(&signed.stdout).unwrap();
    assert_eq!(value["signatures"].as_array().unwrap().len(), 2);
    assert!(value.get("x-vendor").is_none(), "nothing is printed that the signature does not cover");
    let signed = keys.write("signed.json", signed.stdout);
    let jwks = keys.write("jwks.json", run(&["card", "jwks", "--key", &key]).stdout);
    run(&["card", "verify", text(&signed), "--jwks", text(&jwks)]);
    assert_eq!(nuncio(&["card", "verify", text(&card), "--jwks", text(&jwks)]).status.code(), Some(1), "absent");
    assert_eq!(nuncio(&["card", "verify", text(&card)]).status.code(), Some(2), "no keys");
    assert_eq!(nuncio(&["card", "sign", text(&card)]).status.code(), Some(2), "no keys");
    let linted = nuncio(&["card", "lint", text(&card), "--output", "json"]);
    assert_eq!(linted.status.code(), Some(0), "warnings alone are no failure");
    let found: Value = serde_json::from_slice(&linted.stdout).unwrap();
    let rules: Vec<&str> = found[0]["findings"].as_array().unwrap().iter().filter_map(|f| f["rule"].as_str()).collect();
    assert!(rules.contains(&"unknown-member") && rules.contains(&"empty-member"), "{rules:?}");
    assert_eq!(nuncio(&["card", "lint", text(&card), "--strict"]).status.code(), Some(1));
    let broken = keys.write("broken.json", "{\"name\":1}");
    let linted = nuncio(&["card", "lint", text(&broken)]);
    assert_eq!(linted.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&linted.stdout).contains("section 4.4.1"));
    assert_eq!(nuncio(&["card", "lint", "http://127.0.0.1:9/"]).status.code(), Some(3), "nobody there");
}

#[tokio::test]
async fn wrong_keys_are_mistakes_of_the_configuration() {
    let keys = Keys::new();
    let bad = keys.write("bad.pem", "no key");
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&bad, std::fs::Permissions::from_mode(0o600)).unwrap();
    for (file, says) in [(text(&bad), "BEGIN PRIVATE KEY"), ("/nowhere/key.pem", "cannot read")] {
        let config = keys.write("nuncio.yml", format!("signing-keys:\n  - {{id: k, key-file: {file}}}\n"));
        let done = nuncio(&["config", "check", "--config", text(&config)]);
        assert_eq!(done.status.code(), Some(2));
        let talk = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(talk.contains(says) && talk.contains("signing-keys"), "{talk}");
    }
}

/// An SDK that signs and verifies.
struct Sdk {
    name: &'static str,
    program: PathBuf,
    script: PathBuf,
}

fn sdks() -> [Sdk; 2] {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign");
    let js = installed("js-1.3");
    // A module finds its packages from where it lies.
    std::fs::copy(here.join("js-1.3/signing.mjs"), js.join("signing.mjs")).unwrap();
    [
        Sdk {
            name: "python",
            program: installed("python-1.3-signing").join("bin/python"),
            script: here.join("python-1.3-signing/signing.py"),
        },
        Sdk { name: "javascript", program: "node".into(), script: js.join("signing.mjs") },
    ]
}

impl Sdk {
    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command.arg(&self.script).args(args).stdin(Stdio::null()).output().unwrap()
    }
}

#[tokio::test]
async fn the_sdks_verify_our_cards_and_we_theirs() {
    let keys = Keys::new();
    // A scheme without scopes is what the SDKs leave out of the bytes that they verify.
    let yaml = keys.yaml(&ALGORITHMS) + "token: known\nsigning-sdk-form: true\ndescription: Grüße an alle\n";
    let server = Server::configured(&yaml);
    let jwks: Value = serde_json::from_slice(&bytes(&server, JWKS, "1.0").await).unwrap();
    let request = server.get("/extendedAgentCard").bearer_auth("known").send().await.unwrap();
    let extended = request.bytes().await.unwrap().to_vec();
    let cards =
        [("1.0", bytes(&server, CARD, "1.0").await), ("union", bytes(&server, CARD, "").await), ("extended", extended)];
    for sdk in sdks() {
        for algorithm in ALGORITHMS {
            let key = jwks["keys"].as_array().unwrap().iter().find(|key| key["kid"] == *algorithm).unwrap();
            let known = keys.write("known.json", json!({ "keys": [key] }).to_string());
            for (form, card) in &cards {
                let what = format!("{} {algorithm} {form}", sdk.name);
                let file = keys.write("card.json", card);
                let done = sdk.run(&["verify", text(&file), text(&known)]);
                assert!(done.status.success(), "{what}: {}", String::from_utf8_lossy(&done.stderr));
                let mut changed: Value = serde_json::from_slice(card).unwrap();
                changed["name"] = json!("somebody else");
                let file = keys.write("changed.json", changed.to_string());
                assert!(!sdk.run(&["verify", text(&file), text(&known)]).status.success(), "{what}: a changed card");
            }
            let mut unsigned: Value = serde_json::from_slice(&cards[0].1).unwrap();
            unsigned.as_object_mut().unwrap().remove("signatures");
            let file = keys.write("unsigned.json", unsigned.to_string());
            let signed = sdk.run(&["sign", text(&file), text(&keys.path(algorithm)), algorithm, algorithm]);
            assert!(signed.status.success(), "{}: {}", sdk.name, String::from_utf8_lossy(&signed.stderr));
            let file = keys.write("signed.json", &signed.stdout);
            let done = run(&["card", "verify", text(&file), "--jwks", text(&known), "--output", "json"]);
            let verdict: Value = serde_json::from_slice(&done.stdout).unwrap();
            assert_eq!(verdict["verdict"], "verified", "{} {algorithm}: {verdict}", sdk.name);
        }
    }
    let (status, _) = answer(server.get("/extendedAgentCard")).await;
    assert_eq!(status, 401);
}
