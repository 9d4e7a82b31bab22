//! The keys that cards are signed with.

use std::fs::File;
use std::io::Read;
use std::path::{Path as FilePath, PathBuf};

use nuncio_protocol::sign::SigningKey;
use serde_json::{Value as Json, json};

use super::Config;
use super::entry::record;
use super::kind::{Kind, Path, Text, fail};
use super::list::{items, list_or_null};
use super::node::Node;
use super::problem::{Problem, Spot};

/// The name of the key that `signing-secret` is.
const SECRET_ID: &str = "default";
/// No key file is longer than this.
const LONGEST_KEY: u64 = 64 * 1024;

/// One entry of `signing-keys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyEntry {
    /// The name by which others find the public half.
    pub(crate) id: String,
    /// A private key in PEM.
    pub(crate) file: PathBuf,
}

/// Keys with their names.
pub(crate) struct SigningKeys;

impl Kind for SigningKeys {
    type Value = Vec<KeyEntry>;
    const IN_ENVIRONMENT: bool = false;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let items = items(node, "a list of `{id, key-file}`", spot, problems)?;
        let mut keys: Vec<KeyEntry> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let spot = spot.item(index, item.line);
            let Some(key) = entry(item, &spot, problems) else { continue };
            if keys.iter().any(|known| known.id == key.id) {
                problems.push(spot.problem(format_args!("`{}` is already in the list", key.id)));
            } else {
                keys.push(key);
            }
        }
        (keys.len() == items.len()).then_some(keys)
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        let one = |key: &KeyEntry| json!({"id": key.id, "key-file": key.file.to_string_lossy()});
        list_or_null(value.iter().map(one).collect())
    }

    fn schema(&self) -> Json {
        json!({"type": "array", "items": {
            "type": "object",
            "properties": {
                "id": {"type": "string", "minLength": 1, "description": "Name of the key (`kid`)."},
                "key-file": {"type": "string", "description": "File with the private key in PEM."},
                "key_file": {"$ref": "#/properties/signing-keys/items/properties/key-file"},
            },
            "required": ["id"],
            "additionalProperties": false,
        }})
    }
}

fn entry(node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<KeyEntry> {
    let fields = record(node, spot, &["id", "key-file"], problems)?;
    let find = |name| fields.iter().find(|(known, _)| *known == name);
    let id = match find("id") {
        Some((_, field)) => Text.read(&field.node, &spot.child("id", field.line), problems),
        None => fail(problems, spot.problem("`id` is missing")),
    };
    let file = match find("key-file") {
        Some((_, field)) => Path.read(&field.node, &spot.child("key-file", field.line), problems),
        None => fail(problems, spot.problem("`key-file` is missing; `nuncio card keygen` makes one")),
    };
    Some(KeyEntry { id: id?, file: file? })
}

impl Config {
    /// The keys that cards are signed with, those with two halves first: everybody can check what they sign.
    pub(crate) fn signing_keys(&self) -> Result<Vec<SigningKey>, String> {
        let mut keys = Vec::new();
        for entry in &self.signing_keys {
            keys.push(read_key(&entry.id, &entry.file)?);
        }
        if let Some(secret) = &self.signing_secret {
            let key = SigningKey::secret(SECRET_ID, secret.expose().as_bytes());
            keys.push(key.map_err(|error| error.to_string())?);
        }
        Ok(keys)
    }
}

/// Reads a private key that only its owner may read.
pub(crate) fn read_key(id: &str, path: &FilePath) -> Result<SigningKey, String> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| format!("cannot read `{shown}`: {error}");
    // Asked before opening: opening a pipe would wait for its other end.
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err(format!("`{shown}` is not a file"));
    }
    let file = File::open(path).map_err(unreadable)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.metadata().map_err(unreadable)?.permissions().mode();
        if mode & 0o066 != 0 {
            return Err(format!("other users can read `{shown}`; run `chmod 600 {shown}`"));
        }
    }
    let mut pem = String::new();
    file.take(LONGEST_KEY).read_to_string(&mut pem).map_err(unreadable)?;
    SigningKey::from_pem(id, &pem).map_err(|error| format!("`{shown}`: {error}"))
}
