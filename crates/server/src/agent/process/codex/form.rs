//! Forms of MCP servers: a few named fields that somebody fills in.

use std::fmt::Write as _;

use nuncio_protocol::{Metadata, Value, codec};

use super::super::jsonl::{brief, text};

/// How many fields a form may have.
const MOST: usize = 32;

/// What an MCP server wants to know.
#[derive(Debug)]
pub(super) struct Form {
    message: String,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    name: String,
    kind: Kind,
    about: String,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    List,
}

impl Form {
    /// The form of a request; `None` if it has no fields, so that a yes or no will do.
    pub(super) fn read(params: &Value) -> Option<Self> {
        let properties = params.get("requestedSchema")?.get("properties")?.as_object()?;
        let fields: Vec<Field> = properties.iter().take(MOST).map(|(name, schema)| Field::read(name, schema)).collect();
        let message = format!("{}: {}", text(params, "serverName"), brief(text(params, "message"), 2000));
        (!fields.is_empty()).then_some(Self { message, fields })
    }

    /// The form as people read it.
    pub(super) fn show(&self) -> String {
        let mut shown = self.message.clone();
        for field in &self.fields {
            let _ = write!(shown, "\n- {}", field.name);
            if !field.about.is_empty() {
                let _ = write!(shown, ": {}", field.about);
            }
        }
        if self.fields.len() > 1 {
            shown.push_str("\nAnswer with one line `name: value` for each, or with a JSON object.");
        }
        shown
    }

    /// The filled form: a JSON object, lines `name: value`, or the value of the only field.
    pub(super) fn fill(&self, answer: &str) -> Value {
        let answer = answer.trim();
        if let Ok(Value::Object(object)) = codec::decode::<Value>(answer.as_bytes()) {
            return object.into();
        }
        let mut filled = Metadata::new();
        for line in answer.lines() {
            let Some((name, value)) = line.split_once([':', '=']) else { continue };
            if let Some(field) = self.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name.trim())) {
                filled.insert(field.name.clone(), field.kind.value(value.trim()));
            }
        }
        if let ([field], true) = (&*self.fields, filled.is_empty()) {
            filled.insert(field.name.clone(), field.kind.value(answer));
        }
        filled.into()
    }
}

impl Field {
    fn read(name: &str, schema: &Value) -> Self {
        let kind = match text(schema, "type") {
            "integer" => Kind::Integer,
            "number" => Kind::Number,
            "boolean" => Kind::Boolean,
            "array" => Kind::List,
            _ => Kind::Text,
        };
        let about = [text(schema, "description"), text(schema, "title")].into_iter().find(|about| !about.is_empty());
        let mut about = brief(about.unwrap_or_default(), 300);
        let choices = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if !choices.is_empty() {
            let choices: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
            let _ = write!(about, " ({})", brief(&choices.join(", "), 300));
        }
        Self { name: name.to_owned(), kind, about: about.trim().to_owned() }
    }
}

impl Kind {
    /// The value that these words mean; the words themselves if they mean none.
    fn value(self, words: &str) -> Value {
        let number = |value: f64| Value::from(value);
        match self {
            Self::Text => words.into(),
            Self::Integer => words.parse::<i64>().map_or_else(|_| words.into(), Value::from),
            Self::Number => words.parse::<f64>().map_or_else(|_| words.into(), number),
            Self::Boolean => match &*words.to_lowercase() {
                "yes" | "y" | "true" | "on" | "1" => true.into(),
                "no" | "n" | "false" | "off" | "0" => false.into(),
                _ => words.into(),
            },
            Self::List => words.split(',').map(|word| Value::from(word.trim())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::json;

    use super::*;

    #[allow(clippy::needless_pass_by_value, reason = "it reads better where it is called")]
    fn form(properties: Value) -> Option<Form> {
        let schema = json!({ "type": "object", "properties": properties });
        Form::read(&json!({ "serverName": "calendar", "message": "When?", "mode": "form", "requestedSchema": schema }))
    }

    #[test]
    fn a_form_without_fields_is_a_plain_question() {
        assert!(form(json!({})).is_none());
    }

    #[test]
    fn a_form_is_shown_and_filled() {
        let form = form(json!({
            "day": { "type": "string", "enum": ["Monday", "Friday"] },
            "hours": { "type": "integer", "description": "How long" },
            "invite": { "type": "boolean" }
        }))
        .expect("fields");
        assert!(form.show().contains("- day: (Monday, Friday)\n- hours: How long\n- invite"), "{}", form.show());
        let filled = json!({ "day": "Friday", "hours": 2, "invite": true });
        assert_eq!(form.fill("day: Friday\nHours = 2\ninvite: yes"), filled);
        assert_eq!(form.fill(r#"{"day":"Friday","hours":2,"invite":true}"#), filled);
    }

    #[test]
    fn one_field_takes_the_whole_answer() {
        assert_eq!(form(json!({ "n": { "type": "number" } })).expect("a field").fill("2.5"), json!({ "n": 2.5 }));
    }
}
