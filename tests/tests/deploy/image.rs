//! The Dockerfile, as far as it goes without an engine.

use std::path::Path;
use std::process::Command;

use nuncio_tests::{Value, binary, installed};

use crate::{file, run, text};

/// The instructions, lines that go on joined.
fn instructions() -> Vec<(String, String)> {
    let joined = text("deploy/Dockerfile").replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').unwrap()).map(|(name, rest)| (name.to_owned(), rest.to_owned())).collect()
}

fn all(name: &str) -> Vec<String> {
    instructions().into_iter().filter(|(found, _)| found == name).map(|(_, rest)| rest).collect()
}

#[test]
fn the_linter_finds_nothing() {
    let tools = installed("deploy");
    run(Command::new(tools.join("bin/hadolint")).arg(file("deploy/Dockerfile")));
}

#[test]
fn the_build_finds_all_that_it_needs_in_what_it_is_sent() {
    let builds: Vec<String> = all("RUN").into_iter().filter(|line| line.starts_with("cargo build ")).collect();
    assert_eq!(builds, ["cargo build --release --locked --package nuncio"]);
    let context = tempfile::tempdir().unwrap();
    for line in text("deploy/Dockerfile.dockerignore").lines().filter_map(|line| line.strip_prefix('!')) {
        assert!(file(line).exists(), "{line} does not exist");
        let to = context.path().join(line);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        run(Command::new("cp").arg("-R").arg(file(line)).arg(to));
    }
    // Cargo agrees with the lock file and finds every target. To build it all once more takes too long for a test.
    let version = run(Command::new("rustc").arg("-vV"));
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(context.path()).args(["metadata", "--locked", "--offline", "--format-version", "1"]);
    cargo.args(["--filter-platform", host]);
    let done = cargo.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let metadata: Value = serde_json::from_slice(&done.stdout).unwrap();
    let root = std::fs::canonicalize(context.path()).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let nuncio = packages.iter().find(|package| package["name"] == "nuncio").expect("the package that is built");
    let binary =
        &nuncio["targets"].as_array().unwrap().iter().find(|target| target["kind"][0] == "bin").unwrap()["name"];
    let copied = all("COPY").into_iter().find(|line| line.starts_with("--from=build")).unwrap();
    assert!(copied.contains(&format!("/src/target/release/{} ", binary.as_str().unwrap())), "{copied}");
    for package in packages {
        for target in package["targets"].as_array().unwrap() {
            let source = Path::new(target["src_path"].as_str().unwrap());
            let is_ours = source.starts_with(&root) || source.starts_with(context.path());
            let is_built = target["kind"].to_string().contains("lib") || target["kind"].to_string().contains("bin");
            assert!(!is_ours || !is_built || source.exists(), "{} is missing", source.display());
        }
    }
    included(&root.join("crates"));
    // The flags that SQLite is built with are there.
    assert!(context.path().join(".cargo/config.toml").exists());
}

/// Files that sources include are sent as well.
fn included(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().unwrap() != "tests" {
                included(&path);
            }
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        for piece in source.split("include_str!(\"").chain(source.split("include_bytes!(\"")).skip(1) {
            let Some((name, _)) = piece.split_once("\")") else { continue };
            if name.len() < 200 && !name.contains('\n') {
                assert!(path.parent().unwrap().join(name).exists(), "{} includes {name}", path.display());
            }
        }
    }
}

#[test]
fn the_image_runs_as_nobody_special_and_starts_a_command_that_there_is() {
    assert_eq!(all("USER").last().map(String::as_str), Some("10001:10001"));
    let start: Vec<String> = serde_json::from_str(&all("ENTRYPOINT")[0]).unwrap();
    let first: Vec<String> = serde_json::from_str(&all("CMD")[0]).unwrap();
    assert_eq!(start, ["/usr/bin/tini", "--", "nuncio"]);
    // `config check` takes the flags of `serve` and starts nothing.
    assert_eq!(first[0], "serve");
    let mut check = Command::new(binary());
    check.args(["config", "check"]).args(&first[1..]).env("NUNCIO_TOKEN", "0123456789abcdef0123456789abcdef");
    for variables in all("ENV") {
        for (name, value) in variables.split(' ').filter_map(|pair| pair.split_once('=')) {
            check.env(name, value);
        }
    }
    run(&mut check);
    let packages = all("RUN").into_iter().find(|line| line.contains("apt-get install")).unwrap();
    assert!(packages.contains(" tini") && packages.contains(" ca-certificates"), "{packages}");
    let port = all("EXPOSE").remove(0);
    let default = run(Command::new(binary()).args(["config", "show", "--output", "json"]));
    let default: Value = serde_json::from_str(&default).unwrap();
    assert_eq!(crate::key(&default, "port").to_string(), port);
}
