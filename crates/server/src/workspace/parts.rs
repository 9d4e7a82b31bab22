//! From the parts of a message to what an agent gets: one text, and attachments where it takes them.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use nuncio_protocol::{Content, Part, Value, codec};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use sha2::{Digest, Sha256};

use super::Workspace;
use super::beneath::OpenError;
use super::media::{self, Kind};

/// What an agent gets of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// All text, in the order of the parts.
    pub text: String,
    /// What the agent takes as it is; everything else is described in the text.
    pub attachments: Vec<Attachment>,
}

/// A file that came with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// A name without a path.
    pub filename: String,
    /// Its type, in small letters.
    pub media_type: String,
    /// The content.
    pub bytes: Bytes,
    /// The hash of the content, in hexadecimal.
    pub sha256: String,
    /// Where it came from: `inline`, `data`, or the `file://` URL.
    pub source: String,
}

/// What an agent takes, and how much of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepts {
    /// Images as attachments.
    pub images: bool,
    /// Audio and unknown bytes as attachments.
    pub binaries: bool,
    /// Whether only a few kinds of text are taken, and nothing is no prompt.
    pub strict: bool,
    /// Further media types that are text.
    pub text_types: Vec<String>,
    /// Further media types that are attachments.
    pub binary_types: Vec<String>,
    /// The largest contents.
    pub limits: Limits,
}

/// The largest contents, in bytes. Text parts are limited by the request alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Text as bytes.
    pub raw: u64,
    /// JSON.
    pub data: u64,
    /// A text file.
    pub file: u64,
    /// An attachment, as bytes or in JSON.
    pub binary: u64,
    /// An attachment that is a file.
    pub binary_file: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let mib = 1 << 20;
        Self { raw: mib, data: mib, file: mib, binary: 5 * mib, binary_file: 25 * mib }
    }
}

/// Why a message cannot be handed to an agent, in words for the caller: none of them repeats a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum PartError {
    #[error("A2A server currently accepts text input only.")]
    Empty,
    #[error("A2A part has unsupported media type.")]
    MediaType,
    #[error("A2A data parts must use application/json media type.")]
    DataNotJson,
    #[error("A2A raw parts must contain valid UTF-8.")]
    RawNotUtf8,
    #[error("A2A file URL parts must use local file:// URLs.")]
    NotLocal,
    #[error("A2A file URL part is outside the allowed workspace.")]
    Outside,
    #[error("A2A file URL part must reference an existing file.")]
    NoFile,
    #[error("A2A file URL parts must contain valid UTF-8.")]
    FileNotUtf8,
    #[error("A2A binary data parts must contain an object.")]
    DataNotObject,
    #[error("A2A binary data parts must include base64 bytes.")]
    DataWithoutBytes,
    #[error("A2A binary data part bytes must be valid base64.")]
    DataNotBase64,
    /// What it is that is too large: a file URL, a raw or a data part.
    #[error("A2A {0} part content is too large.")]
    TooLarge(&'static str),
}

/// Reads the parts of a message. Files are read in `workspace` alone. May block on the disk.
pub fn read_parts(parts: &[Part], workspace: &Workspace, accepts: &Accepts) -> Result<Prompt, PartError> {
    let reader = Reader { workspace, accepts };
    let mut prompt = Prompt::default();
    for part in parts {
        let text = match reader.read(part)? {
            Piece::Text(text) => text,
            Piece::Attachment(attachment, true) => {
                prompt.attachments.push(attachment);
                continue;
            }
            Piece::Attachment(attachment, false) => attachment.describe(),
        };
        if !text.is_empty() {
            if !prompt.text.is_empty() {
                prompt.text.push('\n');
            }
            prompt.text.push_str(&text);
        }
    }
    if accepts.strict && prompt.text.trim().is_empty() && prompt.attachments.is_empty() {
        return Err(PartError::Empty);
    }
    Ok(prompt)
}

enum Piece {
    Text(String),
    /// And whether the agent takes it as it is.
    Attachment(Attachment, bool),
}

struct Reader<'a> {
    workspace: &'a Workspace,
    accepts: &'a Accepts,
}

impl Reader<'_> {
    fn read(&self, part: &Part) -> Result<Piece, PartError> {
        let media_type = media::name(&part.media_type);
        let kind = media::kind(&media_type, self.accepts);
        let taken = match kind.ok_or(PartError::MediaType)? {
            Kind::Text => return Ok(Piece::Text(self.text(part, &media_type)?)),
            Kind::Image => self.accepts.images,
            Kind::Binary => self.accepts.binaries,
        };
        let limits = &self.accepts.limits;
        let (bytes, filename, source) = match &part.content {
            Content::Text(text) => return Ok(Piece::Text(text.clone())),
            Content::Raw(bytes) => {
                fits(bytes.len(), limits.binary, "binary raw")?;
                (bytes.clone(), named(&part.filename), "inline".into())
            }
            Content::Data(value) => {
                let (bytes, filename) = bytes_in(value, limits.binary)?;
                let filename = filename.filter(|name| !name.is_empty()).unwrap_or(&part.filename);
                (bytes, named(filename), "data".into())
            }
            Content::Url(url) => {
                let path = local_path(url)?;
                let bytes = self.file(&path, limits.binary_file, "binary file URL")?;
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                (bytes.into(), safe(name), file_url(&path))
            }
        };
        let sha256 = hex(&Sha256::digest(&bytes));
        Ok(Piece::Attachment(Attachment { filename, media_type, bytes, sha256, source }, taken))
    }

    fn text(&self, part: &Part, media_type: &str) -> Result<String, PartError> {
        let limits = &self.accepts.limits;
        match &part.content {
            Content::Text(text) => Ok(text.clone()),
            Content::Data(value) => {
                let is_said = !part.media_type.trim().is_empty();
                if is_said && !media::is_json(media_type) {
                    return Err(PartError::DataNotJson);
                }
                let json = codec::encode(&sorted(value));
                fits(json.len(), limits.data, "data")?;
                Ok(String::from_utf8_lossy(&json).into_owned())
            }
            Content::Raw(bytes) => {
                fits(bytes.len(), limits.raw, "raw")?;
                String::from_utf8(bytes.to_vec()).map_err(|_| PartError::RawNotUtf8)
            }
            Content::Url(url) => {
                let bytes = self.file(&local_path(url)?, limits.file, "file URL")?;
                String::from_utf8(bytes).map_err(|_| PartError::FileNotUtf8)
            }
        }
    }

    fn file(&self, path: &Path, limit: u64, what: &'static str) -> Result<Vec<u8>, PartError> {
        self.workspace.read_file(path, limit).map_err(|error| {
            tracing::debug!(path = %path.display(), %error, "a file of a message is not read");
            match error {
                OpenError::Outside => PartError::Outside,
                OpenError::TooLarge(_) => PartError::TooLarge(what),
                // Whether a path outside exists is nobody's business.
                _ if !path.starts_with(self.workspace.path()) => PartError::Outside,
                _ => PartError::NoFile,
            }
        })
    }
}

impl Attachment {
    /// The words that stand for it where an agent does not take it.
    pub fn describe(&self) -> String {
        let Self { filename, media_type, bytes, sha256, source } = self;
        format!(
            "A2A multimodal attachment:\n- filename={filename}\n- mediaType={media_type}\n- byteSize={}\n\
             - sha256={sha256}\n- source={source}",
            bytes.len()
        )
    }
}

fn fits(size: usize, limit: u64, what: &'static str) -> Result<(), PartError> {
    if size as u64 > limit { Err(PartError::TooLarge(what)) } else { Ok(()) }
}

/// The absolute path that a `file://` URL names. Decoded twice, as some clients encode twice.
fn local_path(url: &str) -> Result<PathBuf, PartError> {
    let scheme = url.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("file://"));
    let path = scheme.and_then(|_| url.get(7..)).filter(|path| path.starts_with('/')).ok_or(PartError::NotLocal)?;
    // A second slash begins a host for some readers of URLs.
    if path.starts_with("//") || path.contains(['?', '#']) {
        return Err(PartError::NotLocal);
    }
    let decode = |text: &str| percent_decode_str(text).decode_utf8().map(std::borrow::Cow::into_owned);
    let path = decode(path).and_then(|once| decode(&once)).map_err(|_| PartError::NotLocal)?;
    if path.contains('\0') {
        return Err(PartError::NotLocal);
    }
    Ok(path.into())
}

/// What a path may hold unescaped in a URL.
const PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`').add(b'{').add(b'}');

/// The `file://` URL of an absolute path.
pub(crate) fn file_url(path: &Path) -> String {
    format!("file://{}", utf8_percent_encode(&path.to_string_lossy(), PATH))
}

/// The bytes of a binary data part, and the name that it gives them.
fn bytes_in(value: &Value, limit: u64) -> Result<(Bytes, Option<&str>), PartError> {
    let object = value.as_object().ok_or(PartError::DataNotObject)?;
    let text = ["bytes", "base64"].iter().find_map(|key| object.get(*key)?.as_str());
    let text = text.ok_or(PartError::DataWithoutBytes)?;
    // Four characters for three bytes: what is far too long need not be decoded.
    fits(text.len() / 4 * 3, limit.saturating_add(3), "binary data")?;
    let bytes = STANDARD.decode(text).map_err(|_| PartError::DataNotBase64)?;
    fits(bytes.len(), limit, "binary data")?;
    Ok((bytes.into(), object.get("filename").and_then(Value::as_str)))
}

fn named(filename: &str) -> String {
    if filename.is_empty() { "inline".into() } else { safe(filename) }
}

/// A name that is no path and stays on its line.
fn safe(filename: &str) -> String {
    let is_plain = !filename.contains(['/', '\\']) && !filename.chars().any(char::is_control);
    if is_plain && !matches!(filename, "" | "." | "..") { filename.into() } else { "attachment".into() }
}

/// The same value with the keys of all objects in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            Value::Object(entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        Value::Array(values) => values.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
