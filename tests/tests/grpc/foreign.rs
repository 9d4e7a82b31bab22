//! What a Python program with the official packages of gRPC sees. It needs Python and, the first time, a network.

use std::path::Path;
use std::process::{Command, Stdio};

use nuncio_tests::Server;

#[test]
fn health_reflection_webhooks_and_errors_are_as_grpc_has_them() {
    let server = Server::configured("push-notifications: true\npush-allowed-cidrs: [127.0.0.1/32]\n");
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign");
    let folder = Command::new(here.join("install")).arg("python-1.3").stdin(Stdio::null()).output().expect("bash");
    assert!(folder.status.success(), "{}", String::from_utf8_lossy(&folder.stderr));
    let python = Path::new(String::from_utf8_lossy(&folder.stdout).trim()).join("bin/python");
    let address = server.url.strip_prefix("http://").expect("a URL");
    // Every call in it has its deadline.
    let done = Command::new(python)
        .arg(here.join("python-1.3/grpc_services.py"))
        .arg(address)
        .stdin(Stdio::null())
        .output()
        .expect("Python can be started");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{out}\n{err}");
    assert_eq!(out.lines().filter(|line| line.starts_with("ok ")).count(), 5, "{out}");
}
