//! How much is read of somebody who has not said yet who he is.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Credentials fit in, and a short request beside them.
pub(super) const UNKNOWN: usize = 64 << 10;

/// How much may still be read. Clones share it.
#[derive(Clone)]
pub(super) struct Gauge(Arc<AtomicUsize>);

impl Gauge {
    pub(super) fn new(known: bool) -> Self {
        Self(Arc::new(AtomicUsize::new(if known { usize::MAX } else { UNKNOWN })))
    }

    /// The caller is known: from now on only the limits of frames count.
    pub(super) fn open(&self) {
        self.0.store(usize::MAX, Ordering::Relaxed);
    }

    /// Whether all was read that may be.
    pub(super) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// A connection of which no more is read than its gauge allows.
pub(super) struct Gauged<S> {
    pub(super) stream: S,
    pub(super) gauge: Gauge,
}

impl<S: AsyncRead + Unpin> AsyncRead for Gauged<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let left = self.gauge.0.load(Ordering::Relaxed);
        if left == usize::MAX {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        if left == 0 {
            return Poll::Ready(Err(io::ErrorKind::QuotaExceeded.into()));
        }
        let size = left.min(buf.remaining());
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(size));
        let read = Pin::new(&mut self.stream).poll_read(cx, &mut part);
        let filled = part.filled().len();
        buf.advance(filled);
        self.gauge.0.store(left - filled, Ordering::Relaxed);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gauged<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
