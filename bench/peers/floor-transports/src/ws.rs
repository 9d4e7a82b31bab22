//! Floor: an axum WebSocket, typed serde, nothing else.

#[path = "../../floor/src/shape.rs"]
#[allow(clippy::disallowed_types, reason = "it is as in peers/floor")]
mod shape;

use axum::Router;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::http::header;
use axum::routing::get;
use futures_util::SinkExt;

fn text(json: Vec<u8>) -> Message {
    Message::Text(Utf8Bytes::try_from(json).expect("JSON is UTF-8"))
}

/// What follows the last event of a stream.
fn end(call: u64) -> Message {
    Message::text(format!(r#"{{"jsonrpc":"2.0","id":{call},"final":true}}"#))
}

async fn answer(socket: &mut WebSocket, request: &[u8]) -> Result<(), axum::Error> {
    match shape::serve(request) {
        shape::Reply::Body(json) => socket.send(text(json)).await,
        shape::Reply::Stream(call, chunks, polite) => {
            let (mut rx, mut events) = (shape::start(call, chunks, polite), Vec::new());
            while rx.recv_many(&mut events, 32).await > 0 {
                for event in events.drain(..) {
                    socket.feed(text(event)).await?;
                }
                // The last event goes out together with the end.
                if rx.is_closed() && rx.is_empty() {
                    break;
                }
                socket.flush().await?;
            }
            socket.send(end(call)).await
        }
        shape::Reply::Follow(call, mut rx) => {
            while let Ok(event) = rx.recv().await {
                socket.send(Message::text(shape::enveloped(call, &event))).await?;
            }
            socket.send(end(call)).await
        }
        shape::Reply::Bad => socket.send(Message::Close(None)).await,
    }
}

async fn talk(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        // One at a time: whoever measures has one request open on a connection.
        if let Message::Text(request) = message
            && answer(&mut socket, request.as_bytes()).await.is_err()
        {
            return;
        }
    }
}

#[tokio::main]
async fn main() {
    let port = std::env::var("PORT").expect("PORT");
    let app = Router::new().route("/ws", get(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(talk) })).route(
        "/.well-known/agent-card.json",
        get(|| async { ([(header::CONTENT_TYPE, "application/json")], shape::CARD) }),
    );
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await.expect("bind");
    let listener = axum::serve::ListenerExt::tap_io(listener, |io| {
        let _ = io.set_nodelay(true);
    });
    axum::serve(listener, app).await.expect("serve");
}
