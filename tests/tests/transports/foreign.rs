//! A bare Python client, which knows the frames and nothing else.

use std::path::Path;
use std::process::{Command, Stdio};

use nuncio_tests::{binary, installed};

use crate::kit::House;

#[test]
fn a_bare_python_client_is_served() {
    let house = House::open("");
    let folder = installed("python-frames");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign/python-frames/client.py");
    let mut command = Command::new(folder.join("bin/python"));
    command.arg(script).arg(format!("ws://{}/ws", house.address())).arg(house.socket());
    command.arg(binary()).args(["serve", "--transport", "stdio", "--store", "memory"]);
    let done = command.stdin(Stdio::null()).output().expect("Python runs");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && out.lines().last() == Some("done"), "{out}\n{err}");
}
