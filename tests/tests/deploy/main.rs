//! The examples in `deploy/` are true: what can be run of them is run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test reports")]

mod compose;
mod image;
mod kubernetes;
mod nginx;
mod proxy;
mod unit;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nuncio_tests::{Value, binary};

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn text(path: &str) -> String {
    std::fs::read_to_string(file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The documents of a YAML file.
fn yaml(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// What a command prints that has to end well.
fn run(command: &mut Command) -> String {
    said(command).0
}

/// The same, and what it says beside.
fn said(command: &mut Command) -> (String, String) {
    let done = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (out, err) = (text(done.stdout), text(done.stderr));
    assert!(done.status.success(), "{command:?} ends with {}:\n{out}{err}", done.status);
    (out, err)
}

/// The variables that the example configuration names, with values that fit.
const SECRETS: [(&str, &str); 6] = [
    ("PUBLIC_URL", "https://agent.example.com"),
    ("DATABASE_URL", "postgres://nuncio:secret@postgres:5432/nuncio"),
    ("REDIS_URL", "redis://redis:6379"),
    ("NUNCIO_TOKEN", "0123456789abcdef0123456789abcdef"),
    ("NUNCIO_PUSH_KEYRING", ""),
    ("NUNCIO_PUSH_SIGNING_KEYS", ""),
];

/// `nuncio config show` of a file with these variables, as JSON.
fn shown(config: &Path, environment: &[(&str, &str)]) -> Value {
    let run_with = |args: &[&str]| {
        let mut command = Command::new(binary());
        command.args(args).arg("--config").arg(config).env_clear().envs(environment.iter().copied());
        run(&mut command)
    };
    run_with(&["config", "check"]);
    serde_json::from_str(&run_with(&["config", "show", "--output", "json"])).expect("JSON")
}

/// The value of a key.
fn key(shown: &Value, name: &str) -> Value {
    assert!(shown[name].is_object(), "no {name} in {shown}");
    shown[name]["value"].clone()
}

/// A duration such as `30s`, in seconds.
fn seconds(value: &Value) -> u64 {
    let text = value.as_str().expect("a text");
    text.strip_suffix('s').and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{text} is no seconds"))
}
