//! Stdin and stdout of the process itself: its caller is whoever started it.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use tokio::io::AsyncRead;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio_util::io::StreamReader;
use tokio_util::sync::CancellationToken;

use super::App;
use super::frames::form::Form;
use super::frames::lines::{self, Lines};
use super::frames::session::{Peer, Session};
use super::unix::user;
use crate::call::Way;

const CHUNK: usize = 64 << 10;
/// How long the last answers may take.
const LAST_CALL: Duration = Duration::from_secs(1);

/// The streams of this process as a way in. Nothing else may write to stdout.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stdio {
    /// Whether whoever started the process needs no credentials where others do.
    pub trusted: bool,
}

/// Serves until stdin ends or the server closes. Then what was asked for has `drain` to be answered, and `over` says
/// that it had.
pub(crate) async fn run(app: Arc<App>, stdio: Stdio, drain: Duration, over: CancellationToken) {
    let way = Way { binding: Some("stdio"), ..Way::default() };
    let peer = Peer { way, user: Some(user(rustix::process::getuid().as_raw())), trusted: stdio.trusted };
    let (session, outbox) = Session::new(app.clone(), Form::Line, peer, lines::no_parts());
    let written = print(outbox, &session);
    let mut lines = Lines::new(stdin(), app.http.max_body);
    lines::read(&app, &session, &mut lines).await;
    session.answered_within(drain).await;
    over.cancel();
    // Sends that still wait are told that the server ends.
    session.answered_within(LAST_CALL).await;
    session.leave();
    session.answered().await;
    drop(session);
    let _ = written.await;
}

/// Stdin, read by a thread of its own: a runtime cannot end while one of its own threads waits for a terminal.
fn stdin() -> impl AsyncRead + Unpin {
    let (chunks, mut incoming) = channel::<io::Result<Bytes>>(1);
    std::thread::spawn(move || read_stdin(&chunks));
    StreamReader::new(stream::poll_fn(move |cx| incoming.poll_recv(cx)))
}

fn read_stdin(chunks: &Sender<io::Result<Bytes>>) {
    let mut stdin = io::stdin().lock();
    let mut buffer = vec![0; CHUNK];
    loop {
        let chunk = match stdin.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => Ok(Bytes::copy_from_slice(&buffer[..n])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let failed = chunk.is_err();
        if chunks.blocking_send(chunk).is_err() || failed {
            return;
        }
    }
}

/// Writes all frames to stdout, on a thread of its own for the same reason.
fn print(mut outbox: Receiver<Vec<u8>>, session: &Session) -> oneshot::Receiver<()> {
    let (done, written) = oneshot::channel();
    let gone = session.gone();
    std::thread::spawn(move || {
        let mut stdout = io::stdout().lock();
        while let Some(frame) = outbox.blocking_recv() {
            if let Err(error) = stdout.write_all(&frame).and_then(|()| stdout.flush()) {
                tracing::warn!(%error, "stdout is closed: nobody reads the answers");
                break;
            }
        }
        drop(outbox);
        gone.cancel();
        let _ = done.send(());
    });
    written
}
