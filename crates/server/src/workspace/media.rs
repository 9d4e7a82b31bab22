//! Media types: what is read as text, what is an attachment, and what is nothing for an agent.

use super::Accepts;

/// What kind of content a media type announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text that becomes part of the prompt.
    Text,
    /// An image of a type that models can look at.
    Image,
    /// Any other attachment.
    Binary,
}

const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const BINARIES: [&str; 4] = ["audio/mpeg", "audio/wav", "audio/ogg", "application/octet-stream"];

/// Text that is not called `text/…`: data, and the languages that people write programs in.
const TEXTS: [&str; 22] = [
    "application/json",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/xml",
    "application/sql",
    "application/graphql",
    "application/javascript",
    "application/x-javascript",
    "application/ecmascript",
    "application/typescript",
    "application/x-typescript",
    "application/x-python",
    "application/x-python-code",
    "application/x-ruby",
    "application/x-perl",
    "application/x-php",
    "application/x-httpd-php",
    "application/x-sh",
    "application/x-shellscript",
    "application/x-ndjson",
    "application/x-terraform",
];

/// The text that strict readers take.
const FEW_TEXTS: [&str; 6] =
    ["text/plain", "application/json", "text/markdown", "text/yaml", "application/yaml", "application/x-yaml"];

/// The bare name of a media type in small letters; plain text where none is said.
pub(super) fn name(media_type: &str) -> String {
    let bare = media_type.split(';').next().unwrap_or_default().trim();
    if bare.is_empty() { "text/plain".into() } else { bare.to_ascii_lowercase() }
}

/// What `name` announces; `None` for what is not taken.
pub(super) fn kind(name: &str, accepts: &Accepts) -> Option<Kind> {
    let among = |more: &[String]| more.iter().any(|known| known.eq_ignore_ascii_case(name));
    let is_text = || match accepts.strict {
        true => FEW_TEXTS.contains(&name),
        false => name.starts_with("text/") || TEXTS.contains(&name) || is_json(name),
    };
    if IMAGES.contains(&name) {
        Some(Kind::Image)
    } else if BINARIES.contains(&name) || among(&accepts.binary_types) {
        Some(Kind::Binary)
    } else if is_text() || among(&accepts.text_types) {
        Some(Kind::Text)
    } else {
        None
    }
}

/// Whether a data part may be of this type.
pub(super) fn is_json(name: &str) -> bool {
    name == "application/json" || (name.starts_with("application/") && name.ends_with("+json"))
}
