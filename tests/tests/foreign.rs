//! The official clients against a running server. They need Python, Node.js and, the first time, a network.

use std::path::Path;
use std::process::{Command, Stdio};

use nuncio_tests::raw::Wire;

#[test]
fn the_official_clients_are_served() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign/run");
    let wire = Wire::start("");
    // The script bounds every check and every client by itself.
    let done = Command::new(script).arg(wire.url()).stdin(Stdio::null()).output().expect("the script can be started");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "a client failed:\n{out}\n{err}\nthe log of the server:\n{}", wire.log());
    let (_, summary) = out.split_once("== summary").expect("a summary");
    assert_eq!(summary.lines().filter(|line| line.starts_with("ok ")).count(), 4, "{summary}");
    wire.assert_sound();
}
