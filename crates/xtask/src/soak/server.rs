//! A server under load, and what the kernel says of it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use anyhow::{Context, Result, bail};

/// What the kernel counts CPU time in, as it tells programs everywhere.
const TICKS: f64 = 100.0;

pub(super) struct Server {
    child: Child,
    data: tempfile::TempDir,
    pub(super) store: String,
    /// `127.0.0.1:PORT`
    pub(super) address: String,
}

impl Server {
    /// Starts the binary that was built beside this one, on core 0. Finished tasks stay for a few seconds only, so that the store is bounded.
    pub(super) fn start(store: &str) -> Result<Self> {
        let data = tempfile::tempdir()?;
        let binary = std::env::current_exe()?.with_file_name("nuncio");
        let mut child = Command::new("taskset")
            .args(["-c", "0"])
            .arg(binary)
            .args(["serve", "--port", "0", "--store", store, "--data-dir"])
            .arg(data.path())
            .env("NUNCIO_LOG", "json")
            .env("NUNCIO_RETENTION", "20s")
            .env("NUNCIO_PUSH_NOTIFICATIONS", "true")
            .env("NUNCIO_PUSH_ALLOWED_CIDRS", "127.0.0.0/8")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("the server cannot be started")?;
        let mut log = BufReader::new(child.stderr.take().context("a pipe")?);
        let address = address(&mut log)?;
        // Whoever does not read a log stops its writer one day.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Ok(Self { child, data, store: store.to_owned(), address })
    }

    /// The seconds that it has worked.
    pub(super) fn cpu(&self) -> Result<f64> {
        let stat = self.read("stat")?;
        let (_, rest) = stat.rsplit_once(')').context("a line of /proc")?;
        let ticks: u32 = rest.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u32>().ok()).sum();
        Ok(f64::from(ticks) / TICKS)
    }

    pub(super) fn rss_kib(&self) -> Result<u64> {
        let status = self.read("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
        Ok(line.split_whitespace().next().context("a number")?.parse()?)
    }

    pub(super) fn descriptors(&self) -> Result<u64> {
        self.entries("fd")
    }

    pub(super) fn threads(&self) -> Result<u64> {
        self.entries("task")
    }

    /// Bytes of its files.
    pub(super) fn disk_kib(&self) -> Result<u64> {
        Ok(size(self.data.path())? / 1024)
    }

    fn read(&self, name: &str) -> Result<String> {
        let path = format!("/proc/{}/{name}", self.child.id());
        std::fs::read_to_string(path).with_context(|| format!("the server on {} has ended", self.store))
    }

    fn entries(&self, name: &str) -> Result<u64> {
        Ok(std::fs::read_dir(format!("/proc/{}/{name}", self.child.id()))?.count() as u64)
    }

    pub(super) fn stop(&mut self) -> Result<()> {
        Command::new("kill").arg(self.child.id().to_string()).status()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        // What is removed meanwhile has no size.
        let Ok(entry) = entry else { continue };
        let Ok(data) = entry.metadata() else { continue };
        sum += if data.is_dir() { size(&entry.path()).unwrap_or(0) } else { data.len() };
    }
    Ok(sum)
}

/// Where the server listens, from its log.
fn address(log: &mut BufReader<ChildStderr>) -> Result<String> {
    let mut line = String::new();
    while log.read_line(&mut line)? > 0 {
        if let Some((_, rest)) = line.split_once("\"card\":\"http://") {
            return Ok(rest.split('/').next().unwrap_or_default().to_owned());
        }
        line.clear();
    }
    bail!("the server did not start; build it with: cargo build --release --package nuncio")
}
