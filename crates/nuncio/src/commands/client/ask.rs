//! What an agent wants to know, and the answer to it.

use nuncio_protocol::{Metadata, Part, TaskStatus, Value, json};
use nuncio_server::present::INPUT;

/// A question of an agent.
#[derive(Debug, PartialEq)]
pub(crate) struct Question {
    /// The agent's words.
    pub(crate) text: String,
    kind: Kind,
}

#[derive(Debug, PartialEq)]
enum Kind {
    /// Any text answers it.
    Open,
    /// One of these answers it; the reply is bound to what was asked.
    Choice { options: Vec<Choice>, reply: Reply },
}

/// An answer to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Choice {
    id: String,
    name: String,
    allows: bool,
}

/// The form that the agent wants the decision in.
#[derive(Debug, PartialEq)]
enum Reply {
    /// `{"id", "digest", "decision"}`
    Approval { id: Value, digest: Value },
    /// iac-code's form: the fields beside the decision.
    Permission(Metadata),
}

impl Question {
    /// What a task that waits for input waits for. `metadata` is that of the update which said so.
    pub(crate) fn of(status: &TaskStatus, metadata: &Metadata) -> Option<Self> {
        let message = status.message.as_ref();
        let text = message.map(nuncio_protocol::Message::text).unwrap_or_default();
        let asked = message.and_then(|message| message.metadata.get(INPUT));
        if let Some(asked) = asked.filter(|asked| asked["kind"] == "approval") {
            return Some(approval(text, asked));
        }
        if let Some(input) = metadata.get("iac_code").and_then(|own| own.get("input")) {
            return permission(&text, input);
        }
        (!text.trim().is_empty()).then_some(Self { text, kind: Kind::Open })
    }

    /// Whether it is more than the end of a turn.
    pub(crate) fn is_choice(&self) -> bool {
        matches!(self.kind, Kind::Choice { .. })
    }

    /// What to type.
    pub(crate) fn hint(&self) -> String {
        match &self.kind {
            Kind::Open => "answer:".into(),
            Kind::Choice { options, .. } => {
                let names: Vec<String> =
                    options.iter().enumerate().map(|(n, choice)| format!("{}) {}", n + 1, choice.name)).collect();
                format!("{}, or y/n:", names.join("  "))
            }
        }
    }

    /// The message that says so; nothing if it answers nothing.
    pub(crate) fn reply(&self, typed: &str) -> Option<Vec<Part>> {
        let typed = typed.trim();
        if typed.is_empty() {
            return None;
        }
        let (options, reply) = match &self.kind {
            Kind::Open => return Some(vec![Part::text(typed)]),
            Kind::Choice { options, reply } => (options, reply),
        };
        let choice = choose(options, typed)?;
        let value = match reply {
            Reply::Approval { id, digest } => json!({ "id": id, "digest": digest, "decision": choice.id }),
            Reply::Permission(fields) => {
                let mut fields = fields.clone();
                fields.insert("decision".into(), choice.id.as_str().into());
                fields.into()
            }
        };
        Some(vec![Part { media_type: "application/json".into(), ..Part::data(value) }])
    }
}

fn approval(text: String, asked: &Value) -> Question {
    let options =
        options(&asked["options"], |option| option["kind"].as_str().is_some_and(|kind| kind.starts_with("allow")));
    let reply = Reply::Approval { id: asked["id"].clone(), digest: asked["digest"].clone() };
    Question { text, kind: Kind::Choice { options, reply } }
}

/// Answers of other kinds are not known.
fn permission(text: &str, input: &Value) -> Option<Question> {
    let prompt = input["prompt"].as_str().unwrap_or_default();
    let summary = input["safeSummary"].as_str().unwrap_or_default();
    let words: Vec<&str> = [text, prompt, summary].into_iter().filter(|text| !text.trim().is_empty()).collect();
    let text = words.join("\n");
    if input["kind"] != "permission" {
        return (!text.is_empty()).then_some(Question { text, kind: Kind::Open });
    }
    let options = options(&input["options"], |option| option["id"].as_str().is_some_and(|id| id.starts_with("allow")));
    let kept = ["schemaVersion", "kind", "requestTaskId", "inputId", "toolUseId"];
    let fields = kept.iter().filter_map(|key| Some(((*key).to_owned(), input.get(*key)?.clone()))).collect();
    Some(Question { text, kind: Kind::Choice { options, reply: Reply::Permission(fields) } })
}

fn options(value: &Value, allows: impl Fn(&Value) -> bool) -> Vec<Choice> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let read = |option: &Value| {
        let id = option["id"].as_str()?.to_owned();
        let name = option["name"].as_str().or_else(|| option["label"].as_str()).unwrap_or(&id).to_owned();
        Some(Choice { allows: allows(option), id, name })
    };
    list.iter().filter_map(read).collect()
}

/// By number, by name, or by a plain yes or no.
fn choose<'c>(options: &'c [Choice], typed: &str) -> Option<&'c Choice> {
    let number = typed.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
    let named = |choice: &&Choice| choice.name.eq_ignore_ascii_case(typed) || choice.id.eq_ignore_ascii_case(typed);
    let plain = match typed.to_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    };
    let fits = |choice: &&Choice| Some(choice.allows) == plain;
    number.or_else(|| options.iter().find(named)).or_else(|| options.iter().find(fits))
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::{Content, Message};

    use super::*;

    fn status(text: &str, metadata: Value) -> TaskStatus {
        let mut message = Message::from_agent(vec![Part::text(text)]);
        if let Value::Object(metadata) = metadata {
            message.metadata = metadata.into();
        }
        TaskStatus { message: Some(message), ..TaskStatus::default() }
    }

    fn data(parts: Option<Vec<Part>>) -> Value {
        match parts.unwrap().remove(0).content {
            Content::Data(value) => value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_decision_names_what_it_decides() {
        let options = json!([
            { "id": "a", "name": "Allow once", "kind": "allow_once" }, { "id": "r", "name": "Reject", "kind": "reject_once" },
        ]);
        let asked = json!({ "kind": "approval", "id": "q1", "digest": "sha256:x", "options": options });
        let question = Question::of(&status("Approve? rm", json!({ INPUT: asked })), &Metadata::new()).unwrap();
        assert_eq!(question.hint(), "1) Allow once  2) Reject, or y/n:");
        for (typed, id) in [("y", "a"), ("1", "a"), ("allow ONCE", "a"), (" no ", "r"), ("2", "r")] {
            assert_eq!(
                data(question.reply(typed)),
                json!({ "id": "q1", "digest": "sha256:x", "decision": id }),
                "{typed}"
            );
        }
        for typed in ["", "maybe", "3", "0"] {
            assert_eq!(question.reply(typed), None, "{typed}");
        }
    }

    #[test]
    fn iac_codes_permission_has_exactly_its_fields() {
        let input = json!({
            "schemaVersion": 1, "kind": "permission", "requestTaskId": "t", "contextId": "c", "inputId": "permission-1",
            "toolUseId": "u", "prompt": "Run it? Allow once?",
            "options": [{ "id": "allow_once", "label": "Allow once" }, { "id": "deny", "label": "Deny" }],
        });
        let Value::Object(metadata) = json!({ "iac_code": { "input": input } }) else { unreachable!() };
        let question = Question::of(&status("", Value::Null), &metadata.into()).unwrap();
        assert_eq!(question.text, "Run it? Allow once?");
        let expected = json!({
            "schemaVersion": 1, "kind": "permission", "requestTaskId": "t", "inputId": "permission-1", "toolUseId": "u",
            "decision": "deny",
        });
        assert_eq!(data(question.reply("n")), expected);
    }

    #[test]
    fn any_text_answers_an_open_question() {
        let question = Question::of(&status("Which colour?", Value::Null), &Metadata::new()).unwrap();
        assert_eq!(question.reply(" blue "), Some(vec![Part::text("blue")]));
        assert_eq!(question.reply("  "), None);
        assert_eq!(Question::of(&TaskStatus::default(), &Metadata::new()), None);
    }
}
