//! Writes artifacts into a folder. Their names come from a stranger.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use nuncio_client::Client;
use nuncio_protocol::{Artifact, Content, Part, codec};

use crate::failure::Failure;
use crate::terminal::one_line;

/// Longer names are cut; file systems take 255 bytes.
const LONGEST: usize = 180;
/// So many files of one name are told apart.
const MOST_NAMESAKES: u32 = 10_000;

/// One file to write.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    name: String,
    content: Source,
}

#[derive(Debug, PartialEq, Eq)]
enum Source {
    Bytes(Vec<u8>),
    Url(String),
}

/// Writes what the artifacts hold. Returns a line for each file, and for each that could not be had.
pub(crate) async fn save(folder: &Path, artifacts: &[Artifact], client: &Client) -> Result<Vec<String>, Failure> {
    fs::create_dir_all(folder).map_err(|error| cannot(folder, &error))?;
    let mut lines = Vec::new();
    for piece in artifacts.iter().flat_map(pieces) {
        let bytes = match piece.content {
            Source::Bytes(bytes) => Bytes::from(bytes),
            Source::Url(url) => match client.download(&url).await {
                Ok(bytes) => bytes,
                Err(error) => {
                    lines.push(format!("not saved: {}: {}", one_line(&url), one_line(&error.to_string())));
                    continue;
                }
            },
        };
        let (path, changed) = write(folder, &piece.name, &bytes)?;
        let why = if changed { format!(" ({} was there already)", piece.name) } else { String::new() };
        lines.push(format!("saved: {} ({} bytes){why}", path.display(), bytes.len()));
    }
    if lines.is_empty() {
        lines.push("nothing to save: the agent made no artifacts".into());
    }
    Ok(lines)
}

/// The files of an artifact. Texts in a row are pieces of one text, and so are bytes under one name.
fn pieces(artifact: &Artifact) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut last: Option<&Part> = None;
    for part in &artifact.parts {
        let goes_on = last.is_some_and(|last| match (&last.content, &part.content) {
            (Content::Text(_), Content::Text(_)) | (Content::Raw(_), Content::Raw(_)) => {
                part.filename.is_empty() || part.filename == last.filename
            }
            _ => false,
        });
        let (content, end) = match &part.content {
            Content::Text(text) => (Source::Bytes(text.clone().into_bytes()), "txt"),
            Content::Data(value) => (Source::Bytes(format!("{}\n", codec::encode_pretty(value)).into_bytes()), "json"),
            Content::Raw(bytes) => (Source::Bytes(bytes.to_vec()), "bin"),
            Content::Url(url) => (Source::Url(url.clone()), "bin"),
        };
        match (goes_on, pieces.last_mut(), content) {
            (true, Some(Piece { content: Source::Bytes(all), .. }), Source::Bytes(more)) => all.extend(more),
            (_, _, content) => pieces.push(Piece { name: name(artifact, part, end), content }),
        }
        last = Some(part);
    }
    pieces
}

/// The part's own name, else the artifact's, else its id with an ending.
fn name(artifact: &Artifact, part: &Part, end: &str) -> String {
    let own = safe_name(&part.filename).or_else(|| safe_name(&artifact.name).filter(|name| name.contains('.')));
    let fallback =
        || safe_name(&format!("{}.{end}", artifact.artifact_id)).unwrap_or_else(|| format!("artifact.{end}"));
    own.unwrap_or_else(fallback)
}

/// The last component of what a stranger calls a file, harmless on any system; nothing if nothing is left.
fn safe_name(foreign: &str) -> Option<String> {
    let last = foreign.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_fine = |c: char| !c.is_control() && !matches!(c, ':' | '*' | '?' | '"' | '<' | '>' | '|');
    let plain = one_line(&last.chars().filter(|c| is_fine(*c)).collect::<String>());
    // Not hidden, and no end that Windows would take away.
    let plain = plain.trim_start_matches(['.', ' ', '-', '~']).trim_end_matches(['.', ' ']);
    let stem = plain.split('.').next().unwrap_or_default().to_uppercase();
    let is_device = matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL")
        || (stem.len() == 4 && (stem.starts_with("COM") || stem.starts_with("LPT")));
    let mut name = if is_device { format!("file-{plain}") } else { plain.to_owned() };
    if name.len() > LONGEST {
        let end = name.rsplit_once('.').map(|(_, end)| end).filter(|end| end.len() < 16).map(str::to_owned);
        let mut room = LONGEST - 17;
        while !name.is_char_boundary(room) {
            room -= 1;
        }
        name.truncate(room);
        name.extend(end.map(|end| format!(".{end}")));
    }
    (!name.is_empty()).then_some(name)
}

/// Writes a new file; what is there already, link or file, is left alone. Says whether the name had to change.
fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(PathBuf, bool), Failure> {
    for n in 1..MOST_NAMESAKES {
        let path = folder.join(numbered(name, n));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return fill(file, &path, bytes).map(|()| (path, n > 1)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot(&path, &error)),
        }
    }
    Err(Failure::failed(format!("there are too many files named `{name}` in `{}`", folder.display())))
}

fn fill(mut file: File, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    file.write_all(bytes).map_err(|error| {
        // Half a file is worse than none.
        let _ = fs::remove_file(path);
        cannot(path, &error)
    })
}

fn numbered(name: &str, n: u32) -> String {
    match name.rsplit_once('.') {
        _ if n == 1 => name.to_owned(),
        Some((stem, end)) if !stem.is_empty() => format!("{stem}-{n}.{end}"),
        _ => format!("{name}-{n}"),
    }
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests;
