//! Commands that the agent runs through us: in its workspace, with a small environment, in a group of
//! their own, and never longer than its turn.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1::{CreateTerminalRequest, Error, TerminalExitStatus, TerminalOutputResponse};
use nuncio_protocol::json;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::watch;

use crate::agent::process::kin::{self, Kin};
use crate::workspace::{Workspace, Workspaces};

/// The most terminals of one agent.
const MOST: usize = 32;
/// How much output is kept where the agent does not say.
const KEPT: usize = 1 << 20;
/// The most output that is kept, whatever the agent says.
const MOST_KEPT: usize = 16 << 20;
/// How much is remembered of what a released terminal printed: the report of its call may come later.
const REMEMBERED: usize = 256 << 10;
/// How long output is read on after the command is gone: something it started may hold the pipe.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The terminals of one agent.
pub(crate) struct Terminals {
    workspace: Workspace,
    environment: Vec<(OsString, OsString)>,
    kin: Kin,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    last: u64,
    /// Those that are being started.
    starting: usize,
    /// How often all were ended: what is started across that ends too.
    cleared: u64,
    terminals: HashMap<String, Arc<Terminal>>,
    /// What the last released ones printed.
    released: VecDeque<(String, String)>,
}

impl Terminals {
    pub(crate) fn new(workspace: Workspace, environment: Vec<(OsString, OsString)>, kin: Kin) -> Self {
        Self { workspace, environment, kin, open: Mutex::default() }
    }

    /// Starts a command; returns what it is called from now on. Blocks shortly on the disk.
    pub(crate) fn create(&self, request: &CreateTerminalRequest) -> Result<String, Error> {
        let cleared = {
            let mut open = self.open.lock();
            if open.terminals.len() + open.starting >= MOST {
                return Err(Error::internal_error().data(json!("too many terminals are open; release some")));
            }
            open.starting += 1;
            open.cleared
        };
        let started = self.start(request);
        let mut open = self.open.lock();
        open.starting -= 1;
        let terminal = started?;
        if open.cleared != cleared {
            return Err(Error::request_cancelled());
        }
        open.last += 1;
        let id = format!("term-{}", open.last);
        open.terminals.insert(id.clone(), Arc::new(terminal));
        Ok(id)
    }

    pub(crate) fn get(&self, id: &str) -> Result<Arc<Terminal>, Error> {
        let open = self.open.lock();
        open.terminals.get(id).cloned().ok_or_else(|| Error::resource_not_found(Some(id.to_owned())))
    }

    /// Ends a command and forgets it.
    pub(crate) fn release(&self, id: &str) -> Result<(), Error> {
        let terminal = self.get(id)?;
        terminal.kill();
        let (printed, _) = terminal.output.lock().last(REMEMBERED);
        let mut open = self.open.lock();
        // Whoever still waits for its end gets it; dropping the last holder ends it.
        if open.terminals.remove(id).is_none() {
            return Err(Error::resource_not_found(Some(id.to_owned())));
        }
        // At the same moment: what it printed can be asked for all the time.
        open.released.push_back((id.to_owned(), printed));
        if open.released.len() > MOST {
            open.released.pop_front();
        }
        Ok(())
    }

    /// What a terminal printed, also after it was released.
    pub(crate) fn printed(&self, id: &str) -> Option<String> {
        match self.get(id) {
            Ok(terminal) => Some(terminal.output().output),
            Err(_) => self.open.lock().released.iter().find(|(name, _)| name == id).map(|(_, text)| text.clone()),
        }
    }

    /// Ends all commands.
    pub(crate) fn release_all(&self) {
        let all = {
            let mut open = self.open.lock();
            open.cleared += 1;
            open.released.clear();
            std::mem::take(&mut open.terminals)
        };
        all.values().for_each(|terminal| terminal.kill());
    }

    fn start(&self, request: &CreateTerminalRequest) -> Result<Terminal, Error> {
        let refused = |what: String| Error::invalid_params().data(json!(what));
        let cwd = match &request.cwd {
            None => self.workspace.cwd(),
            Some(path) => {
                let path = self.workspace.path().join(path);
                // The folders below the workspace, by the same rules as the workspace itself.
                let below = Workspaces::new(self.workspace.path(), Vec::new());
                let chosen = below.and_then(|below| below.choose(path.to_str()));
                chosen.map_err(|_| refused("cwd is not a folder of the workspace".into()))?.cwd()
            }
        };
        let cwd = cwd.map_err(|error| refused(format!("cwd: {error}")))?;
        let mark = self.kin.mark();
        let mut command = command(&request.command, &request.args);
        command
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .envs(request.env.iter().filter(|one| is_name(&one.name)).map(|one| (&one.name, &one.value)))
            .env(kin::MARK, kin::value(&mark))
            .current_dir(cwd.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut process = command.spawn().map_err(|error| refused(format!("{}: {error}", request.command)))?;
        let limit = request.output_byte_limit.map_or(KEPT, |limit| usize::try_from(limit).unwrap_or(MOST_KEPT));
        let output = Arc::new(Mutex::new(Output::new(limit.min(MOST_KEPT))));
        let readers = [
            process.stdout.take().map(|pipe| tokio::spawn(collect(pipe, output.clone()))),
            process.stderr.take().map(|pipe| tokio::spawn(collect(pipe, output.clone()))),
        ];
        let group = process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let (told, exit) = watch::channel(None);
        tokio::spawn(async move {
            let status = process.wait().await;
            for reader in readers.into_iter().flatten() {
                let _ = tokio::time::timeout(LAST_WORDS, reader).await;
            }
            let _ = told.send(Some(status.map(describe).unwrap_or_default()));
        });
        Ok(Terminal { group, mark, output, exit })
    }
}

impl Drop for Terminals {
    fn drop(&mut self) {
        self.release_all();
    }
}

/// One command.
pub(crate) struct Terminal {
    group: Option<Pid>,
    mark: String,
    output: Arc<Mutex<Output>>,
    exit: watch::Receiver<Option<TerminalExitStatus>>,
}

impl Terminal {
    /// What it printed so far.
    pub(crate) fn output(&self) -> TerminalOutputResponse {
        let (text, truncated) = self.output.lock().text();
        TerminalOutputResponse::new(text, truncated).exit_status(self.exit.borrow().clone())
    }

    /// Waits for its end.
    pub(crate) async fn ended(&self) -> TerminalExitStatus {
        let mut exit = self.exit.clone();
        let status = exit.wait_for(Option::is_some).await.ok().and_then(|status| status.clone());
        status.unwrap_or_default()
    }

    /// Ends the command and all that it started. Its output stays.
    pub(crate) fn kill(&self) {
        // A group that is gone may be another's by now.
        if let Some(group) = self.group.filter(|_| self.exit.borrow().is_none()) {
            kin::signal_group(group, Signal::KILL);
        }
        let mark = self.mark.clone();
        std::thread::spawn(move || kin::end_marked(&mark));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Agents send either a program with its arguments or a whole line for a shell.
fn command(program: &str, args: &[String]) -> Command {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./+".contains(c);
    if args.is_empty() && !program.chars().all(is_plain) {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(program);
        return command;
    }
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// What may be the name of a variable; anything else would make the start fail or change another.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

async fn collect(mut pipe: impl AsyncRead + Unpin, output: Arc<Mutex<Output>>) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(n @ 1..) = pipe.read(&mut buffer).await {
        output.lock().add(&buffer[..n]);
    }
}

/// The last bytes of what a command printed.
struct Output {
    bytes: Vec<u8>,
    limit: usize,
    truncated: bool,
}

impl Output {
    fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, truncated: false }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Cut in large steps: to move the rest for every few bytes would cost more than they do.
        if self.bytes.len() > self.limit.saturating_mul(2).max(KEPT) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let over = self.bytes.len().saturating_sub(self.limit);
        if over > 0 {
            // Not inside of a character.
            let is_inside = |byte: &u8| byte & 0xC0 == 0x80;
            let more = self.bytes[over..].iter().take(3).take_while(|byte| is_inside(byte)).count();
            self.bytes.drain(..over + more);
            self.truncated = true;
        }
    }

    /// The last of it, and no more than so many bytes.
    fn last(&mut self, most: usize) -> (String, bool) {
        self.limit = self.limit.min(most);
        self.text()
    }

    fn text(&mut self) -> (String, bool) {
        self.cut();
        (String::from_utf8_lossy(&self.bytes).into_owned(), self.truncated)
    }
}

fn describe(status: ExitStatus) -> TerminalExitStatus {
    let code = status.code().and_then(|code| u32::try_from(code).ok());
    TerminalExitStatus::new().exit_code(code).signal(status.signal().map(signal_name))
}

fn signal_name(number: i32) -> String {
    let known = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::TERM, "SIGTERM"),
    ];
    let found = known.iter().find(|(signal, _)| signal.as_raw() == number);
    found.map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests;
