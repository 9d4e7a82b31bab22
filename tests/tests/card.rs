//! The card: its forms, its addresses, its caching.

use nuncio_tests::raw::{Answer, V1, Wire, request};
use nuncio_tests::{Value, json};

const CARD: &str = "/.well-known/agent-card.json";

fn card(wire: &Wire, headers: &str) -> Value {
    wire.get(CARD, headers).json()
}

/// Every member of an object, deep, as `a.b[].c`.
fn members(value: &Value, path: &str, into: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                members(value, &path, into);
                into.push(path);
            }
        }
        Value::Array(all) => all.iter().for_each(|value| members(value, &format!("{path}[]"), into)),
        _ => {}
    }
}

fn members_of(value: &Value) -> Vec<String> {
    let mut all = Vec::new();
    members(value, "", &mut all);
    all.sort();
    all.dedup();
    all
}

/// What a 1.0 card of this server may hold, and nothing else.
const V1_MEMBERS: &[&str] = &[
    "capabilities",
    "capabilities.extendedAgentCard",
    "capabilities.extensions",
    "capabilities.extensions[].description",
    "capabilities.extensions[].params",
    "capabilities.extensions[].params.level",
    "capabilities.extensions[].required",
    "capabilities.extensions[].uri",
    "capabilities.pushNotifications",
    "capabilities.streaming",
    "defaultInputModes",
    "defaultOutputModes",
    "description",
    "name",
    "securityRequirements",
    "securityRequirements[].schemes",
    "securityRequirements[].schemes.bearerAuth",
    "securitySchemes",
    "securitySchemes.bearerAuth",
    "securitySchemes.bearerAuth.httpAuthSecurityScheme",
    "securitySchemes.bearerAuth.httpAuthSecurityScheme.scheme",
    "skills",
    "skills[].description",
    "skills[].examples",
    "skills[].id",
    "skills[].name",
    "skills[].tags",
    "supportedInterfaces",
    "supportedInterfaces[].protocolBinding",
    "supportedInterfaces[].protocolVersion",
    "supportedInterfaces[].url",
    "version",
];

/// What readers of 0.3 need beside that.
const V03_MEMBERS: &[&str] = &["additionalInterfaces", "preferredTransport", "protocolVersion", "security", "url"];

const FULL: &str = "name: Test agent\ndescription: For tests\nagent-version: 9.8.7\ntoken: 0123456789abcdef0123\n\
                    extensions:\n  - uri: urn:test:one\n    required: true\n    description: One\n    params: {level: 3}\n  - uri: urn:test:two\n";

#[test]
fn the_pure_1_0_card_has_no_other_member() {
    for (config, headers) in [(format!("card-format: \"1.0\"\n{FULL}"), ""), (FULL.to_owned(), V1)] {
        let wire = Wire::start(&config);
        let card = card(&wire, headers);
        assert_eq!(members_of(&card), V1_MEMBERS, "{config}");
        assert_eq!((&card["name"], &card["version"]), (&json!("Test agent"), &json!("9.8.7")));
        assert_eq!(
            card["securitySchemes"],
            json!({ "bearerAuth": { "httpAuthSecurityScheme": { "scheme": "Bearer" } } })
        );
        assert_eq!(card["securityRequirements"], json!([{ "schemes": { "bearerAuth": {} } }]));
        assert_eq!(card["capabilities"]["streaming"], true);
        assert_eq!(card["capabilities"]["pushNotifications"], false);
        let extensions = card["capabilities"]["extensions"].as_array().expect("extensions");
        let one = json!({ "uri": "urn:test:one", "description": "One", "required": true, "params": { "level": 3 } });
        assert!(extensions.contains(&one) && extensions.contains(&json!({ "uri": "urn:test:two" })), "{extensions:?}");
        let interface = |binding: &str, version: &str| {
            let host = wire.url().replace("http://", "");
            let url = match binding {
                "JSONRPC" => format!("http://{host}/"),
                "websocket" => format!("ws://{host}/ws"),
                "GRPC" => host,
                _ => format!("http://{host}"),
            };
            json!({ "url": url, "protocolBinding": binding, "protocolVersion": version })
        };
        let mut all = ["JSONRPC", "HTTP+JSON", "websocket", "GRPC"].map(|binding| interface(binding, "1.0")).to_vec();
        let old = ["JSONRPC", "HTTP+JSON", "websocket", "GRPC"].map(|binding| interface(binding, "0.3"));
        if headers == V1 {
            all.extend(old);
        }
        assert_eq!(card["supportedInterfaces"], json!(all), "{config}");
    }
}

#[test]
fn the_union_card_serves_readers_of_both_versions() {
    let wire = Wire::start(FULL);
    let union = card(&wire, "");
    let new = card(&wire, V1);
    for (name, value) in new.as_object().expect("an object") {
        if name != "securitySchemes" && name != "capabilities" && name != "skills" {
            assert_eq!(&union[name], value, "{name} is the same for 1.0 readers");
        }
    }
    for name in V03_MEMBERS {
        assert!(union.get(name).is_some(), "{name} for 0.3 readers");
        assert!(new.get(name).is_none(), "{name} is unknown to 1.0");
    }
    assert_eq!(union["url"], json!(wire.url() + "/"));
    assert_eq!((&union["preferredTransport"], &union["protocolVersion"]), (&json!("JSONRPC"), &json!("0.3")));
    assert_eq!(union["security"], json!([{ "bearerAuth": [] }]));
    let scheme = &union["securitySchemes"]["bearerAuth"];
    assert_eq!((&scheme["type"], &scheme["scheme"]), (&json!("http"), &json!("Bearer")), "for 0.3");
    assert_eq!(scheme["httpAuthSecurityScheme"]["scheme"], "Bearer", "for 1.0");
    // 0.3 by name, and a version that nobody speaks, read the union too.
    assert_eq!(card(&wire, "A2A-Version: 0.3\r\n"), union);
    assert_eq!(card(&wire, "A2A-Version: 99.0\r\n"), union);
    let by_query = wire.get(&format!("{CARD}?A2A-Version=1.0"), "").json();
    assert_eq!(by_query, new, "the version may be in the query");
}

#[test]
fn the_pure_0_3_card_has_no_member_of_1_0() {
    let wire = Wire::start(&format!("card-format: \"0.3\"\n{FULL}"));
    for headers in ["", V1] {
        let card = card(&wire, headers);
        for name in ["supportedInterfaces", "securityRequirements"] {
            assert!(card.get(name).is_none(), "{name} in {card}");
        }
        assert_eq!(card["url"], json!(wire.url() + "/"));
        let others = json!([
            { "url": wire.url(), "transport": "HTTP+JSON" },
            { "url": format!("{}/ws", wire.url().replacen("http", "ws", 1)), "transport": "websocket" },
            { "url": wire.url(), "transport": "GRPC" },
        ]);
        assert_eq!(card["additionalInterfaces"], others);
        assert_eq!(card["securitySchemes"], json!({ "bearerAuth": { "type": "http", "scheme": "Bearer" } }));
        assert_eq!(card["security"], json!([{ "bearerAuth": [] }]));
        assert!(card["skills"].as_array().is_some_and(|skills| !skills.is_empty()));
    }
}

#[test]
fn without_tokens_nothing_is_said_about_security() {
    let wire = Wire::start("");
    for headers in ["", V1] {
        let card = card(&wire, headers);
        for name in ["securitySchemes", "securityRequirements", "security"] {
            assert!(card.get(name).is_none(), "{name} in {card}");
        }
    }
}

#[test]
fn both_well_known_paths_and_all_forms_can_be_cached() {
    let wire = Wire::start("");
    let mut tags = Vec::new();
    for headers in ["", V1] {
        let first = wire.get(CARD, headers);
        let old = wire.get("/.well-known/agent.json", headers);
        assert_eq!(old.body, first.body);
        for (name, expected) in
            [("content-type", "application/json"), ("cache-control", "public, max-age=60"), ("vary", "A2A-Version")]
        {
            assert_eq!(first.header(name), Some(expected));
            assert_eq!(old.header(name), Some(expected));
        }
        assert_eq!(old.header("etag"), first.header("etag"));
        tags.push(first.header("etag").expect("a tag").to_owned());
        let mut connection = wire.connect();
        connection.send(request("HEAD", CARD, headers, ""));
        let head = connection.head();
        for name in ["etag", "last-modified", "cache-control", "vary", "content-type", "content-length"] {
            assert_eq!(head.header(name), first.header(name), "HEAD says the same {name}");
        }
        assert_eq!(connection.rest(), b"", "HEAD has no body");
    }
    assert_ne!(tags[0], tags[1], "each form has its own tag");
    for tag in &tags {
        assert!(tag.len() > 8 && tag.starts_with('"') && tag.ends_with('"'), "{tag}");
    }
}

#[test]
fn whoever_has_the_card_gets_304() {
    let wire = Wire::start("");
    let first = wire.get(CARD, V1);
    let (etag, modified) = (first.header("etag").expect("a tag"), first.header("last-modified").expect("a time"));
    let bare = etag.trim_matches('"');
    let asked = |name: &str, value: &str| wire.get(CARD, &format!("{V1}{name}: {value}\r\n"));
    let same = |answer: &Answer, why: &str| {
        assert_eq!((answer.status, answer.body.len()), (304, 0), "{why}");
        assert_eq!(answer.header("etag"), Some(etag), "{why}");
        assert!(answer.header("cache-control").is_some() && answer.header("vary").is_some(), "{why}");
        assert_eq!(answer.header("content-type"), None, "{why}");
    };
    for tag in
        [etag.to_owned(), format!("W/{etag}"), "*".into(), format!("\"x\", {etag}"), format!("\"x\",W/{etag} , \"y\"")]
    {
        same(&asked("If-None-Match", &tag), &tag);
    }
    for tag in
        ["\"x\"".to_owned(), bare.to_owned(), "W/\"x\"".into(), String::new(), format!("\"{bare}x\""), "\"".into()]
    {
        let answer = asked("If-None-Match", &tag);
        assert_eq!((answer.status, &answer.body), (200, &first.body), "{tag:?}");
    }
    same(&asked("If-Modified-Since", modified), "the same time");
    same(&asked("If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT"), "a later time");
    for time in ["Thu, 01 Jan 1970 00:00:00 GMT", "yesterday", "", "0"] {
        assert_eq!(asked("If-Modified-Since", time).status, 200, "{time}");
    }
    let both = format!("{V1}If-None-Match: \"x\"\r\nIf-Modified-Since: {modified}\r\n");
    assert_eq!(wire.get(CARD, &both).status, 200, "the tag counts before the time");
    assert_eq!(wire.get(CARD, &format!("If-None-Match: {etag}\r\n")).status, 200, "the tag of another form");
    let mut connection = wire.connect();
    connection.send(request("HEAD", CARD, &format!("{V1}If-None-Match: {etag}\r\n"), ""));
    assert_eq!((connection.head().status, connection.rest().len()), (304, 0), "HEAD");
    wire.assert_sound();
}

/// Every address in a card; that of WebSocket as what it is below.
fn addresses(card: &Value) -> Vec<String> {
    let below = |url: String| match url.strip_prefix("ws") {
        Some(rest) => format!("http{}", rest.strip_suffix("/ws").expect("its path")),
        None => url,
    };
    // gRPC has a host and a port alone.
    let is_address = |entry: &&Value| entry["protocolBinding"] != "GRPC" && entry["transport"] != "GRPC";
    let mut all: Vec<String> = Vec::new();
    for list in ["supportedInterfaces", "additionalInterfaces"] {
        let list = card[list].as_array().into_iter().flatten();
        all.extend(list.filter(is_address).filter_map(|entry| entry["url"].as_str()).map(str::to_owned));
    }
    all.extend(card["url"].as_str().map(str::to_owned));
    assert!(!all.is_empty(), "no address in {card}");
    all.into_iter().map(below).collect()
}

#[test]
fn a_public_url_is_all_that_clients_see() {
    for (url, expected) in [
        ("https://agent.example", "https://agent.example"),
        ("https://agent.example:8443/agents/x/", "https://agent.example:8443/agents/x"),
    ] {
        let wire = Wire::start(&format!("public-url: {url}\ntrusted-proxies: [127.0.0.1]\n"));
        for headers in ["", V1, "X-Forwarded-Host: other.example\r\n", "Host: other.example\r\n"] {
            for address in addresses(&card(&wire, headers)) {
                assert_eq!(address.trim_end_matches('/'), expected, "{headers:?}");
            }
        }
    }
}

const FORWARDED: &str = "X-Forwarded-Host: agent.example\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Prefix: /x\r\n";

#[test]
fn strangers_cannot_change_the_address() {
    for config in ["", "trusted-proxies: [10.0.0.0/8, \"::1\"]\n"] {
        let wire = Wire::start(config);
        let honest = card(&wire, V1);
        assert_eq!(card(&wire, &format!("{V1}{FORWARDED}")), honest);
        assert_eq!(card(&wire, &format!("{V1}Forwarded: host=agent.example;proto=https\r\n")), honest);
        for address in addresses(&honest) {
            assert_eq!(address.trim_end_matches('/'), wire.url());
        }
        let named = wire.ask(format!("GET {CARD} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"));
        assert!(!named.text().contains("evil"), "the Host header is not believed either");
        let whole = wire
            .ask(format!("GET http://evil.example{CARD} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"));
        assert!(!whole.text().contains("evil"), "nor is a whole URL");
    }
}

#[test]
fn a_trusted_proxy_says_where_clients_are() {
    let wire = Wire::start("trusted-proxies: [127.0.0.0/8]\n");
    let base = |headers: &str| {
        let all = addresses(&card(&wire, headers));
        let base = all[0].trim_end_matches('/').to_owned();
        assert!(all.iter().all(|address| address.trim_end_matches('/') == base), "{all:?}");
        base
    };
    for (headers, expected) in [
        (FORWARDED, "https://agent.example/x"),
        ("X-Forwarded-Host: agent.example\r\n", "http://agent.example"),
        ("X-Forwarded-Host: agent.example:8080\r\n", "http://agent.example:8080"),
        (
            "X-Forwarded-Host: agent.example\r\nX-Forwarded-Port: 8443\r\nX-Forwarded-Proto: https\r\n",
            "https://agent.example:8443",
        ),
        (
            "X-Forwarded-Host: agent.example\r\nX-Forwarded-Port: 443\r\nX-Forwarded-Proto: https\r\n",
            "https://agent.example",
        ),
        ("X-Forwarded-Host: first.example, second.example\r\n", "http://first.example"),
        ("X-Forwarded-Host: [2001:db8::1]:8080\r\n", "http://[2001:db8::1]:8080"),
        ("X-Forwarded-Host: [2001:db8::1]\r\n", "http://[2001:db8::1]"),
        ("X-Forwarded-Host: agent.example\r\nX-Forwarded-Prefix: /a/b/\r\n", "http://agent.example/a/b"),
        ("X-Forwarded-Host: agent.example\r\nX-Forwarded-Prefix: /\r\n", "http://agent.example"),
        ("X-Forwarded-Host: agent.example\r\nX-Forwarded-Proto: javascript\r\n", "http://agent.example"),
        ("X-Forwarded-Host: agent.example\r\nX-Forwarded-Port: 99999\r\n", "http://agent.example"),
    ] {
        assert_eq!(base(headers), expected, "{headers:?}");
    }
    assert_eq!(base("X-Forwarded-Proto: https\r\n"), wire.url(), "without a host");
}

#[test]
fn hostile_values_of_a_trusted_proxy_are_never_shown() {
    let wire = Wire::start("trusted-proxies: [127.0.0.1]\n");
    let honest = wire.get(CARD, "").text();
    let hosts = [
        "user@evil.example",
        "user:pass@evil.example",
        "javascript:alert(1)",
        "evil.example/path",
        "evil.example?x",
        "evil.example#x",
        "evil example",
        "evil.example:99999",
        "evil.example:",
        "evil.example:80:80",
        ":80",
        "[evil]",
        "[::1",
        "::1",
        "evil<script>",
        "evil\"quote",
        "evil\\back",
        "evil%0d%0aX: y",
        "évil.example",
        "evil\texample",
        "http://evil.example",
        "//evil.example",
        "@",
        "[]",
    ];
    for host in hosts {
        let answer = wire.ask(request("GET", CARD, &format!("X-Forwarded-Host: {host}\r\n"), ""));
        assert_eq!((answer.status, answer.text()), (200, honest.clone()), "{host}");
    }
    for prefix in [
        "evil",
        "//evil.example",
        "/evil?x",
        "/evil#x",
        "/evil x",
        "/evil\"",
        "/evil\\",
        "javascript:evil",
        "/evil@x",
        "/évil",
        "/evil<",
        "https://evil.example/",
    ] {
        let headers = format!("X-Forwarded-Host: good.example\r\nX-Forwarded-Prefix: {prefix}\r\n");
        let text = wire.ask(request("GET", CARD, &headers, "")).text();
        assert!(!text.contains("vil"), "{prefix}: {text}");
    }
    // A bare CR or LF never gets through HTTP itself.
    for bytes in ["X-Forwarded-Host: a\rX-Evil: evil\r\n", "X-Forwarded-Host: a\0evil\r\n"] {
        let answer = wire.ask(request("GET", CARD, bytes, ""));
        assert!(answer.status == 400 && !answer.text().contains("evil"), "{bytes:?}: {}", answer.text());
    }
    // So many addresses as anyone likes, and the server keeps only a few.
    for n in 0..500 {
        let text = wire.get(CARD, &format!("X-Forwarded-Host: host-{n}.example\r\n")).text();
        assert!(text.contains(&format!("http://host-{n}.example/")), "{n}");
    }
    wire.assert_sound();
}

/// Where only some tenants exist, nobody can use the server without naming one: every address on the card has to lead
/// to one of them.
#[test]
fn a_card_names_the_only_tenants_and_all_its_addresses_work() {
    let wire = Wire::start("tenants: [blue, red, health]\n");
    let shown = card(&wire, "");
    let all = shown["supportedInterfaces"].as_array().expect("interfaces");
    let found = |version: &str, binding: &str| -> Vec<(String, String)> {
        let of = |i: &&Value| i["protocolVersion"] == version && i["protocolBinding"] == binding;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        all.iter().filter(of).map(|i| (text(&i["url"]), text(&i["tenant"]))).collect()
    };
    let tenants = |binding: &str| found("1.0", binding).into_iter().map(|(_, tenant)| tenant).collect::<Vec<_>>();
    for binding in ["JSONRPC", "HTTP+JSON", "websocket", "GRPC"] {
        assert_eq!(tenants(binding), ["blue", "health", "red"], "{binding}");
    }
    let path = |url: &str| url.strip_prefix(&wire.url()).expect("an address of this server").to_owned();
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] });
    for (url, tenant) in found("1.0", "JSONRPC") {
        let params = json!({ "tenant": tenant, "message": message });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params });
        let answer = wire.post(&path(&url), V1, &body.to_string()).json();
        assert_eq!(answer["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{url} {tenant}: {answer}");
    }
    for (url, tenant) in found("1.0", "HTTP+JSON") {
        let at = format!("{}/{tenant}/message:send", path(&url));
        let answer = wire.post(&at, V1, &json!({ "message": message }).to_string()).json();
        assert_eq!(answer["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{at}: {answer}");
    }
    // 0.3 has no word for a tenant, so it is in the path. What a path already means, it keeps.
    let old = found("0.3", "JSONRPC");
    assert_eq!(old, [("/blue/"), ("/red/")].map(|path| (format!("{}{path}", wire.url()), String::new())));
    assert_eq!(shown["url"], old[0].0.as_str());
    let parts = json!([{ "kind": "text", "text": "hello" }]);
    let message = json!({ "kind": "message", "messageId": "m", "role": "user", "parts": parts });
    for (url, _) in old {
        let params = json!({ "message": message });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params });
        let answer = wire.post(&path(&url), "", &body.to_string()).json();
        assert_eq!(answer["result"]["status"]["state"], "completed", "{url}: {answer}");
    }
    assert_eq!(wire.get("/health", "").json()["status"], "healthy");
    let own = wire.get("/red/.well-known/agent-card.json", V1).json();
    assert_eq!(own["supportedInterfaces"][0]["url"], format!("{}/red/", wire.url()));
    for transport in ["jsonrpc", "rest", "websocket", "grpc"] {
        let url = wire.url();
        let args = ["client", "call", "--url", &url, "--transport", transport, "--prompt", "hello"];
        let done = nuncio_tests::nuncio(&args);
        assert!(done.status.success(), "{transport}: {}", String::from_utf8_lossy(&done.stderr));
    }
}
