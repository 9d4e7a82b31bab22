//! Frames as lines: one JSON object each, up to the limit of a request body.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use nuncio_protocol::{Error, ErrorKind};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::Receiver;

use super::form::Form;
use super::session::{Peer, Session};
use crate::bind::App;

/// How much is read at once, and kept when there is nothing to read.
const CHUNK: usize = 16 << 10;
/// How many frames are written before they are sent off.
const BATCH: usize = 32;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line, without its end.
    Whole(Bytes),
    /// A line that is longer than the limit; it was skipped.
    TooLong,
}

/// Reads lines within a limit, whatever the pieces that they come in.
pub(crate) struct Lines<R> {
    reader: R,
    most: usize,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line break.
    seen: usize,
    /// Whether the rest of a line is being skipped.
    skipping: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(reader: R, most: usize) -> Self {
        Self { reader, most, buffer: BytesMut::new(), seen: 0, skipping: false }
    }

    /// The next line that is not empty; `None` at the end. It may be dropped and asked again.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[self.seen..]) {
                let mut line = self.buffer.split_to(self.seen + end + 1);
                self.seen = 0;
                line.truncate(line.len() - 1);
                match self.line(line) {
                    Some(line) => return Ok(Some(line)),
                    None => continue,
                }
            }
            self.seen = self.buffer.len();
            if self.seen > self.most {
                self.skipping = true;
            }
            if self.skipping {
                self.buffer.clear();
                self.seen = 0;
            }
            self.buffer.reserve(CHUNK);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                // The last line needs no end.
                let rest = std::mem::take(&mut self.buffer);
                self.seen = 0;
                return Ok(self.line(rest));
            }
        }
    }

    fn line(&mut self, mut line: BytesMut) -> Option<Line> {
        if std::mem::take(&mut self.skipping) || line.len() > self.most {
            return Some(Line::TooLong);
        }
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        (!line.trim_ascii().is_empty()).then(|| Line::Whole(line.freeze()))
    }

    /// What is read from.
    pub(crate) fn reader(&self) -> &R {
        &self.reader
    }
}

/// Takes requests until there are no more of them, or the server closes.
pub(crate) async fn read<R: AsyncRead + Unpin>(app: &App, session: &Session, lines: &mut Lines<R>) {
    let gone = session.gone();
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = app.closing.cancelled() => return,
            () = gone.cancelled() => return,
        };
        match line {
            Ok(Some(Line::Whole(line))) => session.take(line).await,
            Ok(Some(Line::TooLong)) => {
                let text = format!("The line is longer than the {} bytes that this server takes", app.http.max_body);
                session.refuse(&Error::new(ErrorKind::TooLarge, text)).await;
            }
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(%error, "a connection broke off");
                return session.leave();
            }
        }
    }
}

/// Writes frames until there are no more of them, or nobody reads them.
pub(crate) async fn write<W: AsyncWrite + Unpin>(mut outbox: Receiver<Vec<u8>>, mut writer: W) -> io::Result<()> {
    let mut batch = Vec::with_capacity(BATCH);
    while outbox.recv_many(&mut batch, BATCH).await > 0 {
        for frame in batch.drain(..) {
            writer.write_all(&frame).await?;
        }
        writer.flush().await?;
    }
    writer.shutdown().await
}

/// Serves lines from `reader` to `writer` until the reader is at its end and everything is answered.
pub(crate) async fn converse<R, W>(app: Arc<App>, peer: Peer, reader: R, writer: W)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut lines = Lines::new(reader, app.http.max_body);
    let (session, outbox) = Session::new(app.clone(), Form::Line, peer, no_parts());
    let reading = async {
        read(&app, &session, &mut lines).await;
        session.answered().await;
        drop(session);
    };
    let (_, written) = tokio::join!(reading, write(outbox, writer));
    if let Err(error) = written {
        tracing::debug!(%error, "an answer could not be written");
    }
}

/// What a connection without an HTTP request has beside its requests.
pub(crate) fn no_parts() -> Parts {
    http::Request::new(()).into_parts().0
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(pieces: &[&[u8]], most: usize) -> Vec<String> {
        let mut reader = tokio_test_reader(pieces);
        let mut lines = Lines::new(&mut reader, most);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            found.push(match line {
                Line::Whole(line) => String::from_utf8(line.to_vec()).unwrap(),
                Line::TooLong => "too long".to_owned(),
            });
        }
        found
    }

    /// A reader that gives one piece at a time.
    fn tokio_test_reader(pieces: &[&[u8]]) -> impl AsyncRead + Unpin + use<> {
        let pieces: Vec<io::Result<Bytes>> = pieces.iter().map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        tokio_util::io::StreamReader::new(futures_util::stream::iter(pieces))
    }

    #[tokio::test]
    async fn lines_come_whole_whatever_their_pieces() {
        assert_eq!(all(&[b"a\nb", b"b\r\n\n  \nc"], 10).await, ["a", "bb", "c"]);
        assert_eq!(all(&[], 10).await, [""; 0]);
        assert_eq!(all(&[b"\n\n"], 10).await, [""; 0]);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_read() {
        assert_eq!(all(&[b"1234567", b"89012", b"34\nok\n"], 5).await, ["too long", "ok"]);
        assert_eq!(all(&[b"123456\nok\n"], 5).await, ["too long", "ok"]);
        assert_eq!(all(&[b"12345\n123456"], 5).await, ["12345", "too long"]);
        assert_eq!(all(&[b"1234567", b"\n", b"ok"], 5).await, ["too long", "ok"]);
    }
}
