//! Passwords, API keys, files of tokens, groups, and what the card says about all of them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nuncio_tests::raw::{V1, Wire, until};
use nuncio_tests::{Value, json};

use crate::kit::{ANNA, BEN, Mint, TOKENS, bearer};

fn send(wire: &Wire, who: &str, text: &str) -> Value {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] });
    wire.post("/message:send", &format!("{V1}{who}"), &json!({ "message": message }).to_string()).json()
}

fn tasks(wire: &Wire, who: &str) -> u64 {
    let answer = wire.get("/tasks", &format!("{V1}{who}"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["totalSize"].as_u64().expect("a number")
}

#[test]
fn any_scheme_suffices_and_each_has_tasks_of_its_own() {
    let mint = Mint::new();
    let wire = Wire::start(&format!(
        "{TOKENS}{}basic-username: anna\nbasic-password: two words\napi-key: k3y\napi-key-query: key\napi-key-cookie: key\n",
        mint.config("")
    ));
    let basic = "Authorization: Basic YW5uYTp0d28gd29yZHM=\r\n";
    let token = bearer(&mint.token(&json!({})));
    let callers = [ANNA, basic, "X-API-Key: k3y\r\n", &token];
    for (count, who) in callers.iter().enumerate() {
        for _ in 0..=count {
            send(&wire, who, "hi");
        }
    }
    for (count, who) in callers.iter().enumerate() {
        assert_eq!(tasks(&wire, who), count as u64 + 1, "{who}");
    }
    assert_eq!(tasks(&wire, "Cookie: a=b; key=k3y\r\n"), 3, "the same key in a cookie");
    assert_eq!(wire.get("/tasks?key=k3y", V1).json()["totalSize"], 3, "and in the query");
    for wrong in ["Authorization: Basic YW5uYTp0d28=\r\n", "X-API-Key: k3\r\n", "Cookie: key=k\r\n"] {
        assert_eq!(wire.get("/tasks", &format!("{V1}{wrong}")).status, 401, "{wrong}");
    }
    let both = format!("{V1}{ANNA}X-API-Key: wrong\r\n");
    assert_eq!(wire.get("/tasks", &both).status, 200, "one that is good suffices");
    let log = wire.log();
    for secret in ["aaaaaaaaaaaa", "k3y", "two words", "YW5uYTp0"] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[test]
fn the_card_declares_exactly_what_is_enforced() {
    let card = |yaml: &str, version: &str| Wire::start(yaml).get("/.well-known/agent-card.json", version).json();
    let names = |card: &Value| {
        let schemes = card["securitySchemes"].as_object().map(|all| all.keys().cloned().collect::<Vec<_>>());
        schemes.unwrap_or_default()
    };
    assert!(names(&card("", V1)).is_empty());
    let mint = Mint::new();
    let all =
        format!("{TOKENS}{}basic-username: a\nbasic-password: b\napi-key: k\napi-key-header: X-Key\n", mint.config(""));
    let new = card(&all, V1);
    assert_eq!(names(&new), ["apiKeyAuth", "basicAuth", "bearerAuth", "oidc"]);
    let key = json!({ "apiKeySecurityScheme": { "location": "header", "name": "X-Key" } });
    assert_eq!(new["securitySchemes"]["apiKeyAuth"], key);
    assert_eq!(new["securityRequirements"].as_array().map(Vec::len), Some(4), "any of them suffices");
    let old = card(&format!("{all}card-format: \"0.3\"\n"), "");
    assert_eq!(old["securitySchemes"]["apiKeyAuth"], json!({ "type": "apiKey", "in": "header", "name": "X-Key" }));
    assert_eq!(old["securitySchemes"]["basicAuth"]["scheme"], "Basic");
    assert_eq!(old["security"].as_array().map(Vec::len), Some(4));
    let found = "oidc: {issuer: \"https://id.example\", audience: agents}\n";
    let url = &card(found, V1)["securitySchemes"]["oidc"]["openIdConnectSecurityScheme"]["openIdConnectUrl"];
    assert_eq!(url, "https://id.example/.well-known/openid-configuration");
}

#[test]
fn a_protected_card_is_for_callers_alone() {
    let wire = Wire::start(&format!("{TOKENS}protect-card: true\n"));
    for path in ["/.well-known/agent-card.json", "/.well-known/agent.json"] {
        assert_eq!(wire.get(path, "").status, 401);
        let shown = wire.get(path, ANNA);
        assert_eq!(shown.status, 200);
        assert_eq!(shown.header("cache-control"), Some("private, max-age=60"), "no cache shows it to others");
    }
    assert_eq!(wire.get("/health", "").status, 200);
}

#[test]
fn members_of_a_shared_group_see_each_others_tasks() {
    let mint = Mint::new();
    let wire = Wire::start(&format!(
        "tokens:\n  - {{name: anna, token: aaaaaaaaaaaaaaaaaaaaaaaa, groups: [ops]}}\n  \
         - {{name: ben, token: bbbbbbbbbbbbbbbbbbbbbbbb, groups: [dev]}}\nshared-groups: [ops]\n{}",
        mint.config("")
    ));
    send(&wire, ANNA, "hi");
    let member = |groups: &Value| bearer(&mint.token(&json!({ "sub": "cleo", "groups": groups })));
    assert_eq!(tasks(&wire, &member(&json!(["dev", "ops"]))), 1, "the same group");
    assert_eq!(tasks(&wire, &member(&json!(["dev"]))), 0, "a group that does not share");
    assert_eq!(tasks(&wire, &member(&json!("ops"))), 1, "one group as a text");
    assert_eq!(tasks(&wire, &member(&json!(["group:ops", "Ops"]))), 0, "names that only look like it");
    assert_eq!(tasks(&wire, BEN), 0);
}

#[test]
fn a_token_with_scopes_may_do_no_more() {
    let wire = Wire::start(
        "tokens:\n  - {name: anna, token: aaaaaaaaaaaaaaaaaaaaaaaa, scopes: [look]}\nscopes: {look: [GetTask, ListTasks]}\n",
    );
    assert_eq!(tasks(&wire, ANNA), 0);
    assert_eq!(send(&wire, ANNA, "hi")["error"]["code"], 403);
    assert_eq!(wire.get("/metrics", ANNA).status, 403);
}

#[test]
fn a_webhook_beside_a_message_needs_the_scope_for_webhooks() {
    let wire = Wire::start(
        "tokens:\n- {name: anna, token: aaaaaaaaaaaaaaaaaaaaaaaa, scopes: [talk]}\n\
         - {name: ben, token: bbbbbbbbbbbbbbbbbbbbbbbb}\n\
         scopes: {talk: [SendMessage, SendStreamingMessage, GetTask, ListTasks]}\n\
         push-notifications: true\npush-allowed-cidrs: 127.0.0.0/8\n",
    );
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hi" }] });
    let configuration = json!({ "taskPushNotificationConfig": { "url": "http://127.0.0.1:65000/" } });
    let body = json!({ "message": message, "configuration": configuration }).to_string();
    for path in ["/message:send", "/message:stream"] {
        let refused = wire.post(path, &format!("{V1}{ANNA}"), &body);
        assert_eq!(refused.status, 403, "{path}: {}", refused.text());
        assert!(refused.text().contains("CreateTaskPushNotificationConfig"), "{}", refused.text());
    }
    assert_eq!(tasks(&wire, ANNA), 0, "nothing was done");
    let done = wire.post("/message:send", &format!("{V1}{BEN}"), &body);
    assert_eq!(done.status, 200, "{}", done.text());
}

fn write(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).expect("the file can be written");
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)).expect("its mode can be set");
    std::fs::rename(new, path).expect("it takes its place");
}

#[test]
fn a_token_file_is_read_again_when_it_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    write(&file, "the-first-token");
    let wire = Wire::start(&format!("token-file: {}\n", file.display()));
    let status = |token: &str| wire.get("/tasks", &format!("{V1}{}", bearer(token))).status;
    assert_eq!((status("the-first-token"), status("the-second-token")), (200, 401));
    write(&file, "the-second-token");
    wire.signal("HUP");
    until("the new token counts", || status("the-second-token") == 200);
    assert_eq!(status("the-first-token"), 401, "the old one does not");
}
