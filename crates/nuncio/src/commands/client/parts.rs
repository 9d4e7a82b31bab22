//! What a call sends: the prompt, files and data, in this order.

use std::io::Read;
use std::path::Path;

use nuncio_protocol::{Content, Part, Value, codec};

use crate::failure::Failure;

/// No server takes more in one message.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Media types by the end of a file's name.
const TYPES: [(&str, &str); 34] = [
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("csv", "text/csv"),
    ("html", "text/html"),
    ("css", "text/css"),
    ("json", "application/json"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("toml", "application/toml"),
    ("xml", "application/xml"),
    ("sql", "application/sql"),
    ("tf", "application/x-terraform"),
    ("js", "text/javascript"),
    ("ts", "application/typescript"),
    ("py", "text/x-python"),
    ("rs", "text/x-rust"),
    ("go", "text/x-go"),
    ("java", "text/x-java"),
    ("c", "text/x-c"),
    ("h", "text/x-c"),
    ("sh", "application/x-sh"),
    ("log", "text/plain"),
    ("diff", "text/x-diff"),
    ("patch", "text/x-diff"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
    ("ogg", "audio/ogg"),
    ("pdf", "application/pdf"),
    ("zip", "application/zip"),
];

/// All parts of the message.
pub(crate) fn read(prompt: Option<&str>, files: &[String], data: &[String]) -> Result<Vec<Part>, Failure> {
    let readers = prompt.iter().filter(|text| **text == "-").count() + data.iter().filter(|text| *text == "-").count();
    if readers > 1 {
        return Err(usage("only one of --prompt and --data can read stdin"));
    }
    let mut parts = Vec::new();
    match prompt {
        Some("-") => match text_of(stdin()?, "stdin")? {
            text if text.trim().is_empty() => return Err(usage("there is no prompt on stdin")),
            text => parts.push(Part::text(text)),
        },
        Some(text) => parts.push(Part::text(text)),
        None if files.is_empty() && data.is_empty() => {
            return Err(usage("prompt is required. Provide --prompt, or --file or --data."));
        }
        None => {}
    }
    for file in files {
        parts.push(self::file(file)?);
    }
    for data in data {
        let value = self::data(data)?;
        parts.push(Part { media_type: "application/json".into(), ..Part::data(value) });
    }
    Ok(parts)
}

/// A file's bytes under its name; an address is passed on as it is.
fn file(named: &str) -> Result<Part, Failure> {
    let name = named.rsplit('/').next().unwrap_or_default().split(['?', '#']).next().unwrap_or_default();
    let (content, media_type) = if named.contains("://") {
        (Content::Url(named.to_owned()), media_type(name).unwrap_or_default())
    } else {
        let bytes = bytes_of(Path::new(named))?;
        let guess = if std::str::from_utf8(&bytes).is_ok() { "text/plain" } else { "application/octet-stream" };
        (Content::Raw(bytes.into()), media_type(name).unwrap_or(guess))
    };
    Ok(Part { filename: name.into(), media_type: media_type.into(), ..Part::from(content) })
}

/// JSON itself, `-` for stdin, or the name of a file, with or without `@`.
fn data(given: &str) -> Result<Value, Failure> {
    let text = match given.strip_prefix('@') {
        Some(path) => text_of(bytes_of(Path::new(path))?, path)?,
        None if given == "-" => text_of(stdin()?, "stdin")?,
        None if Path::new(given).is_file() => text_of(bytes_of(Path::new(given))?, given)?,
        None => given.to_owned(),
    };
    codec::decode(text.as_bytes())
        .map_err(|error| usage(&format!("--data is neither JSON nor a file with it: {error}")))
}

fn media_type(name: &str) -> Option<&'static str> {
    let end = name.rsplit_once('.')?.1.to_lowercase();
    TYPES.iter().find(|(known, _)| *known == end).map(|(_, media_type)| *media_type)
}

fn bytes_of(path: &Path) -> Result<Vec<u8>, Failure> {
    let wrong = |what: &str| usage(&format!("cannot send `{}`: {what}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| wrong(&error.to_string()))?;
    if file.metadata().is_ok_and(|about| about.is_dir()) {
        return Err(wrong("it is a folder"));
    }
    limited(file).map_err(|error| wrong(&error))
}

fn stdin() -> Result<Vec<u8>, Failure> {
    limited(std::io::stdin().lock()).map_err(|error| usage(&format!("cannot read stdin: {error}")))
}

fn limited(from: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    from.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST { Err("it is larger than 64 MiB".into()) } else { Ok(bytes) }
}

fn text_of(bytes: Vec<u8>, whence: &str) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|_| usage(&format!("{whence} is not UTF-8 text")))
}

fn usage(message: &str) -> Failure {
    Failure::usage(vec![message.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_order_and_get_their_types() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("main.tf");
        std::fs::write(&path, "x").unwrap();
        let (path, url) = (path.display().to_string(), "https://files.example/map.png?x=1".to_owned());
        let parts = read(Some("hi"), &[path, url], &[r#"{"a": 1}"#.to_owned()]).unwrap();
        let told: Vec<(&str, &str)> =
            parts.iter().map(|part| (part.filename.as_str(), part.media_type.as_str())).collect();
        assert_eq!(
            told,
            [("", ""), ("main.tf", "application/x-terraform"), ("map.png", "image/png"), ("", "application/json"),]
        );
        assert_eq!(parts[2].content, Content::Url("https://files.example/map.png?x=1".into()));
    }

    #[test]
    fn what_cannot_be_sent_is_told() {
        assert!(read(None, &[], &[]).unwrap_err().to_string().contains("prompt is required"));
        assert!(read(None, &["/nowhere/at/all".into()], &[]).unwrap_err().to_string().contains("cannot send"));
        assert!(read(None, &[], &["{".into()]).unwrap_err().to_string().contains("JSON"));
        assert!(read(Some("-"), &[], &["-".into()]).unwrap_err().to_string().contains("stdin"));
    }
}
