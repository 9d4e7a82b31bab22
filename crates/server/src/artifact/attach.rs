//! Large parts of an artifact become URLs.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use nuncio_protocol::{Artifact, Content, Part, TaskId, json};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rustix::fs::{Mode, OFlags};

use super::{Artifacts, FILE, Stored};
use crate::store::TaskKey;
use crate::workspace::parts::file_url;

/// What needs no escape in a segment of a URL.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What a file holds that an agent hands over.
#[derive(Debug)]
pub enum FileContent {
    /// These bytes.
    Bytes(Bytes),
    /// What is read from here to its end.
    File(File),
    /// What is at this path. Whoever has the path from somebody else opens it with
    /// [`Workspace::open_file`](crate::workspace::Workspace::open_file) instead.
    Path(PathBuf),
}

impl From<Bytes> for FileContent {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<u8>> for FileContent {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<File> for FileContent {
    fn from(file: File) -> Self {
        Self::File(file)
    }
}

impl From<PathBuf> for FileContent {
    fn from(path: PathBuf) -> Self {
        Self::Path(path)
    }
}

/// The place of a part: the task, and its artifact.
pub(crate) struct Place<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) key: TaskKey,
    pub(crate) id: &'a TaskId,
    pub(crate) artifact: &'a str,
    /// Its number among the parts of the artifact.
    pub(crate) part: usize,
}

impl Artifacts {
    /// Whether an artifact holds something that does not stay in the events.
    pub(crate) fn is_large(&self, artifact: &Artifact) -> bool {
        artifact.parts.iter().any(|part| self.is_large_part(part))
    }

    fn is_large_part(&self, part: &Part) -> bool {
        matches!(&part.content, Content::Raw(bytes) if bytes.len() > self.inline_max)
    }

    /// Keeps the bytes of a part, if they are many, and puts their URL in their place.
    pub(crate) async fn attach(&self, place: &Place<'_>, part: &mut Part) -> io::Result<()> {
        if !self.is_large_part(part) {
            return Ok(());
        }
        let Content::Raw(bytes) = &part.content else { return Ok(()) };
        let size = bytes.len() as u64;
        if size > self.file_max {
            return Err(super::disk::too_large(self.file_max));
        }
        let stored = self.store.put(place.key, place.id, bytes.clone()).await?;
        self.refer(place, part, stored);
        Ok(())
    }

    /// Fills a part with the content of a file.
    pub(crate) async fn fill(&self, place: &Place<'_>, part: &mut Part, content: FileContent) -> io::Result<()> {
        let inline_max = self.inline_max;
        let opened = match content {
            FileContent::Bytes(bytes) => Ok(bytes),
            FileContent::File(file) => blocking(move || small(file, inline_max)).await?,
            FileContent::Path(path) => blocking(move || small(open(&path)?, inline_max)).await?,
        };
        match opened {
            Ok(bytes) => {
                part.content = Content::Raw(bytes);
                self.attach(place, part).await
            }
            Err(file) => {
                let stored = self.store.put_file(place.key, place.id, file, self.file_max).await?;
                self.refer(place, part, stored);
                Ok(())
            }
        }
    }

    fn refer(&self, place: &Place<'_>, part: &mut Part, stored: Stored) {
        let kept = self.file_urls.then(|| self.store.path(place.key, place.id, stored.sha256)).flatten();
        let mut about = json!({ "sha256": stored.sha256.to_string(), "size": stored.size });
        part.content = Content::Url(match kept {
            None => self.url(place),
            Some(path) => {
                // For clients elsewhere.
                about["url"] = self.url(place).into();
                file_url(&path)
            }
        });
        part.metadata.insert(FILE.into(), about);
    }

    fn url(&self, place: &Place<'_>) -> String {
        let segment = |text| utf8_percent_encode(text, SEGMENT);
        let mut url = self.base.get().cloned().unwrap_or_default();
        if !place.tenant.is_empty() {
            url += &format!("/{}", segment(place.tenant));
        }
        url += &format!("/artifacts/{}/{}", segment(place.id.as_str()), segment(place.artifact));
        if place.part > 0 {
            url += &format!("?part={}", place.part);
        }
        url
    }
}

/// Opens a file, and does not wait for whoever may be at the other end of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// The content of a small file; a larger one as it is.
fn small(mut file: File, most: usize) -> io::Result<Result<Bytes, File>> {
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    if about.len() > most as u64 {
        return Ok(Err(file));
    }
    let start = file.stream_position()?;
    let mut bytes = Vec::new();
    (&mut file).take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        // It has grown meanwhile.
        file.seek(io::SeekFrom::Start(start))?;
        return Ok(Err(file));
    }
    Ok(Ok(bytes.into()))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
