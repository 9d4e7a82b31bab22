//! A process and all that it has started, as if they were a machine of their own.

use std::collections::HashSet;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// How often the family is gone through again for those that were just being born.
const ROUNDS: usize = 20;

/// Kills the whole family with SIGKILL.
pub(crate) fn kill(pid: u32) {
    // In that order: who stands still starts no others.
    pause(pid);
    let family = family(pid);
    signal("KILL", &family);
    let until = Instant::now() + PATIENCE;
    while family.iter().any(|pid| lives(*pid)) {
        assert!(Instant::now() < until, "somebody outlives SIGKILL: {family:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process holds anything still. What waits to be reaped does not.
fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Stops the whole family.
pub(crate) fn pause(pid: u32) {
    let mut stopped = HashSet::new();
    for _ in 0..ROUNDS {
        let new: Vec<u32> = family(pid).into_iter().filter(|pid| stopped.insert(*pid)).collect();
        if new.is_empty() {
            return;
        }
        signal("STOP", &new);
    }
}

/// Lets the whole family go on.
pub(crate) fn go_on(pid: u32) {
    signal("CONT", &family(pid));
}

/// The process itself first, then its children, then theirs.
pub(crate) fn family(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(&pid) = all.get(next) {
        all.extend(children(pid));
        next += 1;
    }
    all
}

/// The children of every thread.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()).collect()
}

/// Sends a signal to each of them; one that is gone is fine.
pub(crate) fn signal(name: &str, pids: &[u32]) {
    let mut command = Command::new("kill");
    command.arg(format!("-{name}")).args(pids.iter().map(u32::to_string));
    command.stderr(Stdio::null()).status().expect("kill can be started");
}

/// The seconds that a process and all that it has started have worked, those that ended among them.
pub fn cpu_seconds(pid: u32) -> f64 {
    // What the kernel counts in, as it tells programs everywhere.
    const TICKS: f64 = 100.0;
    let of = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        fields.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<u32>().ok()).sum::<u32>()
    };
    f64::from(family(pid).iter().map(of).sum::<u32>()) / TICKS
}
