//! The bytes of artifacts: `/artifacts/{task}/{artifact}`, also below `/{tenant}`, for whoever may see the task.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use nuncio_protocol::{Error, ErrorKind, TaskId, codec};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};

use super::body::Body;
use super::dispatch::not_allowed;
use super::http::bytes_response;
use super::range::{self, Range};
use super::{App, params};
use crate::artifact::content::{Found, Held, find};
use crate::artifact::{Blob, Hash, Pieces};
use crate::auth::Caller;
use crate::metrics::Operation;
use crate::store::Scope;

/// How much of a file is read at once.
const PIECE: u64 = 256 << 10;
/// The longest name that a file is offered under, in bytes.
const LONGEST_NAME: usize = 200;

/// What a path asks for.
pub(crate) struct Wanted<'a> {
    tenant: Cow<'a, str>,
    task: Cow<'a, str>,
    artifact: Cow<'a, str>,
}

/// What a request asks for, if it is for an artifact.
pub(crate) fn wanted(parts: &Parts) -> Option<Wanted<'_>> {
    let mut segments = parts.uri.path().split('/').skip(1);
    let mut next = || segments.next();
    let (tenant, task, artifact) = match (next()?, next()?, next()?, next()) {
        // Below a tenant of that name, these are tasks.
        ("artifacts", "tasks", _, _) => return None,
        ("artifacts", task, artifact, None) => ("", task, artifact),
        (tenant, "artifacts", task, Some(artifact)) => (tenant, task, artifact),
        _ => return None,
    };
    if segments.next().is_some() {
        return None;
    }
    let tenant = match tenant {
        "" => params::tenant(parts),
        tenant => params::segment(tenant)?,
    };
    Some(Wanted { tenant, task: params::segment(task)?, artifact: params::segment(artifact)? })
}

/// Answers a GET or HEAD of an artifact.
pub(crate) async fn handle(app: &App, parts: &Parts, caller: &Caller, wanted: Wanted<'_>) -> Response<Body> {
    let scope = Scope { tenant: (&*wanted.tenant).into(), owner: caller.owner.clone() };
    let note = app.audit.as_ref().map(|audit| audit.download(caller, &wanted.tenant, &wanted.task));
    let found = match caller.grants.allow(Operation::Get) {
        true => look_up(app, parts, &scope, &wanted).await,
        false => Err(not_allowed(Operation::Get)),
    };
    if let Some(note) = note {
        let missing = ErrorKind::TaskNotFound.reason();
        let found = found.as_ref().map(|found| if found.is_some() { "ok" } else { missing });
        note.end(found.unwrap_or_else(|error| error.kind.reason()));
    }
    match found {
        Ok(Some((found, blob, sha256))) => respond(parts, &found, blob, sha256),
        // A foreign task, a missing one and a missing artifact look the same.
        Ok(None) => failure(&Error::new(ErrorKind::TaskNotFound, "There is no such artifact")),
        Err(error) => failure(&error),
    }
}

async fn look_up(
    app: &App,
    parts: &Parts,
    scope: &Scope,
    wanted: &Wanted<'_>,
) -> Result<Option<(Found, Blob, Hash)>, Error> {
    let id = TaskId::from(&*wanted.task);
    let (key, task) = match app.engine.known_task(scope, &id).await {
        Err(error) if error.kind == ErrorKind::TaskNotFound => return Ok(None),
        known => known?,
    };
    let part = match params::query(parts, "part") {
        None => None,
        Some(text) => match text.parse() {
            Ok(part) => Some(part),
            Err(_) => return Ok(None),
        },
    };
    let Some(found) = find(&task, &wanted.artifact, part) else { return Ok(None) };
    match &found.held {
        Held::Inline(bytes) => {
            let (blob, sha256) = (Blob::Bytes(bytes.clone()), Hash(Sha256::digest(bytes).into()));
            Ok(Some((found, blob, sha256)))
        }
        Held::Apart(sha256) => {
            let sha256 = *sha256;
            let blob = app.engine.options.artifacts.store.get(key, &id, sha256).await.map_err(|error| {
                tracing::error!(task = %id, %sha256, %error, "the file of an artifact cannot be read");
                Error::internal()
            })?;
            if blob.is_none() {
                tracing::warn!(task = %id, %sha256, "the file of an artifact is not there");
            }
            Ok(blob.map(|blob| (found, blob, sha256)))
        }
    }
}

fn respond(parts: &Parts, found: &Found, blob: Blob, sha256: Hash) -> Response<Body> {
    let (size, etag) = (blob.size(), format!("\"{sha256}\""));
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    describe(headers, found, &etag);
    if is_known(&parts.headers, &etag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    let (status, first, length) = match range::wanted(&parts.headers, size, &etag) {
        Range::Whole => (StatusCode::OK, 0, size),
        Range::Some(first, last) => {
            put(headers, header::CONTENT_RANGE, &format!("bytes {first}-{last}/{size}"));
            (StatusCode::PARTIAL_CONTENT, first, last - first + 1)
        }
        Range::Unsatisfiable => {
            put(headers, header::CONTENT_RANGE, &format!("bytes */{size}"));
            (StatusCode::RANGE_NOT_SATISFIABLE, 0, 0)
        }
    };
    headers.insert(header::CONTENT_LENGTH, length.into());
    *response.status_mut() = status;
    if parts.method != Method::HEAD && length > 0 {
        *response.body_mut() = body(blob, first, length);
    }
    response
}

/// Whoever opens it gets a file, and never a page that runs in our name.
fn describe(headers: &mut HeaderMap, found: &Found, etag: &str) {
    let kind = HeaderValue::from_str(&found.media_type).ok().filter(|_| found.media_type.contains('/'));
    let kind = kind.unwrap_or_else(|| HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_TYPE, kind);
    put(headers, header::CONTENT_DISPOSITION, &disposition(&found.filename));
    put(headers, header::ETAG, etag);
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
}

fn put(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let all = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).any(|tag| {
        let tag = tag.trim();
        tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag
    })
}

/// A name to save it under: no path, nothing hidden, nothing that a terminal or a header would act on.
fn disposition(filename: &str) -> String {
    let name = filename.rsplit(['/', '\\']).next().unwrap_or_default().trim_start_matches('.').trim();
    let is_odd = |c: char| {
        c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut name: String = name.chars().filter(|c| !is_odd(*c)).collect();
    let end = (0..=LONGEST_NAME.min(name.len())).rev().find(|&end| name.is_char_boundary(end));
    name.truncate(end.unwrap_or_default());
    if name.is_empty() {
        return "attachment".into();
    }
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ') { c } else { '_' })
        .collect();
    if plain == name {
        return format!("attachment; filename=\"{plain}\"");
    }
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{}", utf8_percent_encode(&name, NON_ALPHANUMERIC))
}

fn body(blob: Blob, first: u64, length: u64) -> Body {
    match blob {
        Blob::Bytes(bytes) => {
            let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(bytes.len());
            Body::Full(bytes.slice(at(first)..at(first.saturating_add(length))))
        }
        Blob::File(file, _) => Body::Stream(Box::pin(stream::unfold((file, first, length), next_piece))),
        Blob::Pieces(pieces) => Body::Stream(Box::pin(stream::unfold((pieces, first, length), next_of_pieces))),
    }
}

/// The same for what is in the database.
async fn next_of_pieces((pieces, at, left): (Arc<Pieces>, u64, u64)) -> Option<(Bytes, (Arc<Pieces>, u64, u64))> {
    if left == 0 {
        return None;
    }
    match pieces.read(at, left).await {
        Ok(bytes) if !bytes.is_empty() => {
            let n = bytes.len() as u64;
            Some((bytes, (pieces, at + n, left - n)))
        }
        Ok(_) => {
            tracing::warn!("the file of an artifact is gone");
            None
        }
        Err(error) => {
            tracing::warn!(%error, "the file of an artifact cannot be read");
            None
        }
    }
}

/// A file that cannot be read any further ends the connection: the client sees that it has too little.
async fn next_piece((file, at, left): (Arc<File>, u64, u64)) -> Option<(Bytes, (Arc<File>, u64, u64))> {
    if left == 0 {
        return None;
    }
    let read = {
        let file = file.clone();
        tokio::task::spawn_blocking(move || read_piece(&file, at, left.min(PIECE))).await.map_err(io::Error::other)
    };
    match read.and_then(|read| read) {
        Ok(bytes) if !bytes.is_empty() => {
            let n = bytes.len() as u64;
            Some((bytes, (file, at + n, left - n)))
        }
        Ok(_) => {
            tracing::warn!("the file of an artifact has shrunk");
            None
        }
        Err(error) => {
            tracing::warn!(%error, "the file of an artifact cannot be read");
            None
        }
    }
}

fn read_piece(file: &File, at: u64, most: u64) -> io::Result<Bytes> {
    let mut bytes = vec![0; usize::try_from(most).unwrap_or(usize::MAX)];
    let n = file.read_at(&mut bytes, at)?;
    bytes.truncate(n);
    Ok(bytes.into())
}

fn failure(error: &Error) -> Response<Body> {
    let status = StatusCode::from_u16(error.kind.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = codec::encode(&error.rest_as(status.as_u16()));
    let mut response = bytes_response(status, HeaderValue::from_static("application/json"), body);
    super::http::retry_after(&mut response, error.kind);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> Option<(String, String, String)> {
        let (parts, ()) = http::Request::get(path).body(()).expect("a request").into_parts();
        wanted(&parts).map(|w| (w.tenant.into(), w.task.into(), w.artifact.into()))
    }

    #[test]
    fn paths_name_tenant_task_and_artifact() {
        let some = |a: &str, b: &str, c: &str| Some((a.to_owned(), b.to_owned(), c.to_owned()));
        assert_eq!(read("/artifacts/t/a"), some("", "t", "a"));
        assert_eq!(read("/artifacts/t/a?tenant=x"), some("x", "t", "a"));
        assert_eq!(read("/x/artifacts/t/..%2F..%2fb"), some("x", "t", "../../b"));
        assert_eq!(read("/artifacts/artifacts/t/a"), some("artifacts", "t", "a"));
        assert_eq!(read("/v1/artifacts/t/a"), some("v1", "t", "a"));
        for other in [
            "/",
            "/artifacts",
            "/artifacts/t",
            "/artifacts/tasks/t",
            "/artifacts/t/a/b",
            "/x/artifacts/t/a/b",
            "/tasks/t",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn names_are_safe_to_save_under() {
        for (name, expected) in [
            ("notes.txt", "attachment; filename=\"notes.txt\""),
            ("../../etc/passwd", "attachment; filename=\"passwd\""),
            ("C:\\x\\y.exe", "attachment; filename=\"y.exe\""),
            (".bashrc", "attachment; filename=\"bashrc\""),
            ("..", "attachment"),
            ("", "attachment"),
            (
                "a\"; x=\"\r\nSet-Cookie: y",
                "attachment; filename=\"a__ x__Set-Cookie_ y\"; filename*=UTF-8''a%22%3B%20x%3D%22Set%2DCookie%3A%20y",
            ),
            ("ü.txt", "attachment; filename=\"_.txt\"; filename*=UTF-8''%C3%BC%2Etxt"),
            ("a\u{202e}txt.exe", "attachment; filename=\"atxt.exe\""),
        ] {
            assert_eq!(disposition(name), expected, "{name}");
        }
        assert!(disposition(&"ü".repeat(1000)).len() < 1000);
    }
}
