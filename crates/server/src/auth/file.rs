//! Files that hold secrets, and whether they have changed.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// No secret is longer than this.
const LONGEST: u64 = 64 * 1024;

/// Reads a file that holds one secret and that nobody but its owner may read.
pub fn read_secret(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let unreadable = |error| format!("cannot read `{shown}`: {error}");
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
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).map_err(unreadable)?;
    match text.trim() {
        "" => Err(format!("`{shown}`: the token is empty; give it a value or remove the key")),
        token if !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(format!("`{shown}`: a token has only visible ASCII characters and no spaces"))
        }
        token => Ok(token.to_owned()),
    }
}

/// By what it is seen that a file is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(Option<(i64, i64, u64, u64)>);

impl Stamp {
    /// That of a file now.
    pub(crate) fn of(path: &Path) -> Self {
        use std::os::unix::fs::MetadataExt;
        // The time of its last change, which is also one of its mode: what was refused for that is looked at again.
        let about = path.metadata().ok();
        Self(about.map(|about| (about.ctime(), about.ctime_nsec(), about.len(), about.ino())))
    }
}
