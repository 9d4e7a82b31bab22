//! WebSocket: `ws://` and `wss://`. Connections, TLS, proxies and credentials are those of HTTP.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use reqwest::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{Method, StatusCode, Upgraded, Url};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};

use super::{End, gone};
use crate::error::ClientError;
use crate::http::{Ask, Http, invalid, protocol, within};

/// How much is read at once: all of it is cleared before each read.
const READ: usize = 8 << 10;
/// How often the agent is asked for a sign of life, and how long it may be silent.
const BEAT: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_secs(50);

pub(super) async fn open(url: &Url, http: &Http, end: End) -> Result<(), ClientError> {
    let key = generate_key();
    let mut headers = HeaderMap::new();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    let sent = HeaderValue::from_str(&key).map_err(|_| invalid("No key for the connection could be made.".into()))?;
    headers.insert(SEC_WEBSOCKET_KEY, sent);
    let ask = Ask { method: Method::GET, url: web(url), headers, body: Bytes::new() };
    let work = async {
        let mut response = http.ask_to_upgrade(ask).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let body = http.error_body(&mut response).await;
            return Err(http.refused(&response, &body));
        }
        let accept = response.headers().get(SEC_WEBSOCKET_ACCEPT).and_then(|value| value.to_str().ok());
        if accept != Some(&*derive_accept_key(key.as_bytes())) {
            return Err(protocol(url, "it does not speak WebSocket"));
        }
        response.upgrade().await.map_err(|error| gone(url, &error.without_url().to_string()))
    };
    let upgraded = within(http.options.connect_timeout, crate::http::shown(url), work).await?;
    let config = WebSocketConfig::default().read_buffer_size(READ);
    let config = config.max_message_size(Some(end.limit)).max_frame_size(Some(end.limit));
    let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
    tokio::spawn(carry(socket, end));
    Ok(())
}

/// The address of the same place for HTTP.
pub(crate) fn web(url: &Url) -> Url {
    let scheme = match url.scheme() {
        "ws" => "http",
        "wss" => "https",
        _ => return url.clone(),
    };
    let rest = url.as_str().split_once(':').map_or("", |(_, rest)| rest);
    Url::parse(&format!("{scheme}:{rest}")).unwrap_or_else(|_| url.clone())
}

/// Moves frames both ways until the connection ends.
async fn carry(socket: WebSocketStream<Upgraded>, end: End) {
    let End { desk, hang_up, mut outbox, .. } = end;
    let (mut sink, mut stream) = socket.split();
    let reading = async {
        loop {
            match tokio::time::timeout(SILENCE, stream.next()).await {
                Ok(Some(Ok(Message::Text(text)))) => desk.envelope(text.as_bytes()),
                Ok(Some(Ok(Message::Close(frame)))) => {
                    let reason = frame.map(|frame| frame.reason.to_string()).filter(|reason| !reason.is_empty());
                    return reason.unwrap_or_else(|| "the agent has closed the connection".to_owned());
                }
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => return error.to_string(),
                Ok(None) => return "the agent has closed the connection".to_owned(),
                Err(_) => return format!("no sign of life for {SILENCE:?}"),
            }
        }
    };
    let writing = async {
        let mut beat = tokio::time::interval(BEAT);
        loop {
            let message = tokio::select! {
                frame = outbox.recv() => match frame.map(String::from_utf8) {
                    Some(Ok(text)) => Message::text(text),
                    Some(Err(_)) => continue,
                    None => std::future::pending().await,
                },
                _ = beat.tick() => Message::Ping(Bytes::new()),
            };
            if let Err(error) = sink.send(message).await {
                return error.to_string();
            }
        }
    };
    let why = tokio::select! {
        why = reading => why,
        why = writing => why,
        () = hang_up.notified() => "the connection was given up".to_owned(),
    };
    desk.close(&why);
    let _ = tokio::time::timeout(Duration::from_secs(1), sink.send(Message::Close(None))).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_for_http_is_the_same_place() {
        let to = |url: &str| web(&Url::parse(url).expect("a URL")).to_string();
        assert_eq!(to("ws://a:1/ws?x=y"), "http://a:1/ws?x=y");
        assert_eq!(to("wss://a/ws"), "https://a/ws");
        assert_eq!(to("http://a/"), "http://a/");
    }
}
