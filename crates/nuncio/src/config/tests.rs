//! The loader without a process around it: precedence, and files that nobody would write.

use std::path::PathBuf;

use proptest::prelude::*;

use super::keys::KEYS;
use super::layers::Environment;
use super::problem::{Origin, Source};
use super::{Inputs, Loaded, Problem, Thinking, resolve};

/// Loads a file with some flags and variables.
fn load(settings: &[(&'static str, &str)], variables: &[(&str, &str)], file: &str) -> Result<Loaded, Vec<Problem>> {
    let settings = settings.iter().map(|(key, value)| (*key, vec![(*value).to_owned()]));
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).into()));
    resolve(Inputs {
        settings: settings.collect(),
        command: &[],
        file: Some((PathBuf::from("nuncio.yml"), file)),
        environment: Environment { variables: variables.collect(), home: Some(PathBuf::from("/home/me")) },
    })
}

fn texts(result: Result<Loaded, Vec<Problem>>) -> Vec<String> {
    result.unwrap_err().into_iter().map(|problem| problem.text).collect()
}

#[test]
fn flag_beats_environment_beats_file_beats_profile_beats_default() {
    let flag = [("thinking-exposure", "all")];
    let variable = [("NUNCIO_THINKING_EXPOSURE", "raw-thinking")];
    let file = "# first\nthinking_exposure: none\n";
    let exposure = |result: Result<Loaded, _>| {
        let loaded = result.unwrap();
        let Source { origin, line } = loaded.sources["thinking-exposure"].clone();
        (loaded.config.thinking_exposure, origin, line)
    };
    let all = vec![Thinking::Raw, Thinking::ToolTrace];
    assert_eq!(exposure(load(&flag, &variable, file)), (all, Origin::Flag, None));
    let origin = Origin::Environment("NUNCIO_THINKING_EXPOSURE".to_owned());
    assert_eq!(exposure(load(&[], &variable, file)), (vec![Thinking::Raw], origin, None));
    let origin = Origin::File("nuncio.yml".into());
    assert_eq!(exposure(load(&[], &[], file)), (vec![], origin, Some(2)));
    let origin = Origin::Profile("nuncio".to_owned());
    let (value, from, _) = exposure(load(&[], &[], ""));
    assert_eq!((value, from), (vec![Thinking::ToolTrace], origin));
    let loaded = load(&[], &[], "").unwrap();
    assert_eq!(loaded.sources["retention"], Source::DEFAULT);
}

#[test]
fn every_key_has_a_value_and_a_source_without_any_input() {
    let loaded = load(&[], &[], "").unwrap();
    let values = loaded.config.values();
    assert_eq!(values.len(), KEYS.len());
    for key in KEYS {
        assert!(loaded.sources.contains_key(key.name()), "{}", key.name());
        let value = &values.iter().find(|(name, _)| *name == key.name()).unwrap().1;
        assert_eq!(value.is_null(), key.default.is_none(), "{}", key.name());
    }
    assert_eq!(loaded.config.data_dir, PathBuf::from("/home/me/.nuncio"));
    assert_eq!(loaded.config.silence_timeout, None);
}

#[test]
fn an_overruled_mistake_is_still_a_mistake() {
    let problems = texts(load(&[("port", "1")], &[], "port: abc"));
    assert_eq!(problems.len(), 1);
}

#[test]
fn rules_about_several_keys_are_checked_beside_other_mistakes() {
    let problems = texts(load(&[], &[], "prot: 1\nhost: 0.0.0.0\nport: abc"));
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems[1].contains("allow-open: true"), "{problems:?}");
    // The token is there, only wrong: no talk of a missing one.
    let problems = texts(load(&[], &[], "host: 0.0.0.0\ntoken: 5"));
    assert_eq!(problems.len(), 1, "{problems:?}");
}

#[test]
fn expanded_text_is_read_as_what_the_key_wants() {
    let variables = [("PORT", "8080"), ("OPEN", "true"), ("DIR", "~/x"), ("T", "30")];
    let file = "port: ${PORT}\nallow-open: ${OPEN}\ndata-dir: ${DIR}\nname: $${PORT}";
    let config = load(&[], &variables, file).unwrap().config;
    assert_eq!((config.port, config.allow_open), (8080, true));
    assert_eq!(config.data_dir, PathBuf::from("/home/me/x"));
    assert_eq!(config.name.as_deref(), Some("${PORT}"));
    let problems = texts(load(&[], &variables, "retention: ${T}\nport: '8080'"));
    assert!(problems[0].contains("has no unit"), "{problems:?}");
    assert!(problems[1].contains("found the text \"8080\""), "{problems:?}");
}

#[test]
fn the_newer_variable_of_a_token_wins() {
    let old = ("IACCODE_A2A_HTTP_TOKEN", "old");
    let caller = |variables: &[(&str, &str)]| {
        let config = load(&[], variables, "").unwrap().config;
        config.callers[0].token.expose().to_owned()
    };
    assert_eq!(caller(&[old]), "old");
    assert_eq!(caller(&[old, ("NUNCIO_TOKEN", "new")]), "new");
    assert_eq!(caller(&[old, ("NUNCIO_TOKEN", "")]), "old");
}

#[test]
fn thinking_exposure_has_many_words_for_all_and_nothing() {
    let read = |file: &str| load(&[], &[], file).map(|loaded| loaded.config.thinking_exposure);
    for file in ["none", "OFF", "false", "0", "\"\"", "[]", "[none]"] {
        assert_eq!(read(&format!("thinking-exposure: {file}")).unwrap(), [], "{file}");
    }
    for file in ["all", "'*'", "raw_thinking; Tool-Trace", "[raw-thinking, 'tool_trace,']"] {
        let exposed = read(&format!("thinking-exposure: {file}")).unwrap();
        assert_eq!(exposed, [Thinking::Raw, Thinking::ToolTrace], "{file}");
    }
    let problems = texts(load(&[], &[], "thinking-exposure: x"));
    let text = "Unsupported A2A thinking exposure type 'x'. Supported values: raw-thinking, tool-trace.";
    assert!(problems[0].ends_with(text), "{problems:?}");
    assert!(read("thinking-exposure: [none, all]").is_err());
}

#[test]
fn the_table_is_tidy_and_debug_keeps_secrets() {
    for key in KEYS {
        for name in key.names {
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{name}");
        }
        assert!(!key.doc.is_empty() && !key.doc.contains('|'), "{}", key.name());
        assert_eq!(key.default.is_some(), (key.default_json)().is_some(), "{}", key.name());
    }
    let debug = format!("{:?}", load(&[], &[], "token: hunter2").unwrap().config);
    assert!(debug.contains("data_dir") && !debug.contains("hunter2"), "{debug}");
}

/// Text that looks a lot like a configuration file.
fn yaml_like() -> impl Strategy<Value = String> {
    let key = prop::sample::select(KEYS.iter().map(super::keys::Key::name).collect::<Vec<_>>());
    let value = prop_oneof![
        Just("[a, {b: c}]".to_owned()),
        Just("${X}".to_owned()),
        Just("\n  - name: a\n    token: b".to_owned()),
        Just("{uri: x, params: {1: 2, 1: 3}}".to_owned()),
        Just("&a [*a]".to_owned()),
        Just("!!int 3".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        "[0-9]{1,25}(ms|s|d|MiB|GB|)",
        "[ -~]{0,20}",
        "[\\[\\]{}&*!|>'\"%@`,:#?$~\\-\n\t a0é]{0,30}",
    ];
    let line = (key, "[:=]? ?", value).prop_map(|(key, sign, value)| format!("{key}{sign}{value}\n"));
    prop::collection::vec(line, 0..8).prop_map(|lines| lines.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn no_file_makes_it_panic(text in yaml_like()) {
        let _ = load(&[], &[("X", "$${X}")], &text);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = load(&[], &[], &String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_value_makes_it_panic(key in 0..KEYS.len(), value in "\\PC{0,30}") {
        let name = KEYS[key].name();
        let _ = load(&[(name, &value)], &[(&super::layers::variable(name), &value)], "");
    }
}

#[test]
fn deep_and_growing_documents_are_refused() {
    let deep = format!("name: {}{}", "[".repeat(20_000), "]".repeat(20_000));
    assert!(load(&[], &[], &deep).is_err());
    let mut bomb = "a0: &a0 [x, x]\n".to_owned();
    for i in 1..40 {
        bomb.push_str(&format!("a{i}: &a{i} [*a{0}, *a{0}]\n", i - 1));
    }
    assert!(load(&[], &[], &bomb).is_err());
}

#[test]
fn ways_in_do_not_stand_in_each_others_way() {
    for file in ["ws-path: /health", "ws-path: /.well-known/x/", "ws-path: /metrics"] {
        assert!(texts(load(&[], &[], file))[0].contains("path of something else"), "{file}");
    }
    let both = |more: &str| load(&[], &[], &format!("transport: [http, grpc]\nport: 7000\n{more}"));
    for more in ["grpc-port: 7000", "grpc-host: 127.0.0.1", "grpc-host: 0.0.0.0\nallow-open: true"] {
        let problems = texts(both(more));
        assert!(problems[0].contains("line 3: 7000 is the port of HTTP as well"), "{problems:?}");
    }
    for more in ["grpc-port: 7001", "grpc-host: 127.0.0.2", "grpc-port: 0", ""] {
        assert!(both(more).is_ok(), "{more}");
    }
    assert!(load(&[], &[], "transport: grpc\ngrpc-host: 127.0.0.1").is_ok());
}
