//! The tool calls that are under way.

use std::collections::VecDeque;

use nuncio_protocol::Value;

use super::super::report::{Report, Step};
use super::{brief, text};

/// How many calls are remembered at once.
const MOST: usize = 1024;
/// The longest title of a call.
const TITLE: usize = 300;

/// The calls that have begun and not ended.
#[derive(Debug, Default)]
pub(in super::super) struct Calls {
    open: VecDeque<Call>,
    begun: bool,
}

#[derive(Debug)]
struct Call {
    id: String,
    name: String,
    has_input: bool,
}

impl Calls {
    /// Whether there ever was a call.
    pub(in super::super) fn have_begun(&self) -> bool {
        self.begun
    }

    /// A call begins, if it has not yet.
    pub(in super::super) fn start(&mut self, id: &str, name: &str, out: &mut Vec<Report>) {
        if id.is_empty() || self.open.iter().any(|call| call.id == id) {
            return;
        }
        if self.open.len() == MOST {
            self.open.pop_front();
        }
        self.begun = true;
        self.open.push_back(Call { id: id.to_owned(), name: name.to_owned(), has_input: false });
        out.push(Report::Tool { id: id.to_owned(), name: name.to_owned(), step: Step::Started });
    }

    /// The input of a call is known; it is reported once.
    pub(in super::super) fn input(&mut self, id: &str, input: Value, out: &mut Vec<Report>) {
        let Some(call) = self.open.iter_mut().find(|call| call.id == id && !call.has_input) else { return };
        call.has_input = true;
        out.push(Report::Tool { id: id.to_owned(), name: call.name.clone(), step: Step::Input(input) });
    }

    /// A piece of the output of a call.
    pub(in super::super) fn delta(&self, id: &str, delta: &str, out: &mut Vec<Report>) {
        if let Some(call) = self.open.iter().find(|call| call.id == id && !delta.is_empty()) {
            let step = Step::Delta(delta.to_owned());
            out.push(Report::Tool { id: id.to_owned(), name: call.name.clone(), step });
        }
    }

    /// A call ends; one that never began, or has ended before, does not.
    pub(in super::super) fn end(&mut self, id: &str, step: Step, out: &mut Vec<Report>) {
        let Some(at) = self.open.iter().position(|call| call.id == id) else { return };
        if let Some(call) = self.open.remove(at) {
            out.push(Report::Tool { id: call.id, name: call.name, step });
        }
    }
}

/// What a call would do, in one line: `Bash: rm -rf build`.
pub(in super::super) fn title(tool: &str, input: &Value) -> String {
    const TELLING: [&str; 10] = [
        "command",
        "cmd",
        "file_path",
        "absolute_path",
        "path",
        "notebook_path",
        "url",
        "query",
        "pattern",
        "description",
    ];
    let what = TELLING.iter().map(|member| text(input, member)).find(|what| !what.trim().is_empty());
    match what {
        Some(what) if tool.is_empty() => brief(what, TITLE),
        Some(what) => format!("{tool}: {}", brief(what, TITLE)),
        None => tool.to_owned(),
    }
}
