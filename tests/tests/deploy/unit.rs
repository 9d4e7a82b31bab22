//! The unit for systemd.

use std::process::Command;

use nuncio_tests::binary;

use crate::{file, key, run, said, seconds, shown, text};

/// The unit with the binary that is here.
fn unit() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nuncio.service");
    let here = binary().canonicalize().unwrap();
    let unit = text("deploy/systemd/nuncio.service").replace("/usr/local/bin/nuncio", here.to_str().unwrap());
    std::fs::write(&path, unit).unwrap();
    (folder, path)
}

fn analyze() -> Command {
    let there = Command::new("systemd-analyze").arg("--version").output();
    there.expect("systemd-analyze is missing: apt-get install systemd");
    Command::new("systemd-analyze")
}

#[test]
fn systemd_finds_nothing_wrong_with_it() {
    let (_folder, path) = unit();
    let (_, about) = said(analyze().args(["verify", "--man=no", "--recursive-errors=no"]).arg(path));
    assert_eq!(about.lines().filter(|line| line.contains("nuncio.service")).count(), 0, "{about}");
}

#[test]
fn little_is_left_open() {
    let (_folder, path) = unit();
    // In tenths: 0 is a vault, 10 an open door.
    run(analyze().args(["security", "--offline=yes", "--threshold=25", "--no-pager"]).arg(path));
}

#[test]
fn it_starts_commands_that_there_are_and_has_time_to_drain() {
    let unit = text("deploy/systemd/nuncio.service");
    let value = |name: &str| unit.lines().find_map(|line| line.strip_prefix(&format!("{name}="))).unwrap().to_owned();
    let config = file("deploy/systemd/nuncio.yml");
    for name in ["ExecStartPre", "ExecStart"] {
        let line = value(name);
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!((words[0], words[words.len() - 1]), ("/usr/local/bin/nuncio", "/etc/nuncio/nuncio.yml"));
    }
    let configured = shown(&config, &[("NUNCIO_TOKEN", "0123456789abcdef0123456789abcdef")]);
    assert_eq!(key(&configured, "data-dir"), format!("/var/lib/{}", value("StateDirectory")));
    let stop: u64 = value("TimeoutStopSec").strip_suffix('s').unwrap().parse().unwrap();
    assert!(stop > seconds(&key(&configured, "drain-timeout")));
}
