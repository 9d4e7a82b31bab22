//! Messages in a body: five bytes before each, one of flags and four of length.

use std::io::Read;

use bytes::{Buf, Bytes, BytesMut};
use flate2::read::GzDecoder;
use http::{HeaderMap, HeaderName};
use nuncio_protocol::{Error, ErrorKind};

/// The length of what stands before a message.
pub(crate) const PREFIX: usize = 5;
const COMPRESSED: u8 = 1;

const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// How messages of a call are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    Gzip,
}

/// The encoding that a caller announces.
pub(crate) fn encoding(headers: &HeaderMap) -> Result<Encoding, Error> {
    match headers.get(ENCODING).map(http::HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(Encoding::Identity),
        Some(b"gzip") => Ok(Encoding::Gzip),
        Some(_) => Err(Error::new(ErrorKind::MethodNotFound, "Messages are taken plain or as gzip")),
    }
}

/// The message of a body that holds exactly one.
pub(crate) fn only(mut body: Bytes, encoding: Encoding, most: usize) -> Result<Bytes, Error> {
    let message = take(&mut body, encoding, most)?;
    match message {
        Some(message) if body.is_empty() => Ok(message),
        Some(_) => Err(broken("a call has one message, and there is more behind it")),
        None => Err(broken("it is shorter than it says")),
    }
}

/// Takes the first message, if all of it is there.
pub(crate) fn take(buffer: &mut Bytes, encoding: Encoding, most: usize) -> Result<Option<Bytes>, Error> {
    let Some(&[flags, a, b, c, d]) = buffer.first_chunk() else { return Ok(None) };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if length > most {
        return Err(too_large(most));
    }
    if flags > COMPRESSED {
        return Err(broken("its flags are unknown"));
    }
    if buffer.len() < PREFIX + length {
        return Ok(None);
    }
    buffer.advance(PREFIX);
    let message = buffer.split_to(length);
    match (flags, encoding) {
        (COMPRESSED, Encoding::Gzip) => unpack(&message, most).map(Some),
        (COMPRESSED, Encoding::Identity) => Err(broken("it is compressed, and grpc-encoding does not say how")),
        _ => Ok(Some(message)),
    }
}

/// What is packed small may be large.
fn unpack(packed: &[u8], most: usize) -> Result<Bytes, Error> {
    let mut out = Vec::with_capacity(packed.len().saturating_mul(3).min(most));
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    GzDecoder::new(packed).take(limit).read_to_end(&mut out).map_err(|_| broken("it is not gzip"))?;
    if out.len() > most {
        return Err(too_large(most));
    }
    Ok(out.into())
}

/// A message with what stands before it.
pub(crate) fn framed(message: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(PREFIX + message.len());
    frame_into(message, &mut out);
    out.freeze()
}

/// The same behind what is already there.
pub(crate) fn frame_into(message: &[u8], out: &mut BytesMut) {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&[0]);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(message);
}

fn too_large(most: usize) -> Error {
    Error::new(ErrorKind::TooLarge, format!("The message is larger than the {most} bytes that this server takes"))
}

fn broken(why: &str) -> Error {
    Error::new(ErrorKind::InvalidRequest, format!("The message cannot be read: {why}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(bytes: &[u8]) -> Bytes {
        let mut out = GzEncoder::new(Vec::new(), Compression::fast());
        out.write_all(bytes).expect("in memory");
        let mut frame = framed(&out.finish().expect("in memory")).to_vec();
        frame[0] = COMPRESSED;
        frame.into()
    }

    #[test]
    fn one_message_is_one_message() {
        assert_eq!(only(framed(b"abc"), Encoding::Identity, 10), Ok(Bytes::from_static(b"abc")));
        assert_eq!(only(framed(b""), Encoding::Identity, 10), Ok(Bytes::new()));
        for (wrong, kind) in [
            (Bytes::new(), ErrorKind::InvalidRequest),
            (framed(b"abc").slice(..6), ErrorKind::InvalidRequest),
            ([framed(b"a"), framed(b"b")].concat().into(), ErrorKind::InvalidRequest),
            (Bytes::from_static(&[2, 0, 0, 0, 0]), ErrorKind::InvalidRequest),
            (Bytes::from_static(&[1, 0, 0, 0, 0]), ErrorKind::InvalidRequest),
            (framed(b"more than ten"), ErrorKind::TooLarge),
            (Bytes::from_static(&[0, 255, 255, 255, 255]), ErrorKind::TooLarge),
        ] {
            assert_eq!(only(wrong.clone(), Encoding::Identity, 10).map_err(|error| error.kind), Err(kind), "{wrong:?}");
        }
    }

    #[test]
    fn compressed_messages_are_unpacked_within_the_limit() {
        assert_eq!(only(packed(b"abc"), Encoding::Gzip, 100), Ok(Bytes::from_static(b"abc")));
        let bomb = packed(&vec![0; 100_000]);
        assert_eq!(only(bomb, Encoding::Gzip, 1_000).map_err(|error| error.kind), Err(ErrorKind::TooLarge));
        let junk = Bytes::from_static(&[1, 0, 0, 0, 2, 9, 9]);
        assert_eq!(only(junk, Encoding::Gzip, 100).map_err(|error| error.kind), Err(ErrorKind::InvalidRequest));
        assert_eq!(only(framed(b"abc"), Encoding::Gzip, 100), Ok(Bytes::from_static(b"abc")), "not all need be");
    }
}
