//! The environment variables of coding-agent-a2a, and its routing by how hard a task looks.

use nuncio_tests::{Server, binary, fake, follow_up, json, message, state, texts, words};

use crate::lines::{Told, run, told};

fn fake_path(name: &str) -> String {
    fake(name).display().to_string()
}

fn server(workspace: &tempfile::TempDir, variables: &[(&str, &str)]) -> Server {
    let folder = workspace.path().to_str().expect("a plain path");
    let all: Vec<(&str, &str)> = variables.iter().copied().chain([("AGENT_REPO_PATH", folder)]).collect();
    Server::start_in(&["--store", "memory"], &all)
}

#[tokio::test]
async fn a_generic_command_is_described_by_variables() {
    let folder = tempfile::tempdir().unwrap();
    let variables = [
        ("AGENT_ADAPTER", "generic"),
        ("AGENT_BINARY", "sh"),
        ("AGENT_ARGS", r#"-c "pwd; echo ASK; read a; echo $a; echo $0""#),
        ("AGENT_APPROVAL_PATTERN", "^ASK$"),
        ("AGENT_APPROVAL_RESPONSE", "fine"),
        ("AGENT_FORCE", "false"),
    ];
    let server = server(&folder, &variables);
    let task = server.send("the task").await;
    assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
    assert!(words(&task).contains("ASK"));
    let done = server.send_params(follow_up(&task, "y")).await;
    let place = folder.path().canonicalize().unwrap();
    assert_eq!(texts(&done).concat(), format!("{}\nfine\nthe task\n", place.display()));
}

#[tokio::test]
async fn limits_of_time_are_in_milliseconds() {
    let folder = tempfile::tempdir().unwrap();
    for limit in ["AGENT_TIMEOUT_MS", "AGENT_IDLE_EXIT_MS"] {
        let variables = [
            ("AGENT_ADAPTER", "generic"),
            ("AGENT_BINARY", "sh"),
            ("AGENT_ARGS", r#"-c "sleep 60""#),
            (limit, "800"),
            ("NUNCIO_CANCEL_GRACE", "300ms"),
        ];
        assert_eq!(run(&server(&folder, &variables), "go").await.state, "FAILED", "{limit}");
    }
}

#[tokio::test]
async fn each_program_has_a_variable_for_its_path_and_one_for_all_models() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, program, variable) in [
        ("cursor", "cursor-agent", "CURSOR_AGENT_PATH"),
        ("opencode", "opencode", "OPENCODE_BINARY_PATH"),
        ("vibe", "vibe", "VIBE_BINARY_PATH"),
    ] {
        let path = fake_path(program);
        let variables =
            [("AGENT_ADAPTER", kind), (variable, &*path), ("AGENT_MODEL", "a/model-9"), ("AGENT_FORCE", "YES")];
        let server = server(&folder, &variables);
        let (args, env) = (run(&server, "show args").await.text, run(&server, "show env").await.text);
        assert!(
            args.contains("--model=a/model-9") || env.contains(r#""VIBE_ACTIVE_MODEL": "a/model-9""#),
            "{kind}: {args}"
        );
        assert!(args.contains(r#""-f""#) || args.contains("auto"), "{kind}: {args}");
    }
}

#[tokio::test]
async fn tasks_are_routed_by_how_hard_they_look() {
    let folder = tempfile::tempdir().unwrap();
    let (cursor, opencode) = (fake_path("cursor-agent"), fake_path("opencode"));
    let variables = [
        ("CURSOR_AGENT_PATH", &*cursor),
        ("OPENCODE_BINARY_PATH", &*opencode),
        ("ROUTING__COMPLEX__ADAPTER", "cursor"),
        ("ROUTING__COMPLEX__MODEL", "big"),
        ("ROUTING__MID__ADAPTER", "opencode"),
        ("ROUTING__MID__MODEL", "mid"),
        ("ROUTING__ROUTINE__ADAPTER", "opencode"),
        ("ROUTING__ROUTINE__MODEL", "small"),
    ];
    let server = server(&folder, &variables);
    let model = |told: &Told| {
        let args: Vec<String> = serde_json::from_str(&told.text).expect("arguments");
        args.iter().find_map(|arg| arg.strip_prefix("--model=").map(str::to_owned))
    };
    for (prompt, wanted) in [
        ("show args: fix typo", "small"),
        ("show args: refactor and fix typo", "big"),
        ("show args: add endpoint", "mid"),
        (&*format!("show args {}", "a".repeat(1491)), "big"),
        (&*format!("show args {}", "a".repeat(1490)), "mid"),
    ] {
        let told = run(&server, prompt).await;
        assert_eq!(model(&told).as_deref(), Some(wanted), "{prompt}: {told:?}");
    }
    for (profile, wanted) in [("routine", "small"), ("Complex", "big"), ("nonsense", "mid")] {
        let mut params = message("show args: add endpoint");
        params["message"]["metadata"] = json!({ "profile": profile });
        let told = told(&server, &server.send_params(params).await).await;
        assert_eq!(model(&told).as_deref(), Some(wanted), "{profile}");
    }
}

/// Starts a server that must not start, and returns what it says.
fn refused(variables: &[(&str, &str)]) -> String {
    let data = tempfile::tempdir().unwrap();
    let done = std::process::Command::new(binary())
        .args(["config", "check", "--store", "memory", "--data-dir"])
        .arg(data.path())
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    assert!(!done.status.success(), "{variables:?}");
    format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr))
}

#[test]
fn wrong_variables_say_what_is_wrong() {
    let open = [("AGENT_ADAPTER", "generic"), ("AGENT_BINARY", "sh"), ("AGENT_ARGS", r#"--a "b c"#)];
    assert!(refused(&open).contains("a quote is opened and not closed"), "{}", refused(&open));
    let half = [("ROUTING__COMPLEX__ADAPTER", "cursor")];
    assert!(refused(&half).contains("routing needs an agent for COMPLEX, MID and ROUTINE"), "{}", refused(&half));
    let unknown = [("AGENT_ADAPTER", "emacs")];
    assert!(refused(&unknown).contains("emacs"), "{}", refused(&unknown));
}
