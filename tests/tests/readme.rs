//! What the README tells people to type works.

use std::path::Path;
use std::process::Command;

use nuncio_tests::{Server, binary};

#[tokio::test]
async fn every_command_of_the_first_conversation_works() {
    let server = Server::start(&[]);
    let readme = include_str!("../../README.md");
    let block = readme.split("<!-- tested").nth(1).and_then(|rest| rest.split("```sh\n").nth(1));
    let block = block.and_then(|rest| rest.split("```").next()).expect("a block of commands");
    let mut commands = 0;
    for line in block.lines().filter(|line| !line.trim().is_empty()) {
        let line = line.replace("http://127.0.0.1:41242", &server.url);
        let line =
            line.replacen("nuncio ", &format!("{} ", binary().display()), usize::from(line.starts_with("nuncio ")));
        let done = Command::new("bash").args(["-c", &line]).output().expect("bash");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
        assert!(!said.trim().is_empty() && !said.contains("\"error\""), "{line}: {said}");
        commands += 1;
    }
    assert!(commands >= 6, "the README still has its conversation");
}

#[tokio::test]
async fn a_call_prints_the_answer_and_nothing_else_on_stdout() {
    let server = Server::start(&[]);
    let call = |prompt: &str, more: &[&str]| {
        let args = ["client", "call", "--url", &server.url, "--prompt", prompt];
        Command::new(binary()).args(args).args(more).output().expect("the client")
    };
    let hello = call("hello", &[]);
    assert_eq!((hello.status.code(), String::from_utf8_lossy(&hello.stdout).as_ref()), (Some(0), "hello\n"));
    let streamed = call("stream 3", &["--stream"]);
    assert_eq!(String::from_utf8_lossy(&streamed.stdout), "chunk 0chunk 1chunk 2\n");
    let failed = call("fail on purpose", &[]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("on purpose"));
    let asks = call("ask Which colour?", &[]);
    assert_eq!(asks.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&asks.stderr).contains("--task-id"), "it says how to go on");
}

#[test]
fn nobody_there_is_exit_code_3() {
    let done = Command::new(binary()).args(["client", "call", "--url", "http://127.0.0.1:1/", "-p", "hi"]).output();
    assert_eq!(done.expect("the client").status.code(), Some(3));
}

/// Every link of a document to a file leads to one.
#[test]
fn links_between_documents_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    let mut folders = vec![root.to_owned(), root.join("docs")];
    let mut checked = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() && folder != *root {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a document");
            for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                let file = link.split('#').next().unwrap_or_default();
                if !file.is_empty() && !file.contains(':') && !file.contains(char::is_whitespace) {
                    assert!(folder.join(file).exists(), "{}: {link}", path.display());
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 50, "{checked}");
}
