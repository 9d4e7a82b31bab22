//! A Redis of our own.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// A Redis of our own, whose data survives it.
pub struct Redis {
    child: Option<Child>,
    /// Where it listens, on this machine alone.
    pub port: u16,
    data: tempfile::TempDir,
}

impl Redis {
    /// One that runs.
    pub fn start() -> Self {
        let mut redis = Self::down();
        redis.up();
        redis
    }

    /// One that does not run yet.
    pub fn down() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        Self { child: None, port: free.port(), data: tempfile::tempdir().expect("a temporary folder") }
    }

    /// Starts it, with what it knew before.
    pub fn up(&mut self) {
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--appendonly", "yes", "--save", "", "--port", &self.port.to_string()]);
        command.arg("--dir").arg(self.data.path()).stdout(Stdio::null()).stdin(Stdio::null());
        self.child = Some(command.spawn().expect("redis-server is missing: apt-get install redis-server"));
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() || self.ask(&["PING"]) != "PONG" {
            assert!(Instant::now() < until, "Redis does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it runs");
            child.wait().expect("it ends");
        }
    }

    /// What it answers to a command.
    pub fn ask(&self, args: &[&str]) -> String {
        let port = self.port.to_string();
        let done = Command::new("redis-cli").args(["-p", &port]).args(args).output();
        let done = done.expect("redis-cli is missing: apt-get install redis-server");
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Its process.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// The folder with its data.
    pub fn data_dir(&self) -> &Path {
        self.data.path()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}
