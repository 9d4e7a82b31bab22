//! How many bytes messages hold, told without writing them.

use nuncio_protocol::{Content, Message, Metadata, Part, Value};

/// About as many as their JSON has, but for files, which are counted as they are.
pub(super) fn of(messages: &[Message]) -> usize {
    messages.iter().map(message).sum()
}

fn message(message: &Message) -> usize {
    metadata(&message.metadata) + message.parts.iter().map(part).sum::<usize>()
}

fn part(part: &Part) -> usize {
    let content = match &part.content {
        Content::Text(text) | Content::Url(text) => text.len(),
        Content::Raw(bytes) => bytes.len(),
        Content::Data(data) => value(data),
    };
    content + metadata(&part.metadata) + part.filename.len()
}

fn metadata(metadata: &Metadata) -> usize {
    metadata.iter().map(|(key, of)| key.len() + value(of)).sum()
}

fn value(of: &Value) -> usize {
    match of {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(value).sum::<usize>() + 1,
        Value::Object(members) => members.iter().map(|(key, of)| key.len() + value(of)).sum::<usize>() + 1,
        Value::Null | Value::Bool(_) | Value::Number(_) => size_of::<Value>(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use nuncio_protocol::json;

    use super::*;

    #[test]
    fn everything_that_can_be_long_counts() {
        let long = "x".repeat(1000);
        let data = json!({ "a": [{ (long.clone()): [long.clone(), 1, null] }] });
        for part in [
            Part::text(long.clone()),
            Part { content: Content::Raw(Bytes::from(long.clone())), ..Part::text("") },
            Part { content: Content::Data(data), ..Part::text("") },
            Part { filename: long.clone(), ..Part::text("") },
            Part { metadata: Metadata::from_iter([("a".to_owned(), json!(long))]), ..Part::text("") },
        ] {
            let message = Message::from_agent(vec![part]);
            assert!(of(std::slice::from_ref(&message)) >= 1000, "{message:?}");
            assert!(of(&[message.clone(), message]) >= 2000);
        }
    }
}
