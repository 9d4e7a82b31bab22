//! What a program says of its failure, without what the caller must not learn: where things lie on this machine, and
//! passwords in addresses.

use std::path::Path;

/// The text without the user parts of URLs, with paths inside the workspace relative to it, and of other absolute
/// paths only the last name.
pub(crate) fn redact(text: &str, workspace: &Path) -> String {
    let inside = workspace.to_str().map(|path| path.trim_end_matches('/')).filter(|path| !path.is_empty());
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let (before, path) = rest.split_at(at);
        out.push_str(before);
        let of_url = out.ends_with(':') && path.starts_with("//");
        // In an address, a colon stands before a password or a port.
        let length = path.find(|c| is_end(c) && !(of_url && c == ':')).unwrap_or(path.len());
        let (path, after) = path.split_at(length);
        if of_url {
            url(path, &mut out);
        } else if out.ends_with(is_name) {
            // `and/or` is no path, and neither is a media type.
            out.push_str(path);
        } else if let Some(below) = inside.and_then(|inside| path.strip_prefix(inside)).filter(|b| is_below(b)) {
            out.push('.');
            out.push_str(below);
        } else {
            absolute(path, &mut out);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '~' | ')' | '*' | '…')
}

/// Where a path ends in a sentence.
fn is_end(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'' | '`' | '<' | '>' | '|' | ',' | ';' | '(' | ')' | ':')
}

fn is_below(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/')
}

/// What follows the scheme: everything but the user.
fn url(path: &str, out: &mut String) {
    out.push_str("//");
    let rest = &path[2..];
    let authority = rest.find('/').unwrap_or(rest.len());
    match rest[..authority].rfind('@') {
        Some(at) => {
            out.push_str("***");
            out.push_str(&rest[at..]);
        }
        None => out.push_str(rest),
    }
}

fn absolute(path: &str, out: &mut String) {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    match names.as_slice() {
        [] => out.push_str(path),
        [.., last] => {
            out.push_str("…/");
            out.push_str(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        redact(text, Path::new("/work/ada/project"))
    }

    #[test]
    fn paths_outside_lose_their_folders() {
        assert_eq!(told("cannot read /srv/secret/key.pem: denied"), "cannot read …/key.pem: denied");
        assert_eq!(told("(/etc/passwd)"), "(…/passwd)");
        assert_eq!(told("at '/a/b c"), "at '…/b c");
        assert_eq!(told("/work/ada/project2/x"), "…/x", "a neighbour is not inside");
        assert_eq!(told("PATH=/usr/bin:/home/ada/bin"), "PATH=…/bin:…/bin");
    }

    #[test]
    fn paths_inside_are_relative() {
        assert_eq!(told("error in /work/ada/project/src/a.rs:3:1"), "error in ./src/a.rs:3:1");
        assert_eq!(told("entered /work/ada/project"), "entered .");
    }

    #[test]
    fn what_is_no_path_stays() {
        for text in ["and/or", "text/plain", "1/2", "a / b", "3 ms/op", "src/a.rs", "./x", "../x", "~/x", "", "/"] {
            assert_eq!(told(text), text);
        }
    }

    #[test]
    fn addresses_lose_their_user() {
        assert_eq!(told("GET https://ada:hunter2@api.example/v1/x failed"), "GET https://***@api.example/v1/x failed");
        assert_eq!(told("redis://:pw@cache:6379/0"), "redis://:pw@cache:6379/0".replace(":pw@", "***@"));
        assert_eq!(told("see https://docs.example/a@b"), "see https://docs.example/a@b");
    }
}
