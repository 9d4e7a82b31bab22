//! At a terminal: colours, a spinner, questions, Ctrl-C. The terminal is tmux.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nuncio_tests::{PATIENCE, Server, binary, state};

/// A terminal with a shell in it.
struct Terminal {
    socket: String,
    folder: tempfile::TempDir,
}

impl Terminal {
    fn new(width: u32) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let socket = format!("nuncio-test-{}-{count}", std::process::id());
        let folder = tempfile::tempdir().expect("a temporary folder");
        let terminal = Self { socket, folder };
        let home = terminal.folder.path().display().to_string();
        let size = width.to_string();
        let shell = format!("env -i HOME={home} TERM=screen-256color PATH=/usr/bin:/bin PS1='$ ' sh -i");
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &size, "-y", "40", "-c", &home, &shell]);
        terminal.until("$ ");
        terminal
    }

    fn tmux(&self, args: &[&str]) -> String {
        let done = Command::new("tmux").args(["-L", &self.socket]).args(args).output();
        let done = done.expect("tmux is installed: apt-get install tmux");
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Types a line.
    fn line(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.tmux(&["send-keys", "Enter"]);
    }

    /// Runs the client; its exit code follows as `rc=N`.
    fn client(&self, args: &str) {
        // Only on an empty screen is it certain that what is shown is new.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let ready = format!("ready-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.line(&format!("clear; echo {ready}"));
        let until = Instant::now() + PATIENCE;
        while !self.shown().lines().any(|line| line.trim_end() == ready) {
            assert!(Instant::now() < until, "the screen is not cleared");
            std::thread::sleep(Duration::from_millis(10));
        }
        self.line(&format!("{} client {args}; echo rc=$?", binary().display()));
    }

    fn interrupt(&self) {
        self.tmux(&["send-keys", "C-c"]);
    }

    /// What it shows.
    fn shown(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J"])
    }

    /// The same with colours.
    fn coloured(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// Waits until it shows this.
    #[track_caller]
    fn until(&self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let shown = self.shown();
            // The typed line itself does not count.
            if shown.lines().any(|line| line.contains(text) && !line.contains("echo rc=")) {
                return shown;
            }
            assert!(Instant::now() < until, "`{text}` is not shown:\n{shown}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.socket, "kill-server"]).output();
    }
}

#[tokio::test]
async fn tables_have_colours_and_fit() {
    let server = Server::start(&["--store", "memory"]);
    server.send(&format!("ask {}", "a long question ".repeat(20))).await;
    let terminal = Terminal::new(80);
    terminal.client(&format!("task-list --url {}", server.url));
    terminal.until("rc=0");
    let plain = terminal.tmux(&["capture-pane", "-p"]);
    let row = plain.lines().find(|line| line.contains("input-required")).expect("a row");
    assert!(row.trim_end().ends_with('…') && (row.contains("now") || row.contains(" ago")), "{plain}");
    let at = plain.lines().position(|line| line == row).expect("the row");
    assert!(plain.lines().nth(at + 1).is_some_and(|line| line.starts_with("Showing 1 of 1")), "it fits: {plain}");
    assert!(terminal.coloured().contains("\x1b[33minput-required"), "{:?}", terminal.coloured());
    terminal.line("export NO_COLOR=1");
    terminal.client(&format!("task-list --url {}", server.url));
    terminal.until("rc=0");
    assert!(!terminal.coloured().contains("\x1b[33m"), "{:?}", terminal.coloured());
}

#[tokio::test]
async fn a_long_wait_shows_a_spinner_that_leaves_nothing_behind() {
    let server = Server::start(&["--store", "memory"]);
    let terminal = Terminal::new(100);
    terminal.client(&format!("call --url {} -p 'sleep 4'", server.url));
    terminal.until("waiting for the agent");
    let after = terminal.until("rc=0");
    assert!(after.contains("slept 4 s") && !after.contains("waiting"), "{after}");
}

#[tokio::test]
async fn approvals_and_questions_are_asked() {
    let server = Server::start(&["--store", "memory"]);
    let terminal = Terminal::new(100);
    terminal.client(&format!("call --url {} -p 'approve rm -rf build'", server.url));
    let shown = terminal.until("or y/n:");
    assert!(shown.contains("Approve? rm -rf build"), "{shown}");
    terminal.line("perhaps");
    terminal.until("not one of the answers");
    terminal.line("y");
    terminal.until("approved");
    terminal.until("rc=0");
    terminal.client(&format!("call --url {} -p 'ask Which colour?'", server.url));
    terminal.until("answer:");
    terminal.line("dark blue");
    let shown = terminal.until("rc=0");
    assert!(shown.lines().any(|line| line.trim() == "dark blue"), "{shown}");
    terminal.client(&format!("call --url {} -p 'ask Which colour?' --no-input", server.url));
    let shown = terminal.until("rc=0");
    assert!(shown.contains("Answer with:"), "{shown}");
}

#[tokio::test]
async fn ctrl_c_asks_and_cancels() {
    let server = Server::start(&["--store", "memory"]);
    let terminal = Terminal::new(100);
    terminal.client(&format!("call --url {} -p 'stream 1000 100'", server.url));
    terminal.until("chunk 3");
    terminal.interrupt();
    terminal.until("Cancel the task?");
    terminal.line("n");
    terminal.until("chunk 15");
    terminal.interrupt();
    terminal.until("Cancel the task?");
    terminal.line("y");
    let shown = terminal.until("rc=1");
    assert!(shown.contains("the task was canceled"), "{shown}");
    assert_eq!(server.count("CANCELED").await, 1);
}

#[tokio::test]
async fn a_second_ctrl_c_leaves_the_task_alone() {
    let server = Server::start(&["--store", "memory"]);
    let terminal = Terminal::new(200);
    terminal.client(&format!("call --url {} -p hold", server.url));
    terminal.until("waiting for the agent");
    terminal.interrupt();
    terminal.until("Cancel the task?");
    terminal.interrupt();
    let shown = terminal.until("rc=130");
    let line = shown.lines().find(|line| line.contains("nuncio client task-subscribe")).expect("how to go on");
    let id = line.split("--task-id ").nth(1).expect("an id").trim();
    assert_eq!(state(&server.task(id).await), "WORKING");
}

#[tokio::test]
async fn agents_cannot_drive_the_terminal() {
    let server = Server::start(&["--store", "memory"]);
    let terminal = Terminal::new(100);
    terminal
        .client(&format!("call --url {} -p \"$(printf 'a\\033[31mred\\033[5A\\033]0;title\\007 end')\"", server.url));
    terminal.until("rc=0");
    let coloured = terminal.coloured();
    assert!(coloured.lines().any(|line| line.trim_end() == "ared end"), "{coloured:?}");
    assert!(!coloured.contains("\x1b[31m"), "{coloured:?}");
}
