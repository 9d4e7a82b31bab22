//! Lines in which a command asks whether it may go on.

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

use crate::agent::process::tail::plain;

/// What a command asks with at the end of a line, and how such a line begins.
static USUAL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let asks = r"([(\[]\s*y(es)?\s*/\s*n(o)?\s*[)\]]|\[y/[^\]]*\]|\by/n\b)\s*[:?>]?\s*$";
    RegexBuilder::new(&format!(r"{asks}|^\s*do you want to\b|^\s*continue\?")).case_insensitive(true).build().ok()
});

/// A question is shorter than this; longer lines are not looked at.
const LONGEST: usize = 4096;

/// A pattern that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a regular expression: {0}")]
pub struct BadPattern(String);

/// How a command asks for approvals, and what it reads as yes.
#[derive(Clone, Debug)]
pub struct Approvals {
    pattern: Option<Regex>,
    response: String,
}

impl Default for Approvals {
    fn default() -> Self {
        Self { pattern: USUAL.clone(), response: "y".into() }
    }
}

impl Approvals {
    /// Lines with this regular expression in them ask; without one, those of the usual forms. Without a
    /// response, `y` means yes. `n` always means no.
    pub fn new(pattern: Option<&str>, response: Option<&str>) -> Result<Self, BadPattern> {
        let mut approvals = Self::default();
        if let Some(pattern) = pattern {
            // The reason without the drawing that points at the place.
            let short = |error: regex::Error| error.to_string().lines().last().unwrap_or_default().trim().to_owned();
            let regex = RegexBuilder::new(pattern).size_limit(1 << 20).build();
            approvals.pattern = Some(regex.map_err(|error| BadPattern(short(error)))?);
        }
        if let Some(response) = response {
            response.clone_into(&mut approvals.response);
        }
        Ok(approvals)
    }

    /// What a line asks for, if it asks.
    pub(super) fn find(&self, line: &str) -> Option<String> {
        if line.len() > LONGEST || line.trim().is_empty() {
            return None;
        }
        let line = plain(line);
        let asks = self.pattern.as_ref()?.is_match(line.trim_end());
        asks.then(|| line.trim().to_owned())
    }

    /// The line that answers.
    pub(super) fn answer(&self, approved: bool) -> Vec<u8> {
        let word = if approved { self.response.as_str() } else { "n" };
        format!("{word}\n").into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_questions_are_seen() {
        let usual = Approvals::default();
        for line in [
            "Proceed? [y/N]",
            "Proceed? [Y/n] ",
            "Delete it (y/n)",
            "Delete it (Y/N)?",
            "Really (yes/no):",
            "Overwrite? [y/n/a]",
            "Run this? Y/N",
            "Do you want to run `rm`",
            "Continue?",
            "\u{1b}[33mProceed? [y/N]\u{1b}[0m",
        ] {
            assert!(usual.find(line).is_some(), "{line}");
        }
        assert_eq!(usual.find("  \u{1b}[33mProceed? [y/N]\u{1b}[0m ").as_deref(), Some("Proceed? [y/N]"));
    }

    #[test]
    fn what_only_speaks_of_questions_is_none() {
        let usual = Approvals::default();
        for line in ["", "It asks [y/N] and waits", "I do not continue", "use -y/-n", "why/no"] {
            assert_eq!(usual.find(line), None, "{line}");
        }
        assert_eq!(usual.find(&format!("{} [y/N]", "a".repeat(LONGEST))), None);
    }

    #[test]
    fn a_pattern_replaces_them() {
        let own = Approvals::new(Some("^ALLOW "), Some("allow")).unwrap();
        assert!(own.find("ALLOW net").is_some());
        assert_eq!(own.find("Proceed? [y/N]"), None);
        assert_eq!(own.answer(true), b"allow\n");
        assert_eq!(own.answer(false), b"n\n");
    }

    #[test]
    fn a_bad_pattern_says_so() {
        let error = Approvals::new(Some("(("), None).unwrap_err();
        assert!(error.to_string().starts_with("not a regular expression: "), "{error}");
    }
}
