//! A bare Python client, which knows the names of streams and fields and nothing else.

use std::path::Path;
use std::process::Command;

use nuncio_tests::{Redis, installed};

use crate::kit::{REQUESTS, RESPONSES, serve, until_done};

#[tokio::test]
async fn a_bare_python_client_is_served() {
    let redis = Redis::start();
    let _server = serve(&redis, "");
    let folder = installed("python-redis");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign/python-redis/client.py");
    let mut command = Command::new(folder.join("bin/python"));
    let done = command.arg(script).arg(redis.port.to_string()).args([REQUESTS, RESPONSES]).output();
    let done = done.expect("Python runs");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && out.lines().last() == Some("done"), "{out}\n{err}");
    until_done(&redis);
}
