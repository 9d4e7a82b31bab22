//! Tool calls: what is known of each, and what is new in an update.

use std::collections::HashMap;
use std::path::Path;

use agent_client_protocol_schema::v1::{
    ContentBlock, Diff, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use nuncio_protocol::{Part, Value, json};

use super::Said;
pub(crate) use crate::agent::process::report::Step;

/// The most calls of a turn that are remembered at once.
const MOST: usize = 10_000;

/// The tool calls of a turn.
#[derive(Default)]
pub(crate) struct Calls {
    known: HashMap<String, Call>,
}

/// A tool call, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Call {
    pub(crate) title: String,
    /// What the tool is called by programs.
    pub(crate) tool: Option<String>,
    pub(crate) kind: ToolKind,
    pub(crate) input: Option<Value>,
    /// What it is called in every report, whatever the agent calls it later.
    name: String,
    /// Its text so far.
    text: String,
    output: Option<Value>,
    diffs: Vec<Diff>,
    locations: Vec<ToolCallLocation>,
    terminal: Option<String>,
    /// Its permission was denied.
    denied: bool,
    over: bool,
}

impl Calls {
    pub(crate) fn get(&self, id: &str) -> Option<&Call> {
        self.known.get(id)
    }

    /// Remembers that a call may not be made: some agents report it as completed all the same.
    pub(crate) fn deny(&mut self, id: &str) {
        if let Some(call) = self.known.get_mut(id) {
            call.denied = true;
        }
    }

    pub(super) fn started(
        &mut self,
        call: ToolCall,
        root: &Path,
        printed: &dyn Fn(&str) -> Option<String>,
        out: &mut Vec<Said>,
    ) {
        let fields = ToolCallUpdateFields::new()
            .title(call.title)
            .name(call.name)
            .kind(call.kind)
            .status(call.status)
            .content(call.content)
            .locations(call.locations)
            .raw_input(call.raw_input)
            .raw_output(call.raw_output);
        self.updated(ToolCallUpdate::new(call.tool_call_id, fields), root, printed, out);
    }

    pub(super) fn updated(
        &mut self,
        update: ToolCallUpdate,
        root: &Path,
        printed: &dyn Fn(&str) -> Option<String>,
        out: &mut Vec<Said>,
    ) {
        let id = update.tool_call_id.to_string();
        let fields = update.fields;
        if !self.known.contains_key(&id) && self.known.len() >= MOST {
            self.known.retain(|_, call| !call.over);
        }
        let is_new = !self.known.contains_key(&id);
        let call = self.known.entry(id.clone()).or_default();
        if call.over {
            return;
        }
        call.describe(&fields);
        let mut tell = |name: &str, step| out.push(Said::Tool { id: id.clone(), name: name.to_owned(), step });
        if is_new {
            call.name = call.tool.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| call.title.clone());
            if call.name.is_empty() {
                call.name = crate::agent::acp::permission::kind_name(call.kind).to_owned();
            }
            tell(&call.name, Step::Started);
        }
        if let Some(input) = fields.raw_input.filter(|input| call.input.as_ref() != Some(input)) {
            call.input = Some(input.clone());
            tell(&call.name, Step::Input(input));
        }
        if let Some(text) = fields.content.and_then(|content| call.replace(content)) {
            tell(&call.name, Step::Delta(text));
        }
        call.output = fields.raw_output.or(call.output.take());
        match fields.status {
            Some(ToolCallStatus::Completed) if call.denied => {
                tell(&call.name, Step::Failed("Permission was denied".into()));
            }
            Some(ToolCallStatus::Completed) => tell(&call.name, Step::Completed(call.result(printed))),
            Some(ToolCallStatus::Failed) => tell(&call.name, Step::Failed(call.failure(printed))),
            _ => return,
        }
        // A change is one only when it was made.
        if fields.status == Some(ToolCallStatus::Completed) && !call.denied {
            out.extend(call.diffs.iter().map(|diff| Said::Change(change(diff, root))));
        }
        *call = Call { over: true, name: std::mem::take(&mut call.name), ..Call::default() };
    }
}

impl Call {
    fn describe(&mut self, fields: &ToolCallUpdateFields) {
        if let Some(title) = fields.title.as_ref().filter(|title| !title.is_empty()) {
            self.title.clone_from(title);
        }
        if fields.name.is_some() {
            self.tool.clone_from(&fields.name);
        }
        if let Some(kind) = fields.kind {
            self.kind = kind;
        }
        if let Some(locations) = &fields.locations {
            self.locations.clone_from(locations);
        }
    }

    /// The files that it is about, beside what its input says.
    pub(crate) fn paths(&self) -> Vec<String> {
        paths(&self.locations, self.diffs.iter())
    }

    /// Takes the whole content anew; returns the text that is new in it.
    fn replace(&mut self, content: Vec<ToolCallContent>) -> Option<String> {
        let mut text = String::new();
        self.diffs.clear();
        for item in content {
            match item {
                ToolCallContent::Content(content) => {
                    if let ContentBlock::Text(more) = content.content {
                        text.push_str(&more.text);
                    }
                }
                ToolCallContent::Diff(diff) => self.diffs.push(diff),
                ToolCallContent::Terminal(terminal) => self.terminal = Some(terminal.terminal_id.to_string()),
                _ => {}
            }
        }
        let new = match text.strip_prefix(self.text.as_str()) {
            Some(more) => more.to_owned(),
            None => text.clone(),
        };
        self.text = text;
        (!new.is_empty()).then_some(new)
    }

    fn result(&self, printed: &dyn Fn(&str) -> Option<String>) -> Value {
        match &self.output {
            Some(output) if !output.is_null() => output.clone(),
            _ if self.text.is_empty() => match self.terminal.as_deref().and_then(printed) {
                Some(text) => text.into(),
                None => Value::Null,
            },
            _ => self.text.as_str().into(),
        }
    }

    fn failure(&self, printed: &dyn Fn(&str) -> Option<String>) -> String {
        match self.result(printed) {
            Value::Null => "The call failed".into(),
            Value::String(text) => text,
            other => String::from_utf8_lossy(&nuncio_protocol::codec::encode(&other)).into_owned(),
        }
    }
}

/// Where a call is at work, and what it changes.
pub(crate) fn paths<'a>(locations: &[ToolCallLocation], diffs: impl Iterator<Item = &'a Diff>) -> Vec<String> {
    let all = locations.iter().map(|location| &location.path).chain(diffs.map(|diff| &diff.path));
    all.map(|path| path.to_string_lossy().into_owned()).collect()
}

/// What changed in a file, with its path as seen from the workspace.
fn change(diff: &Diff, root: &Path) -> Part {
    let path = diff.path.strip_prefix(root).unwrap_or(&diff.path).to_string_lossy();
    let mut data = json!({ "path": path, "newText": diff.new_text });
    if let Some(old) = &diff.old_text {
        data["oldText"] = old.as_str().into();
    }
    Part::data(data)
}
