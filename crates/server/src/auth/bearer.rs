//! Bearer tokens that the operator hands out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use subtle::ConstantTimeEq;

use super::file::{Stamp, read_secret};
use super::grants::Grants;

/// A caller who proves who he is with a bearer token.
#[derive(Clone)]
pub struct Token {
    /// Who it is; his tasks belong to this name.
    pub name: Arc<str>,
    /// What he shows.
    pub secret: TokenSecret,
    /// The groups that he belongs to.
    pub groups: Vec<Arc<str>>,
    /// What he may do.
    pub grants: Grants,
}

/// The text of a token, or the file that it is read from whenever that changes.
#[derive(Clone)]
pub struct TokenSecret(Kept);

#[derive(Clone)]
enum Kept {
    Text(Arc<str>),
    File(Arc<Followed>),
}

struct Followed {
    path: PathBuf,
    now: RwLock<(Arc<str>, Stamp)>,
}

impl TokenSecret {
    /// A text that stays.
    pub fn text(text: &str) -> Self {
        Self(Kept::Text(text.into()))
    }

    /// What a file holds now and later.
    pub fn file(path: &Path) -> Result<Self, String> {
        let (stamp, text) = (Stamp::of(path), read_secret(path)?);
        let now = RwLock::new((text.into(), stamp));
        Ok(Self(Kept::File(Arc::new(Followed { path: path.to_owned(), now }))))
    }

    /// Whether this is what was shown; the time says nothing about where they differ.
    pub(super) fn is(&self, shown: &[u8]) -> bool {
        match &self.0 {
            Kept::Text(text) => text.as_bytes().ct_eq(shown).into(),
            Kept::File(file) => file.now.read().0.as_bytes().ct_eq(shown).into(),
        }
    }

    /// Reads the file again if it has changed. A file that cannot be read leaves the token as it was.
    pub(super) fn refresh(&self) {
        let Kept::File(file) = &self.0 else { return };
        let stamp = Stamp::of(&file.path);
        if file.now.read().1 == stamp {
            return;
        }
        match read_secret(&file.path) {
            Ok(text) => {
                *file.now.write() = (text.into(), stamp);
                tracing::info!(file = %file.path.display(), "a token was read anew");
            }
            Err(error) => {
                file.now.write().1 = stamp;
                tracing::error!(%error, "the file of a token has changed and cannot be used: the old token stays");
            }
        }
    }
}

impl std::fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The one whose token was shown. Every token is compared, so that the time tells nothing about any of them.
pub(super) fn find<'a>(tokens: &'a [Token], shown: &str) -> Option<&'a Token> {
    let mut found = None;
    for token in tokens {
        if token.secret.is(shown.as_bytes()) {
            found = Some(token);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn write(path: &Path, text: &str, mode: u32) {
        std::fs::write(path, text).expect("the file can be written");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("its mode can be set");
    }

    #[test]
    fn a_file_is_read_again_when_it_changes_and_kept_when_it_becomes_bad() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        write(&path, "first\n", 0o600);
        let secret = TokenSecret::file(&path).expect("a token");
        assert!(secret.is(b"first"));
        write(&path, "the-second", 0o600);
        assert!(secret.is(b"first"), "nothing is read before it is time");
        secret.refresh();
        assert!(secret.is(b"the-second") && !secret.is(b"first"));
        write(&path, "open to all", 0o644);
        secret.refresh();
        assert!(secret.is(b"the-second"), "a file that others can read is not believed");
        std::fs::remove_file(&path).expect("it was there");
        secret.refresh();
        assert!(secret.is(b"the-second"));
        assert!(!format!("{secret:?}").contains("second"));
    }
}
