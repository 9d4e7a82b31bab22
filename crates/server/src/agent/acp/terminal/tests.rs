use super::*;

use agent_client_protocol_schema::v1::EnvVariable;

use crate::agent::acp::peer::words;

struct Desk {
    folder: tempfile::TempDir,
    terminals: Terminals,
}

fn desk() -> Desk {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    let workspace = Workspaces::new(folder.path(), vec![]).unwrap().choose(None).unwrap();
    let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
    let kin = Kin::new(folder.path().to_str().unwrap());
    Desk { terminals: Terminals::new(workspace, environment, kin), folder }
}

fn shell(script: &str) -> CreateTerminalRequest {
    CreateTerminalRequest::new("s", "sh").args(vec!["-c".into(), script.into()])
}

async fn run(terminals: &Terminals, request: &CreateTerminalRequest) -> TerminalOutputResponse {
    let id = terminals.create(request).unwrap();
    let terminal = terminals.get(&id).unwrap();
    terminal.ended().await;
    terminal.output()
}

#[tokio::test]
async fn a_command_runs_in_the_workspace_with_a_small_environment() {
    let desk = desk();
    let mut request = shell("pwd; env | grep -v -e NUNCIO -e PWD -e SHLVL -e _= | sort; echo gone >&2; exit 3");
    request.env = vec![EnvVariable::new("CI", "1"), EnvVariable::new("A=B", "x")];
    request.cwd = Some("sub".into());
    let done = run(&desk.terminals, &request).await;
    let here = std::fs::canonicalize(desk.folder.path()).unwrap();
    assert!(done.output.starts_with(&format!("{}/sub\n", here.display())), "{}", done.output);
    assert!(done.output.contains("CI=1\nPATH=/usr/bin:/bin\n"), "{}", done.output);
    assert!(done.output.contains("gone\n"));
    assert_eq!(done.exit_status.unwrap().exit_code, Some(3));
    assert!(!done.truncated);
}

#[tokio::test]
async fn a_whole_line_runs_in_a_shell() {
    let desk = desk();
    let done = run(&desk.terminals, &CreateTerminalRequest::new("s", "echo one && echo two")).await;
    assert_eq!(done.output, "one\ntwo\n");
    let plain = run(&desk.terminals, &CreateTerminalRequest::new("s", "true")).await;
    assert_eq!(plain.exit_status.unwrap().exit_code, Some(0));
}

#[tokio::test]
async fn a_folder_outside_and_a_missing_program_are_refused() {
    let desk = desk();
    for cwd in ["/", "..", "/tmp/../etc", "none"] {
        let mut request = shell("pwd");
        request.cwd = Some(cwd.into());
        assert!(words(&desk.terminals.create(&request).unwrap_err()).contains("cwd"), "{cwd}");
    }
    let error = desk.terminals.create(&CreateTerminalRequest::new("s", "no-such-program")).unwrap_err();
    assert!(words(&error).contains("no-such-program"));
}

#[tokio::test]
async fn only_the_end_of_the_output_is_kept_and_no_character_is_cut() {
    let desk = desk();
    let mut request = shell("for i in 1 2 3 4 5 6 7 8; do printf 'ä€'; done");
    request.output_byte_limit = Some(7);
    let done = run(&desk.terminals, &request).await;
    assert_eq!((done.output.as_str(), done.truncated), ("ä€", true));
    let mut output = Output::new(10);
    for _ in 0..100_000 {
        output.add("0123456789€".as_bytes());
    }
    assert!(output.bytes.len() <= 2 * KEPT);
    assert_eq!(output.text(), ("3456789€".into(), true));
}

#[tokio::test]
async fn killing_ends_it_and_keeps_the_output() {
    let desk = desk();
    let id = desk.terminals.create(&shell("echo up; sleep 100 & sleep 100")).unwrap();
    let terminal = desk.terminals.get(&id).unwrap();
    while !terminal.output().output.contains("up") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(terminal.output().exit_status.is_none());
    terminal.kill();
    assert_eq!(terminal.ended().await.signal.as_deref(), Some("SIGKILL"));
    assert_eq!(terminal.output().output, "up\n");
    desk.terminals.release(&id).unwrap();
    assert!(desk.terminals.get(&id).is_err());
    assert!(desk.terminals.release(&id).is_err());
    assert_eq!(desk.terminals.printed(&id).as_deref(), Some("up\n"), "the report of its call may come later");
    desk.terminals.release_all();
    assert_eq!(desk.terminals.printed(&id), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_terminal_printed_is_known_while_it_is_released() {
    let desk = Arc::new(desk());
    for _ in 0..20 {
        let id = desk.terminals.create(&shell("echo up")).unwrap();
        desk.terminals.get(&id).unwrap().ended().await;
        let (there, name) = (desk.clone(), id.clone());
        let releasing = tokio::task::spawn_blocking(move || there.terminals.release(&name).unwrap());
        while !releasing.is_finished() {
            assert_eq!(desk.terminals.printed(&id).as_deref(), Some("up\n"));
        }
        releasing.await.unwrap();
    }
}

#[tokio::test]
async fn nothing_outlives_the_terminals() {
    let desk = desk();
    let pid_file = desk.folder.path().join("pid");
    desk.terminals.create(&shell("setsid sleep 1000 & echo $! >pid; wait")).unwrap();
    let pid = loop {
        match std::fs::read_to_string(&pid_file).unwrap_or_default().trim().parse::<i32>() {
            Ok(pid) => break pid,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    desk.terminals.release_all();
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    for _ in 0..300 {
        let stat = stat();
        if stat.is_empty() || stat.contains(") Z") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("still there: {}", stat());
}

#[tokio::test]
async fn there_are_only_so_many() {
    let desk = desk();
    for _ in 0..MOST {
        desk.terminals.create(&CreateTerminalRequest::new("s", "true")).unwrap();
    }
    assert!(words(&desk.terminals.create(&CreateTerminalRequest::new("s", "true")).unwrap_err()).contains("too many"));
}
