//! Which bytes of a card a signature covers. The specification says one thing and the SDKs do others.

use std::fmt;

use super::python;
use crate::card::AgentCard;
use crate::codec::{self, DecodeError, Value};
use crate::jcs;

/// A way to write a card for a signature; `signatures` itself is never in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// The specification's: required members always, optional ones if they are set, others unless they are
    /// empty; then RFC 8785. Members that A2A 1.0 does not know are left out.
    Spec,
    /// The card as it came, by RFC 8785: also covers members that A2A 1.0 does not know.
    Received,
    /// Without anything that is empty, required or not, by RFC 8785: the SDKs for JavaScript, and for Python
    /// since 1.3.
    Sdk,
    /// The same, but as Python writes JSON: the SDK for Python before 1.3, and that of A2A 0.3.
    Escaped,
}

impl Form {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spec => "specification",
            Self::Received => "as received",
            Self::Sdk => "SDK",
            Self::Escaped => "older Python SDK",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The bytes that a new signature covers.
pub(super) fn payload(card: &AgentCard, form: Form) -> Vec<u8> {
    let mut value = codec::to_value(card);
    remove_signatures(&mut value);
    match form {
        Form::Spec | Form::Received => jcs::canonical(&value),
        Form::Sdk => jcs::canonical(&without_empty(value)),
        Form::Escaped => python::dumps(&without_empty(value)),
    }
}

/// Bytes that a signature may cover.
pub(super) struct Candidate {
    pub(super) form: Form,
    pub(super) bytes: Vec<u8>,
    /// Whether members that A2A 1.0 does not know are in it.
    pub(super) whole: bool,
    /// Whether schemes are left out that are not written as A2A writes them.
    pub(super) without_schemes: bool,
}

/// What a signature covers of a card that it does not cover as a whole: what A2A 1.0 knows, without security
/// schemes that are not written as A2A writes them. The SDK for JavaScript leaves those out when it signs.
pub fn covered(json: &[u8]) -> Result<AgentCard, DecodeError> {
    model(json).map(|(card, _)| card)
}

/// The same, and whether there are such schemes.
fn model(json: &[u8]) -> Result<(AgentCard, bool), DecodeError> {
    codec::decode(json).map(|card| (card, false)).or_else(|error| {
        let mut value: Value = codec::decode(json)?;
        let Some(Value::Object(schemes)) = value.get_mut("securitySchemes") else { return Err(error) };
        schemes.retain(|_, scheme| !codec::is_folded(scheme));
        codec::from_value(value).map(|card| (card, true))
    })
}

/// Everything that a signature of a card in this JSON may cover, the specification's form first.
pub(super) fn candidates(json: &[u8], mut value: Value) -> Vec<Candidate> {
    remove_signatures(&mut value);
    // A card that is only of 0.3 says nothing about its interfaces in the model of 1.0.
    let is_old = value.get("supportedInterfaces").or_else(|| value.get("supported_interfaces")).is_none();
    let model = if is_old { None } else { model(json).ok() };
    let without_schemes = model.as_ref().is_some_and(|(_, without)| *without);
    let model = model.map(|(card, _)| {
        let mut value = codec::to_value(&card);
        remove_signatures(&mut value);
        value
    });
    let mut list: Vec<Candidate> = Vec::new();
    let mut add = |form, whole, bytes: Vec<u8>| match list.iter_mut().find(|known| known.bytes == bytes) {
        Some(known) => known.whole |= whole,
        None => list.push(Candidate { form, bytes, whole, without_schemes }),
    };
    if let Some(model) = &model {
        add(Form::Spec, false, jcs::canonical(model));
    }
    add(Form::Received, true, jcs::canonical(&value));
    let cleaned = model.map(without_empty).into_iter().map(|model| (false, model));
    for (whole, value) in cleaned.chain([(true, without_empty(value.clone()))]) {
        add(Form::Sdk, whole, jcs::canonical(&value));
        add(Form::Escaped, whole, python::dumps(&value));
    }
    if is_old {
        add(Form::Escaped, true, python::dumps(&without_empty(without_old_defaults(value))));
    }
    list
}

fn remove_signatures(value: &mut Value) {
    if let Value::Object(members) = value {
        // Not `remove`, which would move the last member to its place.
        members.shift_remove("signatures");
    }
}

/// The value without empty texts, lists and objects, and without `null`, all the way down.
fn without_empty(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| (name, without_empty(value)))
            .filter(|(_, value)| !is_empty(value))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_empty).filter(|item| !is_empty(item)).collect(),
        other => other,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A card of 0.3 without what its SDK for Python leaves out because it is the default.
fn without_old_defaults(mut value: Value) -> Value {
    let Value::Object(members) = &mut value else { return value };
    for (name, default) in [("protocolVersion", "0.3.0"), ("preferredTransport", "JSONRPC")] {
        if members.get(name).and_then(Value::as_str) == Some(default) {
            members.shift_remove(name);
        }
    }
    // Each kind of scheme is a class of its own, with its type as the default.
    if let Some(Value::Object(schemes)) = members.get_mut("securitySchemes") {
        for scheme in schemes.values_mut().filter_map(Value::as_object_mut) {
            scheme.shift_remove("type");
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The forms of a card that holds only what is given, as text.
    fn forms(json: &str) -> Vec<(Form, bool, String)> {
        let value = serde_json::from_str(json).unwrap();
        let list = candidates(json.as_bytes(), value);
        list.into_iter().map(|c| (c.form, c.whole, String::from_utf8(c.bytes).unwrap())).collect()
    }

    fn form(json: &str, form: Form, whole: bool) -> String {
        forms(json).into_iter().find(|(f, w, _)| (*f, *w) == (form, whole)).unwrap().2
    }

    const CARD: &str = r#"{"version":"","name":"Zoë","capabilities":{"extensions":[],"streaming":false},"iconUrl":"",
        "skills":[],"securitySchemes":{},"supportedInterfaces":[{"url":"u","tenant":"","protocolBinding":"B",
        "protocolVersion":"1.0"}],"future":{"x":1.0},
        "signatures":[{"protected":"x","signature":"y"}]}"#;

    #[test]
    fn the_specification_keeps_required_and_set_members_and_drops_other_empty_ones() {
        assert_eq!(
            form(CARD, Form::Spec, false),
            "{\"capabilities\":{\"streaming\":false},\"defaultInputModes\":[],\"defaultOutputModes\":[],\
             \"description\":\"\",\"iconUrl\":\"\",\"name\":\"Zoë\",\"skills\":[],\"supportedInterfaces\":\
             [{\"protocolBinding\":\"B\",\"protocolVersion\":\"1.0\",\"url\":\"u\"}],\"version\":\"\"}"
        );
    }

    #[test]
    fn the_sdks_drop_whatever_is_empty() {
        let interface = r#"[{"protocolBinding":"B","protocolVersion":"1.0","url":"u"}]"#;
        assert_eq!(
            form(CARD, Form::Sdk, false),
            format!(r#"{{"capabilities":{{"streaming":false}},"name":"Zoë","supportedInterfaces":{interface}}}"#)
        );
        assert_eq!(
            form(CARD, Form::Escaped, true),
            format!(
                r#"{{"capabilities":{{"streaming":false}},"future":{{"x":1.0}},"name":"Zo\u00eb","supportedInterfaces":{interface}}}"#
            )
        );
    }

    #[test]
    fn what_came_is_covered_to_the_last_member() {
        let whole = form(CARD, Form::Received, true);
        assert!(whole.contains(r#""future":{"x":1}"#) && whole.contains(r#""securitySchemes":{}"#), "{whole}");
        assert!(!whole.contains("signatures"), "{whole}");
    }

    #[test]
    fn a_card_of_03_has_no_form_of_10() {
        let old = r#"{"name":"o","url":"u","protocolVersion":"0.3.0","preferredTransport":"JSONRPC",
            "securitySchemes":{"k":{"type":"apiKey","in":"header","name":"x"}},"signatures":[]}"#;
        assert!(forms(old).iter().all(|(form, whole, _)| *whole && *form != Form::Spec));
        let last = forms(old).pop().unwrap().2;
        assert_eq!(last, r#"{"name":"o","securitySchemes":{"k":{"in":"header","name":"x"}},"url":"u"}"#);
    }
}
