//! The few questions that are asked of `git`, without a shell and without its surroundings.

use std::io;
use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

/// The most that is read of a list of files.
const LONGEST_LIST: u64 = 16 << 20;

/// Why `git` did not answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum GitError {
    /// It cannot be run.
    #[error("git cannot be run: {0}")]
    Io(#[from] io::Error),
    /// There is no repository, or no commit in it.
    #[error("no commit is checked out there")]
    NoCommit,
    /// There are more files than anybody would name.
    #[error("the repository has too many files")]
    TooLarge,
    /// It says something else than expected.
    #[error("git answers in an unknown way")]
    Unknown,
}

/// A file of a commit.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) size: u64,
    object: String,
}

/// The commit that is checked out.
pub(super) async fn head(at: &Path) -> Result<String, GitError> {
    let said = run(at, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await?;
    let head = String::from_utf8_lossy(&said).trim().to_owned();
    if is_object(&head) { Ok(head) } else { Err(GitError::NoCommit) }
}

/// The plain files of a commit; links and submodules are left out.
pub(super) async fn files(at: &Path, commit: &str) -> Result<Vec<File>, GitError> {
    let said = run(at, &["ls-tree", "-r", "-l", "-z", commit]).await?;
    if said.len() as u64 == LONGEST_LIST {
        return Err(GitError::TooLarge);
    }
    Ok(String::from_utf8_lossy(&said).split('\0').filter_map(file).collect())
}

/// `100644 blob OBJECT    SIZE\tPATH`
fn file(entry: &str) -> Option<File> {
    let (about, path) = entry.split_once('\t')?;
    let mut about = about.split_whitespace();
    let (mode, kind, object, size) = (about.next()?, about.next()?, about.next()?, about.next()?);
    let is_plain = mode.starts_with("100") && kind == "blob" && is_object(object);
    // Names with control characters would only confuse.
    let is_nameable = !path.chars().any(char::is_control);
    let size = size.parse().ok()?;
    (is_plain && is_nameable).then(|| File { path: path.to_owned(), size, object: object.to_owned() })
}

/// What is in these files, in the same order; none for a file that is not there. At most so many bytes
/// of each.
pub(super) async fn read(
    at: &Path,
    files: impl Iterator<Item = Option<&File>>,
    most: u64,
) -> Result<Vec<Option<String>>, GitError> {
    let files: Vec<Option<&File>> = files.collect();
    let asked: String = files.iter().flatten().map(|file| format!("{}\n", file.object)).collect();
    if asked.is_empty() {
        return Ok(vec![None; files.len()]);
    }
    let mut child = git(at).args(["cat-file", "--batch"]).stdin(Stdio::piped()).spawn()?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(GitError::Unknown);
    };
    let ask = async move {
        input.write_all(asked.as_bytes()).await
        // Its stdin is closed here, which ends it.
    };
    let listen = async {
        let mut output = tokio::io::BufReader::new(output);
        let mut texts = Vec::with_capacity(files.len());
        for file in &files {
            texts.push(match file {
                Some(_) => Some(blob(&mut output, most).await?),
                None => None,
            });
        }
        Ok::<_, GitError>(texts)
    };
    let (asked, texts) = tokio::join!(ask, listen);
    let texts = texts?;
    asked?;
    Ok(texts)
}

/// `OBJECT blob SIZE\n`, so many bytes and an end of line.
async fn blob(output: &mut (impl tokio::io::AsyncBufRead + Unpin), most: u64) -> Result<String, GitError> {
    use tokio::io::AsyncBufReadExt as _;
    let mut head = String::new();
    (&mut *output).take(1024).read_line(&mut head).await?;
    let mut head = head.split_whitespace();
    let (Some(_), Some("blob"), Some(size)) = (head.next(), head.next(), head.next()) else {
        return Err(GitError::Unknown);
    };
    let size: u64 = size.parse().map_err(|_| GitError::Unknown)?;
    let mut text = Vec::new();
    (&mut *output).take(size.min(most)).read_to_end(&mut text).await?;
    let rest = size - size.min(most) + 1;
    tokio::io::copy(&mut (&mut *output).take(rest), &mut tokio::io::sink()).await?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

async fn run(at: &Path, args: &[&str]) -> Result<Vec<u8>, GitError> {
    let mut child = git(at).args(args).stdin(Stdio::null()).spawn()?;
    let output = child.stdout.take().ok_or(GitError::Unknown)?;
    let mut said = Vec::new();
    output.take(LONGEST_LIST).read_to_end(&mut said).await?;
    // A list that is too long is not read to its end, so nobody waits for that.
    if (said.len() as u64) < LONGEST_LIST && !child.wait().await?.success() {
        return Err(GitError::NoCommit);
    }
    Ok(said)
}

/// Nothing of the server's environment but what finds `git` and its configuration; no prompts, no
/// locks, no downloads.
fn git(at: &Path) -> Command {
    let mut git = Command::new("git");
    git.env_clear();
    for name in ["PATH", "HOME", "SYSTEMROOT"] {
        if let Some(value) = std::env::var_os(name) {
            git.env(name, value);
        }
    }
    git.env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_LAZY_FETCH", "1");
    git.current_dir(at).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    git
}

fn is_object(name: &str) -> bool {
    matches!(name.len(), 40 | 64) && name.bytes().all(|b| b.is_ascii_hexdigit())
}
