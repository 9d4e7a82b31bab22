//! Files that go along with a call, and files that come back.

use nuncio_tests::{Server, Value, json};

use crate::agent::Agent;
use crate::run::Shell;

#[tokio::test]
async fn files_and_data_are_sent_in_order() {
    let agent = Agent::start(json!({}), |_, _| {
        Ok(json!({ "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": "ok" }] } }))
    });
    let shell = Shell::new();
    shell.write("main.tf", "resource {}");
    shell.write("legs.json", r#"{"legs": 2}"#);
    let args = [
        "call",
        "--url",
        &agent.url,
        "-p",
        "look",
        "--file",
        "main.tf",
        "--file",
        "https://files.example/map.png",
        "--data",
        "legs.json",
        "--data",
        "-",
    ];
    shell.client_reading(&args, "[1, 2]").ok();
    let parts = agent.last("/").body["params"]["message"]["parts"].clone();
    assert_eq!(
        parts,
        json!([
            { "text": "look" },
            { "raw": "cmVzb3VyY2Uge30=", "filename": "main.tf", "mediaType": "application/x-terraform" },
            { "url": "https://files.example/map.png", "filename": "map.png", "mediaType": "image/png" },
            { "data": { "legs": 2 }, "mediaType": "application/json" },
            { "data": [1, 2], "mediaType": "application/json" },
        ])
    );
    let from_stdin = shell.client_reading(&["call", "--url", &agent.url, "-p", "-"], "typed elsewhere");
    from_stdin.ok();
    assert_eq!(agent.last("/").body["params"]["message"]["parts"][0]["text"], "typed elsewhere");
}

#[tokio::test]
async fn what_comes_back_is_saved_inside_the_folder_and_never_over_something() {
    let server = Server::start(&["--store", "memory"]);
    let shell = Shell::new();
    std::fs::create_dir(shell.path().join("in")).unwrap();
    let save = |prompt: &str| {
        let done = shell.client(&["call", "--url", &server.url, "-p", prompt, "--save", "in/out"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        done.err
    };
    let said = save("file ../../../escape.txt 5");
    assert!(said.contains("saved: in/out/escape.txt (5 bytes)"), "{said}");
    let said = save("file escape.txt 7");
    assert!(said.contains("saved: in/out/escape-2.txt (7 bytes) (escape.txt was there already)"), "{said}");
    // Too large for an event, so it has to be fetched.
    let said = save("file big.bin 1000000");
    assert!(said.contains("saved: in/out/big.bin (1000000 bytes)"), "{said}");
    save("stream 3");
    let read = |name: &str| std::fs::read_to_string(shell.path().join("in/out").join(name)).unwrap();
    assert_eq!((read("escape.txt").as_str(), read("escape-2.txt").as_str()), ("abcde", "abcdefg"));
    assert_eq!(read("big.bin").len(), 1_000_000);
    let mut all: Vec<String> = files(shell.path());
    all.retain(|name| !name.ends_with(".txt") || !name.contains("01"));
    assert_eq!(all, ["in/out/big.bin", "in/out/escape-2.txt", "in/out/escape.txt"]);
    let texts: Vec<String> = files(shell.path()).into_iter().filter(|name| !all.contains(name)).collect();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert_eq!(std::fs::read_to_string(shell.path().join(&texts[0])).unwrap(), "chunk 0chunk 1chunk 2");
}

#[tokio::test]
async fn files_elsewhere_are_not_fetched() {
    let elsewhere = Agent::start(json!({}), |_, _| Ok(Value::Null));
    let url = format!("{}secret", elsewhere.url);
    let agent = Agent::start(json!({}), move |_, _| {
        Ok(json!({ "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "url": url, "filename": "x" }] } }))
    });
    let shell = Shell::new();
    let done = shell.client(&["call", "--url", &agent.url, "-p", "x", "--save", "out"]);
    assert!(done.err.contains("not saved"), "{done:?}");
    assert_eq!(files(&shell.path().join("out")), Vec::<String>::new());
}

/// All files below a folder.
fn files(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}
