//! What a tool call is about, as rules look at it: its command, files and addresses.

use nuncio_protocol::Value;

use super::Approval;

/// Characters by which a shell command becomes more than the one command that a rule means.
const MORE_THAN_ONE: &[char] = &[';', '&', '|', '<', '>', '$', '`', '(', ')', '\n', '\r'];
/// Where the subjects of a tool call are looked for in its input, and which of them are paths.
const SUBJECTS: &[(&str, bool)] = &[
    ("command", false),
    ("cmd", false),
    ("file_path", true),
    ("filePath", true),
    ("absolute_path", true),
    ("notebook_path", true),
    ("path", true),
    ("url", false),
    ("query", false),
    ("pattern", false),
];

/// One thing that a call is about.
pub(super) struct Subject {
    said: String,
    /// The same path without detours, if it is one.
    path: Option<String>,
}

impl Subject {
    /// All that a call is about: what its input names, else the files that it would touch, else what is to be done in
    /// words.
    pub(super) fn all(approval: &Approval) -> Vec<Self> {
        let mut found = Self::named(&approval.input);
        if found.is_empty() {
            found.extend(Self::touched(approval));
        }
        if found.is_empty() {
            found.push(Self::of(approval.action.clone(), false));
        }
        found
    }

    /// The files that a call would touch, whatever its input names.
    pub(super) fn touched(approval: &Approval) -> impl Iterator<Item = Self> {
        approval.paths.iter().map(|path| Self::of(path.clone(), true))
    }

    fn named(input: &Value) -> Vec<Self> {
        let mut found = Vec::new();
        for (key, is_path) in SUBJECTS {
            match &input[*key] {
                Value::Null => {}
                Value::Array(paths) if *is_path => found.extend(paths.iter().map(|path| Self::of(text(path), true))),
                Value::Array(words) => {
                    let words: Vec<String> = words.iter().map(text).collect();
                    found.push(Self::of(words.join(" "), false));
                }
                value => found.push(Self::of(text(value), *is_path)),
            }
        }
        found
    }

    fn of(said: String, is_path: bool) -> Self {
        Self { path: is_path.then(|| straight(&said)), said }
    }

    /// A `*` stands for part of one command, never for another one after it, and for what is below a
    /// folder, never for a way out of it.
    pub(super) fn is_allowed(&self, pattern: &str) -> bool {
        if pattern == self.said {
            return true;
        }
        let is_one = !self.said.contains(MORE_THAN_ONE);
        match &self.path {
            None => is_one && glob(pattern, &self.said),
            Some(path) => is_one && !leads_up(path) && glob(pattern.strip_prefix("./").unwrap_or(pattern), path),
        }
    }

    /// Denies go by everything that the subject may be read as: as it stands, as one of several commands,
    /// as the path that it leads to.
    pub(super) fn is_denied(&self, pattern: &str) -> bool {
        let mut pieces = self.said.split(MORE_THAN_ONE);
        let by_path = |path: &String| {
            // A way up from a folder that is not known here may well end at the root.
            glob(pattern, path) || leads_up(path) && glob(pattern, &format!("/{}", path.trim_start_matches("../")))
        };
        glob(pattern, &self.said)
            || glob(pattern, &spaced(&self.said))
            || pieces.any(|piece| glob(pattern, &spaced(piece)))
            || self.path.as_ref().is_some_and(by_path)
    }
}

/// Whatever is no text is there all the same: a rule has to fit it.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// With one blank between words, and none around.
fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A path without `//`, `.` and `..`, as far as that can be told without looking at the disk: a relative path may
/// begin with `..` afterwards.
fn straight(path: &str) -> String {
    let path = path.trim();
    let is_absolute = path.starts_with('/');
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." if steps.last().is_some_and(|last| *last != "..") => drop(steps.pop()),
            ".." if is_absolute => {}
            step => steps.push(step),
        }
    }
    let steps = steps.join("/");
    match (is_absolute, steps.is_empty()) {
        (true, _) => format!("/{steps}"),
        (false, true) => ".".to_owned(),
        (false, false) => steps,
    }
}

/// Whether a straight path leaves the folder that it begins in.
fn leads_up(path: &str) -> bool {
    path == ".." || path.starts_with("../")
}

/// Whether `pattern` describes all of `text`; `*` stands for any text, also none.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path, PathBuf};

    use nuncio_protocol::json;
    use proptest::prelude::*;

    use super::*;

    fn path(said: &str) -> Subject {
        let approval = Approval { input: json!({ "file_path": said }), ..Approval::default() };
        Subject::all(&approval).remove(0)
    }

    #[test]
    fn paths_lose_their_detours() {
        for (said, straightened) in [
            ("/w1/../../etc/passwd", "/etc/passwd"),
            ("//etc/./shadow/", "/etc/shadow"),
            ("/..", "/"),
            ("a/b/../../../c", "../c"),
            ("./src//x", "src/x"),
            ("a/..", "."),
            (" /etc/shadow", "/etc/shadow"),
            ("a../b", "a../b"),
        ] {
            assert_eq!(straight(said), straightened, "{said}");
        }
    }

    #[test]
    fn a_star_is_no_way_up() {
        assert!(path("src/../src/x").is_allowed("src/*"));
        assert!(path("./src/x").is_allowed("./src/*"));
        assert!(path("../x").is_allowed("../x"), "that is what the rule says");
        for said in ["../x", "src/../../x", "..", "/w1/../x", "/w1/a/../../x"] {
            assert!(!path(said).is_allowed("/w1/*") && !path(said).is_allowed("src/*"), "{said}");
        }
        assert!(!path("../x").is_allowed("*"));
    }

    #[test]
    fn every_reading_of_a_path_is_denied() {
        for said in ["/etc/x", "//etc/x", "/tmp/../etc/x", "../../etc/x", "/etc/./x", " /etc/x"] {
            assert!(path(said).is_denied("/etc/*"), "{said}");
        }
        assert!(!path("/tmp/etc/x").is_denied("/etc/*"));
    }

    proptest! {
        #[test]
        fn straightening_agrees_with_walking(said in "/?((\\.|\\.\\.|a|b|\\.\\.\\.)?/){0,8}(\\.\\.|c)?") {
            let mut walked = PathBuf::new();
            for step in Path::new(&said).components() {
                match step {
                    Component::CurDir => {}
                    Component::ParentDir if matches!(walked.components().next_back(), Some(Component::Normal(_))) => {
                        walked.pop();
                    }
                    Component::ParentDir if walked.has_root() => {}
                    step => walked.push(step),
                }
            }
            if walked.as_os_str().is_empty() {
                walked.push(".");
            }
            prop_assert_eq!(straight(&said), walked.to_str().unwrap());
            prop_assert_eq!(straight(&straight(&said)), straight(&said));
        }

        #[test]
        fn nothing_outside_is_allowed(said in "/?((\\.|\\.\\.|w|x)?/){0,8}(\\.\\.|y)?") {
            if path(&said).is_allowed("/w/*") {
                let inside = straight(&said);
                prop_assert!(inside.starts_with("/w/") && !inside.split('/').any(|step| step == ".."));
            }
        }
    }
}
