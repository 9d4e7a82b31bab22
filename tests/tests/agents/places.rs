//! Where agents work, and what a message may name there.

use nuncio_tests::{Server, answer, in_context, json, message, texts};

#[tokio::test]
async fn a_request_may_name_a_workspace_below_the_roots_only() {
    let root = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.txt"), "secret").unwrap();
    let (default, other) = (root.path().join("default"), root.path().join("other"));
    std::fs::create_dir(&default).unwrap();
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("note.txt"), "a note").unwrap();
    std::os::unix::fs::symlink(outside.path(), root.path().join("link")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret.txt"), other.join("link.txt")).unwrap();
    let roots = format!("store: memory\nworkspace-roots: [{}]", root.path().display());
    let command = json!(["sh", "-c", "pwd; echo \"$0\""]);
    let yaml = format!("workspace: {}\nagent: generic\ncommand: {command}\n{roots}\n", default.display());
    let server = Server::configured(&yaml);

    let in_folder = |folder: &str, key: &str| {
        let mut params = message("hi");
        params["metadata"] = match key {
            "iac_code" => json!({ "iac_code": { "cwd": folder } }),
            key => json!({ key: { "path": folder } }),
        };
        params
    };
    assert!(texts(&server.send("hi").await).concat().starts_with(default.to_str().unwrap()));
    for key in ["iac_code", "urn:nuncio:a2a:workspace:v1"] {
        let task = server.send_params(in_folder(other.to_str().unwrap(), key)).await;
        assert!(texts(&task).concat().starts_with(other.to_str().unwrap()), "{task}");
        // The conversation stays there, and nowhere else.
        let next = server.send_params(in_context(&task["contextId"], "again")).await;
        assert!(texts(&next).concat().starts_with(other.to_str().unwrap()), "{next}");
        let mut moved = in_folder(default.to_str().unwrap(), key);
        moved["message"]["contextId"] = task["contextId"].clone();
        let (_, refused) = answer(server.rpc_request("SendMessage", &moved)).await;
        assert_eq!(refused["error"]["message"], "A2A context belongs to a different workspace");
    }
    let link = root.path().join("link");
    let climbing = format!("{}/../../../etc", default.display());
    let file = other.join("note.txt");
    for folder in [
        outside.path().to_str().unwrap(),
        link.to_str().unwrap(),
        climbing.as_str(),
        file.to_str().unwrap(),
        "/proc/self/cwd",
        "/proc/self/root/etc",
        "relative",
        "%2Fetc",
        "",
    ] {
        let (_, refused) = answer(server.rpc_request("SendMessage", &in_folder(folder, "iac_code"))).await;
        assert_eq!(refused["error"]["code"], -32602, "{folder}: {refused}");
        assert_eq!(refused["error"]["message"], "Invalid A2A workspace metadata.", "{folder}");
        assert!(!refused.to_string().contains(outside.path().to_str().unwrap()), "{refused}");
    }
    let with_file = |url: &str| {
        let mut params = in_folder(other.to_str().unwrap(), "iac_code");
        params["message"]["parts"] = json!([{ "text": "read" }, { "url": url, "mediaType": "text/plain" }]);
        params
    };
    let good = server.send_params(with_file(&format!("file://{}", other.join("note.txt").display()))).await;
    assert!(texts(&good).concat().contains("a note"), "{good}");
    for url in [
        format!("file://{}", outside.path().join("secret.txt").display()),
        format!("file://{}", other.join("link.txt").display()),
        format!("file://{}/..%2f..%2f{}/secret.txt", other.display(), outside.path().file_name().unwrap().display()),
        format!("file://{}/%252e%252e/secret.txt", other.display()),
        format!("file://localhost{}", other.join("note.txt").display()),
        "http://127.0.0.1:1/x".to_owned(),
    ] {
        let (_, refused) = answer(server.rpc_request("SendMessage", &with_file(&url))).await;
        assert_eq!(refused["error"]["code"], -32602, "{url}: {refused}");
        assert!(!refused.to_string().contains("secret"), "{refused}");
    }
    assert_eq!(server.count("FAILED").await, 0, "what is refused leaves no task");
}
