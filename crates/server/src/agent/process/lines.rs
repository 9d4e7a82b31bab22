//! Lines of bounded length from a pipe.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// The longest line that a program may print: coding agents put whole files into one.
pub(crate) const LONGEST_LINE: usize = 32 << 20;
/// How much is asked for at once.
const PIECE: usize = 64 << 10;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// A line, without its end.
    Line(Bytes),
    /// Silence in the middle of a line; told once.
    Pause,
    /// Nothing more.
    End,
}

/// Splits what it reads at line ends.
pub(crate) struct Lines<R> {
    source: R,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    searched: usize,
    longest: usize,
    over: bool,
    /// How long the unfinished line was when its pause was told.
    paused: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(source: R, longest: usize) -> Self {
        Self { source, buffer: BytesMut::new(), searched: 0, longest, over: false, paused: 0 }
    }

    /// The next line without its end, or `None` when there are no more. Nothing is lost when the
    /// future is dropped before it is ready.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Bytes>> {
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
        loop {
            if let Some(line) = self.buffered() {
                return Ok(Read::Line(line));
            }
            if self.buffer.len() > self.longest {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
            }
            if self.over {
                return Ok(self.rest());
            }
            let waits = self.buffer.len();
            self.buffer.reserve(PIECE);
            let read = self.source.read_buf(&mut self.buffer);
            let read = match waits > 0 && waits != self.paused {
                true => timeout(pause, read).await.ok(),
                false => Some(read.await),
            };
            let Some(read) = read else {
                self.paused = waits;
                return Ok(Read::Pause);
            };
            self.over = read? == 0;
        }
    }

    /// The last line, which may lack its end.
    pub(crate) fn rest(&mut self) -> Read {
        self.searched = 0;
        let rest = self.buffer.split().freeze();
        if rest.is_empty() { Read::End } else { Read::Line(rest) }
    }

    /// A line that is there already.
    pub(crate) fn buffered(&mut self) -> Option<Bytes> {
        let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.searched + at + 1).freeze();
        (self.searched, self.paused) = (0, 0);
        line.truncate(line.len() - 1);
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        Some(line)
    }

    /// The beginning of a line whose end has not come yet.
    pub(crate) fn unfinished(&self) -> &[u8] {
        if memchr::memchr(b'\n', &self.buffer[self.searched..]).is_some() { &[] } else { &self.buffer }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;

    use super::*;

    async fn read(bytes: &[u8], longest: usize) -> io::Result<Vec<Bytes>> {
        let mut lines = Lines::new(bytes, longest);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await? {
            all.push(line);
        }
        Ok(all)
    }

    #[tokio::test]
    async fn the_last_line_needs_no_end() {
        assert_eq!(read(b"a\r\n\nb", 10).await.unwrap(), ["a", "", "b"]);
    }

    #[tokio::test]
    async fn a_pause_in_the_middle_of_a_line_is_told_once() {
        let (mut program, pipe) = tokio::io::duplex(100);
        let mut lines = Lines::new(pipe, 100);
        let pause = Duration::from_millis(20);
        let write = async {
            tokio::time::sleep(pause).await;
            program.write_all(b"a\nGo on?").await.unwrap();
            program
        };
        let (first, mut program) = tokio::join!(lines.read(pause), write);
        assert_eq!(first.unwrap(), Read::Line("a".into()), "silence between lines is none");
        assert_eq!(lines.read(pause).await.unwrap(), Read::Pause);
        assert_eq!(lines.unfinished(), b"Go on?");
        assert!(timeout(pause * 5, lines.read(pause)).await.is_err(), "told once");
        program.write_all(b" y\n").await.unwrap();
        assert_eq!(lines.read(pause).await.unwrap(), Read::Line("Go on? y".into()));
    }

    #[tokio::test]
    async fn a_line_beyond_the_limit_is_an_error() {
        assert!(read(&[b'x'; 200_000], 100_000).await.is_err());
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_the_bytes_arrive(text in "[a-c\n\r]{0,200}", size in 1_usize..20) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let whole = runtime.block_on(read(text.as_bytes(), 1000)).unwrap();
            let pieces: Vec<io::Result<Bytes>> =
                text.as_bytes().chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
            let reader = tokio_util::io::StreamReader::new(futures_util::stream::iter(pieces));
            let cut = runtime.block_on(async {
                let mut lines = Lines::new(reader, 1000);
                let mut all = Vec::new();
                while let Some(line) = lines.next().await.unwrap() {
                    all.push(line);
                }
                all
            });
            prop_assert_eq!(whole, cut);
        }
    }
}
