//! The configuration as a person meets it: through the built binary.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

#[path = "config/doctor.rs"]
mod doctor;
#[path = "config/mistakes.rs"]
mod mistakes;
#[path = "config/values.rs"]
mod values;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value as Json;
use tempfile::TempDir;

/// A directory with a configuration file, and an environment of its own.
struct Place {
    dir: TempDir,
    variables: Vec<(String, String)>,
}

impl Place {
    fn new(file: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("nuncio.yml"), file).unwrap();
        Self { dir, variables: Vec::new() }
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_nuncio"))
            .args(args)
            .current_dir(self.dir.path())
            .env_clear()
            .env("HOME", "/home/me")
            .envs(self.variables.iter().cloned())
            .output()
            .unwrap()
    }

    /// What `config check` finds wrong, line by line.
    fn problems(&self, flags: &[&str]) -> Vec<String> {
        let mut args = vec!["config", "check", "--config", "nuncio.yml"];
        args.extend(flags);
        let output = self.run(&args);
        let talk = text(&output.stderr);
        assert!(!talk.contains("panicked"), "{talk}");
        if output.status.success() {
            return Vec::new();
        }
        assert_eq!(output.status.code(), Some(2), "{talk}");
        assert!(output.stdout.is_empty(), "stdout carries data only");
        let lines = talk.lines().filter_map(|line| line.strip_prefix("error: "));
        lines.map(str::to_owned).collect()
    }

    /// What `config show` says about a key: value and source.
    fn shown(&self, key: &str, flags: &[&str]) -> (Json, String) {
        let mut args = vec!["config", "show", "--config", "nuncio.yml", "--output", "json"];
        args.extend(flags);
        let output = self.run(&args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let all: Json = serde_json::from_slice(&output.stdout).unwrap();
        let entry = &all[key];
        let source = entry["source"].as_str().unwrap().to_owned();
        (entry["value"].clone(), source)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The one problem of a file.
fn problem(file: &str) -> String {
    let problems = Place::new(file).problems(&[]);
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems[0].clone()
}
