//! What the URL of an artifact stands for.

use bytes::{Bytes, BytesMut};
use nuncio_protocol::{Artifact, Content, Part, Task, Value, codec};

use super::{FILE, Hash};

/// A content of an artifact, and how it is called.
pub(crate) struct Found {
    pub(crate) filename: String,
    pub(crate) media_type: String,
    pub(crate) held: Held,
}

/// Where a content is.
pub(crate) enum Held {
    /// In the events.
    Inline(Bytes),
    /// On the shelf, if it is there.
    Apart(Hash),
}

/// A part of an artifact. Without a number, the whole artifact where its parts are pieces of one content, else
/// its first part.
pub(crate) fn find(task: &Task, artifact: &str, part: Option<usize>) -> Option<Found> {
    let artifact = task.artifacts.iter().find(|known| known.artifact_id.as_str() == artifact)?;
    let first = artifact.parts.get(part.unwrap_or_default())?;
    let held = match part {
        None if is_one(artifact) => Held::Inline(all(artifact)?),
        _ => held(first)?,
    };
    let text = matches!(first.content, Content::Text(_));
    let media_type = match (first.media_type.as_str(), &first.content) {
        ("", Content::Text(_)) => "text/plain".into(),
        ("", Content::Data(_)) => "application/json".into(),
        ("", _) => "application/octet-stream".into(),
        (said, _) => said.to_owned(),
    };
    // Text on the wire is always UTF-8, and a reader of the file cannot know.
    let media_type = if text && !media_type.contains(';') { media_type + "; charset=utf-8" } else { media_type };
    let filename = if first.filename.is_empty() { artifact.name.clone() } else { first.filename.clone() };
    Some(Found { filename, media_type, held })
}

/// Whether the parts are the pieces in which one content arrived.
fn is_one(artifact: &Artifact) -> bool {
    artifact.parts.len() > 1
        && artifact.parts.windows(2).all(|pair| {
            let contents = (&pair[0].content, &pair[1].content);
            let same = matches!(contents, (Content::Text(_), Content::Text(_)) | (Content::Raw(_), Content::Raw(_)));
            same && pair[0].filename == pair[1].filename && pair[0].media_type == pair[1].media_type
        })
}

fn all(artifact: &Artifact) -> Option<Bytes> {
    let mut all = BytesMut::new();
    for part in &artifact.parts {
        let Held::Inline(bytes) = held(part)? else { return None };
        all.extend_from_slice(&bytes);
    }
    Some(all.freeze())
}

fn held(part: &Part) -> Option<Held> {
    Some(match &part.content {
        Content::Text(text) => Held::Inline(Bytes::copy_from_slice(text.as_bytes())),
        Content::Raw(bytes) => Held::Inline(bytes.clone()),
        Content::Data(value) => Held::Inline(codec::encode(value)),
        // What lies elsewhere is not ours to hand out.
        Content::Url(_) => {
            let sha256 = part.metadata.get(FILE)?.get("sha256").and_then(Value::as_str)?;
            Held::Apart(sha256.parse().ok()?)
        }
    })
}
