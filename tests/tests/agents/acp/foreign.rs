//! Agents of others, from the package registries. They need Python, Node.js and, the first time, a network.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nuncio_tests::{Stage, at_once, id, in_context, json, state, words};

use super::{answer_with, finals, said, status_texts, tool_steps};

/// Where the packages of a folder of `tests/foreign` are; installs them the first time.
fn installed(folder: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign/install");
    let done = Command::new(script).arg(folder).stdin(Stdio::null()).output().expect("the script can be started");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{folder} cannot be installed:\n{out}\n{err}");
    out.trim().into()
}

#[tokio::test]
async fn an_agent_made_with_the_python_sdk_is_served() {
    let python = installed("acp-python").join("bin/python");
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign/acp-python/agent.py");
    let mut stage = Stage::new("acp", &json!([python, agent]), "cancel-grace: 2s");

    let first = stage.server.send("one two three").await;
    assert_eq!(said(&first), "one two three ", "{first}");

    let asked = stage.server.send("work").await;
    assert!(words(&asked).contains("Write made.txt"), "{asked}");
    let done = answer_with(&stage.server, &asked, "y").await;
    assert_eq!((state(&done), said(&done).as_str()), ("COMPLETED", "exit 0, refused -32602"), "{done}");
    assert_eq!(std::fs::read_to_string(stage.workspace.path().join("made.txt")).unwrap(), "hello\n");
    let log = stage.server.log(id(&done)).await;
    let ends: Vec<(String, String)> = tool_steps(&log)
        .into_iter()
        .filter(|(_, phase, _)| phase == "completed")
        .map(|(call, _, what)| (call, what.as_str().unwrap_or_default().to_owned()))
        .collect();
    assert_eq!(ends, [("edit".into(), String::new()), ("run".into(), "hello\n".into())]);
    assert!(status_texts(&log)[0].starts_with("Plan:\n[>] write\n[ ] run"), "{log:?}");
    let denied = stage.server.send("work").await;
    let denied = answer_with(&stage.server, &denied, "n").await;
    assert_eq!(tool_steps(&stage.server.log(id(&denied)).await).last().unwrap().1, "failed");

    let waiting = stage.server.send_params(at_once(in_context(&first["contextId"], "wait"))).await;
    stage.server.until(id(&waiting), "WORKING").await;
    assert_eq!(state(&stage.server.cancel(id(&waiting)).await), "CANCELED");
    assert_eq!(finals(&stage.server.log(id(&waiting)).await), ["TASK_STATE_CANCELED"]);
    assert_eq!(state(&stage.server.send("login").await), "AUTH_REQUIRED");

    stage.server.kill();
    stage.server.restart();
    let history = stage.server.send_params(in_context(&first["contextId"], "history")).await;
    // What it tells of the past when it loads is not told again.
    assert!(said(&history).starts_with("one two three | "), "{history}");
    assert!(said(&history).ends_with(" | history") && !said(&history).contains("again:"), "{history}");
    assert_eq!(stage.server.terminate(), Some(0));
    stage.until_idle().await;
}

#[tokio::test]
async fn agents_without_an_account_ask_for_one() {
    let programs = installed("acp-npm").join("node_modules/.bin");
    // Nothing that whoever runs the tests is signed in with is theirs to use.
    let home = tempfile::tempdir().unwrap();
    let more = format!("store: memory\nenv: [HOME={}, XDG_CONFIG_HOME=, XDG_DATA_HOME=]", home.path().display());
    for (command, way) in [
        (json!([programs.join("gemini"), "--acp"]), "Gemini API key"),
        (json!([programs.join("codex-acp")]), "ChatGPT"),
    ] {
        let stage = Stage::new("acp", &command, &more);
        let task = stage.server.send("hello").await;
        assert_eq!(state(&task), "AUTH_REQUIRED", "{command}: {task}");
        assert!(words(&task).contains("needs to be signed in") && words(&task).contains(way), "{task}");
        stage.until_idle().await;
    }
}
