//! JSON-RPC over WebSocket, on the HTTP port.

mod gauge;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Version, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use nuncio_protocol::{Error, ErrorKind};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, Error as WsError};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role, WebSocketConfig};

use self::gauge::{Gauge, Gauged};
use super::App;
use super::body::Body;
use super::frames::form::Form;
use super::frames::session::{Peer, Session};
use super::http::{bytes_response, retry_after};
use crate::auth::{Shown, proven};
use crate::call::Way;

/// The names under which clients may ask for these frames.
const PROTOCOLS: [&str; 3] = ["a2a", "jsonrpc", "json-rpc"];
/// How long a closing peer is waited for.
const GOODBYE: Duration = Duration::from_secs(2);
/// How much is read at once. Every connection holds that much, and all of it is cleared before each read.
const READ: usize = 8 << 10;
/// How many frames are written before they are sent off.
const BATCH: usize = 32;

/// Whether a request is for WebSocket.
pub(crate) fn is_for(app: &App, parts: &Parts) -> bool {
    let path = parts.uri.path();
    let wanted = app.http.ws_path.as_deref();
    parts.method == Method::GET && wanted.is_some_and(|ws| path.strip_suffix('/').unwrap_or(path) == ws)
}

/// Answers the request that opens a connection.
pub(crate) async fn upgrade(app: &Arc<App>, mut parts: Parts, way: Way) -> Response<Body> {
    let way = Way { binding: Some("websocket"), ..way };
    let upgrade = parts.extensions.remove::<OnUpgrade>();
    let (Some(upgrade), Some(accept)) = (upgrade, accept_key(&parts)) else {
        let text = "This is the address of A2A over WebSocket: open it with a WebSocket client (version 13)";
        let mut response = refusal(&Error::new(ErrorKind::InvalidRequest, text), StatusCode::UPGRADE_REQUIRED);
        response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return response;
    };
    if app.sessions.len() >= app.http.max_connections {
        app.metrics.refused.inc();
        let text = "The server has all the connections it can hold: try again later";
        let mut response = refusal(&Error::new(ErrorKind::Unavailable, text), StatusCode::SERVICE_UNAVAILABLE);
        retry_after(&mut response, ErrorKind::Unavailable);
        return response;
    }
    let shown = Shown { headers: &parts.headers, query: parts.uri.query(), from: way.client, proven: proven(&parts) };
    let known = match app.gate.admit(shown).await {
        Ok(_) => true,
        Err(denied) if parts.headers.contains_key(header::AUTHORIZATION) => {
            app.audit_denied(way, denied);
            return super::http::refuse(app, &parts, denied);
        }
        // Browsers cannot set headers: their first frame has to bring them.
        Err(_) => false,
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(protocol) = protocol(&parts.headers) {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    }
    app.sessions.spawn(serve(app.clone(), upgrade, parts, way, known));
    response
}

fn refusal(error: &Error, status: StatusCode) -> Response<Body> {
    let body = nuncio_protocol::codec::encode(&error.rest_as(status.as_u16()));
    bytes_response(status, HeaderValue::from_static("application/json"), body)
}

/// The proof that the request was understood; nothing if it is no request for WebSocket.
fn accept_key(parts: &Parts) -> Option<HeaderValue> {
    let has = |name: header::HeaderName, wanted: &str| {
        let values = parts.headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case(wanted))
    };
    let fits = parts.version == Version::HTTP_11
        && has(header::CONNECTION, "upgrade")
        && has(header::UPGRADE, "websocket")
        && has(header::SEC_WEBSOCKET_VERSION, "13");
    let key = parts.headers.get(header::SEC_WEBSOCKET_KEY).filter(|_| fits)?;
    HeaderValue::from_str(&derive_accept_key(key.as_bytes())).ok()
}

/// The first of the asked protocols that is ours.
fn protocol(headers: &HeaderMap) -> Option<&'static str> {
    let asked = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).into_iter().filter_map(|value| value.to_str().ok());
    let mut asked = asked.flat_map(|value| value.split(',')).map(str::trim);
    asked.find_map(|asked| PROTOCOLS.into_iter().find(|ours| *ours == asked))
}

/// Why a connection ends, as its peer is told.
type Goodbye = (CloseCode, &'static str);

async fn serve(app: Arc<App>, upgrade: OnUpgrade, parts: Parts, way: Way, known: bool) {
    let Ok(upgraded) = upgrade.await else { return };
    app.metrics.connections.inc();
    converse(&app, TokioIo::new(upgraded), parts, way, known).await;
    app.metrics.connections.dec();
}

/// Serves frames until the connection ends. Whoever is not known yet has to say who he is in the first of them.
pub(crate) async fn converse<S>(app: &Arc<App>, stream: S, parts: Parts, way: Way, known: bool)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let most = app.http.max_body;
    let config = WebSocketConfig::default().read_buffer_size(READ);
    let config = config.max_message_size(Some(most)).max_frame_size(Some(most));
    let gauge = Gauge::new(known);
    let stream = Gauged { stream, gauge: gauge.clone() };
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    let (sink, stream) = socket.split();
    let peer = Peer { way, ..Peer::default() };
    let (session, outbox) = Session::new(app.clone(), Form::Envelope, peer, parts);
    let heard = AtomicBool::new(true);
    let (say, goodbye) = oneshot::channel();
    let reading = async {
        let mut reader = Reader { app, session: &session, stream, heard: &heard };
        let introduced = if known { Ok(()) } else { reader.introduced(&gauge).await };
        let end = match introduced {
            Ok(()) => reader.run().await,
            Err(goodbye) => Some(goodbye),
        };
        // What was asked is still answered, if somebody is there to read it.
        if matches!(end, Some((CloseCode::Away | CloseCode::Policy, _))) {
            session.answered_within(GOODBYE).await;
        }
        session.leave();
        session.answered().await;
        let _ = say.send(end);
        drop(session);
    };
    tokio::join!(reading, write(app, sink, outbox, goodbye, &heard));
}

struct Reader<'a, S> {
    app: &'a App,
    session: &'a Session,
    stream: SplitStream<WebSocketStream<S>>,
    /// Whether the peer gave a sign of life since the last look.
    heard: &'a AtomicBool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Reader<'_, S> {
    /// Lets in a caller whose first frame has the credentials that its request had not.
    async fn introduced(&mut self, gauge: &Gauge) -> Result<(), Goodbye> {
        let first = async {
            loop {
                match self.stream.next().await {
                    Some(Ok(Message::Text(frame))) => return Some(Bytes::from(frame)),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    _ => return None,
                }
            }
        };
        let unknown = (CloseCode::Policy, "send credentials in the first frame");
        let Ok(Some(frame)) = tokio::time::timeout(self.app.http.header_timeout, first).await else {
            let too_large = (CloseCode::Size, "before credentials, no more than 64 KiB are read");
            return Err(if gauge.is_empty() { too_large } else { unknown });
        };
        let known = self.session.introduce(&frame).await;
        // A request without credentials is answered too: it is told what is missing.
        self.session.take(frame).await;
        if !known {
            return Err(unknown);
        }
        gauge.open();
        Ok(())
    }

    /// Takes requests until the connection ends. Says why, if the peer does not know.
    async fn run(&mut self) -> Option<Goodbye> {
        let gone = self.session.gone();
        // Made once and not for every frame: each is an entry in a list of its own.
        let (closing, gone) = (self.app.closing.cancelled(), gone.cancelled());
        tokio::pin!(closing, gone);
        let mut look = every(self.app.http.keep_alive * 2);
        loop {
            let next = tokio::select! {
                next = self.stream.next() => next,
                // A slow reader takes its time; a dead one takes nothing.
                _ = look.tick() => match self.heard.swap(false, Ordering::Relaxed) {
                    true => continue,
                    false => return Some((CloseCode::Away, "no sign of life")),
                },
                () = &mut closing => return Some((CloseCode::Away, "the server is shutting down")),
                () = &mut gone => return None,
            };
            let message = match next {
                Some(Ok(message)) => message,
                Some(Err(error)) => return farewell(&error),
                None => return None,
            };
            self.heard.store(true, Ordering::Relaxed);
            match message {
                Message::Text(frame) => self.session.take(frame.into()).await,
                Message::Binary(_) => return Some((CloseCode::Unsupported, "frames are text")),
                Message::Close(_) => return None,
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }
}

/// Ticks after each of these times, and not more often when one was missed.
fn every(time: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + time, time);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

fn farewell(error: &WsError) -> Option<Goodbye> {
    match error {
        WsError::Capacity(CapacityError::MessageTooLong { .. }) => {
            Some((CloseCode::Size, "the frame is larger than this server takes"))
        }
        WsError::Utf8(_) => Some((CloseCode::Invalid, "frames are UTF-8")),
        WsError::Protocol(_) => Some((CloseCode::Protocol, "this is not WebSocket")),
        _ => None,
    }
}

/// Writes frames and signs of life, and at the end why it is the end.
async fn write<S: AsyncRead + AsyncWrite + Unpin>(
    app: &App,
    mut sink: SplitSink<WebSocketStream<S>, Message>,
    mut outbox: Receiver<Vec<u8>>,
    goodbye: oneshot::Receiver<Option<Goodbye>>,
    heard: &AtomicBool,
) {
    let mut beat = every(app.http.keep_alive);
    let mut batch = Vec::with_capacity(BATCH);
    let written = async {
        loop {
            let some = tokio::select! {
                biased;
                n = outbox.recv_many(&mut batch, BATCH) => n > 0,
                _ = beat.tick() => {
                    sink.send(Message::Ping(Bytes::new())).await?;
                    continue;
                }
            };
            if !some {
                return Ok::<_, WsError>(());
            }
            for frame in batch.drain(..) {
                // Frames are made of JSON, which is UTF-8.
                let Ok(text) = String::from_utf8(frame) else { continue };
                sink.feed(Message::text(text)).await?;
            }
            sink.flush().await?;
            heard.store(true, Ordering::Relaxed);
        }
    };
    if let Err(error) = written.await {
        tracing::debug!(%error, "a connection broke off");
    }
    // Nobody makes frames any more, or nobody takes them: the reader learns it from a closed outbox.
    drop(outbox);
    let reason = goodbye.await.ok().flatten();
    let frame = reason.map(|(code, reason)| CloseFrame { code, reason: reason.into() });
    let _ = tokio::time::timeout(GOODBYE, async {
        sink.send(Message::Close(frame)).await?;
        sink.close().await
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_known_protocols_are_agreed_to() {
        assert_eq!(protocol(&headers(&[("sec-websocket-protocol", "x, a2a")])), Some("a2a"));
        assert_eq!(protocol(&headers(&[("sec-websocket-protocol", "bearer.secret")])), None);
    }
}
