//! What the agent says and does.
//!
//! `codex app-server` writes names in `camelCase`, `codex exec` in `snake_case`; they mean the same.

use nuncio_protocol::{Value, json};

use super::super::jsonl::calls::Calls;
use super::super::jsonl::prose::{Prose, Said};
use super::super::jsonl::{brief, text};
use super::super::report::{Report, Step};

/// How many steps of a plan are shown.
const STEPS: usize = 30;
/// The most output of a command that is told when it ends, in characters.
const OUTPUT: usize = 64 << 10;

/// The items of a turn.
#[derive(Debug, Default)]
pub(in super::super) struct Items {
    answer: Prose,
    said: Said,
    thinking: Prose,
    thought: Said,
    /// The message whose pieces come.
    current: String,
    calls: Calls,
    /// What the last change of files is about, for the approval that it may need.
    change: Option<(String, Value)>,
}

impl Items {
    /// Whether the agent said or did anything.
    pub(in super::super) fn have_begun(&self) -> bool {
        self.answer.has_begun() || self.calls.have_begun()
    }

    /// The files that an item changes, if it is the last one that does.
    pub(super) fn changes(&self, id: &str) -> Option<&Value> {
        self.change.as_ref().filter(|(item, _)| item == id).map(|(_, changes)| changes)
    }

    /// A piece of the answer.
    pub(super) fn text(&mut self, params: &Value, out: &mut Vec<Report>) {
        let (id, delta) = (text(params, "itemId"), text(params, "delta"));
        if self.current != id {
            id.clone_into(&mut self.current);
            self.answer.paragraph();
        }
        self.said.piece(id, delta);
        out.extend(self.answer.piece(delta).map(Report::Text));
    }

    /// A piece of thinking.
    pub(super) fn thinking(&mut self, params: &Value, out: &mut Vec<Report>) {
        self.thought.piece(text(params, "itemId"), text(params, "delta"));
        out.extend(self.thinking.piece(text(params, "delta")).map(Report::Think));
    }

    /// What is thought next is a paragraph of its own.
    pub(super) fn thinking_paragraph(&mut self) {
        self.thinking.paragraph();
    }

    /// A piece of the output of a command.
    pub(super) fn output(&mut self, params: &Value, out: &mut Vec<Report>) {
        self.calls.delta(text(params, "itemId"), text(params, "delta"), out);
    }

    /// An item begins.
    pub(in super::super) fn started(&mut self, item: &Value, out: &mut Vec<Report>) {
        let Some((name, input)) = call(item) else { return };
        let id = text(item, "id");
        if name == "apply_patch" {
            self.change = Some((id.to_owned(), input.clone()));
        }
        self.calls.start(id, &name, out);
        self.calls.input(id, input, out);
    }

    /// An item is done. Texts count only if they are the agent's own.
    pub(in super::super) fn completed(&mut self, item: &Value, own: bool, out: &mut Vec<Report>) {
        let id = text(item, "id");
        match &*kind(item) {
            "agentmessage" if own => {
                let whole = text(item, "text");
                let rest = self.said.rest(id, whole);
                if rest.len() == whole.len() {
                    self.answer.paragraph();
                }
                out.extend(self.answer.piece(rest).map(Report::Text));
            }
            "reasoning" if own && !self.thought.any(id) => {
                self.thinking.paragraph();
                out.extend(self.thinking.piece(&reasoning(item)).map(Report::Think));
            }
            "error" if own => out.push(Report::Status(brief(text(item, "message"), 500))),
            "todolist" if own => out.extend(plan(item.get("items"), "text").map(Report::Status)),
            _ => {
                // Some items come only when they are done.
                self.started(item, out);
                self.calls.end(id, outcome(item), out);
            }
        }
    }
}

/// The type of an item, however it is spelled.
fn kind(item: &Value) -> String {
    text(item, "type").chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect()
}

/// A member by its `camelCase` name or its `snake_case` one.
fn member<'a>(item: &'a Value, camel: &str, snake: &str) -> Option<&'a Value> {
    item.get(camel).or_else(|| item.get(snake)).filter(|value| !value.is_null())
}

/// The tool and its input, if the item is a tool call.
fn call(item: &Value) -> Option<(String, Value)> {
    let copy = |name: &str| item.get(name).cloned().unwrap_or_default();
    let tool = || text(item, "tool").to_owned();
    Some(match &*kind(item) {
        "commandexecution" => {
            let mut input = json!({ "command": copy("command") });
            if let Some(cwd) = item.get("cwd") {
                input["cwd"] = cwd.clone();
            }
            ("shell".to_owned(), input)
        }
        "filechange" => ("apply_patch".to_owned(), json!({ "changes": changes(item) })),
        "mcptoolcall" => (format!("{}.{}", text(item, "server"), tool()), copy("arguments")),
        "dynamictoolcall" => (tool(), copy("arguments")),
        "collabagenttoolcall" | "collabtoolcall" => (tool(), json!({ "prompt": copy("prompt") })),
        "websearch" => ("web_search".to_owned(), json!({ "query": copy("query") })),
        "imageview" => ("view_image".to_owned(), json!({ "path": copy("path") })),
        _ => return None,
    })
}

/// Which files change how; the diffs come as an artifact.
fn changes(item: &Value) -> Value {
    let kind = |change: &Value| match change.get("kind") {
        Some(Value::Object(kind)) => kind.get("type").cloned().unwrap_or_default(),
        kind => kind.cloned().unwrap_or_default(),
    };
    let all = item.get("changes").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let read = |change: &Value| {
        let mut read = json!({ "path": text(change, "path"), "kind": kind(change) });
        if let Some(to) = change.get("kind").and_then(|kind| member(kind, "movePath", "move_path")) {
            read["movePath"] = to.clone();
        }
        read
    };
    all.iter().map(read).collect()
}

/// How a tool call ended.
fn outcome(item: &Value) -> Step {
    let output = member(item, "aggregatedOutput", "aggregated_output").and_then(Value::as_str).unwrap_or_default();
    let exit = member(item, "exitCode", "exit_code").and_then(Value::as_i64);
    let error = item.pointer("/error/message").and_then(Value::as_str);
    match (text(item, "status"), error) {
        ("declined", _) => Step::Failed("declined".to_owned()),
        (_, Some(error)) => Step::Failed(brief(error, OUTPUT)),
        ("failed" | "inProgress" | "in_progress", None) => Step::Failed(match (exit, output.trim()) {
            (Some(code), "") => format!("exit code {code}"),
            (Some(code), output) => format!("exit code {code}: {}", end_of(output)),
            (None, "") => "failed".to_owned(),
            (None, output) => end_of(output).to_owned(),
        }),
        _ => Step::Completed(match &*kind(item) {
            "commandexecution" => json!({ "exitCode": exit, "output": end_of(output) }),
            "filechange" => json!({ "changes": changes(item) }),
            "dynamictoolcall" => member(item, "contentItems", "content_items").cloned().unwrap_or_default(),
            _ => item.get("result").cloned().unwrap_or_default(),
        }),
    }
}

/// The end of an output, which tells most.
fn end_of(output: &str) -> &str {
    let from = output.char_indices().nth_back(OUTPUT).map_or(0, |(at, c)| at + c.len_utf8());
    &output[from..]
}

/// A summary as a list, or the text of `codex exec`.
fn reasoning(item: &Value) -> String {
    let join = |name: &str| {
        let list = item.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n\n")
    };
    [text(item, "text").to_owned(), join("summary"), join("content")]
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

/// A plan as people read it: one step per line.
pub(super) fn plan(steps: Option<&Value>, name: &str) -> Option<String> {
    let steps = steps?.as_array().filter(|steps| !steps.is_empty())?;
    let mark = |step: &Value| match (text(step, "status"), step.get("completed").and_then(Value::as_bool)) {
        ("completed", _) | (_, Some(true)) => "[x]",
        ("inProgress" | "in_progress", _) => "[>]",
        _ => "[ ]",
    };
    let lines: Vec<String> =
        steps.iter().take(STEPS).map(|step| format!("{} {}", mark(step), brief(text(step, name), 200))).collect();
    Some(lines.join("\n"))
}
