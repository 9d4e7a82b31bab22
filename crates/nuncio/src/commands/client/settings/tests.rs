use std::ffi::OsString;

use super::*;

fn environment(variables: &[(&str, &str)]) -> Environment {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
    Environment { variables, home: Some("/home/me".into()) }
}

fn load(flags: &[(&'static str, &str)], variables: &[(&str, &str)], file: &str) -> Result<Settings, Vec<String>> {
    let given = flags.iter().map(|(key, value)| (*key, vec![(*value).to_owned()])).collect();
    let file = (!file.is_empty()).then(|| (PathBuf::from("c.yml"), file.to_owned()));
    Settings::from(given, file, &environment(variables))
}

fn token(settings: &Settings) -> Option<&str> {
    settings.token.as_ref().map(Secret::expose)
}

#[test]
fn flags_win_over_the_environment_over_the_file() {
    let (flag, ours, theirs, file) =
        (("token", "flag"), ("NUNCIO_TOKEN", "ours"), ("IACCODE_A2A_HTTP_TOKEN", "theirs"), "token: file\n");
    assert_eq!(token(&load(&[flag], &[ours, theirs], file).unwrap()), Some("flag"));
    assert_eq!(token(&load(&[], &[ours, theirs], file).unwrap()), Some("ours"));
    assert_eq!(token(&load(&[], &[theirs], file).unwrap()), Some("theirs"));
    assert_eq!(token(&load(&[], &[("NUNCIO_TOKEN", "")], file).unwrap()), Some("file"));
    assert_eq!(token(&load(&[], &[], "").unwrap()), None);
}

#[test]
fn all_documented_keys_are_read() {
    let settings = load(&[], &[("SECRET", "from the environment")], include_str!("documented.yml")).unwrap();
    assert_eq!(settings.url.as_deref(), Some("http://127.0.0.1:41242/"));
    assert_eq!(settings.basic_password.as_ref().map(Secret::expose), Some("from the environment"));
    assert_eq!(settings.api_key_header, "X-IAC-Code-Key");
    assert_eq!(settings.timeout, Duration::from_secs(30));
    assert!(settings.require_card_signature);
    assert_eq!(settings.config_id.as_deref(), Some("webhook-1"));
    assert_eq!(settings.cwd.as_deref(), Some(FilePath::new("/home/me/workspace")));
    assert_eq!(settings.routes.len(), 2);
    assert_eq!((settings.routes[0].name.as_str(), settings.routes[0].tags.len()), ("ros", 2));
    assert!(settings.is_set("timeout") && !settings.is_set("output"));
}

#[test]
fn routes_of_the_command_line_come_before_those_of_the_file() {
    let file = "routes:\n- a=http://file/\n- b=http://file/\n";
    let settings = load(&[("routes", "a=http://flag/")], &[], file).unwrap();
    let urls: Vec<&str> = settings.routes.iter().map(|route| route.url.as_str()).collect();
    assert_eq!(urls, ["http://flag/", "http://file/"]);
}

#[test]
fn mistakes_name_their_place() {
    let wrong = |flags: &[(&'static str, &str)], variables: &[(&str, &str)], file: &str| {
        load(flags, variables, file).unwrap_err().join("\n")
    };
    assert_eq!(wrong(&[], &[], "tokn: x\n"), "unknown key `tokn` in c.yml, line 1: did you mean `token`?");
    assert!(wrong(&[], &[], "zzz: x\n").contains("known are `url`"));
    assert!(wrong(&[("timeout", "soon")], &[], "").starts_with("`--timeout`: expected seconds"));
    assert!(wrong(&[], &[("NUNCIO_TIMEOUT", "-1")], "").starts_with("`NUNCIO_TIMEOUT`"));
    assert!(wrong(&[("output", "xml")], &[], "").contains("supported values: table, json"));
    assert!(wrong(&[("status", "busy")], &[], "").contains("input-required"));
    assert!(wrong(&[("page-size", "0")], &[], "").contains("from 1 to 100"));
    assert!(wrong(&[("routes", "x")], &[], "").starts_with("`--route`: A2A route must start with name=url."));
    assert!(wrong(&[], &[], "routes:\n- a=http://h/\n- a=http://h/\n").contains("line 3"));
    let secret = wrong(&[("token", "two words")], &[], "");
    assert!(!secret.contains("two words"), "{secret}");
}

#[test]
fn values_are_read_generously() {
    let status = |text| load(&[("status", text)], &[], "").unwrap().status;
    for text in ["TASK_STATE_INPUT_REQUIRED", "input-required", "INPUT_REQUIRED"] {
        assert_eq!(status(text), Some(TaskState::InputRequired), "{text}");
    }
    let timeout = |text| load(&[("timeout", text)], &[], "").unwrap().timeout;
    for (text, millis) in [("30", 30_000), ("2.5", 2_500), ("500ms", 500), ("2m", 120_000)] {
        assert_eq!(timeout(text), Duration::from_millis(millis), "{text}");
    }
    let metadata = load(&[("metadata", r#"{"a": [1]}"#)], &[], "").unwrap().metadata;
    assert_eq!(metadata["a"][0], 1);
}

#[test]
fn what_the_variable_of_the_transport_tells_a_server_is_not_for_clients() {
    let transport = |value: &str| load(&[], &[("NUNCIO_TRANSPORT", value)], "").map(|settings| settings.transport);
    for value in ["http", "HTTP", "http,grpc", "stdio; unix"] {
        assert_eq!(transport(value), Ok(None), "{value}");
    }
    assert_eq!(transport("grpc"), Ok(Some(Binding::Grpc)));
    assert!(transport("carrier-pigeon").is_err());
    assert!(load(&[("transport", "http")], &[], "").is_err());
}
