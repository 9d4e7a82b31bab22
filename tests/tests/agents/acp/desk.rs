//! Files and commands that an agent asks the server for.

use nuncio_tests::{Value, in_context, state};

use super::{said, stage, tool_steps};

#[tokio::test]
async fn files_are_read_and_written_inside_only() {
    let stage = stage("", "store: memory");
    let server = &stage.server;
    let here = stage.workspace.path().canonicalize().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.txt");
    std::fs::write(&secret, "secret").unwrap();
    std::os::unix::fs::symlink(outside.path(), here.join("away")).unwrap();
    std::os::unix::fs::symlink(&secret, here.join("link.txt")).unwrap();
    std::os::unix::fs::symlink("inner.txt", here.join("near.txt")).unwrap();

    let inside = format!("files {}", here.join("deep/er/a.txt").display());
    assert_eq!(said(&server.send(&inside).await), r#"write: ok; read: "two\n""#);
    assert_eq!(std::fs::read_to_string(here.join("deep/er/a.txt")).unwrap(), "one\ntwo\n");
    let near = format!("files {}", here.join("near.txt").display());
    assert_eq!(said(&server.send(&near).await), r#"write: ok; read: "two\n""#);
    assert_eq!(std::fs::read_to_string(here.join("inner.txt")).unwrap(), "one\ntwo\n");

    let name = outside.path().file_name().unwrap().to_str().unwrap();
    for path in [
        secret.to_str().unwrap().to_owned(),
        here.join("link.txt").display().to_string(),
        here.join("away/secret.txt").display().to_string(),
        here.join("away/new.txt").display().to_string(),
        format!("{}/../{name}/secret.txt", here.display()),
        format!("{}/deep/../../{name}/secret.txt", here.display()),
        "/proc/self/cwd/secret.txt".into(),
        "/etc/passwd".into(),
        here.display().to_string(),
    ] {
        let told = said(&server.send(&format!("files {path}")).await);
        assert!(told.starts_with("write: error -32") && told.contains("; read: error -32"), "{path}: {told}");
        assert!(!told.contains("secret\n") && !told.contains("root:"), "{path}: {told}");
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn commands_run_in_the_workspace_and_end_with_their_turn() {
    let stage = stage("", "store: memory");
    let server = &stage.server;
    let here = stage.workspace.path().canonicalize().unwrap();
    let task = server.send("run pwd; echo $EXTRA; exit 3").await;
    let told: Value = serde_json::from_str(&said(&task)).unwrap();
    assert_eq!(told["output"], format!("{}\ne\n", here.display()));
    assert_eq!((&told["exit"]["exitCode"], &told["truncated"]), (&3.into(), &false.into()));
    assert!(told["after"].as_str().unwrap().starts_with("error -32002"), "a released one is gone: {told}");
    // What it printed is the result of the call that shows it.
    let steps = tool_steps(&server.log(nuncio_tests::id(&task)).await);
    assert_eq!(steps.last().map(|(_, phase, what)| (phase.as_str(), what)), Some(("completed", &told["output"])));

    let long = server.send("run i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done").await;
    let told: Value = serde_json::from_str(&said(&long)).unwrap();
    assert_eq!(told["truncated"], true);
    assert!(told["output"].as_str().is_some_and(|text| text.len() <= 64 && text.ends_with("line 4999\n")), "{told}");

    let killed: Value = serde_json::from_str(&said(&server.send("kill").await)).unwrap();
    assert_eq!((&killed["exit"]["signal"], &killed["output"]), (&"SIGKILL".into(), &"up\n".into()));

    std::os::unix::fs::symlink("/", here.join("root")).unwrap();
    for cwd in ["/", "..", "root", "/proc/self/cwd", "none"] {
        let told = said(&server.send(&format!("outside {cwd}")).await);
        assert!(told.starts_with("error -32602"), "{cwd}: {told}");
    }
}

#[tokio::test]
async fn what_an_agent_leaves_running_ends_with_its_turn() {
    let stage = stage("", "store: memory");
    let left = stage.server.send("leave").await;
    assert_eq!(said(&left), "left");
    // Only the agent itself is there still, for the next turn.
    let until = std::time::Instant::now() + nuncio_tests::PATIENCE;
    while stage.processes().len() > 1 {
        assert!(std::time::Instant::now() < until, "left over: {:?}", stage.processes());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let next = stage.server.send_params(in_context(&left["contextId"], "hello")).await;
    assert_eq!(said(&next), "echo hello");
}

#[tokio::test]
async fn an_agent_sees_what_it_was_given_and_its_commands_less() {
    let stage = stage("", "store: memory\nenv: [GIVEN=g]");
    let task = stage.server.send("environment").await;
    assert_eq!(state(&task), "COMPLETED", "{task}");
    let told = said(&task);
    assert!(told.starts_with("GIVEN PATH{"), "{told}");
    assert!(told.contains(r#""output": "none none e\n""#), "{told}");
}
