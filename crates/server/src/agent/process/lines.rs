//! Lines of bounded length from a pipe.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest line that a program may print: coding agents put whole files into one.
pub(crate) const LONGEST_LINE: usize = 32 << 20;
/// How much is asked for at once.
const PIECE: usize = 64 << 10;

/// What a read brought.
#[derive(Debug, PartialEq)]
pub(crate) enum Heard {
    /// A line without its end.
    Line(Bytes),
    /// More of a line whose end has not come yet.
    Piece,
    /// There is no more.
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
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(source: R, longest: usize) -> Self {
        Self { source, buffer: BytesMut::new(), searched: 0, longest, over: false }
    }

    /// What comes next. Nothing is lost when the future is dropped before it is ready.
    pub(crate) async fn hear(&mut self) -> io::Result<Heard> {
        if let Some(line) = self.buffered() {
            return Ok(Heard::Line(line));
        }
        if self.buffer.len() > self.longest {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
        }
        if self.over {
            return Ok(self.rest().map_or(Heard::End, Heard::Line));
        }
        self.buffer.reserve(PIECE);
        self.over = self.source.read_buf(&mut self.buffer).await? == 0;
        Ok(self.buffered().map_or(Heard::Piece, Heard::Line))
    }

    /// The next line without its end, or `None` when there are no more. Nothing is lost when the
    /// future is dropped before it is ready.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            match self.hear().await? {
                Heard::Line(line) => return Ok(Some(line)),
                Heard::Piece => {}
                Heard::End => return Ok(None),
            }
        }
    }

    /// The last line, which may lack its end.
    pub(crate) fn rest(&mut self) -> Option<Bytes> {
        self.searched = 0;
        let rest = self.buffer.split().freeze();
        (!rest.is_empty()).then_some(rest)
    }

    /// A line that is there already.
    pub(crate) fn buffered(&mut self) -> Option<Bytes> {
        let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.searched + at + 1).freeze();
        self.searched = 0;
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
