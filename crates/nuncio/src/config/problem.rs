//! What is wrong, and where.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::node::Node;

/// One mistake, told to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Line in the file, to report in reading order.
    pub(crate) line: Option<u64>,
    pub(crate) text: String,
}

/// Where a value comes from, in the order of precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag,
    Environment(String),
    File(PathBuf),
    Profile(String),
    Default,
}

/// Where a value comes from, to the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) origin: Origin,
    pub(crate) line: Option<u64>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Flag => f.write_str("flag"),
            Origin::Environment(variable) => write!(f, "environment ({variable})"),
            Origin::File(path) => match self.line {
                Some(line) => write!(f, "file ({}, line {line})", path.display()),
                None => write!(f, "file ({})", path.display()),
            },
            Origin::Profile(name) => write!(f, "profile ({name})"),
            Origin::Default => f.write_str("default"),
        }
    }
}

impl Source {
    /// Nobody has set it.
    pub(crate) const DEFAULT: Self = Self { origin: Origin::Default, line: None };

    /// How near to the person it was set: 0 on the command line.
    pub(crate) fn rank(&self) -> u8 {
        match self.origin {
            Origin::Flag => 0,
            Origin::Environment(_) => 1,
            Origin::File(_) => 2,
            Origin::Profile(_) => 3,
            Origin::Default => 4,
        }
    }

    /// The same for machines.
    pub(crate) fn to_json(&self) -> Json {
        match &self.origin {
            Origin::Flag => json!({"source": "flag"}),
            Origin::Environment(variable) => {
                json!({"source": "environment", "variable": variable})
            }
            Origin::File(path) => {
                json!({"source": "file", "file": path.to_string_lossy(), "line": self.line})
            }
            Origin::Profile(name) => json!({"source": "profile", "profile": name}),
            Origin::Default => json!({"source": "default"}),
        }
    }
}

/// The place of a value, for messages: `` `tokens[0].name` in nuncio.yml, line 3 ``.
#[derive(Clone, Debug)]
pub(crate) struct Spot<'a> {
    /// The key, with the path to it.
    pub(crate) key: String,
    pub(crate) origin: &'a Origin,
    pub(crate) line: Option<u64>,
    /// What `~` stands for.
    pub(crate) home: Option<&'a Path>,
}

impl Spot<'_> {
    /// A field of the mapping at this place.
    pub(crate) fn child(&self, key: &str, line: Option<u64>) -> Self {
        let key = if self.key.is_empty() { key.to_owned() } else { format!("{}.{key}", self.key) };
        Self { key, ..self.at(line) }
    }

    /// An item of the list at this place.
    pub(crate) fn item(&self, index: usize, line: Option<u64>) -> Self {
        let key = format!("{}[{index}]", self.key);
        Self { key, ..self.at(line) }
    }

    /// The same place on another line.
    pub(crate) fn at(&self, line: Option<u64>) -> Self {
        Self { line: line.or(self.line), ..self.clone() }
    }

    /// Something is wrong here.
    pub(crate) fn problem(&self, message: impl fmt::Display) -> Problem {
        Problem { line: self.line, text: format!("{self}: {message}") }
    }

    /// Something of another kind was expected here.
    pub(crate) fn wrong(&self, node: &Node, expected: impl fmt::Display) -> Problem {
        self.problem(format_args!("expected {expected}, found {}", node.found()))
    }

    /// ` in nuncio.yml, line 3`, or nothing outside of files.
    pub(crate) fn place(&self) -> String {
        let file = match self.origin {
            Origin::File(path) => path.display().to_string(),
            Origin::Profile(name) => format!("profile {name}"),
            _ => return String::new(),
        };
        match self.line {
            Some(line) => format!(" in {file}, line {line}"),
            None => format!(" in {file}"),
        }
    }
}

impl fmt::Display for Spot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.origin {
            Origin::Flag => write!(f, "`--{}`", self.key),
            Origin::Environment(variable) => write!(f, "`{variable}`"),
            _ => write!(f, "`{}`{}", self.key, self.place()),
        }
    }
}
