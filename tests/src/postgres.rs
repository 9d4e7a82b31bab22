//! A PostgreSQL of our own.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::{PATIENCE, machine};

const MISSING: &str = "PostgreSQL is missing: apt-get install postgresql";

/// A PostgreSQL of our own, whose data survives its process. It trusts everybody on this machine.
pub struct Postgres {
    running: Option<Running>,
    /// Where it listens, on this machine alone.
    pub port: u16,
    settings: Vec<String>,
    /// Its data, its socket and its log.
    folder: tempfile::TempDir,
    user: Option<User>,
    databases: AtomicU32,
}

/// The server, and the process that ends it when this one is killed.
struct Running {
    server: Child,
    guard: Child,
}

/// Whom the server runs as: it refuses to be root.
struct User {
    uid: u32,
    gid: u32,
}

impl Postgres {
    /// One that runs, and writes to the disk as it does in production.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// One that does not wait for the disk: for tests that do not cut the power.
    pub fn quick() -> Self {
        Self::start_with(&["fsync=off", "full_page_writes=off"])
    }

    /// The quick one that all tests of this process share; each takes a database of its own.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(Self::quick)
    }

    /// One with more settings, such as `ssl=on`.
    pub fn start_with(settings: &[&str]) -> Self {
        let mut postgres = Self::down(settings);
        postgres.up();
        postgres
    }

    /// One that does not run yet.
    pub fn down(settings: &[&str]) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let user = User::to_become();
        if let Some(user) = &user {
            chown(folder.path(), Some(user.uid), Some(user.gid)).expect("root may give folders away");
        }
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let postgres = Self { running: None, port: free.port(), settings, folder, user, databases: 0.into() };
        postgres.initialize();
        postgres
    }

    fn initialize(&self) {
        let mut command = self.command("initdb");
        command.args(["--no-sync", "--auth=trust", "--username=nuncio", "--encoding=UTF8", "--locale=C", "--pgdata"]);
        let done = command.arg(self.data_dir()).output().expect(MISSING);
        assert!(done.status.success(), "initdb failed:\n{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Starts it, with what it knew before.
    pub fn up(&mut self) {
        assert!(self.running.is_none(), "it runs already");
        let log = File::options().create(true).append(true).open(self.log_file()).expect("a file for its log");
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data_dir()).args(["-p", &self.port.to_string()]);
        // No segments in /dev/shm, which containers keep small.
        for setting in ["listen_addresses=127.0.0.1", "max_connections=400", "dynamic_shared_memory_type=mmap"] {
            command.args(["-c", setting]);
        }
        command.arg("-c").arg(format!("unix_socket_directories={}", self.folder.path().display()));
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let server = command.spawn().expect(MISSING);
        let guard = guard(server.id(), self.folder.path());
        self.running = Some(Running { server, guard });
        let until = Instant::now() + PATIENCE;
        while !self.is_ready() {
            let running = self.running.as_mut().expect("it was started");
            let ended = running.server.try_wait().expect("it can be waited for").is_some();
            assert!(!ended && Instant::now() < until, "PostgreSQL does not come up:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn is_ready(&self) -> bool {
        let mut command = self.command("pg_isready");
        command.args(["-q", "-h", "127.0.0.1", "-U", "nuncio", "-d", "postgres", "-p", &self.port.to_string()]);
        command.status().expect(MISSING).success()
    }

    /// Stops it in good order: what runs is broken off, what was committed is kept.
    pub fn stop(&mut self) {
        self.end("INT");
    }

    /// Stops it and starts it again, as an upgrade of it does.
    pub fn restart(&mut self) {
        self.stop();
        self.up();
    }

    /// Kills it and all that serve its connections with SIGKILL, as a lost machine does.
    pub fn kill(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        machine::kill(running.server.id());
        running.server.wait().expect("it ends");
        running.dismiss();
    }

    fn end(&mut self, name: &str) {
        let Some(mut running) = self.running.take() else { return };
        machine::signal(name, &[running.server.id()]);
        let until = Instant::now() + PATIENCE;
        while running.server.try_wait().expect("it can be waited for").is_none() {
            if Instant::now() >= until {
                let _ = running.server.kill();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        running.dismiss();
    }

    /// The address of a database, empty and new.
    pub fn database(&self) -> String {
        let name = format!("nuncio_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.ask("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// The address of a database by its name.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://nuncio@127.0.0.1:{}/{database}", self.port)
    }

    /// What a database answers to a statement: fields apart by `|`, rows by line ends.
    pub fn ask(&self, database: &str, sql: &str) -> String {
        let mut command = self.command("psql");
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql]).arg(self.url(database));
        let done = command.stdin(Stdio::null()).output().expect(MISSING);
        assert!(done.status.success(), "{sql}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Its process.
    pub fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(|running| running.server.id())
    }

    /// The folder with its data, in which it finds certificates by their names too.
    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Puts a file among its data that only it can read, such as its key.
    pub fn put(&self, name: &str, content: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.data_dir().join(name);
        fs::write(&path, content).expect("the file can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        if let Some(user) = &self.user {
            chown(&path, Some(user.uid), Some(user.gid)).expect("root may give files away");
        }
    }

    /// The end of what it has written about itself.
    pub fn log(&self) -> String {
        let all = fs::read_to_string(self.log_file()).unwrap_or_default();
        let lines: Vec<&str> = all.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// One of its programs, as the user that it runs as.
    fn command(&self, program: &str) -> Command {
        let program = find(program);
        let Some(user) = &self.user else { return Command::new(program) };
        let mut command = Command::new("setpriv");
        command.arg(format!("--reuid={}", user.uid)).arg(format!("--regid={}", user.gid));
        command.args(["--clear-groups", "--"]).arg(program).current_dir(self.folder.path());
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.end("QUIT");
    }
}

impl Running {
    fn dismiss(mut self) {
        let _ = self.guard.kill();
        let _ = self.guard.wait();
    }
}

impl User {
    /// The user of the package, or the one without rights; none unless we are root.
    fn to_become() -> Option<Self> {
        let id = Command::new("id").arg("-u").output().expect("id can be started");
        if id.stdout.trim_ascii() != b"0" {
            return None;
        }
        let passwd = fs::read_to_string("/etc/passwd").expect("a list of users");
        let find = |name: &str| {
            let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
            let mut fields = line.split(':').skip(2).map_while(|field| field.parse().ok());
            Some(Self { uid: fields.next()?, gid: fields.next()? })
        };
        Some(find("postgres").or_else(|| find("nobody")).expect("a user other than root"))
    }
}

/// A program of PostgreSQL: from the path, or where Debian keeps the newest one.
fn find(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let version = |entry: &fs::DirEntry| entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
    let mut debian: Vec<fs::DirEntry> = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().collect();
    debian.sort_by_key(version);
    let debian = debian.iter().rev().map(|entry| entry.path().join("bin"));
    let mut folders = std::env::split_paths(&path).chain(debian);
    // All of one version, whatever else is on the path.
    let is_whole =
        |folder: &PathBuf| ["initdb", "postgres", "pg_isready", "psql"].iter().all(|it| folder.join(it).is_file());
    folders.find(is_whole).map_or_else(|| panic!("{MISSING}"), |folder| folder.join(program))
}

/// Clears up if this process cannot, because it was killed or keeps the server to its end: the pipe breaks.
fn guard(server: u32, folder: &Path) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", "cat >/dev/null; kill -QUIT $0; sleep 2; rm -rf $1", &server.to_string()]).arg(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("a shell can be started")
}
