//! JSON-RPC in frames over one WebSocket.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::http::bad;

/// A masked frame. The mask is zero, which leaves the content as it is.
pub fn frame(opcode: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![0x80 | opcode];
    match content.len() {
        n @ 0..126 => out.push(0x80 | n as u8),
        n @ 126..0x1_0000 => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(n as u16).to_be_bytes());
        }
        n => {
            out.push(0x80 | 127);
            out.extend_from_slice(&(n as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(content);
    out
}

pub struct Ws {
    addr: SocketAddr,
    stream: Option<TcpStream>,
    buf: Vec<u8>,
    pos: usize,
}

impl Ws {
    pub fn new(addr: SocketAddr) -> Self {
        Self { addr, stream: None, buf: Vec::with_capacity(16 * 1024), pos: 0 }
    }

    pub fn buffer(&self) -> &[u8] {
        &self.buf
    }

    pub async fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        if self.stream.is_none() {
            self.connect().await?;
        }
        let stream = self.stream.as_mut().ok_or_else(|| bad("not connected"))?;
        stream.write_all(frame).await
    }

    async fn connect(&mut self) -> io::Result<()> {
        let mut stream = TcpStream::connect(self.addr).await?;
        stream.set_nodelay(true)?;
        let head = format!(
            "GET /ws HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nA2A-Version: 1.0\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
            self.addr
        );
        stream.write_all(head.as_bytes()).await?;
        self.stream = Some(stream);
        self.buf.clear();
        self.pos = 0;
        let end = loop {
            if let Some(at) = memmem::find(&self.buf, b"\r\n\r\n") {
                break at + 4;
            }
            self.fill().await?;
        };
        if !self.buf.starts_with(b"HTTP/1.1 101") {
            return Err(bad("no WebSocket here"));
        }
        self.pos = end;
        Ok(())
    }

    async fn fill(&mut self) -> io::Result<()> {
        if self.pos == self.buf.len() {
            self.buf.clear();
            self.pos = 0;
        } else if self.pos > 64 * 1024 {
            self.buf.drain(..self.pos);
            self.pos = 0;
        }
        let stream = self.stream.as_mut().ok_or_else(|| bad("not connected"))?;
        if stream.read_buf(&mut self.buf).await? == 0 {
            self.stream = None;
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// The next text frame, as a part of the buffer, and whether it is the last of its request.
    pub async fn next(&mut self) -> io::Result<(Range<usize>, bool)> {
        loop {
            while self.buf.len() - self.pos < 2 {
                self.fill().await?;
            }
            let (opcode, short) = (self.buf[self.pos] & 0x0f, usize::from(self.buf[self.pos + 1] & 0x7f));
            let head = match short {
                126 => 4,
                127 => 10,
                _ => 2,
            };
            while self.buf.len() - self.pos < head {
                self.fill().await?;
            }
            let long = &self.buf[self.pos + 2..self.pos + head];
            let size = if long.is_empty() { short } else { long.iter().fold(0, |n, b| n << 8 | usize::from(*b)) };
            while self.buf.len() - self.pos < head + size {
                self.fill().await?;
            }
            let content = self.pos + head..self.pos + head + size;
            self.pos = content.end;
            match opcode {
                1 => {
                    let tail = &self.buf[content.end - size.min(48)..content.end];
                    return Ok((content, memmem::find(tail, br#""final":true"#).is_some()));
                }
                9 => {
                    let pong = frame(10, &self.buf[content]);
                    self.send(&pong).await?;
                }
                10 => {}
                _ => {
                    self.stream = None;
                    return Err(bad("the server closed the WebSocket"));
                }
            }
        }
    }
}
