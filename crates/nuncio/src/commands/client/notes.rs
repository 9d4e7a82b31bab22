//! What happens beside the answer: thinking, tools, decisions, usage.

use nuncio_protocol::{Metadata, Value};
use nuncio_server::present::{INPUT, THINKING, TOOL, USAGE};

use crate::terminal::one_line;

/// So much of what a tool is given or gives is shown.
const SHOWN: usize = 120;

/// Something that happened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// A piece of thinking.
    Thinking(String),
    /// A line.
    Line(String),
}

/// What the metadata of a status update tells.
pub(crate) fn notes(metadata: &Metadata) -> Vec<Note> {
    let own = [
        metadata.get(THINKING).and_then(thinking),
        metadata.get(TOOL).and_then(tool),
        metadata.get(INPUT).and_then(decision),
        metadata.get(USAGE).and_then(usage),
    ];
    let iac = metadata.get("iac_code").map(iac_code).unwrap_or_default();
    own.into_iter().flatten().chain(iac).collect()
}

fn thinking(value: &Value) -> Option<Note> {
    Some(Note::Thinking(text(value, "text")?))
}

fn tool(value: &Value) -> Option<Note> {
    let name = text(value, "name").unwrap_or_else(|| "tool".into());
    let line = match value.get("phase")?.as_str()? {
        "input" => format!("tool {name} {}", short(value.get("input"))),
        "completed" => format!("tool {name}: {}", short(value.get("output"))),
        "failed" => format!("tool {name} failed: {}", short(value.get("error"))),
        _ => return None,
    };
    Some(Note::Line(line))
}

fn decision(value: &Value) -> Option<Note> {
    let decision = text(value, "decision").filter(|_| value.get("kind").is_some_and(|kind| kind == "decision"))?;
    let by = text(value, "by").unwrap_or_default();
    // Whoever answered knows.
    (by != "caller").then(|| Note::Line(format!("{decision} by {by}")))
}

fn usage(value: &Value) -> Option<Note> {
    let count = |key: &str| value.get(key).and_then(Value::as_f64);
    let mut line = format!("{} tokens in, {} out", count("inputTokens")?, count("outputTokens")?);
    if let Some(model) = text(value, "model") {
        line.push_str(&format!(", {model}"));
    }
    Some(Note::Line(line))
}

fn iac_code(value: &Value) -> Vec<Note> {
    let mut notes = Vec::new();
    notes.extend(value.get("thinking").and_then(thinking));
    if let Some(tool) = value.get("tool") {
        let name = text(tool, "name").unwrap_or_else(|| "tool".into());
        let input = tool.get("input").or_else(|| tool.get("inputSummary"));
        let line = match tool.get("status").and_then(Value::as_str) {
            Some("input_complete") => Some(format!("tool {name} {}", short(input))),
            Some("completed") => Some(format!("tool {name}: {}", short(tool.get("result")))),
            Some("failed") => Some(format!("tool {name} failed: {}", short(tool.get("result")))),
            _ => None,
        };
        notes.extend(line.map(Note::Line));
    }
    if let Some(permission) = value.get("permission")
        && permission.get("pending").is_none()
    {
        let allowed = permission.get("autoApproved").and_then(Value::as_bool) == Some(true);
        let name = text(permission, "toolName").unwrap_or_else(|| "a tool".into());
        notes.push(Note::Line(format!("{} {name}", if allowed { "allowed" } else { "refused" })));
    }
    notes.extend(value.get("usage").and_then(usage));
    notes
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

/// A value on one line that is not endlessly long.
fn short(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => return "done".into(),
        Some(Value::String(text)) => one_line(text),
        Some(other) => one_line(&other.to_string()),
    };
    if text.chars().count() <= SHOWN {
        return text;
    }
    format!("{}…", text.chars().take(SHOWN).collect::<String>())
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::json;

    use super::*;

    fn lines(metadata: Value) -> Vec<Note> {
        let Value::Object(metadata) = metadata else { return Vec::new() };
        notes(&metadata.into())
    }

    fn line(text: &str) -> Note {
        Note::Line(text.into())
    }

    #[test]
    fn our_own_reports_are_told() {
        assert_eq!(lines(json!({ THINKING: { "text": "hm" } })), [Note::Thinking("hm".into())]);
        let tool =
            |phase: &str, key: &str, value: Value| lines(json!({ TOOL: { "name": "ls", "phase": phase, key: value } }));
        assert_eq!(tool("input", "input", json!({ "path": "/" })), [line(r#"tool ls {"path":"/"}"#)]);
        assert_eq!(tool("completed", "output", json!("a\nb")), [line("tool ls: a b")]);
        assert_eq!(tool("failed", "error", json!("no")), [line("tool ls failed: no")]);
        assert_eq!(tool("delta", "delta", json!("x")), []);
        assert_eq!(
            lines(json!({ USAGE: { "inputTokens": 12, "outputTokens": 34, "model": "demo" } })),
            [line("12 tokens in, 34 out, demo")]
        );
        assert_eq!(
            lines(json!({ INPUT: { "kind": "decision", "decision": "denied", "by": "rule" } })),
            [line("denied by rule")]
        );
    }

    #[test]
    fn those_of_iac_code_are_told_as_well() {
        let told = lines(json!({ "iac_code": {
            "thinking": { "type": "raw_thinking", "text": "so" },
            "tool": { "status": "completed", "name": "bash", "result": "ok" },
            "permission": { "autoApproved": false, "toolName": "bash" },
            "usage": { "inputTokens": 3.0, "outputTokens": 4.0, "totalTokens": 7.0 },
        } }));
        assert_eq!(
            told,
            [Note::Thinking("so".into()), line("tool bash: ok"), line("refused bash"), line("3 tokens in, 4 out"),]
        );
    }

    #[test]
    fn nonsense_is_ignored_and_long_things_are_cut() {
        assert_eq!(lines(json!({ TOOL: 3, THINKING: { "text": 1 }, USAGE: {}, "iac_code": [] })), []);
        let long = lines(json!({ TOOL: { "name": "x", "phase": "completed", "output": "y".repeat(1000) } }));
        assert!(matches!(&long[0], Note::Line(text) if text.chars().count() < 140), "{long:?}");
    }
}
