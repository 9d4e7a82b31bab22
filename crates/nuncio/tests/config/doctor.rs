//! `nuncio doctor` looks at what is really there.

use std::net::TcpListener;

use serde_json::Value as Json;

use super::{Place, text};

/// Exit code, and status and text of each check.
fn examined(place: &Place, flags: &[&str]) -> (Option<i32>, Vec<(String, String, String)>) {
    let mut args = vec!["doctor", "--config", "nuncio.yml", "--output", "json"];
    args.extend(flags);
    let output = place.run(&args);
    assert!(!output.stdout.is_empty(), "{}", text(&output.stderr));
    let all: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(all["ok"], output.status.success());
    let field = |check: &Json, name: &str| check[name].as_str().unwrap().to_owned();
    let checks = all["checks"].as_array().unwrap().iter();
    let checks = checks.map(|check| (field(check, "name"), field(check, "status"), field(check, "text"))).collect();
    (output.status.code(), checks)
}

/// The only check that failed, and the exit code.
fn trouble(place: &Place, flags: &[&str]) -> (Option<i32>, String, String, String) {
    let (code, checks) = examined(place, flags);
    let failed: Vec<_> = checks.into_iter().filter(|(_, status, _)| status != "ok").collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    let (name, status, text) = failed[0].clone();
    (code, name, status, text)
}

#[test]
fn all_is_well_where_nothing_is_needed() {
    let (code, checks) = examined(&Place::new("port: 0\ndata-dir: data\n"), &[]);
    assert_eq!(code, Some(0), "{checks:?}");
    assert!(checks.iter().any(|(name, _, text)| name == "data folder" && text.contains("MiB are free")), "{checks:?}");
    let output = Place::new("port: 0\nstore: memory\n").run(&["doctor", "--config", "nuncio.yml"]);
    assert!(output.status.success() && text(&output.stdout).starts_with("ok    configuration"));
}

#[test]
fn a_wrong_configuration_is_told_to_machines_as_well() {
    let (code, name, status, text) = trouble(&Place::new("prot: 1"), &[]);
    assert_eq!((code, &*name, &*status), (Some(2), "configuration", "wrong"));
    assert!(text.contains("did you mean `port`"), "{text}");
}

#[test]
fn a_taken_port_is_told_with_its_holder() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let (code, name, _, text) = trouble(&Place::new(&format!("store: memory\nport: {port}\n")), &[]);
    assert_eq!((code, &*name), (Some(1), "address"));
    assert!(text.contains(&format!("process {}", std::process::id())), "{text}");
    let own = format!("store: memory\nport: 0\ntransport: [http, grpc]\ngrpc-port: {port}\n");
    assert_eq!(trouble(&Place::new(&own), &[]).1, "grpc address");
}

#[test]
fn a_folder_that_cannot_be_made_is_found() {
    for (key, name) in [("data-dir", "data folder"), ("artifact-dir", "artifact-dir"), ("keyring-dir", "keyring-dir")] {
        let place = Place::new(&format!("port: 0\n{key}: file/below\n"));
        place.write("file", "", 0o600);
        let place = if key == "data-dir" { place } else { place.with("NUNCIO_STORE", "memory") };
        let (code, found, _, text) = trouble(&place, &[]);
        assert_eq!((code, &*found), (Some(1), name));
        assert!(text.contains("is no folder") && text.contains(key), "{text}");
    }
}

#[test]
fn a_program_that_is_not_there_is_found_for_every_kind() {
    let kinds = "claude-code codex codex-exec cursor opencode gemini qwen vibe goose";
    for kind in kinds.split(' ') {
        let place = Place::new("port: 0\nstore: memory\n").with("PATH", "/nowhere");
        let (code, name, _, text) = trouble(&place, &["--agent", kind]);
        assert_eq!((code, name), (Some(1), format!("agent {kind}")));
        assert!(text.contains("is not on the PATH: install it"), "{text}");
    }
    let place = Place::new("port: 0\nstore: memory\n");
    place.write("plain", "", 0o600);
    for (agent, program) in [("generic", "./plain"), ("generic", "./none"), ("acp", "./plain"), ("acp", "none")] {
        let (code, ..) = trouble(&place, &["--agent", agent, "--", program]);
        assert_eq!(code, Some(1), "{agent} {program}");
    }
    place.write("there", "#!/bin/sh\n", 0o700);
    assert_eq!(examined(&place, &["--", "./there"]).0, Some(0));
    let (code, _, status, _) = trouble(&place, &["--agent", "acp"]);
    assert_eq!((code, &*status), (Some(2), "wrong"), "without a command it can never start");
    let lost = Place::new("port: 0\nstore: memory\nworkspace: none\n");
    lost.write("there", "#!/bin/sh\n", 0o700);
    assert_eq!(trouble(&lost, &["--", "./there"]).0, Some(1), "its folder is missing");
}

#[test]
fn others_that_do_not_answer_are_found() {
    // Nobody listens on a port that was just given back.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let gone = format!("127.0.0.1:{port}");
    for (file, name) in [
        (format!("agent: upstream\nupstream: http://{gone}\n"), "agent upstream"),
        (format!("oidc: {{issuer: \"http://{gone}\", audience: a}}\n"), "oidc"),
        (format!("transport: [http, redis-streams]\nredis-url: redis://:hunter2@{gone}\n"), "redis-url"),
    ] {
        let (code, found, status, text) = trouble(&Place::new(&format!("port: 0\nstore: memory\n{file}")), &[]);
        assert_eq!((code, &*found, &*status), (Some(1), name, "missing"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    let wrong = Place::new("port: 0\nstore: memory\nagent: upstream\nupstream: http://u:hunter2@127.0.0.1:9\n");
    let (code, _, status, text) = trouble(&wrong, &[]);
    assert_eq!((code, &*status), (Some(2), "wrong"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}
