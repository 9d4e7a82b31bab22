//! Files that the agent reads and writes through us: those of its workspace.

use std::io;

use agent_client_protocol_schema::v1::{
    Error, ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest, WriteTextFileResponse,
};
use nuncio_protocol::json;

use crate::workspace::Workspace;

/// The largest file that is read: an answer is one line.
const LARGEST: u64 = 16 << 20;

/// Reads a text file, or the lines of it that are asked for. May block on the disk.
pub(crate) fn read(workspace: &Workspace, request: &ReadTextFileRequest) -> Result<ReadTextFileResponse, Error> {
    let bytes = workspace.read(&request.path, LARGEST).map_err(|error| refusal(&error, request.path.to_str()))?;
    let text =
        String::from_utf8(bytes).map_err(|_| Error::invalid_params().data(json!("the file is not UTF-8 text")))?;
    Ok(ReadTextFileResponse::new(lines(text, request.line, request.limit)))
}

/// Writes a text file. May block on the disk.
pub(crate) fn write(workspace: &Workspace, request: &WriteTextFileRequest) -> Result<WriteTextFileResponse, Error> {
    let written = workspace.write(&request.path, request.content.as_bytes());
    written.map_err(|error| refusal(&error, request.path.to_str()))?;
    Ok(WriteTextFileResponse::default())
}

/// `limit` lines from line `first` on, which counts from 1.
fn lines(text: String, first: Option<u32>, limit: Option<u32>) -> String {
    if first.is_none() && limit.is_none() {
        return text;
    }
    let skipped = first.unwrap_or(1).saturating_sub(1) as usize;
    let most = limit.map_or(usize::MAX, |limit| limit as usize);
    text.split_inclusive('\n').skip(skipped).take(most).collect()
}

fn refusal(error: &io::Error, path: Option<&str>) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::resource_not_found(path.map(str::to_owned)),
        io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge => {
            Error::invalid_params().data(json!(error.to_string()))
        }
        _ => Error::internal_error().data(json!(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::acp::peer::words;
    use crate::workspace::Workspaces;

    #[test]
    fn lines_are_counted_from_one() {
        let text = || "a\nb\r\nc".to_owned();
        assert_eq!(lines(text(), None, None), "a\nb\r\nc");
        assert_eq!(lines(text(), Some(2), Some(1)), "b\r\n");
        assert_eq!(lines(text(), Some(0), Some(1)), "a\n");
        assert_eq!(lines(text(), Some(3), None), "c");
        assert_eq!(lines(text(), Some(9), Some(9)), "");
    }

    #[test]
    fn nothing_outside_the_workspace_is_read_or_written() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("in");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(folder.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink("../secret", inside.join("link")).unwrap();
        let workspace = Workspaces::new(inside, vec![]).unwrap().choose(None).unwrap();
        for path in ["../secret", "link", "/etc/passwd"] {
            let path = workspace.path().join(path);
            let error = read(&workspace, &ReadTextFileRequest::new("s", &path)).unwrap_err();
            assert!(words(&error).contains("outside"), "{path:?}: {error:?}");
            assert!(write(&workspace, &WriteTextFileRequest::new("s", &path, "x")).is_err(), "{path:?}");
        }
        assert_eq!(std::fs::read_to_string(folder.path().join("secret")).unwrap(), "s");
        let path = workspace.path().join("new/file.txt");
        write(&workspace, &WriteTextFileRequest::new("s", &path, "one\ntwo\n")).unwrap();
        let mut some = ReadTextFileRequest::new("s", &path);
        some.line = Some(2);
        assert_eq!(read(&workspace, &some).unwrap().content, "two\n");
        let missing = read(&workspace, &ReadTextFileRequest::new("s", workspace.path().join("none"))).unwrap_err();
        assert_eq!(i32::from(missing.code), -32002);
    }
}
