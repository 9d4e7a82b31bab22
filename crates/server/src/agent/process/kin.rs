//! Who belongs to a program: every process that it started, however far it went away.
//!
//! A group of its own catches what stays in the group. What left it (by `setsid`, as shells and daemons
//! do) still carries the mark that its environment began with. Only Linux tells the environment of other
//! processes; elsewhere the group is all there is.

#[cfg(target_os = "linux")]
use std::collections::HashSet;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// The variable that marks a program and all that it starts.
pub(crate) const MARK: &str = "NUNCIO_AGENT_MARK";
/// How often the processes are gone through again for ones that were just being born.
const ROUNDS: usize = 20;
/// How long each time waits for those that it ended to be gone: on a busy machine that takes a while.
#[cfg(target_os = "linux")]
const PATIENCE: Duration = Duration::from_millis(100);

/// The programs of one server.
#[derive(Clone, Debug)]
pub struct Kin {
    /// The same after a restart of the same server, so that what the last one left can be found.
    home: Arc<str>,
    /// This process, so that what belongs to a server that still runs is left alone.
    server: Arc<str>,
}

impl Kin {
    /// The programs of the server that keeps its data at `home`.
    pub fn new(home: &str) -> Self {
        use sha2::{Digest, Sha256};
        let digest = Sha256::digest(home.as_bytes());
        let short: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Self { home: short.into(), server: this_process().into() }
    }

    /// A mark for one program.
    pub(crate) fn mark(&self) -> String {
        format!("{}:{}:{}", self.home, self.server, uuid::Uuid::new_v4().simple())
    }

    /// The same server, in a process that is no more.
    #[cfg(test)]
    pub(crate) fn before_a_restart(&self) -> Self {
        Self { server: format!("{}-1", std::process::id()).into(), ..self.clone() }
    }

    /// Ends what an earlier server left running. Call it before the first program is started. Other servers may have
    /// their home in the same place.
    pub async fn end_orphans(&self) -> usize {
        let home = format!("{}:", self.home);
        let is_orphan = move |mark: &str| {
            let server = mark.strip_prefix(&*home).and_then(|rest| rest.split(':').next());
            server.is_some_and(|server| !is_running(server))
        };
        tokio::task::spawn_blocking(move || end_all(is_orphan)).await.unwrap_or(0)
    }
}

/// What tells this process from all others, also from a later one with the same number.
fn this_process() -> String {
    let pid = std::process::id();
    format!("{pid}-{}", born(pid).unwrap_or_default())
}

/// Whether the process that calls itself so is still there.
fn is_running(server: &str) -> bool {
    let known = server.split_once('-').and_then(|(pid, born)| Some((pid.parse().ok()?, born)));
    known.is_some_and(|(pid, then)| born(pid).is_some_and(|now| now == then))
}

/// When a process began, in the kernel's own count.
fn born(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may hold anything.
    let fields = stat.rsplit_once(')')?.1;
    fields.split_whitespace().nth(19).map(str::to_owned)
}

/// Sends a signal to a group; a group that is gone is fine.
pub(crate) fn signal_group(group: Pid, signal: Signal) {
    let _ = rustix::process::kill_process_group(group, signal);
}

/// Ends everything that carries `mark`, and waits until it is gone. Returns how many processes that were.
#[cfg(target_os = "linux")]
pub(crate) fn end_marked(mark: &str) -> usize {
    // Every mark begins with nothing: that would end the programs of all servers.
    if mark.is_empty() {
        return 0;
    }
    end_all(|one| one.starts_with(mark))
}

/// The same for everything whose mark is one of these.
#[cfg(target_os = "linux")]
fn end_all(ends: impl Fn(&str) -> bool) -> usize {
    let mut ended = HashSet::new();
    for _ in 0..ROUNDS {
        let found = marked(&ends);
        if found.is_empty() {
            break;
        }
        gone(&found);
        // The same one may still be on its way out.
        ended.extend(found.into_iter().map(|(pid, _)| pid));
    }
    ended.len()
}

/// Waits for processes to be gone.
#[cfg(target_os = "linux")]
fn gone(processes: &[(Pid, OwnedFd)]) {
    use rustix::event::{PollFd, PollFlags, poll};
    let until = Instant::now() + PATIENCE;
    for (_, handle) in processes {
        let left = until.saturating_duration_since(Instant::now()).try_into().ok();
        // Whoever is still there is found again.
        let _ = poll(&mut [PollFd::new(handle, PollFlags::IN)], left.as_ref());
    }
}

/// Ends those that carry such a mark now.
#[cfg(target_os = "linux")]
fn marked(ends: &impl Fn(&str) -> bool) -> Vec<(Pid, OwnedFd)> {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let mut found = Vec::new();
    for pid in numbers.filter_map(Pid::from_raw) {
        // Held before the look, so that the number cannot come to mean another process in between.
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        let Ok(environment) = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())) else { continue };
        if carries(&environment, ends) && pidfd_send_signal(&handle, Signal::KILL).is_ok() {
            found.push((pid, handle));
        }
    }
    found
}

#[cfg(target_os = "linux")]
fn carries(environment: &[u8], is_such: &impl Fn(&str) -> bool) -> bool {
    let wanted = format!("{MARK}=");
    environment.split(|byte| *byte == 0).filter_map(|entry| entry.strip_prefix(wanted.as_bytes())).any(|value| {
        // A server inside an agent adds its own mark to the one that it has.
        value.split(|byte| *byte == b' ').filter_map(|one| std::str::from_utf8(one).ok()).any(is_such)
    })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn end_marked(_mark: &str) -> usize {
    let _ = ROUNDS;
    0
}

#[cfg(not(target_os = "linux"))]
fn end_all(_ends: impl Fn(&str) -> bool) -> usize {
    0
}

/// The value of [`MARK`] for a program with this mark: the server may itself be somebody's program.
pub(crate) fn value(mark: &str) -> String {
    match std::env::var(MARK) {
        Ok(outer) => format!("{outer} {mark}"),
        Err(_) => mark.to_owned(),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_mark_ends_its_own_and_no_mark_ends_nobody() {
        let mark = Kin::new("test-of-marks").mark();
        let mut child = std::process::Command::new("sleep").arg("60").env(MARK, &mark).spawn().unwrap();
        assert_eq!(end_marked(""), 0);
        assert!(child.try_wait().unwrap().is_none(), "it was ended by no mark at all");
        assert!(end_marked(&mark) >= 1);
        let left = child.try_wait().unwrap().expect("it is gone when that is said");
        assert!(!left.success());
    }
}
