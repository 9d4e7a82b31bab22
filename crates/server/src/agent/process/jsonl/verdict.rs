//! How a turn ends.

use super::super::report::Report;

/// Sees to it that a turn ends once.
#[derive(Debug, Default)]
pub(in super::super) struct Verdict {
    given: bool,
}

impl Verdict {
    /// Whether the turn has ended.
    pub(in super::super) fn is_given(&self) -> bool {
        self.given
    }

    /// The turn ends like this and the program's stdin is closed, unless it has ended before.
    pub(in super::super) fn give(&mut self, report: Report, out: &mut Vec<Report>) {
        if !std::mem::replace(&mut self.given, true) {
            out.push(report);
            out.push(Report::CloseInput);
        }
    }
}

/// Whether a program says in these words that it lacks credentials.
pub(in super::super) fn lacks_credentials(said: &str, words: &[&str]) -> bool {
    mentions(said, words)
}

/// Whether one of these words, in lower case, is in what a program says.
pub(in super::super) fn mentions(said: &str, words: &[&str]) -> bool {
    let said = said.to_lowercase();
    words.iter().any(|words| said.contains(words))
}
