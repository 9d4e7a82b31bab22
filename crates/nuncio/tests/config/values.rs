//! Where values come from, how they are shown, and that all listings agree.

use std::collections::BTreeMap;
use std::process::Output;

use serde_json::Value as Json;

use super::{Place, problem, text};

fn schema() -> Json {
    let output = Place::new("").run(&["config", "schema"]);
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn transport_and_card_format_have_their_other_spellings() {
    for name in ["http", "jsonrpc", "JSON_RPC", "http+jsonrpc", "http-jsonrpc", "https"] {
        let place = Place::new(&format!("transport: [{name}, http]"));
        assert_eq!(place.shown("transport", &[]).0, serde_json::json!(["http"]));
    }
    for (file, names) in [
        ("[ws, WSS]", "websocket"),
        ("unix_socket\nsocket-path: /a", "unix"),
        ("grpcs", "grpc"),
        ("grpc+jsonrpc", "grpc-jsonrpc"),
        ("[redis, redis_stream]\nredis-url: redis://a", "redis-streams"),
        ("stdio", "stdio"),
    ] {
        let place = Place::new(&format!("transport: {file}"));
        assert_eq!(place.shown("transport", &[]).0, serde_json::json!([names]), "{file}");
    }
    for (file, value) in [("1.0", "1.0"), ("0.3", "0.3"), ("'1.0'", "1.0"), ("union", "union")] {
        let place = Place::new(&format!("card-format: {file}"));
        assert_eq!(place.shown("card-format", &[]).0, value);
    }
}

#[test]
fn every_level_of_precedence_counts() {
    let key = "thinking-exposure";
    let place = Place::new("thinking-exposure: none").with("NUNCIO_THINKING_EXPOSURE", "all");
    assert_eq!(place.shown(key, &["--thinking-exposure", "raw-thinking"]).1, "flag");
    assert_eq!(place.shown(key, &[]).1, "environment");
    assert_eq!(Place::new("thinking-exposure: none").shown(key, &[]).1, "file");
    assert_eq!(Place::new("").shown(key, &[]).1, "profile");
    assert_eq!(Place::new("").shown("port", &[]).1, "default");
    let place = Place::new("port: 3").with("NUNCIO_PORT", "2");
    assert_eq!(place.shown("port", &["--port", "1"]).0, 1);
    assert_eq!(place.shown("port", &[]).0, 2);
    let table = text(&place.run(&["config", "show", "--config", "nuncio.yml"]).stdout);
    assert!(table.contains("environment (NUNCIO_PORT)"), "{table}");
    let table = text(&Place::new("\nport: 3").run(&["config", "show", "--config", "nuncio.yml"]).stdout);
    assert!(table.contains("file (nuncio.yml, line 2)"), "{table}");
}

#[test]
fn keys_have_two_spellings_and_data_dir_has_an_older_name() {
    for key in ["data-dir", "data_dir", "persistence-dir", "persistence_dir"] {
        let place = Place::new(&format!("{key}: ~/tasks"));
        assert_eq!(place.shown("data-dir", &[]).0, "/home/me/tasks", "{key}");
    }
    let place = Place::new("tokens: [{name: a, token_file: t}]");
    place.write("t", "x", 0o600);
    assert_eq!(place.problems(&[]), Vec::<String>::new());
}

#[test]
fn variables_in_values_are_expanded() {
    let place = Place::new("name: a ${WHO} costs 5$$\nport: ${PORT}").with("WHO", "b").with("PORT", "8080");
    assert_eq!(place.shown("name", &[]).0, "a b costs 5$");
    assert_eq!(place.shown("port", &[]).0, 8080);
    assert_eq!(
        problem("\nport: ${NOT_SET}"),
        "`port` in nuncio.yml, line 2: the environment variable `NOT_SET` is not set; \
         set it, or write `$$` for a plain `$`"
    );
    assert!(problem("data-dir: ~bob/x").contains("only `~` and `~/…` are expanded"));
}

#[test]
fn secrets_are_never_shown() {
    let place = Place::new("token: hunter2\ntokens:\n- {name: a, token: hunter2-a}\n- {name: b, token: '${B}'}\n")
        .with("B", "hunter2-b");
    for output in ["table", "json", "yaml"] {
        let shown = place.run(&["config", "show", "--config", "nuncio.yml", "--output", output]);
        assert!(shown.status.success(), "{}", text(&shown.stderr));
        let shown = text(&shown.stdout);
        assert_eq!(shown.matches("***").count(), 3, "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    for file in ["token: [hunter2]", "token: {hunter2: 1", "tokens: hunter2", "token: hunter 2", "token: \"hunter2\"x"]
    {
        assert!(!problem(file).contains("hunter"), "{file}");
    }
}

#[test]
fn shown_yaml_is_a_configuration_that_says_the_same() {
    let file = "name: \"a: b # c\"\ntenants: ['1.0', 'no', x]\ncard-format: 1.0\nextensions:\n- {uri: 'urn:x', params: {A_b: [1, null, 'yes']}}\n";
    let show = ["config", "show", "--config", "nuncio.yml", "--output", "yaml"];
    let data = |output: Output| {
        assert!(output.status.success(), "{}", text(&output.stderr));
        let lines = text(&output.stdout);
        let lines = lines.lines().filter(|line| !line.starts_with('#'));
        lines.collect::<Vec<_>>().join("\n")
    };
    let first = data(Place::new(file).run(&show));
    assert_eq!(data(Place::new(&first).run(&show)), first);
    assert!(first.contains("A_b"), "params stay as they are");
}

#[test]
fn the_schema_describes_every_key() {
    let schema = schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let shown = Place::new("").run(&["config", "show", "--output", "json"]);
    let shown: Json = serde_json::from_slice(&shown.stdout).unwrap();
    let keys = |value: &Json| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&schema["properties"]), keys(&shown));
    for (key, property) in schema["properties"].as_object().unwrap() {
        assert!(property["description"].is_string(), "{key}");
        let default = property.get("default").unwrap_or(&Json::Null);
        if key != "data-dir" {
            assert_eq!(*default, shown[key]["value"], "{key}");
        }
    }
}

#[test]
fn the_document_lists_the_keys_of_the_code() {
    let document = include_str!("../../../../docs/configuration.md");
    let rows: BTreeMap<&str, &str> = document
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| (line.split('`').nth(1).unwrap(), line))
        .collect();
    let schema = schema();
    let properties = schema["properties"].as_object().unwrap();
    let names: Vec<_> = rows.keys().copied().collect();
    let mut known: Vec<_> = properties.keys().map(String::as_str).collect();
    known.sort_unstable();
    assert_eq!(names, known);
    for (key, property) in properties {
        let variable = property.get("x-environment").and_then(Json::as_str);
        let default = match property.get("default") {
            Some(Json::Array(items)) => items[0].as_str().map(str::to_owned),
            Some(Json::String(text)) => Some(text.clone()),
            other => other.map(ToString::to_string),
        };
        let cell = |value: Option<&str>| value.map_or("none".to_owned(), |value| format!("`{value}`"));
        let cells: Vec<_> = rows[key.as_str()].split('|').map(str::trim).collect();
        let expected = [&cell(variable), &cell(default.as_deref()), property["description"].as_str().unwrap()];
        assert_eq!(cells[2..5], expected, "{key}");
    }
}

#[test]
fn mistakes_on_the_command_line_and_missing_parts_have_their_codes() {
    let place = Place::new("");
    assert_eq!(place.run(&["serve", "--no-such-flag"]).status.code(), Some(2));
    assert_eq!(place.run(&["--version"]).status.code(), Some(0));
    for shell in ["bash", "zsh", "fish"] {
        let script = place.run(&["completions", shell]);
        assert!(script.status.success() && !script.stdout.is_empty(), "{shell}");
    }
}
