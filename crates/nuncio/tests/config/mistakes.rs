//! What is wrong is told with its place and a way out.

use std::fs;

use super::{Place, problem, text};

#[test]
fn an_unknown_key_names_the_line_and_the_nearest_key() {
    assert_eq!(problem("# one\n# two\nprot: 1\n"), "unknown key `prot` in nuncio.yml, line 3: did you mean `port`?");
    assert!(problem("elephants: 1").contains("`nuncio config schema`"));
    let nested = problem("tokens:\n- name: a\n  token: b\n  tokem: c");
    assert_eq!(nested, "unknown key `tokens[0].tokem` in nuncio.yml, line 4: did you mean `token`?");
}

#[test]
fn a_wrong_type_names_what_was_found_and_what_is_expected() {
    assert_eq!(
        problem("\n\nport: abc"),
        "`port` in nuncio.yml, line 3: expected a number from 1 to 65535, found the text \"abc\""
    );
    for (file, found) in [
        ("port: 70000", "found the number 70000"),
        ("port: [1]", "found a list"),
        ("port: {a: 1}", "found a mapping"),
        ("port:", "found nothing"),
        ("port: true", "found the boolean true"),
        ("allow-open: yes", "expected true or false, found the text \"yes\""),
        ("name: 1.5", "expected text, found the number 1.5; put it in quotes"),
        ("max-streams: 0", "expected a number from 1 to"),
        ("tenants: a", "expected a list of names"),
    ] {
        let problem = problem(file);
        assert!(problem.contains("nuncio.yml, line 1: "), "{problem}");
        assert!(problem.contains(found), "{problem}");
    }
}

#[test]
fn jobs_in_redis_need_a_redis() {
    assert_eq!(
        problem("push-queue: redis-streams"),
        "`push-backend` in nuncio.yml, line 1: `redis-streams` needs `push-redis-url`, such as `redis://localhost:6379/0`"
    );
    for fine in
        ["push-backend: local", "push-queue: local-file", "push-backend: redis-streams\npush-redis-url: redis://h/0"]
    {
        assert!(Place::new(fine).problems(&[]).is_empty(), "{fine}");
    }
}

#[test]
fn all_problems_are_reported_in_the_order_of_the_file() {
    let file = "host: 0.0.0.0\nprot: 1\nport: abc\nretention: 30\nname: ${UNSET}\nlog: loud\n";
    let problems = Place::new(file).problems(&[]);
    assert_eq!(problems.len(), 6, "{problems:?}");
    for (index, problem) in problems.iter().enumerate() {
        let place = format!("nuncio.yml, line {}", index + 1);
        assert!(problem.contains(&place), "{problem}");
    }
}

#[test]
fn doubled_keys_are_refused_in_every_spelling() {
    assert_eq!(
        problem("port: 1\nport: 2"),
        "duplicate key `port` in nuncio.yml, line 2: it is already set in line 1; keep one of them"
    );
    for (file, other) in
        [("data-dir: a\npersistence-dir: b", "`data-dir`"), ("max_body: 1MiB\nmax-body: 2MiB", "`max_body`")]
    {
        let problem = problem(file);
        assert!(problem.starts_with("duplicate key"), "{problem}");
        assert!(problem.contains(other) && problem.contains("line 2"), "{problem}");
    }
}

#[test]
fn a_file_is_a_mapping_or_empty() {
    for file in ["", "# nothing\n", "---\n", "\u{feff}port: 1\n"] {
        assert_eq!(Place::new(file).problems(&[]), Vec::<String>::new(), "{file:?}");
    }
    assert!(problem("- a").contains("expected a mapping of keys to values in nuncio.yml, line 1"));
    assert!(problem("port: 1\nname: [a").contains("not valid YAML in nuncio.yml, line "));
    assert!(problem("port: 1\n---\nport: 2").contains("second document"));
    let place = Place::new("");
    place.write("nuncio.yml", "", 0o600);
    fs::write(place.dir.path().join("nuncio.yml"), b"port: 1\nname: \xff").unwrap();
    let problems = place.problems(&[]);
    assert!(problems[0].contains("not UTF-8 text, see line 2"), "{problems:?}");
    let missing = place.run(&["config", "check", "--config", "missing.yml"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("cannot read the configuration file `missing.yml`"));
}

#[test]
fn durations_and_sizes_say_how_they_are_written() {
    let bare = problem("retention: 30");
    assert!(bare.contains("found the number 30, which has no unit"), "{bare}");
    assert!(problem("turn-timeout: soon").contains("such as `500ms`"));
    assert!(problem("lease-ttl: 0").contains("longer than 0"));
    assert!(problem("max-body: much").contains("such as `64KiB`"));
    assert!(problem("max-header: 1KiB").contains("from 8KiB to 16MiB"));
    let place = Place::new("silence-timeout: 0\ndrain-timeout: 90s\nmax-body: 4096\nmax-header: 1MB");
    for (key, value) in
        [("silence-timeout", "0"), ("drain-timeout", "90s"), ("max-body", "4KiB"), ("max-header", "1MB")]
    {
        assert_eq!(place.shown(key, &[]).0, value);
    }
}

#[test]
fn transports_that_need_an_address_say_so() {
    assert!(problem("transport: unix").contains("`unix` needs `socket-path`"));
    assert!(problem("transport: [http, redis]").contains("`redis-streams` needs `redis-url`"));
    assert!(problem("ws-path: ws").contains("a path such as `/ws`"));
    // Nobody is let in from elsewhere where no port is opened.
    assert!(problem("transport: grpc\ngrpc-host: 0.0.0.0").contains("can be reached from other machines"));
    let place = Place::new("transport: stdio\nhost: 0.0.0.0");
    assert_eq!(place.shown("transport", &[]).0, serde_json::json!(["stdio"]));
}

#[test]
fn names_outside_the_list_are_refused_with_the_list() {
    for (file, list) in [
        (
            "transport: [http, carrier-pigeon]",
            "unsupported transport `carrier-pigeon`; supported values: http, websocket, stdio, unix, grpc, \
             grpc-jsonrpc, redis-streams",
        ),
        ("profile: x", "or the path of a file"),
        ("agent: x", "generic, acp, upstream"),
        ("store: x", "supported values: sqlite, memory, postgres://…"),
        ("durability: x", "supported values: full, normal"),
        ("card-format: '2'", "supported values: union, 1.0, 0.3"),
        ("idempotent-send: x", "supported values: key, message-id"),
        ("log: x", "supported values: auto, text, json"),
        ("thinking-exposure: x", "Supported values: raw-thinking, tool-trace."),
    ] {
        let problem = problem(file);
        assert!(problem.ends_with(list), "{problem}");
    }
    for (url, what) in [
        ("postgres://me:hunter2@db/x?pool=0", "the option `pool` is not a number from 1 to 1000"),
        ("postgres://me:hunter2@db/x?sslmode=on", "the option `sslmode` is one of"),
        ("postgres://me:hunter2@db:x/y", "not the URL of a PostgreSQL database"),
        ("mysql://me:hunter2@db/x", "supported values: sqlite, memory, postgres://…"),
    ] {
        let problem = problem(&format!("store: {url}"));
        assert!(problem.contains(what) && !problem.contains("hunter2"), "{problem}");
    }
}

#[test]
fn flags_and_variables_are_checked_like_the_file() {
    let place = Place::new("").with("NUNCIO_ALLOW_OPEN", "maybe");
    let problems = place.problems(&["--port", "abc"]);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with("`--port`: expected a number from 1 to 65535"));
    assert!(problems[1].starts_with("`NUNCIO_ALLOW_OPEN`: expected true or false"));
}

#[test]
fn a_misspelled_variable_is_a_warning_and_a_foreign_one_is_not() {
    let place = Place::new("").with("NUNCIO_PROT", "1").with("NUNCIO_SOMETHING_ELSE", "1");
    let output = place.run(&["config", "check"]);
    assert!(output.status.success());
    let talk = text(&output.stderr);
    assert!(talk.contains("`NUNCIO_PROT` is not used: did you mean `NUNCIO_PORT`?"), "{talk}");
    assert!(!talk.contains("SOMETHING"), "{talk}");
}

#[test]
fn an_open_door_has_to_be_meant() {
    let closed = problem("host: 0.0.0.0");
    assert!(closed.contains("`host` in nuncio.yml, line 1"), "{closed}");
    assert!(closed.contains("`token`") && closed.contains("`allow-open: true`"), "{closed}");
    for file in ["host: 0.0.0.0\nallow-open: true", "host: '::'\ntoken: x", "host: '[::1]'"] {
        assert_eq!(Place::new(file).problems(&[]), Vec::<String>::new(), "{file}");
    }
    let place = Place::new("").with("IACCODE_A2A_HTTP_TOKEN", "x");
    assert_eq!(place.problems(&["--host", "0.0.0.0"]), Vec::<String>::new());
    assert!(problem("host: http://a:1").contains("without scheme and port"));
    assert!(problem("host: ''").contains("found an empty one"));
}

#[test]
fn tokens_are_distinct_and_named() {
    for (file, message) in [
        ("tokens: [{token: a}]", "`tokens[0]` in nuncio.yml, line 1: `name` is missing"),
        ("tokens: [{name: a}]", "give either `token` or `token-file`"),
        ("tokens: [{name: a, token: x, token-file: y}]", "give either `token` or `token-file`"),
        ("tokens: [{name: '', token: x}]", "expected text, found an empty one"),
        ("tokens: [{name: a, token: ''}]", "the token is empty"),
        ("token: ''", "the token is empty"),
        ("tokens: [{name: a, token: x}, {name: a, token: y}]", "names must differ"),
        ("tokens: [{name: a, token: x}, {name: b, token: x}]", "tokens must differ"),
        ("token: x\ntokens: [{name: default, token: y}]", "names must differ"),
        ("token: x\ntoken-file: y", "`token` is set as well"),
        ("tokens: x", "expected a list of `{name, token}`, found text"),
        ("tokens: [{name: 'oidc:a', token: x}]", "a name has no `:`"),
        ("tokens: [{name: a, token: x, scopes: [b]}]", "there is no scope `b`"),
    ] {
        let problem = problem(file);
        assert!(problem.contains(message), "{problem}");
    }
}

#[test]
fn what_lets_callers_in_is_whole() {
    for (file, message) in [
        ("basic-username: a", "it needs `basic-password` as well"),
        ("basic-password: a", "it needs `basic-username` as well"),
        ("basic-username: 'a:b'\nbasic-password: c", "a name has no `:`"),
        ("api-key-query: key", "it needs `api-key` as well"),
        ("api-key: k\napi-key-header: 'a b'", "the name of a header"),
        ("client-ca: a.pem", "it needs `tls` as well"),
        ("tls: {cert: a}", "`key` is missing"),
        ("oidc: {audience: a}", "`issuer` is missing"),
        ("oidc: {issuer: 'https://a'}", "`audience` is missing"),
        ("oidc: {issuer: 'https://a', audience: b, algorithms: [none]}", "`none` is not an algorithm"),
        ("oidc: {issuer: 'https://a', audience: b, jwks-url: 'https://c', secret: d}", "give one of `jwks-url`"),
        ("oidc: {issuer: 'https://a', audience: b, name: basic}", "cannot be the name of a provider"),
        ("oidc: {issuer: 'https://a', audience: b, isuer: c}", "did you mean `issuer`?"),
        ("scopes: {a: [GetTasks]}", "`GetTasks` is no operation"),
        ("cors-origins: [console.example]", "is not an origin"),
    ] {
        let problem = problem(file);
        assert!(problem.contains(message), "{file}: {problem}");
    }
    let door = ["api-key: k", "basic-username: a\nbasic-password: b c", "oidc: {issuer: 'https://a', audience: b}"];
    for file in door {
        assert_eq!(Place::new(&format!("host: 0.0.0.0\n{file}")).problems(&[]), Vec::<String>::new(), "{file}");
    }
    let place = Place::new("").with("IACCODE_A2A_BASIC_USERNAME", "a").with("IACCODE_A2A_BASIC_PASSWORD", "b");
    assert_eq!(place.problems(&["--host", "0.0.0.0"]), Vec::<String>::new());
}

#[test]
fn a_token_file_is_private_and_not_empty() {
    let place = Place::new("token-file: secret");
    assert!(place.problems(&[])[0].contains("cannot read `secret`"));
    place.write("secret", " hunter2 \n", 0o644);
    let problems = place.problems(&[]);
    assert!(problems[0].contains("run `chmod 600 secret`"), "{problems:?}");
    place.write("secret", " \n", 0o600);
    assert!(place.problems(&[])[0].contains("the token is empty"));
    place.write("secret", " hunter2 \n", 0o600);
    let output = place.run(&["config", "check", "--config", "nuncio.yml", "--host", "0.0.0.0"]);
    assert!(text(&output.stdout).contains("1 caller"), "{}", text(&output.stderr));
}

#[test]
fn a_public_url_is_absolute_and_plain() {
    for (url, what) in [
        ("agent.example.com", "http:// or https://"),
        ("ftp://a", "http:// or https://"),
        ("https://u:p@a", "user information"),
        ("https://a?b=c", "query"),
        ("'https://a#b'", "fragment"),
    ] {
        let problem = problem(&format!("public-url: {url}"));
        assert!(problem.contains(what), "{problem}");
    }
    let place = Place::new("public-url: https://a.example/agents/");
    assert_eq!(place.shown("public-url", &[]).0, "https://a.example/agents");
}

#[test]
fn a_pattern_is_a_regular_expression() {
    let problem = problem("agent: generic\ncommand: cat\napproval-pattern: \"Continue? [y/n\"\n");
    assert!(problem.starts_with("`approval-pattern` in nuncio.yml, line 3: "), "{problem}");
    assert!(problem.contains("unclosed character class"), "{problem}");
    let fine = Place::new("approval-pattern: '^Continue\\? \\[y/n\\]'");
    assert!(fine.problems(&[]).is_empty());
    let variable = Place::new("").with("AGENT_APPROVAL_PATTERN", "(").problems(&[]);
    assert!(variable[0].starts_with("`AGENT_APPROVAL_PATTERN`: "), "{variable:?}");
}

#[test]
fn passwords_in_mistyped_urls_are_never_repeated() {
    let wrong = [
        "postgre://u:hunter2@h/db",
        "postgres:/u:hunter2@h/db",
        "postgres//u:hunter2@h/db",
        "u:hunter2@h",
        "u:hunter2@h://db",
        "https://u:hunter2@h/x",
        "https://averylongnameofsomebodyonanothermachine:hunter2hunter2hunter2hunter2@h/x",
        "https://u:hunter2 and more@h/x",
    ];
    let keys =
        ["store", "bus", "host", "port", "cors-origins", "allowed-hosts", "push-allowed-cidrs", "transport", "profile"];
    let keys = keys.into_iter().chain(["agent", "max-body", "retention", "log", "allow-open", "public-url"]);
    for (key, value) in keys.flat_map(|key| wrong.map(|value| (key, value))) {
        let problems = Place::new(&format!("{key}: \"{value}\"\n")).problems(&[]);
        assert!(!problems.is_empty(), "{key}: {value}");
        assert!(!problems.concat().contains("hunter"), "{problems:?}");
        let variable = format!("NUNCIO_{}", key.replace('-', "_").to_uppercase());
        let problems = Place::new("").with(&variable, value).problems(&[]);
        assert!(!problems.concat().contains("hunter"), "{problems:?}");
    }
    for value in wrong {
        for args in [&["serve", "--store", value][..], &["push", "list", "--store", value], &["serve", value]] {
            let output = Place::new("").run(args);
            let said = text(&output.stdout) + &text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(!said.contains("hunter"), "{said}");
        }
    }
    assert_eq!(
        Place::new("").problems(&["--store", "sqllite"]),
        ["`--store`: unknown store `sqllite`; supported values: sqlite, memory, postgres://…"]
    );
}

#[test]
fn passwords_in_urls_are_not_shown() {
    let oidc = "oidc: {issuer: 'https://i', audience: a, jwks-url: 'https://u:hunter2@h/k'}\n";
    for agent in ["upstream: https://u:hunter2@h/x\n", "command: [sh, -c, 'curl https://u:hunter2@h/x']\n"] {
        for form in ["table", "json", "yaml"] {
            let place = Place::new(&format!("{agent}{oidc}"));
            let output = place.run(&["config", "show", "--config", "nuncio.yml", "--output", form]);
            let shown = text(&output.stdout);
            assert!(output.status.success() && !shown.contains("hunter2"), "{shown}");
            assert!(shown.contains("https://***@h/x"), "{shown}");
        }
    }
}
