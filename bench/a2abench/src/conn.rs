//! One connection of a caller, whatever it speaks.

use std::io;

use bytes::Bytes;

use crate::grpc::Grpc;
use crate::http::Http;
use crate::wire::{Binding, Request, Target};
use crate::ws::Ws;

pub struct Conn {
    way: Way,
    /// The content of the last answer or event that is not in a buffer of the connection.
    message: Bytes,
    last: Last,
}

enum Way {
    Http(Http, usize),
    Ws(Ws, bool),
    Grpc(Grpc),
}

/// Where the content of the last answer or event is.
enum Last {
    Message,
    Buffer(std::ops::Range<usize>),
    Body,
}

impl Conn {
    pub fn new(target: &Target) -> Self {
        let way = match target.binding {
            Binding::Grpc => Way::Grpc(Grpc::new(target.addr)),
            Binding::WebSocket => Way::Ws(Ws::new(target.addr), true),
            _ => Way::Http(Http::new(target.addr), 0),
        };
        Self { way, message: Bytes::new(), last: Last::Message }
    }

    /// Plain HTTP, for what has no other binding.
    pub fn http(target: &Target) -> Self {
        Self { way: Way::Http(Http::new(target.addr), 0), message: Bytes::new(), last: Last::Message }
    }

    /// The content of the last answer or event.
    pub fn content(&self) -> &[u8] {
        match (&self.last, &self.way) {
            (Last::Body, Way::Http(http, _)) => &http.body,
            (Last::Buffer(range), Way::Http(http, _)) => http.body.get(range.clone()).unwrap_or_default(),
            (Last::Buffer(range), Way::Ws(ws, _)) => ws.buffer().get(range.clone()).unwrap_or_default(),
            _ => &self.message,
        }
    }

    /// The status of the last answer; a WebSocket has none.
    pub fn status(&self) -> u16 {
        match &self.way {
            Way::Http(http, _) => http.status,
            Way::Ws(..) => 0,
            Way::Grpc(grpc) => grpc.status,
        }
    }

    /// One request, one whole answer. Says whether it went well as far as the transport can tell.
    pub async fn call(&mut self, request: &Request) -> io::Result<bool> {
        match &mut self.way {
            Way::Http(http, _) => {
                self.last = Last::Body;
                Ok(http.call(&request.bytes).await? == 200)
            }
            Way::Ws(ws, _) => {
                ws.send(&request.bytes).await?;
                self.last = Last::Buffer(ws.next().await?.0);
                Ok(true)
            }
            Way::Grpc(grpc) => {
                grpc.open(request).await?;
                self.last = Last::Message;
                while let Some(message) = grpc.message().await? {
                    self.message = message;
                }
                Ok(grpc.status == 0)
            }
        }
    }

    /// Sends a request whose answer is a stream; false if the answer is none.
    pub async fn open(&mut self, request: &Request) -> io::Result<bool> {
        match &mut self.way {
            Way::Http(http, scanned) => {
                *scanned = 0;
                self.last = Last::Body;
                http.open(&request.bytes).await
            }
            Way::Ws(ws, ended) => {
                *ended = false;
                ws.send(&request.bytes).await?;
                Ok(true)
            }
            Way::Grpc(grpc) => {
                grpc.open(request).await?;
                Ok(grpc.status == 0)
            }
        }
    }

    /// The next event of the stream in [`Conn::content`], or false at its end.
    pub async fn event(&mut self) -> io::Result<bool> {
        match &mut self.way {
            Way::Http(http, scanned) => match http.event(scanned).await? {
                Some(range) => {
                    self.last = Last::Buffer(range);
                    Ok(true)
                }
                None => Ok(false),
            },
            Way::Ws(_, true) => Ok(false),
            Way::Ws(ws, ended) => {
                let (range, last) = ws.next().await?;
                *ended = last;
                self.last = Last::Buffer(range);
                Ok(!last)
            }
            Way::Grpc(grpc) => match grpc.message().await? {
                Some(message) => {
                    self.message = message;
                    self.last = Last::Message;
                    Ok(true)
                }
                None if grpc.status == 0 => Ok(false),
                None => Err(io::Error::other(format!("grpc-status {}", grpc.status))),
            },
        }
    }
}
