//! Servers whose agents are programs, and the processes that these leave in `/proc`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{PATIENCE, Server, Value, json};

/// A program of `tests/fake-agents`, which speaks like the real one.
pub fn fake(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fake-agents").join(name)
}

/// Where the packages of a folder of `tests/foreign` are; installs them the first time.
pub fn installed(folder: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign/install");
    let done = Command::new(script).arg(folder).stdin(Stdio::null()).output().expect("the script can be started");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{folder} cannot be installed:\n{err}");
    out.trim().into()
}

/// A server with a fake program as its agent, and the folder where that works.
pub struct Stage {
    /// The server.
    pub server: Server,
    /// The agent's workspace; it holds nothing at first.
    pub workspace: tempfile::TempDir,
}

impl Stage {
    /// Serves an agent of this kind by this command, with more lines of configuration.
    pub fn new(kind: &str, command: &Value, more: &str) -> Self {
        Self::new_in(kind, command, more, &[])
    }

    /// The same, with more variables in the server's environment.
    pub fn new_in(kind: &str, command: &Value, more: &str, environment: &[(&str, &str)]) -> Self {
        let workspace = tempfile::tempdir().expect("a temporary folder");
        let yaml = format!("workspace: {}\nagent: {kind}\ncommand: {command}\n{more}\n", workspace.path().display());
        Self { server: Server::configured_in(&yaml, environment), workspace }
    }

    /// Serves the fake program of this name.
    pub fn fake(kind: &str, program: &str, more: &str) -> Self {
        Self::new(kind, &json!([fake(program)]), more)
    }

    /// Serves a shell script; the prompt is its `$0`.
    pub fn shell(script: &str, more: &str) -> Self {
        Self::new("generic", &json!(["sh", "-c", script]), more)
    }

    /// Processes that work in the workspace.
    pub fn processes(&self) -> Vec<String> {
        let folder = self.workspace.path();
        let link = |pid: &String, what: &str| std::fs::read_link(format!("/proc/{pid}/{what}"));
        let works_here = |pid: &String| link(pid, "cwd").is_ok_and(|cwd| cwd.starts_with(folder));
        // One that has ended keeps its folder for a moment, but not its program.
        pids().filter(|pid| works_here(pid) && link(pid, "exe").is_ok()).collect()
    }

    /// Waits until a process works in the workspace.
    pub async fn until_busy(&self) {
        let until = Instant::now() + PATIENCE;
        while self.processes().is_empty() {
            assert!(Instant::now() < until, "no agent was started");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until no process works in the workspace.
    pub async fn until_idle(&self) {
        let until = Instant::now() + PATIENCE;
        while !self.processes().is_empty() {
            assert!(Instant::now() < until, "left over: {:?}", self.processes());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn pids() -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir("/proc").expect("a /proc to look into");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()))
}
