//! The official clients against each profile, as far as its rules allow.

use std::path::Path;
use std::process::{Command, Stdio};

use nuncio_tests::raw::Wire;

/// Runs the clients of `tests/foreign` against a server with this profile.
fn run(profile: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign/run");
    let wire = Wire::start(&format!("profile: {profile}\nagent: demo\n"));
    // The script bounds every check and every client by itself.
    let done = Command::new(script)
        .arg(wire.url())
        .env("NUNCIO_TEST_PROFILE", profile)
        .stdin(Stdio::null())
        .output()
        .expect("the script can be started");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "a client failed:\n{out}\n{err}\nthe log of the server:\n{}", wire.log());
    let (_, summary) = out.split_once("== summary").expect("a summary");
    assert_eq!(summary.lines().filter(|line| line.starts_with("ok ")).count(), 4, "{summary}");
}

#[test]
fn the_official_clients_are_served_by_iac_code() {
    run("iac-code");
}

#[test]
fn the_official_clients_are_served_by_proto_agent() {
    run("proto-agent");
}

#[test]
fn the_official_clients_are_served_by_liquid_crypto() {
    run("liquid-crypto");
}

#[test]
fn the_official_clients_are_served_by_coding_agent() {
    run("coding-agent");
}
