//! Runs the client as a script would: no terminal, a home of its own, a clean environment.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use nuncio_tests::binary;

/// What a command did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A place to run commands in.
pub(crate) struct Shell {
    pub(crate) folder: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

impl Shell {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder"), variables: Vec::new() }
    }

    /// Sets a variable for all commands.
    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file into the folder.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).expect("the file can be written");
    }

    /// Runs `nuncio client` with these arguments.
    pub(crate) fn client(&self, args: &[&str]) -> Done {
        let mut command = Command::new(binary());
        command.arg("client").args(args);
        self.run(command, "")
    }

    /// The same with something on stdin.
    pub(crate) fn client_reading(&self, args: &[&str], input: &str) -> Done {
        let mut command = Command::new(binary());
        command.arg("client").args(args);
        self.run(command, input)
    }

    /// Runs a line of shell.
    pub(crate) fn line(&self, line: &str) -> Done {
        let mut command = Command::new("bash");
        command.args(["-c", line]);
        self.run(command, "")
    }

    fn run(&self, mut command: Command, input: &str) -> Done {
        let mut child = command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .envs(self.variables.iter().cloned())
            .current_dir(self.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command can be started");
        // Whoever does not read its input may close it.
        let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
        let done = child.wait_with_output().expect("the command ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Done { code: done.status.code(), out: text(done.stdout), err: text(done.stderr) }
    }
}

impl Done {
    /// It went well; what it printed.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// It failed with this code; what it said.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        self.err
    }
}
