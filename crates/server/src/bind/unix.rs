//! A socket in the file system. Who calls is known by the system itself.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::jsonrpc::{self, Id};
use nuncio_protocol::{Error, ErrorKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

use super::App;
use super::frames::form::Form;
use super::frames::lines::{self, Lines};
use super::frames::session::{Peer, Session};
use crate::call::Way;

/// How often a peer that has said everything is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Who may use a socket beside the user who runs the server.
#[derive(Clone, Debug, Default)]
pub struct UnixOptions {
    /// Other users, by number.
    pub users: Vec<u32>,
    /// Whether users of this machine need no credentials where others do.
    pub trusted: bool,
}

/// A socket that is open. Its file goes with it.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Which file is ours: another server may have replaced it.
    file: (u64, u64),
    options: UnixOptions,
}

impl UnixSocket {
    /// Opens a socket at a path whose folder exists. A socket that nobody listens on any more is replaced; one that
    /// is in use, and every other file, is not.
    pub async fn open(path: &Path, options: UnixOptions) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        make_room(&path).await?;
        // Made under another name and moved when it is ready, so that nobody finds it before its mode is set.
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let _ = fs::remove_file(&new);
        let listener = UnixListener::bind(&new).map_err(|error| explain(&path, &error))?;
        // Who comes in is checked at every connection; the mode only keeps others from trying.
        let mode = if options.users.is_empty() { 0o600 } else { 0o666 };
        let ready = fs::set_permissions(&new, fs::Permissions::from_mode(mode)).and_then(|()| fs::rename(&new, &path));
        if let Err(error) = ready {
            let _ = fs::remove_file(&new);
            return Err(explain(&path, &error));
        }
        let file = identity(&path)?;
        Ok(Self { listener, path, file, options })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|file| file == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let file = fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino()))
}

/// Makes sure that the path is free, or only taken by what a dead server left.
async fn make_room(path: &Path) -> io::Result<()> {
    let shown = path.display();
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(explain(path, &error)),
    };
    if !found.file_type().is_socket() {
        let text = format!("{shown} is there and is not a socket: remove it, or choose another socket-path");
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(explain(path, &error)),
        Ok(_) => {
            let text = format!("another process listens on {shown}: stop it, or choose another socket-path");
            Err(io::Error::new(io::ErrorKind::AddrInUse, text))
        }
    }
}

fn explain(path: &Path, error: &io::Error) -> io::Error {
    let shown = path.display();
    let hint = match error.kind() {
        io::ErrorKind::NotFound => ": make its folder first",
        io::ErrorKind::PermissionDenied => ": choose a folder that you may write to",
        io::ErrorKind::InvalidInput => ": such paths have at most about 100 characters; choose a shorter one",
        _ => "",
    };
    io::Error::new(error.kind(), format!("cannot open the socket {shown}: {error}{hint}"))
}

/// Serves connections until `stop`.
pub(crate) async fn run(app: Arc<App>, socket: UnixSocket, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            accepted = socket.listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(uid) = stream.peer_cred().map(|peer| peer.uid()) else { continue };
        let own = uid == rustix::process::geteuid().as_raw();
        let refusal = if !own && !socket.options.users.contains(&uid) {
            tracing::warn!(user = %user(uid), "a user who may not use the socket was turned away");
            let text = "This socket is not for you: ask whoever runs the server for `socket-users`";
            Some(Error::new(ErrorKind::PermissionDenied, text))
        } else if app.sessions.len() >= app.http.max_connections {
            app.metrics.refused.inc();
            let text = "The server has all the connections it can hold: try again later";
            Some(Error::new(ErrorKind::Unavailable, text))
        } else {
            None
        };
        if let Some(error) = refusal {
            app.sessions.spawn(turn_away(stream, error));
            continue;
        }
        let way = Way { binding: Some("unix"), ..Way::default() };
        let peer = Peer { way, user: Some(user(uid)), trusted: socket.options.trusted };
        app.sessions.spawn(serve(app.clone(), stream, peer));
    }
}

async fn turn_away(mut stream: UnixStream, error: Error) {
    let mut line = jsonrpc::failure(Id::NULL, &error.jsonrpc());
    line.push(b'\n');
    let say = async {
        stream.write_all(&line).await?;
        stream.shutdown().await?;
        // Whoever is still writing could not read why it ends otherwise.
        let mut unread = [0; 4096];
        while stream.read(&mut unread).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), say).await;
}

async fn serve(app: Arc<App>, stream: UnixStream, peer: Peer) {
    app.metrics.connections.inc();
    let (reader, writer) = stream.into_split();
    let mut lines = Lines::new(reader, app.http.max_body);
    let (session, outbox) = Session::new(app.clone(), Form::Line, peer, lines::no_parts());
    let reading = async {
        lines::read(&app, &session, &mut lines).await;
        // Whoever only closed its own side still waits for answers.
        tokio::select! {
            () = session.answered() => {}
            () = closed(lines.reader()) => {}
        }
        session.leave();
        session.answered().await;
        drop(session);
    };
    let (_, written) = tokio::join!(reading, lines::write(outbox, writer));
    if let Err(error) = written {
        tracing::debug!(%error, "an answer could not be written");
    }
    app.metrics.connections.dec();
}

/// Resolves when the peer has closed both sides.
async fn closed(stream: &OwnedReadHalf) {
    loop {
        let ready = stream.ready(Interest::WRITABLE | Interest::ERROR);
        let ready = tokio::time::timeout(LOOK_EVERY, ready).await;
        if matches!(ready, Ok(Err(_))) || matches!(ready, Ok(Ok(ready)) if ready.is_write_closed()) {
            return;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The name of a user of this machine, or the number where it is not known here. Callers of other schemes never have
/// the same.
pub(crate) fn user(uid: u32) -> Arc<str> {
    let known = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let number = uid.to_string();
    format!("unix:{}", name_in(&known, uid).unwrap_or(&number)).into()
}

fn name_in(known: &str, uid: u32) -> Option<&str> {
    let uid = uid.to_string();
    known.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, found) = (fields.next()?, fields.nth(1)?);
        (found == uid && !name.is_empty()).then_some(name)
    })
}

/// The number of a user of this machine.
pub fn user_id(name: &str) -> Option<u32> {
    if let Ok(uid) = name.parse() {
        return Some(uid);
    }
    let known = fs::read_to_string("/etc/passwd").ok()?;
    known.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1))??.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_known_by_their_names() {
        let known = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n:x:7:7:::\n";
        assert_eq!(name_in(known, 1000), Some("ann"));
        assert_eq!(name_in(known, 0), Some("root"));
        assert_eq!(name_in(known, 100), None);
        assert_eq!(name_in(known, 7), None);
        assert_eq!(user_id("4711"), Some(4711));
    }

    #[tokio::test]
    async fn a_socket_replaces_only_what_a_dead_server_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let open = || UnixSocket::open(&path, UnixOptions::default());
        let first = open().await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(open().await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(first);
        assert!(!path.exists(), "the file goes with the socket");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let second = open().await.unwrap();
        // Somebody else put a file in its place: that is not ours to remove.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "text").unwrap();
        drop(second);
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
        let error = open().await.unwrap_err();
        assert!(error.to_string().contains("is not a socket"), "{error}");
        let error = UnixSocket::open(&folder.path().join("no/a.sock"), UnixOptions::default()).await.unwrap_err();
        assert!(error.to_string().contains("make its folder first"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    }
}
