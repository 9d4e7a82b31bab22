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
    // What is refused binds its conversation to no folder.
    let mut params = with_file("http://127.0.0.1:1/x");
    params["message"]["contextId"] = json!("not yet begun");
    assert_eq!(answer(server.rpc_request("SendMessage", &params)).await.1["error"]["code"], -32602);
    let mut params = in_folder(default.to_str().unwrap(), "iac_code");
    params["message"]["contextId"] = json!("not yet begun");
    assert!(texts(&server.send_params(params).await).concat().starts_with(default.to_str().unwrap()));
    assert_eq!(server.count("FAILED").await, 0, "what is refused leaves no task");
}

/// A server whose own folder, configuration and keys are in the workspace.
#[tokio::test]
async fn what_is_the_servers_own_is_nobodys_workspace() {
    let root = tempfile::tempdir().unwrap();
    let here = root.path().canonicalize().unwrap();
    let data = tempfile::tempdir_in(&here).unwrap();
    let own = data.path().to_owned();
    let at = |name: &str| here.join(name);
    std::fs::write(at("note.txt"), "a note").unwrap();
    std::fs::write(at("token"), "the-token-of-somebody-0123456789").unwrap();
    std::fs::set_permissions(at("token"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::create_dir(own.join("folder")).unwrap();
    std::fs::write(own.join("key.json"), "the key").unwrap();
    std::os::unix::fs::symlink(&own, at("link")).unwrap();
    std::os::unix::fs::symlink(at("token"), at("link-to-token")).unwrap();
    let command = json!(["sh", "-c", "pwd; echo \"$0\""]);
    let token = at("token");
    let yaml = format!(
        "workspace: {}\nworkspace-create: true\nagent: generic\ncommand: {command}\ntoken-file: {}\n",
        here.display(),
        token.display()
    );
    std::fs::write(at("nuncio.yml"), yaml).unwrap();
    let server = Server::start_at(data, &["--config", at("nuncio.yml").to_str().unwrap()], &[]);
    let send = async |params: &nuncio_tests::Value| {
        let request = server.rpc_request("SendMessage", params).bearer_auth("the-token-of-somebody-0123456789");
        answer(request).await.1
    };
    let with_file = |path: &std::path::Path| {
        let mut params = message("");
        let url = format!("file://{}", path.display());
        params["message"]["parts"] = json!([{ "text": "read" }, { "url": url, "mediaType": "text/plain" }]);
        params
    };
    let good = send(&with_file(&at("note.txt"))).await;
    assert!(texts(&good["result"]["task"]).concat().contains("a note"), "{good}");
    let name = own.file_name().unwrap().to_str().unwrap();
    for path in [
        own.join("key.json"),
        own.join("nuncio.db"),
        at("link/key.json"),
        at(&format!("link/../{name}/key.json")),
        token,
        at("link-to-token"),
        at("nuncio.yml"),
    ] {
        let refused = send(&with_file(&path)).await;
        let text = "A2A file URL part is outside the allowed workspace.";
        assert_eq!(
            (&refused["error"]["code"], &refused["error"]["message"]),
            (&json!(-32602), &json!(text)),
            "{path:?}"
        );
    }
    for folder in [own.clone(), own.join("folder"), own.join("new"), at("link"), at("link/folder")] {
        let mut params = message("hi");
        params["metadata"] = json!({ "iac_code": { "cwd": folder } });
        let refused = send(&params).await;
        assert_eq!(refused["error"]["message"], "Invalid A2A workspace metadata.", "{folder:?}: {refused}");
    }
    assert!(!own.join("new").exists(), "nothing is made there either");
}
