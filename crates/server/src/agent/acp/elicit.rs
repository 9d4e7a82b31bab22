//! Questions of the agent to its user: from a form to words, and from an answer to the form.

use nuncio_protocol::{Content, Message, Object, Value, codec, json};

/// What the agent wants to know.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    /// The question in words.
    pub(crate) text: String,
    /// What a link is called until it was followed.
    pub(crate) link: Option<String>,
    fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq)]
struct Field {
    name: String,
    schema: Value,
    required: bool,
}

impl Question {
    /// Reads the parameters of a request; `None` for a kind that nobody knows.
    pub(crate) fn read(params: &Value) -> Option<Self> {
        let message = params["message"].as_str().unwrap_or("The agent asks:");
        match params["mode"].as_str() {
            None | Some("form") => Some(Self::form(message, &params["requestedSchema"])),
            Some("url") => {
                let url = params["url"].as_str()?;
                let text =
                    format!("{message}\nOpen {url}\nAnswer when you have done so, or \"decline\" or \"cancel\".");
                let link = params["elicitationId"].as_str().unwrap_or_default().to_owned();
                Some(Self { text, link: Some(link), fields: Vec::new() })
            }
            Some(_) => None,
        }
    }

    fn form(message: &str, schema: &Value) -> Self {
        let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let properties = schema["properties"].as_object().into_iter().flatten();
        let fields: Vec<Field> = properties
            .map(|(name, schema)| Field {
                name: name.clone(),
                schema: schema.clone(),
                required: required.iter().any(|one| one.as_str() == Some(name)),
            })
            .collect();
        let mut text = message.to_owned();
        for field in &fields {
            text.push_str("\n- ");
            text.push_str(&field.describe());
        }
        text.push_str(match fields.as_slice() {
            [] => "\nAnswer \"ok\", \"decline\" or \"cancel\".",
            [_] => "\nAnswer with the value, or \"decline\" or \"cancel\".",
            _ => "\nAnswer with a JSON object of these fields, or \"decline\" or \"cancel\".",
        });
        Self { text, link: None, fields }
    }

    /// What an answer means to the agent, or why it means nothing.
    pub(crate) fn answer(&self, message: &Message) -> Result<Value, String> {
        let text = message.text();
        let text = text.trim();
        match text.to_lowercase().as_str() {
            "decline" => return Ok(json!({ "action": "decline" })),
            "cancel" => return Ok(json!({ "action": "cancel" })),
            _ => {}
        }
        if self.link.is_some() {
            return Ok(json!({ "action": "accept" }));
        }
        if self.fields.is_empty() {
            return Ok(json!({ "action": "accept", "content": {} }));
        }
        let content = match object(message, text) {
            Some(object) => self.check(&object)?,
            None => match self.fields.as_slice() {
                [only] => Object::from_iter([(only.name.clone(), only.read(text)?)]),
                _ => return Err("The answer must be a JSON object.".into()),
            },
        };
        Ok(json!({ "action": "accept", "content": content }))
    }

    /// The fields of an object that the form knows, each of its type.
    fn check(&self, object: &Object) -> Result<Object, String> {
        let mut content = Object::new();
        for field in &self.fields {
            match object.get(&field.name) {
                None | Some(Value::Null) if field.required => return Err(format!("{} is missing.", field.name)),
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => _ = content.insert(field.name.clone(), field.read(text)?),
                Some(value) => _ = content.insert(field.name.clone(), field.accept(value.clone())?),
            }
        }
        Ok(content)
    }
}

impl Field {
    fn kind(&self) -> &str {
        self.schema["type"].as_str().unwrap_or("string")
    }

    /// The values to choose from, and what each is called.
    fn choices(&self) -> Vec<(String, String)> {
        let (plain, titled) = match self.kind() {
            "array" => (&self.schema["items"]["enum"], &self.schema["items"]["anyOf"]),
            _ => (&self.schema["enum"], &self.schema["oneOf"]),
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let plain = plain.as_array().into_iter().flatten().filter_map(|value| Some((text(value)?, text(value)?)));
        let titled = titled.as_array().into_iter().flatten().filter_map(|one| {
            let value = text(&one["const"])?;
            Some((value.clone(), text(&one["title"]).unwrap_or(value)))
        });
        plain.chain(titled).collect()
    }

    fn describe(&self) -> String {
        let mut text = self.name.clone();
        if let Some(title) = self.schema["title"].as_str().filter(|title| *title != self.name) {
            text.push_str(&format!(" ({title})"));
        }
        text.push_str(match (self.kind(), self.required) {
            ("string", true) => "",
            ("array", true) => ", a list",
            ("array", false) => ", a list, optional",
            (_, true) => ", required",
            (_, false) => ", optional",
        });
        if matches!(self.kind(), "number" | "integer" | "boolean") {
            text.push_str(&format!(", {}", self.kind()));
        }
        if let Some(more) = self.schema["description"].as_str() {
            text.push_str(&format!(": {more}"));
        }
        let choices: Vec<String> = self
            .choices()
            .into_iter()
            .map(|(value, title)| if value == title { value } else { format!("{value} ({title})") })
            .collect();
        if !choices.is_empty() {
            text.push_str(&format!("; one of {}", choices.join(", ")));
        }
        if let Some(default) = self.schema.get("default").filter(|default| !default.is_null()) {
            text.push_str(&format!("; usually {default}"));
        }
        text
    }

    /// Reads a value that somebody wrote as text.
    fn read(&self, text: &str) -> Result<Value, String> {
        let wrong = |what: &str| Err(format!("{} must be {what}.", self.name));
        match self.kind() {
            "integer" => text.parse::<i64>().map(Value::from).or_else(|_| wrong("a whole number")),
            "number" => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(number.into()),
                _ => wrong("a number"),
            },
            "boolean" => match text.to_lowercase().as_str() {
                "true" | "yes" | "y" => Ok(true.into()),
                "false" | "no" | "n" => Ok(false.into()),
                _ => wrong("yes or no"),
            },
            "array" => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                items.map(|item| self.chosen(item)).collect::<Result<Vec<Value>, String>>().map(Value::from)
            }
            _ => self.chosen(text),
        }
    }

    /// A value that came as JSON.
    fn accept(&self, value: Value) -> Result<Value, String> {
        let fits = match self.kind() {
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => match value.as_array() {
                Some(items) => {
                    let items = items.iter().map(|item| self.chosen(item.as_str().unwrap_or_default()));
                    return items.collect::<Result<Vec<Value>, String>>().map(Value::from);
                }
                None => false,
            },
            _ => false,
        };
        if fits { Ok(value) } else { Err(format!("{} must be of type {}.", self.name, self.kind())) }
    }

    /// One of the choices, by its value or by what it is called; any text where there are none.
    fn chosen(&self, text: &str) -> Result<Value, String> {
        let choices = self.choices();
        if choices.is_empty() {
            return Ok(text.into());
        }
        let found = choices.iter().find(|(value, title)| value == text || title.eq_ignore_ascii_case(text));
        let names = || choices.iter().map(|(value, _)| value.as_str()).collect::<Vec<_>>().join(", ");
        found
            .map(|(value, _)| value.as_str().into())
            .ok_or_else(|| format!("{} must be one of {}.", self.name, names()))
    }
}

/// The object that an answer holds, as data or as text.
fn object(message: &Message, text: &str) -> Option<Object> {
    let data = message.parts.iter().find_map(|part| match &part.content {
        Content::Data(Value::Object(object)) => Some(object.clone()),
        _ => None,
    });
    data.or_else(|| codec::decode::<Object>(text.as_bytes()).ok())
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::{Part, Role};
    use proptest::prelude::*;

    use super::*;

    fn said(part: Part) -> Message {
        Message { role: Role::User, ..Message::from_agent(vec![part]) }
    }

    fn form() -> Question {
        let params = json!({ "mode": "form", "message": "Where to?", "requestedSchema": {
            "type": "object", "required": ["host"],
            "properties": {
                "host": { "type": "string", "title": "Host name" },
                "port": { "type": "integer", "default": 22 },
                "zone": { "type": "string", "oneOf": [{ "const": "eu", "title": "Europe" }, { "const": "us", "title": "America" }] },
                "sure": { "type": "boolean" },
                "tags": { "type": "array", "items": { "enum": ["a", "b"] } },
            },
        }});
        Question::read(&params).unwrap()
    }

    #[test]
    fn a_form_is_asked_in_words() {
        assert_eq!(
            form().text,
            "Where to?\n- host (Host name)\n- port, optional, integer; usually 22\n\
             - zone, optional; one of eu (Europe), us (America)\n- sure, optional, boolean\n\
             - tags, a list, optional; one of a, b\n\
             Answer with a JSON object of these fields, or \"decline\" or \"cancel\"."
        );
    }

    #[test]
    fn an_object_answers_a_form() {
        let object = json!({ "host": "h", "port": "23", "zone": "europe", "sure": true, "tags": ["a"], "more": 1 });
        let content = json!({ "host": "h", "port": 23, "zone": "eu", "sure": true, "tags": ["a"] });
        let accepted = Ok(json!({ "action": "accept", "content": content }));
        assert_eq!(form().answer(&said(Part::data(object.clone()))), accepted);
        assert_eq!(form().answer(&said(Part::text(object.to_string()))), accepted);
        let wrong = |value: Value| form().answer(&said(Part::data(value))).unwrap_err();
        assert_eq!(wrong(json!({ "port": 1 })), "host is missing.");
        assert_eq!(wrong(json!({ "host": "h", "port": 1.5 })), "port must be of type integer.");
        assert_eq!(wrong(json!({ "host": "h", "zone": "asia" })), "zone must be one of eu, us.");
        assert_eq!(form().answer(&said(Part::text("h"))).unwrap_err(), "The answer must be a JSON object.");
    }

    #[test]
    fn plain_text_answers_a_single_field() {
        let only = |schema: Value| {
            let schema = json!({ "type": "object", "properties": { "it": schema } });
            Question::read(&json!({ "message": "?", "requestedSchema": schema })).unwrap()
        };
        let answer = |schema: Value, text: &str| only(schema).answer(&said(Part::text(text)));
        let accepted = |value: Value| Ok(json!({ "action": "accept", "content": { "it": value } }));
        assert_eq!(answer(json!({ "type": "string" }), " blue sky "), accepted("blue sky".into()));
        assert_eq!(answer(json!({ "type": "boolean" }), "Yes"), accepted(true.into()));
        assert_eq!(answer(json!({ "type": "number" }), "1.5"), accepted(1.5.into()));
        assert_eq!(answer(json!({ "type": "number" }), "NaN").unwrap_err(), "it must be a number.");
        assert_eq!(answer(json!({ "type": "string" }), "decline"), Ok(json!({ "action": "decline" })));
        assert_eq!(answer(json!({ "type": "string" }), "CANCEL"), Ok(json!({ "action": "cancel" })));
    }

    #[test]
    fn a_link_is_told_and_any_answer_but_no_accepts_it() {
        let params =
            json!({ "mode": "url", "message": "Sign in", "url": "https://example.org/x", "elicitationId": "e" });
        let question = Question::read(&params).unwrap();
        assert!(question.text.contains("https://example.org/x"));
        assert_eq!(question.answer(&said(Part::text("done"))), Ok(json!({ "action": "accept" })));
        assert_eq!(Question::read(&json!({ "mode": "telepathy" })), None);
    }

    proptest! {
        #[test]
        fn no_answer_breaks_it(text in ".{0,60}") {
            let _ = form().answer(&said(Part::text(text)));
        }
    }
}
