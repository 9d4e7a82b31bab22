//! Document 002, lines 19 to 56 and 170 to 315: the client's commands, as they are written there, against the profile.

use nuncio_tests::{Server, Value, binary, id, json};

use crate::run::{Done, Shell};

/// A server that wants a token, and a folder with the configuration of its client.
struct Place {
    server: Server,
    shell: Shell,
    folder: tempfile::TempDir,
}

impl Place {
    fn new(more: &str) -> Self {
        let server =
            Server::configured(&format!("profile: iac-code\ntoken: local-dev-token\npush-notifications: true\n{more}"));
        let shell = Shell::new()
            .set("A2A_TOKEN", "local-dev-token")
            .set("NOTIFICATION_TOKEN", "notification-token")
            .set("WEBHOOK_BEARER_TOKEN", "callback-token");
        shell.write("a2a-client.yml", &format!("url: {}/\ntoken: local-dev-token\ntimeout: 30\n", server.url));
        Self { server, shell, folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// Runs a documented line; only the name of the binary, addresses and ids are other ones.
    fn line(&self, line: &str) -> Done {
        let line = line.replace("http://127.0.0.1:41242", &self.server.url);
        let line = line.replace("$PWD", &self.cwd());
        self.shell.line(&line.replacen("iac-code ", &format!("{} ", binary().display()), 1))
    }

    /// A folder that callers may name.
    fn cwd(&self) -> String {
        self.folder.path().display().to_string()
    }

    async fn task(&self, text: &str) -> Value {
        let params = nuncio_tests::at_once(nuncio_tests::message(text));
        let request = self.server.rpc_request("SendMessage", &params).bearer_auth("local-dev-token");
        nuncio_tests::answer(request).await.1["result"]["task"].clone()
    }

    async fn settled(&self, text: &str) -> Value {
        let request =
            self.server.rpc_request("SendMessage", &nuncio_tests::message(text)).bearer_auth("local-dev-token");
        nuncio_tests::answer(request).await.1["result"]["task"].clone()
    }
}

/// 002:7, 002:27-30, 002:170-197.
#[test]
fn call() {
    let place = Place::new("");
    let first = place.line(r#"iac-code a2a-client --config a2a-client.yml call --prompt "Create a VPC""#);
    assert!(first.err.contains("input-required"), "{first:?}");
    assert_eq!(first.ok(), "Create a VPC\n");
    let template = place.line(
        "iac-code a2a-client --config a2a-client.yml call \\\n\
         --prompt \"Create a ROS VPC template with two vSwitches.\" \\\n--cwd \"$PWD\"",
    );
    let context = template.err.split("context ").nth(1).and_then(|rest| rest.split(':').next()).unwrap().to_owned();
    assert_eq!(template.ok(), "Create a ROS VPC template with two vSwitches.\n");
    let follow_up = "iac-code a2a-client --config a2a-client.yml call \\\n--context-id ctx-123 \\\n\
                     --prompt \"Now add outputs for the VPC and vSwitch IDs.\" \\\n--cwd \"$PWD\"";
    let follow_up = place.line(&follow_up.replace("ctx-123", &context));
    assert!(follow_up.err.contains(&context), "{follow_up:?}");
    assert_eq!(follow_up.ok(), "Now add outputs for the VPC and vSwitch IDs.\n");
    let streamed = "iac-code a2a-client --config a2a-client.yml call \\\n\
                    --prompt \"Review this Terraform module.\" \\\n--cwd \"$PWD\" \\\n--stream";
    assert_eq!(place.line(streamed).ok(), "Review this Terraform module.\n");
}

/// 002:19-26, 002:319-323.
#[test]
fn every_command_takes_the_same_credentials() {
    let place = Place::new("basic-username: iac-code\nbasic-password: secret\napi-key: key\napi-key-header: X-K");
    let url = format!("{}/", place.server.url);
    for options in [
        "--token local-dev-token",
        "--basic-username iac-code --basic-password secret",
        "--api-key key --api-key-header X-K",
    ] {
        let before = place.shell.line(&format!("{} a2a-client {options} task-list --url {url}", binary().display()));
        let after = place.shell.line(&format!("{} a2a-client task-list --url {url} {options}", binary().display()));
        assert_eq!((before.code, after.code), (Some(0), Some(0)), "{options}: {before:?}");
    }
    let nobody = place.shell.line(&format!("{} a2a-client task-list --url {url}", binary().display()));
    nobody.failed(4);
    let shell = Shell::new().set("IACCODE_A2A_API_KEY", "key").set("IACCODE_A2A_API_KEY_HEADER", "X-K");
    shell.line(&format!("{} a2a-client task-list --url {url}", binary().display())).ok();
}

/// 002:28-56: every key of the client's file.
#[test]
fn the_file_of_the_client() {
    let place = Place::new("");
    let file = format!(
        "url: {0}/\ntoken: local-dev-token\nbasic-username: iac-code\nbasic-password: your-password\n\
         api-key: your-api-key\napi-key-header: X-IAC-Code-Key\nverify-card-secret: your-card-signing-secret\n\
         verify-card-jwks-url: https://a2a.example.com/.well-known/jwks.json\nrequire-card-signature: false\n\
         timeout: 30\ncwd: {1}\ncontext-id: ctx-123\ntask-id: task-123\nconfig-id: webhook-1\n\
         callback-url: https://hooks.example.com/a2a\nnotification-token: notification-token\nauth-scheme: bearer\n\
         auth-credentials: callback-token\nroutes:\n- name: ros\n  url: {0}/\n  skills:\n  - iac_generation\n  tags:\n  - ros\n  - template\n",
        place.server.url,
        place.cwd(),
    );
    place.shell.write("whole.yml", &file);
    let listed = place.line("iac-code a2a-client --config whole.yml task-list --output json").ok();
    assert_eq!(serde_json::from_str::<Value>(&listed).unwrap()["totalSize"], 0, "{listed}");
    let got = place.line("iac-code a2a-client --config whole.yml task-get");
    assert!(got.err.contains("task-123") || got.err.to_lowercase().contains("not found"), "{got:?}");
    assert_eq!(got.code, Some(1));
}

/// 002:183-185, 002:198-204, 002:211-213.
#[test]
fn signatures_are_verified() {
    let place = Place::new("signing-secret: local-card-signing-secret");
    let write = |more: &str| {
        let base = format!("url: {}/\ntoken: local-dev-token\n", place.server.url);
        place.shell.write("a2a-client.yml", &format!("{base}{more}"));
    };
    let line = "iac-code a2a-client --config a2a-client.yml call \\\n\
                --prompt \"Generate a production VPC template.\" \\\n--cwd \"$PWD\"";
    write("verify-card-secret: local-card-signing-secret\nrequire-card-signature: true\n");
    assert_eq!(place.line(line).ok(), "Generate a production VPC template.\n");
    place.line("iac-code a2a-client --config a2a-client.yml discover").ok();
    write("verify-card-secret: another-secret\nrequire-card-signature: true\n");
    assert!(place.line(line).failed(1).contains("refused"));
    write("");
    for option in ["--verify-card-secret", "--signing-secret"] {
        for require in ["--require-card-signature", "--require-signature"] {
            let run = |secret: &str| {
                place.line(&format!("iac-code a2a-client --config a2a-client.yml discover {option} {secret} {require}"))
            };
            run("local-card-signing-secret").ok();
            run("another-secret").failed(1);
        }
    }
    place.shell.write(
        "jwks-client.yml",
        &format!(
            "url: {}/\ntoken: local-dev-token\nverify-card-jwks-url: http://127.0.0.1:1/jwks.json\nrequire-card-signature: true\n",
            place.server.url
        ),
    );
    let line = "iac-code a2a-client --config jwks-client.yml call \\\n--prompt \"Review the ROS stack.\"";
    let refused = place.line(line);
    assert_ne!(refused.code, Some(0), "the key that it was signed with is not to be had: {refused:?}");
}

/// 002:8, 002:205-215.
#[test]
fn discover() {
    let place = Place::new("");
    let card = place.line("iac-code a2a-client --config a2a-client.yml discover").ok();
    assert!(card.contains("iac-code") && card.contains("JSONRPC 1.0"), "{card}");
    let json = place.line("iac-code a2a-client --config a2a-client.yml discover --output json").ok();
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["name"], "iac-code");
}

/// 002:9-12, 002:216-253.
#[tokio::test]
async fn tasks() {
    let place = Place::new("");
    let (rests, holds) = (place.settled("hello").await, place.task("hold").await);
    let get = "iac-code a2a-client --config a2a-client.yml task-get \\\n--task-id task-123 \\\n--history-length 20";
    let got = place.line(&get.replace("task-123", id(&rests))).ok();
    assert!(got.contains("input-required") && got.contains("hello"), "{got}");
    let list = "iac-code a2a-client --config a2a-client.yml task-list \\\n--context-id ctx-123 \\\n\
                --status TASK_STATE_INPUT_REQUIRED \\\n--page-size 20 \\\n--output table";
    let listed = place.line(&list.replace("ctx-123", rests["contextId"].as_str().unwrap())).ok();
    assert!(listed.contains(id(&rests)) && !listed.contains(id(&holds)), "{listed}");
    let json = "iac-code a2a-client --config a2a-client.yml task-list \\\n--include-artifacts \\\n--output json";
    let all: Value = serde_json::from_str(&place.line(json).ok()).unwrap();
    assert_eq!(all["tasks"].as_array().unwrap().len(), 2);
    let first = place.line("iac-code a2a-client --config a2a-client.yml task-list --page-size 1 --output json").ok();
    let token = serde_json::from_str::<Value>(&first).unwrap()["nextPageToken"].as_str().unwrap().to_owned();
    let next = place
        .line(&format!("iac-code a2a-client --config a2a-client.yml task-list --page-token {token} --output json"))
        .ok();
    assert!(next.contains(id(&rests)), "{next}");
    let cancel = "iac-code a2a-client --config a2a-client.yml task-cancel \\\n--task-id task-123";
    assert!(place.line(&cancel.replace("task-123", id(&holds))).ok().contains("canceled"));
    let refused = place.line(&cancel.replace("task-123", id(&rests)));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let streams = place.task("stream 20 50").await;
    let subscribe = "iac-code a2a-client --config a2a-client.yml task-subscribe \\\n--task-id task-123";
    let followed = place.line(&subscribe.replace("task-123", id(&streams)));
    assert!(followed.out.contains("chunk 19"), "{followed:?}");
}

/// 002:13-16, 002:254-285.
#[tokio::test]
async fn push_configs() {
    let place = Place::new("");
    let task = place.settled("hello").await;
    let run = |line: &str| place.line(&line.replace("task-123", id(&task)));
    let made = run("iac-code a2a-client --config a2a-client.yml push-config-create \\\n--task-id task-123 \\\n\
                    --config-id webhook-1 \\\n--callback-url https://hooks.example.com/a2a \\\n\
                    --notification-token \"$NOTIFICATION_TOKEN\" \\\n--auth-scheme bearer \\\n\
                    --auth-credentials \"$WEBHOOK_BEARER_TOKEN\" --output json");
    let made: Value = serde_json::from_str(&made.ok()).unwrap();
    assert_eq!((&made["id"], &made["authentication"]["scheme"]), (&json!("webhook-1"), &json!("bearer")), "{made}");
    let got = run(
        "iac-code a2a-client --config a2a-client.yml push-config-get \\\n--task-id task-123 \\\n--config-id webhook-1",
    );
    assert!(got.ok().contains("https://hooks.example.com/a2a"));
    let listed =
        run("iac-code a2a-client --config a2a-client.yml push-config-list \\\n--task-id task-123 \\\n--page-size 10");
    assert!(listed.ok().contains("webhook-1"));
    let private = run(
        "iac-code a2a-client --config a2a-client.yml push-config-create --task-id task-123 --callback-url http://127.0.0.1/x",
    );
    assert_eq!(private.code, Some(1), "{private:?}");
    run("iac-code a2a-client --config a2a-client.yml push-config-delete \\\n--task-id task-123 \\\n--config-id webhook-1").ok();
    run("iac-code a2a-client --config a2a-client.yml push-config-get --task-id task-123 --config-id webhook-1")
        .failed(1);
}

/// 002:17, 002:286-290.
#[test]
fn extended_card() {
    let place = Place::new("");
    let line = "iac-code a2a-client --config a2a-client.yml extended-card \\\n--token \"$A2A_TOKEN\"";
    let card = place.line(line).ok();
    assert!(card.contains("iac-code"), "{card}");
    let json = place.line(&format!("{line} --output json")).ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["skills"].as_array().unwrap().len(), 5);
}

/// 002:18, 002:177-180, 002:291-315.
#[test]
fn routes() {
    let place = Place::new("");
    let preview = "iac-code a2a-route-preview \\\n\
                   --route \"template=http://127.0.0.1:41242/;skills=iac_generation;tags=ros,template\" \\\n\
                   --skill iac_generation \\\n--prompt \"Create a ROS VPC template\"";
    let chosen = place.line(preview).ok();
    assert!(chosen.contains("template") && chosen.contains("iac_generation"), "{chosen}");
    let both = "--route \"ros=http://127.0.0.1:1/;skills=a;tags=ros\" --route \"tf=http://127.0.0.1:2/;skills=b;tags=terraform\"";
    for (wish, route) in [("--name tf", "tf"), ("--skill a", "ros"), ("--prompt \"a terraform module\"", "tf")] {
        let chosen = place.line(&format!("iac-code a2a-route-preview {both} {wish} --output json")).ok();
        assert_eq!(serde_json::from_str::<Value>(&chosen).unwrap()["name"], route, "{wish}");
    }
    let save = "iac-code a2a-route-preview \\\n\
                --route \"ros=http://127.0.0.1:41242/;skills=iac_generation;tags=ros\" \\\n\
                --route-state-dir ~/.iac-code/a2a \\\n--save-routes";
    place.line(save).ok();
    let saved = std::fs::read_to_string(place.shell.path().join(".iac-code/a2a/routes.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&saved).unwrap()["routes"][0]["name"], "ros");
    let call = "iac-code a2a-client call \\\n\
                --route \"ros=http://127.0.0.1:41242/;skills=iac_generation;tags=ros\" \\\n--route-name ros \\\n\
                --prompt \"Create a ROS VPC template.\" \\\n--cwd \"$PWD\" --token local-dev-token";
    assert_eq!(place.line(call).ok(), "Create a ROS VPC template.\n");
}
