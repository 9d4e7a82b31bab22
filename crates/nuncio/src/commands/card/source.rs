//! Where a card comes from.

use std::io::Read;

use bytes::Bytes;
use nuncio_client::{Client, Options};

use crate::commands::client::connect::failure;
use crate::failure::{Failure, Kind};

/// No honest card is larger.
const LARGEST: u64 = 1024 * 1024;

/// The card in a file, at an address, or on stdin.
pub(super) async fn read(source: &str) -> Result<Bytes, Failure> {
    if source.starts_with("http://") || source.starts_with("https://") {
        return Client::fetch_card(source, Options::default()).await.map_err(failure);
    }
    let unreadable = |error| Failure::new(Kind::Usage, format!("cannot read `{source}`: {error}"));
    let mut bytes = Vec::new();
    let read = match source {
        "-" => std::io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes),
        path => std::fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes)),
    };
    read.map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(Failure::new(Kind::Usage, format!("`{source}` is larger than 1 MiB: that is no card")));
    }
    Ok(bytes.into())
}
