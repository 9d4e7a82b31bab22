//! Every command line of the command reference, as it is written there.

use nuncio_tests::{Server, binary, id, json};
use snapbox::{assert_data_eq, str};

use crate::agent::Agent;
use crate::run::{Done, Shell};

/// A server that wants a token, and a folder with the configuration of its client.
struct Place {
    server: Server,
    shell: Shell,
}

impl Place {
    fn new() -> Self {
        let server = Server::configured("store: memory\ntoken: local-dev-token\n");
        let shell = Shell::new().set("A2A_TOKEN", "local-dev-token");
        shell.write("a2a-client.yml", &format!("url: {}/\ntoken: local-dev-token\ntimeout: 30\n", server.url));
        Self { server, shell }
    }

    /// Runs a documented line; only the name of the binary, addresses and ids are other ones.
    fn line(&self, line: &str) -> Done {
        let line = line.replace("http://127.0.0.1:41242", &self.server.url);
        self.shell.line(&line.replacen("iac-code ", &format!("{} ", binary().display()), 1))
    }

    async fn task(&self, text: &str) -> nuncio_tests::Value {
        let params = nuncio_tests::at_once(nuncio_tests::message(text));
        let request = self.server.rpc_request("SendMessage", &params).bearer_auth("local-dev-token");
        nuncio_tests::answer(request).await.1["result"]["task"].clone()
    }
}

#[tokio::test]
async fn calls() {
    let place = Place::new();
    let first = place.line(r#"iac-code a2a-client --config a2a-client.yml call --prompt "Create a VPC""#);
    assert_data_eq!(
        &first.err,
        str![[r#"
task [..], context [..]: completed

"#]]
    );
    assert_eq!(first.ok(), "Create a VPC\n");
    let template = place.line(
        "iac-code a2a-client --config a2a-client.yml call \\\n\
         --prompt \"Create a ROS VPC template with two vSwitches.\" \\\n--cwd \"$PWD\"",
    );
    let context =
        template.err.split("context ").nth(1).and_then(|rest| rest.split(':').next()).expect("it is told").to_owned();
    assert_eq!(template.ok(), "Create a ROS VPC template with two vSwitches.\n");
    let follow_up = place.line(
        &"iac-code a2a-client --config a2a-client.yml call \\\n--context-id ctx-123 \\\n\
          --prompt \"Now add outputs for the VPC and vSwitch IDs.\" \\\n--cwd \"$PWD\""
            .replace("ctx-123", &context),
    );
    assert!(follow_up.err.contains(&context), "{follow_up:?}");
    assert_eq!(follow_up.ok(), "Now add outputs for the VPC and vSwitch IDs.\n");
    let streamed = place.line(
        "iac-code a2a-client --config a2a-client.yml call \\\n--prompt \"Review this Terraform module.\" \\\n\
         --cwd \"$PWD\" \\\n--stream",
    );
    assert_eq!(streamed.ok(), "Review this Terraform module.\n");
}

#[tokio::test]
async fn signatures() {
    let place = Place::new();
    let base = format!("url: {}/\ntoken: local-dev-token\n", place.server.url);
    place.shell.write("a2a-client.yml", &format!("{base}verify-card-secret: s\nrequire-card-signature: true\n"));
    let line = "iac-code a2a-client --config a2a-client.yml call \\\n\
                --prompt \"Generate a production VPC template.\" \\\n--cwd \"$PWD\"";
    let refused = place.line(line).failed(1);
    assert_data_eq!(
        refused,
        str![[r#"
error: The card at http://127.0.0.1:[..]/.well-known/agent-card.json is refused, as its signature is absent. [..]

"#]]
    );
    place.shell.write("jwks-client.yml", &format!("{base}verify-card-jwks-url: http://127.0.0.1:1/jwks.json\n"));
    let unsigned =
        place.line("iac-code a2a-client --config jwks-client.yml call \\\n--prompt \"Review the ROS stack.\"");
    assert_eq!(unsigned.ok(), "Review the ROS stack.\n", "nobody required a signature");
}

#[tokio::test]
async fn discovery() {
    let place = Place::new();
    let card = place.line("iac-code a2a-client --config a2a-client.yml discover");
    assert_eq!(card.err, "Signature: absent.\n");
    assert_data_eq!(
        card.ok(),
        str![[r#"
Agent      nuncio demo [..]
About      Echoes what it is told, and shows every behaviour of an A2A agent on request
Interface  JSONRPC 1.0 http://127.0.0.1:[..]/
Interface  HTTP+JSON 1.0 http://127.0.0.1:[..]
...
"#]]
    );
    let json = place.line("iac-code a2a-client --config a2a-client.yml discover --output json").ok();
    let json: nuncio_tests::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["name"], "nuncio demo");
}

#[tokio::test]
async fn tasks() {
    let place = Place::new();
    let (waits, holds) = (place.task("ask Which colour?").await, place.task("hold").await);
    let got = place.line(
        &"iac-code a2a-client --config a2a-client.yml task-get \\\n--task-id task-123 \\\n--history-length 20"
            .replace("task-123", id(&waits)),
    );
    assert_data_eq!(
        got.ok(),
        str![[r#"
Task       [..]
Context    [..]
State      input-required
Updated    [..]Z
Message    Which colour?
Said       user: ask Which colour?
...
"#]]
    );
    let context = waits["contextId"].as_str().expect("an id");
    let listed = place.line(
        &"iac-code a2a-client --config a2a-client.yml task-list \\\n--context-id ctx-123 \\\n\
          --status TASK_STATE_INPUT_REQUIRED \\\n--page-size 20 \\\n--output table"
            .replace("ctx-123", context),
    );
    assert_eq!(listed.err, "Showing 1 of 1 tasks.\n");
    assert_data_eq!(
        listed.ok(),
        str![[r#"
ID  [..]  Status          Context  [..]  Updated                   Message
----[..]
[..]  input-required  [..]  [..]Z  Which colour?

"#]]
    );
    let json =
        place.line("iac-code a2a-client --config a2a-client.yml task-list \\\n--include-artifacts \\\n--output json");
    let json: nuncio_tests::Value = serde_json::from_str(&json.ok()).expect("JSON");
    assert_eq!(json["totalSize"], json!(2));

    let cancel = "iac-code a2a-client --config a2a-client.yml task-cancel \\\n--task-id task-123"
        .replace("task-123", id(&holds));
    assert_data_eq!(place.line(&cancel).ok(), str!["Task       [..]\nContext    [..]\nState      canceled\n..."]);
    assert!(place.line(&cancel).ok().contains("canceled"), "twice is fine");
    let done = place.task("hello").await;
    let refused = place.line(&cancel.replace(id(&holds), id(&done))).failed(1);
    assert!(refused.contains("the task is completed"), "{refused}");
}

#[tokio::test]
async fn subscriptions() {
    let place = Place::new();
    let task = place.task("stream 20 50").await;
    let line = "iac-code a2a-client --config a2a-client.yml task-subscribe \\\n--task-id task-123"
        .replace("task-123", id(&task));
    let followed = place.line(&line).ok();
    let whole: String = (0..20).map(|n| format!("chunk {n}")).collect();
    assert_eq!(followed, format!("{whole}\n"), "what was there before is told as well");
    let over = place.line(&line).failed(1);
    assert!(over.contains("task-get"), "{over}");
    assert_eq!(place.line(&format!("{line} --after 0")).ok(), format!("{whole}\n"));
}

#[tokio::test]
async fn webhooks_and_the_extended_card() {
    let agent = Agent::with_webhooks();
    let shell = Shell::new()
        .set("NOTIFICATION_TOKEN", "note")
        .set("WEBHOOK_BEARER_TOKEN", "hook-secret")
        .set("A2A_TOKEN", "caller-token");
    shell.write("a2a-client.yml", &format!("url: {}\n", agent.url));
    let line = |line: &str| shell.line(&line.replacen("iac-code ", &format!("{} ", binary().display()), 1));
    let created = line(
        "iac-code a2a-client --config a2a-client.yml push-config-create \\\n--task-id task-123 \\\n\
         --config-id webhook-1 \\\n--callback-url https://hooks.example.com/a2a \\\n\
         --notification-token \"$NOTIFICATION_TOKEN\" \\\n--auth-scheme bearer \\\n\
         --auth-credentials \"$WEBHOOK_BEARER_TOKEN\"",
    );
    let webhook = "Webhook    webhook-1\nTask       task-123\nURL        https://hooks.example.com/a2a\n\
                   Token      (set)\nAuth       bearer\n";
    assert_eq!(created.ok(), webhook);
    let sent = agent.last("/").body["params"].clone();
    assert_eq!(sent["authentication"], json!({ "scheme": "bearer", "credentials": "hook-secret" }));
    assert_eq!(sent["token"], "note");
    let got = line(
        "iac-code a2a-client --config a2a-client.yml push-config-get \\\n--task-id task-123 \\\n--config-id webhook-1",
    );
    assert_eq!(got.ok(), webhook);
    let listed =
        line("iac-code a2a-client --config a2a-client.yml push-config-list \\\n--task-id task-123 \\\n--page-size 10");
    assert_data_eq!(
        listed.ok(),
        str![[r#"
ID         Auth    Token  URL
---------  ------  -----  -----------------------------
webhook-1  bearer  (set)  https://hooks.example.com/a2a

"#]]
    );
    let delete = "iac-code a2a-client --config a2a-client.yml push-config-delete \\\n--task-id task-123 \\\n--config-id webhook-1";
    assert_eq!(line(delete).ok(), "");
    assert!(line(delete).failed(1).contains("The agent answers"));
    let card = line("iac-code a2a-client --config a2a-client.yml extended-card \\\n--token \"$A2A_TOKEN\"");
    assert_data_eq!(
        card.ok(),
        str![[r#"
Agent      small, extended 1
About      More

"#]]
    );
    assert!(agent.last("/").headers.to_lowercase().contains("authorization: bearer caller-token"));
}

#[tokio::test]
async fn routes() {
    let place = Place::new();
    let preview = place.line(
        "iac-code a2a-route-preview \\\n\
         --route \"template=http://127.0.0.1:41242/;skills=iac_generation;tags=ros,template\" \\\n\
         --skill iac_generation \\\n--prompt \"Create a ROS VPC template\"",
    );
    assert_eq!(preview.err, "Route template is taken: it has the skill `iac_generation`.\n");
    assert_data_eq!(
        preview.ok(),
        str![[r#"
Route     URL                      Skills          Tags
--------  -----------------------  --------------  -------------
template  http://127.0.0.1:[..]/  iac_generation  ros, template

"#]]
    );
    let saved = place.line(
        "iac-code a2a-route-preview \\\n--route \"ros=http://127.0.0.1:41242/;skills=iac_generation;tags=ros\" \\\n\
         --route-state-dir ~/.iac-code/a2a \\\n--save-routes",
    );
    assert_data_eq!(
        &saved.err,
        str![[r#"
Saved 1 route in [..]/.iac-code/a2a/routes.json.

"#]]
    );
    saved.ok();
    let called = place.line(
        "iac-code a2a-client call \\\n--route \"ros=http://127.0.0.1:41242/;skills=iac_generation;tags=ros\" \\\n\
         --route-name ros \\\n--prompt \"Create a ROS VPC template.\" \\\n--cwd \"$PWD\" --token local-dev-token",
    );
    assert_eq!(called.ok(), "Create a ROS VPC template.\n");
    let by_saved = place.line(
        "iac-code a2a-client call --route-state-dir ~/.iac-code/a2a --prompt 'What is ROS?' --token local-dev-token",
    );
    assert_eq!(by_saved.ok(), "What is ROS?\n", "saved routes are used");
}
