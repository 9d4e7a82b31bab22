//! Cards whose security schemes are written as a program holds them, not as A2A writes them.

use super::{Value, decode, encode};

/// The member that names the kind in the memory of the SDK for JavaScript, which publishes its cards so.
const KIND: &str = "$case";

/// A card in which every such scheme is written as A2A writes it, so that it can be read; `None` if there is none.
pub fn mend_card(json: &[u8]) -> Option<Vec<u8>> {
    let mut tree: Value = decode(json).ok()?;
    let schemes = tree.get_mut("securitySchemes")?;
    unfold(schemes).then(|| encode(&tree).into())
}

/// `{"scheme": {"$case": "k", "value": v}}` becomes `{"k": v}`, all the way down.
fn unfold(value: &mut Value) -> bool {
    let Value::Object(members) = value else { return false };
    let inner = members.values_mut().next().filter(|inner| is_kind(inner)).map(Value::take);
    if let Some(Value::Object(mut inner)) = inner {
        let held = inner.remove("value").unwrap_or_default();
        if let Some(Value::String(kind)) = inner.remove(KIND) {
            *value = Value::Object([(kind, held)].into_iter().collect());
        }
        unfold(value);
        return true;
    }
    members.values_mut().fold(false, |mended, value| unfold(value) | mended)
}

/// Whether a scheme is written so.
pub(crate) fn is_folded(scheme: &Value) -> bool {
    scheme.as_object().is_some_and(|members| members.values().any(is_kind))
}

fn is_kind(value: &Value) -> bool {
    value.get(KIND).is_some_and(Value::is_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AgentCard, json};

    #[test]
    fn schemes_are_written_as_a2a_writes_them() {
        let flow = json!({"$case": "clientCredentials", "value": {"tokenUrl": "t", "refreshUrl": "", "scopes": {}}});
        let oauth = json!({"$case": "oauth2SecurityScheme", "value": {"description": "", "flows": {"flow": flow}}});
        let key = json!({"$case": "apiKeySecurityScheme", "value": {"location": "header", "name": "k"}});
        let card = json!({"name": "n", "securitySchemes": {"o": {"scheme": oauth}, "k": {"scheme": key}}});
        let mended = mend_card(card.to_string().as_bytes()).unwrap();
        let read: AgentCard = decode(&mended).unwrap();
        let written = json!({
            "o": {"oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": "t", "scopes": {}}}}},
            "k": {"apiKeySecurityScheme": {"location": "header", "name": "k"}},
        });
        assert_eq!(crate::codec::to_value(&read.security_schemes), written);
        assert!(mend_card(&mended).is_none());
        for other in ["{}", "[]", r#"{"securitySchemes":[]}"#, r#"{"securitySchemes":{"k":{"scheme":{}}}}"#] {
            assert!(mend_card(other.as_bytes()).is_none(), "{other}");
        }
    }
}
