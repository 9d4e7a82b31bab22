//! The official SDK's types read every body.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use nuncio_tests::{Server, json, message};

use crate::delivery::{ON, with_hook};
use crate::receiver::{Post, Receiver, is_over};

const TEXTS: [&str; 8] =
    ["hello", "stream 3", "file a.bin 100", "think hm", "tool grep", "usage", "fail no", "ask which?"];

/// Lets the receiver of an SDK read these bodies, a line each.
fn read(sdk: &str, posts: &[Post]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign/webhook");
    let mut command = Command::new(script);
    command.arg(sdk).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the script can be started");
    let lines: String = posts.iter().map(|post| format!("{}\n", post.body)).collect();
    child.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("it reads");
    let done = child.wait_with_output().expect("it ends");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{sdk}:\n{out}\n{err}");
    assert_eq!(out.lines().last(), Some(&*format!("{} bodies read", posts.len())), "{sdk}");
}

#[tokio::test]
async fn the_python_sdk_reads_every_body() {
    let server = Server::configured(&format!("{ON}push-events: all\nthinking-exposure: all\n"));
    let (new, old) = (Receiver::start().await, Receiver::start().await);
    for text in TEXTS {
        server.send_params(with_hook(message(text), json!({ "url": new.url("") }))).await;
        let message = json!({ "kind": "message", "messageId": "m", "role": "user",
                              "parts": [{ "kind": "text", "text": text }] });
        let configuration = json!({ "blocking": true, "pushNotificationConfig": { "url": old.url("") } });
        server.rpc("message/send", json!({ "message": message, "configuration": configuration })).await;
    }
    let asks = |post: &Post| post.state() == "INPUT_REQUIRED" || post.body["status"]["state"] == "input-required";
    let rest = |posts: &[Post]| posts.iter().filter(|post| is_over(post) || asks(post)).count() >= TEXTS.len();
    let new = new.until("all tasks", rest).await;
    let old = old.until("all tasks", rest).await;
    assert!(new.len() > 3 * TEXTS.len() && old.len() == new.len());
    read("python-1.3", &new);
    read("python-0.3", &old);
}
