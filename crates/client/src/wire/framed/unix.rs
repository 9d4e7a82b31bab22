//! A socket of this machine: `unix://PATH`.

use std::path::PathBuf;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use reqwest::Url;
use tokio::net::UnixStream;

use super::{End, gone};
use crate::error::ClientError;
use crate::http::{Http, invalid};

/// What would mean something else in an address.
const SPECIAL: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'?').add(b'#').add(b'"').add(b'<').add(b'>');

/// The address of a path that somebody typed.
pub(crate) fn address_of(path: &str) -> Option<Url> {
    let path = std::path::absolute(path).ok()?;
    Url::parse(&format!("unix://{}", utf8_percent_encode(path.to_str()?, SPECIAL))).ok()
}

pub(super) async fn open(url: &Url, http: &Http, end: End) -> Result<(), ClientError> {
    let path = percent_decode_str(url.path()).decode_utf8().map_err(|_| invalid("The path is not UTF-8.".into()))?;
    let opened = tokio::time::timeout(http.options.connect_timeout, UnixStream::connect(PathBuf::from(&*path))).await;
    let stream = match opened {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(gone(url, &error.to_string())),
        Err(_) => return Err(gone(url, "no connection in time")),
    };
    let (reader, writer) = stream.into_split();
    tokio::spawn(end.lines(reader, writer));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_survives_being_an_address() {
        let url = address_of("/run/a b/50%?#.sock").expect("an address");
        assert_eq!((url.scheme(), url.query(), url.fragment()), ("unix", None, None));
        assert_eq!(percent_decode_str(url.path()).decode_utf8().expect("text"), "/run/a b/50%?#.sock");
        assert!(address_of("here.sock").expect("an address").path().ends_with("/here.sock"));
    }
}
