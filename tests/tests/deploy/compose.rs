//! The Compose file.

use std::process::Command;

use nuncio_tests::{Value, installed};

use crate::{SECRETS, file, key, run, seconds, shown, text};

fn compose() -> Value {
    let tools = installed("deploy");
    let script = file("tests/foreign/deploy/compose.py");
    let json = run(Command::new(tools.join("bin/python")).arg(script).arg(file("deploy/compose.yml")));
    serde_json::from_str(&json).expect("JSON")
}

#[test]
fn replicas_are_alike_and_get_every_variable_that_their_configuration_names() {
    let compose = compose();
    let services = compose["services"].as_object().expect("services");
    let replicas: Vec<&Value> =
        services.iter().filter(|(name, _)| name.starts_with("nuncio-")).map(|(_, service)| service).collect();
    assert_eq!(replicas.len(), 3);
    assert!(replicas.iter().all(|replica| *replica == replicas[0]), "all alike");
    let replica = replicas[0];
    let environment = replica["environment"].as_object().expect("variables");
    for (name, _) in SECRETS {
        assert!(environment.contains_key(name), "{name} is missing");
    }
    for named in names(&text("deploy/nuncio.yml")) {
        assert!(environment.contains_key(&named), "the configuration names {named}");
    }
    let configured = shown(&file("deploy/nuncio.yml"), &SECRETS);
    assert!(seconds(&replica["stop_grace_period"]) > seconds(&key(&configured, "drain-timeout")));
    let command: Vec<&str> = replica["command"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let mount = replica["volumes"].to_string();
    assert!(mount.contains(command.last().expect("a path")), "{mount}");
    // What the health check calls is a command that there is.
    let check: Vec<&str> =
        replica["healthcheck"]["test"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(check[..2], ["CMD", "nuncio"]);
    let port = key(&configured, "port");
    assert!(check.last().unwrap().contains(&format!(":{port}/")), "{check:?}");
}

#[test]
fn no_secret_is_in_the_file() {
    let compose = text("deploy/compose.yml");
    for name in ["POSTGRES_PASSWORD", "NUNCIO_TOKEN", "NUNCIO_PUSH_KEYRING", "NUNCIO_PUSH_SIGNING_KEYS"] {
        assert!(compose.contains(&format!("${{{name}:?")), "{name} has to be given");
    }
}

#[test]
fn nginx_knows_every_replica_and_finds_its_files() {
    let compose = compose();
    let config = text("deploy/nginx/nginx.conf");
    let port = key(&shown(&file("deploy/nuncio.yml"), &SECRETS), "port");
    for name in compose["services"].as_object().unwrap().keys().filter(|name| name.starts_with("nuncio-")) {
        assert_eq!(config.matches(&format!("server {name}:{port} ")).count(), 2, "{name} in both upstreams");
    }
    let nginx = compose["services"]["nginx"].to_string();
    assert!(nginx.contains("/etc/nginx/nginx.conf") && nginx.contains("/etc/nginx/tls"), "{nginx}");
    assert!(config.contains("/etc/nginx/tls/tls.crt"));
}

/// The variables in a configuration.
fn names(yaml: &str) -> Vec<String> {
    let lines = yaml.lines().filter(|line| !line.trim_start().starts_with('#'));
    let starts = lines.flat_map(|line| line.split("${").skip(1));
    starts.filter_map(|rest| Some(rest.split_once('}')?.0.to_owned())).collect()
}
