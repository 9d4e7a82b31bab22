//! The life of a program: its own group, bounded output, and an end that leaves nothing behind.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::kin::{self, Kin};
use super::lines::{LONGEST_LINE, Lines, Read};
use super::report::Exit;
use super::tail::Tail;

/// How long output is read on after the program itself is gone: something it started may hold the pipe.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// And how much of it: no pipe holds more of what the program said itself.
const LAST_BYTES: usize = 1 << 20;

/// What to start.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) program: &'a str,
    pub(crate) args: &'a [String],
    /// The whole environment.
    pub(crate) environment: &'a [(OsString, OsString)],
    pub(crate) cwd: &'a Path,
}

/// How long each step of ending a program may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// After its stdin was closed; none to leave it open.
    pub(crate) eof: Duration,
    /// After SIGTERM.
    pub(crate) term: Duration,
}

impl Patience {
    /// For a program that is done and may have something to save.
    pub(crate) const DONE: Self = Self { eof: Duration::from_secs(5), term: Duration::from_secs(2) };

    /// All steps within `time`, with room for the last one.
    pub(crate) fn within(time: Duration) -> Self {
        Self { eof: time / 5, term: time * 2 / 5 }
    }

    /// The same without an end of input before SIGTERM.
    pub(crate) fn at_once(time: Duration) -> Self {
        Self { eof: Duration::ZERO, term: time * 3 / 5 }
    }
}

/// A running program.
pub(crate) struct Child {
    process: tokio::process::Child,
    group: Option<Pid>,
    mark: String,
    stdout: Lines<ChildStdout>,
    stdin: Option<mpsc::UnboundedSender<Bytes>>,
    stderr: Arc<Mutex<Tail>>,
    /// Ends when stderr does.
    listening: tokio::task::JoinHandle<()>,
    /// Values that must not appear in what others read.
    secrets: Vec<String>,
    home: Option<String>,
    /// When the program is gone: until when its last words are waited for, and how much came of them.
    gone: Option<(Instant, usize)>,
}

impl Child {
    /// Starts a program in a group of its own.
    pub(crate) fn start(start: Start<'_>, kin: &Kin) -> io::Result<Self> {
        let mark = kin.mark();
        let mut command = Command::new(start.program);
        command
            .args(start.args)
            .env_clear()
            .envs(start.environment.iter().map(|(name, value)| (name, value)))
            .env(kin::MARK, kin::value(&mark))
            .current_dir(start.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut process = command.spawn()?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            return Err(io::Error::other("a pipe is missing"));
        };
        let group = process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let tail = Arc::new(Mutex::new(Tail::default()));
        Ok(Self {
            process,
            group,
            mark,
            stdout: Lines::new(stdout, LONGEST_LINE),
            stdin: Some(feed(stdin)),
            listening: tokio::spawn(listen(stderr, tail.clone())),
            stderr: tail,
            secrets: super::environment::secrets(start.environment),
            home: super::environment::home(start.environment),
            gone: None,
        })
    }

    /// The next line of stdout; `None` when there are no more, or when the program is gone and whoever
    /// else holds the pipe says nothing. Nothing is lost when the future is dropped.
    pub(crate) async fn line(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            match self.read(Duration::MAX).await? {
                Read::Line(line) => return Ok(Some(line)),
                Read::Pause => {}
                Read::End => return Ok(None),
            }
        }
    }

    /// The same, and also when nothing comes for `pause` in the middle of a line.
    pub(crate) async fn read(&mut self, pause: Duration) -> io::Result<Read> {
        if self.gone.is_none() {
            tokio::select! {
                biased;
                read = self.stdout.read(pause) => return read,
                _ = self.process.wait() => {}
            }
        }
        let (until, came) = self.gone.get_or_insert_with(|| (Instant::now() + LAST_WORDS, 0));
        if *came > LAST_BYTES {
            return Ok(self.stdout.rest());
        }
        let read = timeout_at(*until, self.stdout.read(pause)).await;
        if let Ok(Ok(Read::Line(line))) = &read {
            *came += line.len() + 1;
        }
        read.unwrap_or_else(|_| Ok(self.stdout.rest()))
    }

    /// Waits for the end of the program itself. It is asked nothing any more.
    pub(crate) async fn exited(&mut self) {
        self.close_input();
        let _ = self.process.wait().await;
    }

    /// A line that was read already.
    pub(crate) fn buffered_line(&mut self) -> Option<Bytes> {
        self.stdout.buffered()
    }

    /// The beginning of a line that has not ended.
    pub(crate) fn unfinished(&self) -> &[u8] {
        self.stdout.unfinished()
    }

    /// Hands bytes to the program's stdin. It never waits: a program that does not read would otherwise
    /// hold up the reading of what it prints, and both would wait for ever.
    pub(crate) fn write(&self, bytes: impl Into<Bytes>) {
        if let Some(stdin) = &self.stdin {
            let _ = stdin.send(bytes.into());
        }
    }

    /// A handle for writing, for those that write from elsewhere.
    pub(crate) fn writer(&self) -> Option<mpsc::UnboundedSender<Bytes>> {
        self.stdin.clone()
    }

    /// Closes its stdin once everything is written.
    pub(crate) fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Ends the program and everything that it started: end of input if there is time for it, SIGTERM, SIGKILL.
    pub(crate) async fn end(&mut self, patience: Patience) -> Exit {
        let mut status = None;
        if !patience.eof.is_zero() {
            self.close_input();
            status = self.wait(patience.eof).await;
        }
        if status.is_none() {
            self.signal(Signal::TERM);
            status = self.wait(patience.term).await;
        }
        // Also after an end of its own: what it left in the background ends with the turn.
        self.signal(Signal::KILL);
        if status.is_none() {
            status = self.process.wait().await.ok();
        }
        let mark = std::mem::take(&mut self.mark);
        self.group = None;
        let _ = tokio::task::spawn_blocking(move || kin::end_marked(&mark)).await;
        let _ = timeout(LAST_WORDS, &mut self.listening).await;
        self.exit(status)
    }

    /// Waits for the end of the process while reading on, so that it does not wait for a reader.
    async fn wait(&mut self, most: Duration) -> Option<ExitStatus> {
        let stdout = &mut self.stdout;
        let read_on = async {
            while let Ok(Some(_)) = stdout.next().await {}
            std::future::pending::<()>().await;
        };
        tokio::select! {
            status = timeout(most, self.process.wait()) => status.ok()?.ok(),
            () = read_on => None,
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            kin::signal_group(group, signal);
        }
    }

    fn exit(&self, status: Option<ExitStatus>) -> Exit {
        Exit {
            code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            stderr: self.stderr.lock().clean(&self.secrets, self.home.as_deref()),
        }
    }
}

impl Drop for Child {
    /// Whoever gives up a program without waiting for its end still leaves nothing behind.
    fn drop(&mut self) {
        self.listening.abort();
        if self.mark.is_empty() {
            return;
        }
        self.signal(Signal::KILL);
        let mark = std::mem::take(&mut self.mark);
        std::thread::spawn(move || kin::end_marked(&mark));
    }
}

/// Writes to stdin in the background, in order, until the sender is gone.
fn feed(mut stdin: ChildStdin) -> mpsc::UnboundedSender<Bytes> {
    let (sender, mut receiver) = mpsc::unbounded_channel::<Bytes>();
    tokio::spawn(async move {
        while let Some(bytes) = receiver.recv().await {
            if stdin.write_all(&bytes).await.is_err() || stdin.flush().await.is_err() {
                return;
            }
        }
    });
    sender
}

async fn listen(mut stderr: ChildStderr, tail: Arc<Mutex<Tail>>) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(n @ 1..) = stderr.read(&mut buffer).await {
        tail.lock().add(&buffer[..n]);
    }
}

#[cfg(test)]
mod tests;
