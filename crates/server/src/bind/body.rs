//! Response bodies, and request bodies within their limits.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, Stream};
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use nuncio_protocol::{Error, ErrorKind};

/// What we answer with: some bytes, or a stream of them.
pub(crate) enum Body {
    Full(Bytes),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
    /// Bytes and what comes behind them, for gRPC.
    Message {
        data: Bytes,
        trailers: Option<HeaderMap>,
    },
    /// A stream of both.
    Frames(Pin<Box<dyn Stream<Item = Frame<Bytes>> + Send>>),
}

/// The body of an answer: read it as an [`http_body::Body`]. An event stream ends with its task, and is left
/// by dropping it.
pub struct ResponseBody(pub(crate) Body);

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.get_mut().0).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self::Full(Bytes::new())
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Stream(stream) => stream.as_mut().poll_next(cx).map(|next| next.map(|bytes| Ok(Frame::data(bytes)))),
            Self::Message { data, .. } if !data.is_empty() => Poll::Ready(Some(Ok(Frame::data(std::mem::take(data))))),
            Self::Message { trailers, .. } => {
                Poll::Ready(trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
            }
            Self::Frames(frames) => frames.as_mut().poll_next(cx).map(|next| next.map(Ok)),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(_) | Self::Message { .. } | Self::Frames(_) => SizeHint::default(),
        }
    }
}

/// Reads a whole body, within limits of size and time.
pub(crate) async fn read<B>(mut body: B, most: usize, time: Duration) -> Result<Bytes, Error>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    if body.size_hint().lower() > most as u64 {
        return Err(too_large(most));
    }
    let mut first = Bytes::new();
    let mut more: Option<BytesMut> = None;
    let mut until = None;
    loop {
        // Most bodies are there at once, and a timer costs more than they do.
        let frame = match body.frame().now_or_never() {
            Some(frame) => frame,
            None => {
                let until = *until.get_or_insert_with(|| tokio::time::Instant::now() + time);
                tokio::time::timeout_at(until, body.frame()).await.map_err(|_| too_slow())?
            }
        };
        let Some(frame) = frame else { break };
        let frame =
            frame.map_err(|error| Error::new(ErrorKind::InvalidRequest, format!("The body broke off: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        let have = more.as_ref().map_or(first.len(), BytesMut::len);
        if have + data.len() > most {
            return Err(too_large(most));
        }
        match &mut more {
            Some(more) => more.extend_from_slice(&data),
            None if first.is_empty() => first = data,
            None => {
                let mut all = BytesMut::with_capacity(first.len() + data.len());
                all.extend_from_slice(&first);
                all.extend_from_slice(&data);
                more = Some(all);
            }
        }
        if body.is_end_stream() {
            break;
        }
    }
    Ok(more.map_or(first, BytesMut::freeze))
}

fn too_large(most: usize) -> Error {
    Error::new(ErrorKind::TooLarge, format!("The body is larger than the {most} bytes that this server takes"))
}

fn too_slow() -> Error {
    Error::new(ErrorKind::TooSlow, "The body did not arrive in time: send it again")
}
