//! What an agent should know of a repository before it begins, put in front of the prompt.
//!
//! Everything comes from the commit that is checked out, read by `git` from its own storage: a link in
//! the repository leads nowhere, and the pack stays the same until the next commit.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use nuncio_protocol::{Value, codec};
use parking_lot::Mutex;
use regex::Regex;

mod git;
mod symbols;

/// The longest that making a pack may take. A prompt without one is better than a late one.
const PATIENCE: Duration = Duration::from_secs(5);
/// Packs that are kept.
const KEPT: usize = 16;
/// Bytes of a document for agents.
const LONGEST_DOCUMENT: u64 = 16 << 10;
/// Bytes of a source file; larger ones are not looked at.
const LONGEST_SOURCE: u64 = 64 << 10;
/// Bytes of a `package.json`.
const LONGEST_MANIFEST: u64 = 256 << 10;
/// Source files that are looked at.
const SOURCES: usize = 200;
/// Files that are named.
const FILES: usize = 50;
/// Bytes of the list of names that the sources declare.
const LONGEST_SYMBOLS: usize = 8 << 10;
/// Characters of the command that runs the tests.
const LONGEST_COMMAND: usize = 500;

/// The latest packs: folder, commit and text.
static PACKS: Mutex<VecDeque<(PathBuf, String, Arc<str>)>> = Mutex::new(VecDeque::new());

/// The prompt with what is to be known of the repository at `workspace` in front of it. Without a
/// repository, or if anything goes wrong, the prompt alone.
pub async fn augment(workspace: &Path, prompt: &str) -> String {
    match tokio::time::timeout(PATIENCE, pack(workspace)).await {
        Ok(Ok(pack)) if pack.is_empty() => prompt.to_owned(),
        Ok(Ok(pack)) => format!("<workspace-context>\n{pack}\n</workspace-context>\n\n{prompt}"),
        Ok(Err(error)) => {
            tracing::warn!(%error, "no workspace context");
            prompt.to_owned()
        }
        Err(_) => {
            tracing::warn!("no workspace context: git takes too long");
            prompt.to_owned()
        }
    }
}

async fn pack(workspace: &Path) -> Result<Arc<str>, git::GitError> {
    let head = git::head(workspace).await?;
    let known = PACKS.lock().iter().find(|(at, commit, _)| at == workspace && *commit == head).map(|p| p.2.clone());
    if let Some(pack) = known {
        return Ok(pack);
    }
    let pack: Arc<str> = make(workspace, &head).await?.into();
    let mut packs = PACKS.lock();
    packs.retain(|(at, ..)| at != workspace);
    if packs.len() == KEPT {
        packs.pop_front();
    }
    packs.push_back((workspace.to_owned(), head, pack.clone()));
    Ok(pack)
}

async fn make(workspace: &Path, head: &str) -> Result<String, git::GitError> {
    let files = git::files(workspace, head).await?;
    let at = |path: &str, most: u64| files.iter().find(|file| file.path == path && file.size <= most);
    let documents = ["AGENTS.md", "CLAUDE.md"];
    let wanted: Vec<_> = documents
        .iter()
        .map(|path| at(path, u64::MAX))
        .chain([at("package.json", LONGEST_MANIFEST)])
        .chain(sources(&files).map(Some))
        .collect();
    let mut texts = git::read(workspace, wanted.into_iter(), LONGEST_MANIFEST).await?.into_iter();

    let mut sections = Vec::new();
    for path in documents {
        if let Some(text) = texts.next().flatten().filter(|text| !text.trim().is_empty()) {
            sections.push(format!("{path}:\n{}", cut(text.trim(), LONGEST_DOCUMENT as usize)));
        }
    }
    if let Some(command) = texts.next().flatten().and_then(|text| test_command(&text)) {
        sections.push(format!("Test command: {command}"));
    }
    let symbols = symbols::list(texts.flatten(), LONGEST_SYMBOLS);
    if !symbols.is_empty() {
        sections.push(format!("Symbols: {symbols}"));
    }
    if !files.is_empty() {
        let named: Vec<_> = files.iter().take(FILES).map(|file| file.path.as_str()).collect();
        let more = if files.len() > FILES { format!(", …(+{})", files.len() - FILES) } else { String::new() };
        sections.push(format!("Files ({}): {}{more}", files.len(), named.join(", ")));
    }
    Ok(harmless(&sections.join("\n\n")))
}

fn sources(files: &[git::File]) -> impl Iterator<Item = &git::File> {
    let is_source = |file: &&git::File| symbols::is_source(&file.path) && file.size <= LONGEST_SOURCE;
    files.iter().filter(is_source).take(SOURCES)
}

fn test_command(manifest: &str) -> Option<String> {
    let manifest: Value = codec::decode(manifest.as_bytes()).ok()?;
    let command = manifest["scripts"]["test"].as_str()?.trim();
    (!command.is_empty()).then(|| command.chars().take(LONGEST_COMMAND).collect())
}

/// Text of a repository cannot end the block that it is in.
fn harmless(text: &str) -> String {
    static END: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?i)<\s*/\s*workspace-context[^>]*>?").ok());
    match &*END {
        Some(end) => end.replace_all(text, " ").into_owned(),
        None => text.replace('<', " "),
    }
}

fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    &text[..end]
}
