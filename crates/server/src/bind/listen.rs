//! Connections: how many, for how long, and how they end.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::App;
use super::http::handle;
use super::wire::Wire;
use crate::auth::Proven;
use crate::boxed::boxed;

/// How often connections are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long a peer may leave written data unacknowledged before it counts as gone.
const DEAD_PEER: Duration = Duration::from_secs(60);

/// Serves connections until `stop`, then lets the open ones end.
pub(crate) async fn run(app: Arc<App>, listener: TcpListener, stop: CancellationToken) -> TaskTracker {
    let connections = TaskTracker::new();
    let watch = Arc::new(Watch::default());
    tokio::spawn(watch.clone().look(app.clone(), stop.clone(), connections.clone()));
    let open = Arc::new(AtomicUsize::new(0));
    let speech = Arc::new(Speech::new(&app));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, remote) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                // Out of descriptors, most likely: others have to end first.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        if open.load(Ordering::Relaxed) >= app.http.max_connections {
            app.metrics.refused.inc();
            tokio::spawn(turn_away(stream));
            continue;
        }
        open.fetch_add(1, Ordering::Relaxed);
        app.metrics.connections.inc();
        let (app, watch, open, speech) = (app.clone(), watch.clone(), open.clone(), speech.clone());
        connections.spawn(async move {
            serve(&app, &watch, &speech, stream, remote).await;
            app.metrics.connections.dec();
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
    connections.close();
    connections
}

/// Says that there is no room, instead of letting the client guess.
async fn turn_away(mut stream: TcpStream) {
    const FULL: &str = "{\"error\":\"The server has all the connections it can hold: try again later\"}";
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{FULL}",
        FULL.len()
    );
    let say = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        // Closing with the request unread would take the answer away from the client again.
        let mut unread = [0; 4096];
        while stream.read(&mut unread).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), say).await;
}

/// What is spoken on connections.
struct Speech {
    /// HTTP/1 alone, which takes 8 KiB less per connection than finding out on the way.
    http1: http1::Builder,
    any: auto::Builder<TokioExecutor>,
}

impl Speech {
    fn new(app: &App) -> Self {
        let buffer = app.http.max_header.max(8192);
        let mut http1 = http1::Builder::new();
        http1.timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(buffer).half_close(false);
        let mut any = auto::Builder::new(TokioExecutor::new());
        any.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(buffer).half_close(false);
        any.http2().timer(TokioTimer::new()).keep_alive_interval(Some(Duration::from_secs(30)));
        any.http2().max_header_list_size(u32::try_from(app.http.max_header).unwrap_or(u32::MAX));
        Self { http1, any }
    }
}

async fn serve(app: &Arc<App>, watch: &Arc<Watch>, speech: &Speech, stream: TcpStream, remote: SocketAddr) {
    // Small events must not wait for each other, and a peer that vanished must not be served for ever.
    let _ = stream.set_nodelay(true);
    let socket = socket2::SockRef::from(&stream);
    let _ = socket.set_tcp_keepalive(&socket2::TcpKeepalive::new().with_time(DEAD_PEER));
    let _ = socket.set_tcp_user_timeout(Some(DEAD_PEER));
    let Ok(local) = stream.local_addr() else { return };
    let Some((stream, proven)) = greet(app, stream, remote).await else { return };
    let seen = watch.enter();
    let Some(is_http1) = is_http1(&stream, &seen).await else { return };
    let io = TokioIo::new(Watched { stream, seen: seen.clone(), watch: watch.clone() });
    let service = {
        let (app, seen, watch) = (app.clone(), seen.clone(), watch.clone());
        service_fn(move |mut request: Request<Incoming>| {
            if let Some(proven) = &proven {
                request.extensions_mut().insert(proven.clone());
            }
            let (app, in_flight) = (app.clone(), InFlight::begin(&seen, &watch));
            // Boxed, because hyper keeps room for it as long as the connection is open, and streams are open for long.
            boxed(move || async move {
                let response = handle(&app, local, remote, request).await;
                Ok::<_, std::convert::Infallible>(response.map(|body| Counted { body, _in_flight: in_flight }))
            })
        })
    };
    let broke_off = if is_http1 {
        let connection = speech.http1.serve_connection(io, service).with_upgrades();
        let ended = drive(&seen, connection, http1::UpgradeableConnection::graceful_shutdown).await;
        ended.err().map(|error| error.to_string())
    } else {
        let connection = speech.any.serve_connection_with_upgrades(io, service);
        let ended = Box::pin(drive(&seen, connection, auto::UpgradeableConnection::graceful_shutdown)).await;
        ended.err().map(|error| error.to_string())
    };
    if let Some(error) = broke_off {
        tracing::debug!(%remote, error, "a connection broke off");
    }
}

/// Serves a connection until it ends or is to end.
async fn drive<C, E>(seen: &Seen, connection: C, leave: impl Fn(Pin<&mut C>)) -> Result<(), E>
where
    C: Future<Output = Result<(), E>>,
{
    tokio::pin!(connection);
    let mut leaving = false;
    poll_fn(|cx| {
        seen.waker.register(cx.waker());
        match seen.end.load(Ordering::Relaxed) {
            LEAVE if !leaving => {
                leaving = true;
                leave(connection.as_mut());
            }
            CLOSE => return Poll::Ready(Ok(())),
            _ => {}
        }
        connection.as_mut().poll(cx)
    })
    .await
}

/// Whether what comes first is sure to be HTTP/1; it stays unread. None when the connection is to end before anything
/// has come.
async fn is_http1(stream: &Wire, seen: &Seen) -> Option<bool> {
    let Wire::Plain(stream) = stream else { return Some(false) };
    poll_fn(|cx| {
        seen.waker.register(cx.waker());
        if seen.end.load(Ordering::Relaxed) != 0 {
            return Poll::Ready(None);
        }
        let mut first = [0; 3];
        let mut first = ReadBuf::new(&mut first);
        // Whatever is wrong with the connection shows again when it is read.
        let _ = ready!(stream.poll_peek(cx, &mut first));
        Poll::Ready(Some(first.remaining() == 0 && first.filled() != b"PRI"))
    })
    .await
}

/// Makes a connection safe where that is asked for. Whoever takes longer for it than for the head of a request
/// is not waited for.
async fn greet(app: &App, stream: TcpStream, remote: SocketAddr) -> Option<(Wire, Option<Proven>)> {
    let Some(tls) = &app.tls else { return Some((Wire::Plain(stream), None)) };
    let greeted = tokio::select! {
        greeted = tokio::time::timeout(app.http.header_timeout, tls.accept(stream)) => greeted,
        () = app.closing.cancelled() => return None,
    };
    match greeted {
        Ok(Ok(stream)) => {
            let proven = tls.client(&stream).map(Proven);
            Some((Wire::Safe(Box::new(stream)), proven))
        }
        Ok(Err(error)) => {
            tracing::debug!(%remote, %error, "a connection did not become a safe one");
            None
        }
        Err(_) => {
            tracing::debug!(%remote, "a connection took too long to become a safe one");
            None
        }
    }
}

/// All open connections, so that one timer looks after all of them.
#[derive(Default)]
struct Watch {
    seen: Mutex<Vec<std::sync::Weak<Seen>>>,
    /// Milliseconds since the start, as of the last look; zero is never a time.
    now: AtomicU64,
    /// Whether connections are to end with what they are at. Changes under the lock of `seen`.
    leaving: AtomicBool,
}

// How a connection is to end: not yet, when it has answered what it is at, or at once.
const LEAVE: u8 = 1;
const CLOSE: u8 = 2;

/// What is known of one connection.
#[derive(Default)]
struct Seen {
    requests: AtomicU32,
    /// When the head of a request began to arrive; zero between requests.
    head_since: AtomicU64,
    /// When the connection last had something to do.
    idle_since: AtomicU64,
    is_h2: AtomicBool,
    read_before: AtomicBool,
    /// How it is to end. A look at this with every poll costs less than to wait for a signal that hardly ever comes.
    end: AtomicU8,
    waker: AtomicWaker,
}

impl Watch {
    fn enter(&self) -> Arc<Seen> {
        let seen = Arc::new(Seen::default());
        seen.idle_since.store(self.now(), Ordering::Relaxed);
        let mut all = self.seen.lock();
        if self.leaving.load(Ordering::Relaxed) {
            seen.end(LEAVE);
        }
        all.push(Arc::downgrade(&seen));
        drop(all);
        seen
    }

    /// Lets every connection end with what it is at.
    fn leave(&self) {
        let all = self.seen.lock();
        self.leaving.store(true, Ordering::Relaxed);
        for seen in all.iter().filter_map(std::sync::Weak::upgrade) {
            seen.end(LEAVE);
        }
    }

    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed).max(1)
    }

    /// Closes connections that are too slow or idle, until the last one has gone.
    async fn look(self: Arc<Self>, app: Arc<App>, stop: CancellationToken, connections: TaskTracker) {
        let start = Instant::now();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (head, idle) = (millis(app.http.header_timeout), millis(app.http.idle_timeout));
        while !(stop.is_cancelled() && connections.is_empty()) {
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = app.closing.cancelled(), if !self.leaving.load(Ordering::Relaxed) => self.leave(),
            }
            let now = millis(start.elapsed()).max(1);
            self.now.store(now, Ordering::Relaxed);
            self.seen.lock().retain(|seen| {
                let Some(seen) = seen.upgrade() else { return false };
                if seen.is_overdue(now, head, idle) {
                    seen.end(CLOSE);
                }
                true
            });
        }
    }
}

impl Seen {
    /// Asks the connection to end; asking for more than before counts.
    fn end(&self, how: u8) {
        if self.end.fetch_max(how, Ordering::Relaxed) < how {
            self.waker.wake();
        }
    }

    /// HTTP/2 has frames between requests, so that only its idle time counts.
    fn note_read(&self, new: &[u8], now: u64) {
        if !self.read_before.swap(true, Ordering::Relaxed) && new.starts_with(b"PRI") {
            self.is_h2.store(true, Ordering::Relaxed);
        }
        if self.requests.load(Ordering::Relaxed) == 0 && !self.is_h2.load(Ordering::Relaxed) {
            let _ = self.head_since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    fn is_overdue(&self, now: u64, head: u64, idle: u64) -> bool {
        if self.requests.load(Ordering::Relaxed) > 0 {
            return false;
        }
        let since = self.head_since.load(Ordering::Relaxed);
        if since != 0 && now.saturating_sub(since) > head {
            return true;
        }
        now.saturating_sub(self.idle_since.load(Ordering::Relaxed)) > idle.max(if since == 0 { 0 } else { head })
    }
}

/// A request from its head to the last byte of its answer.
struct InFlight {
    seen: Arc<Seen>,
    watch: Arc<Watch>,
}

impl InFlight {
    fn begin(seen: &Arc<Seen>, watch: &Arc<Watch>) -> Self {
        seen.requests.fetch_add(1, Ordering::Relaxed);
        seen.head_since.store(0, Ordering::Relaxed);
        Self { seen: seen.clone(), watch: watch.clone() }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.seen.idle_since.store(self.watch.now(), Ordering::Relaxed);
        self.seen.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A body that counts as part of its request.
struct Counted {
    body: super::body::Body,
    _in_flight: InFlight,
}

impl http_body::Body for Counted {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

/// A connection that notes when the head of a request begins.
struct Watched {
    stream: Wire,
    seen: Arc<Seen>,
    watch: Arc<Watch>,
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if let Some(new) = buf.filled().get(before..).filter(|new| !new.is_empty()) {
            self.seen.note_read(new, self.watch.now());
        }
        polled
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }
}
