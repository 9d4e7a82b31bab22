//! What is refused, and in which words.

use nuncio_protocol::{Message, Part, SendMessageRequest};
use nuncio_tests::{Value, json};

use crate::kit::{message, refused, reply, task_json, text};
use crate::scenarios;
use crate::ways::Way;

scenarios! {
    "no message": Nothing, no_message;
    "a message without parts": Nothing, no_parts;
    "a message without an id": Nothing, no_id;
    "a message to a task that is not there": Nothing, missing_task;
    "a message to a finished task": Nothing, finished_task;
    "a task of another context": Nothing, other_context;
    "the extended card": Nothing, extended_card;
    "a refused stream": Nothing, stream;
    "a refusal changes nothing": Nothing, changes_nothing;
}

async fn no_message(way: Way) -> Value {
    refused(way.client.send(SendMessageRequest::default()).await)["code"].clone()
}

async fn no_parts(way: Way) -> Value {
    let error = refused(way.client.send(message(Message::from_user(Vec::new()))).await);
    error["code"].clone()
}

async fn no_id(way: Way) -> Value {
    let mut sent = Message::from_user(vec![Part::text("hello")]);
    sent.message_id = "".into();
    refused(way.client.send(message(sent)).await)["code"].clone()
}

async fn missing_task(way: Way) -> Value {
    let mut sent = Message::from_user(vec![Part::text("hello")]);
    sent.task_id = "no-such-task".into();
    refused(way.client.send(message(sent)).await)
}

async fn finished_task(way: Way) -> Value {
    let task = way.send(text("hello")).await;
    let error = refused(way.client.send(reply(&task, "and then?")).await);
    json!([error["code"]])
}

async fn other_context(way: Way) -> Value {
    let asked = way.send(text("ask why?")).await;
    let mut request = reply(&asked, "because");
    if let Some(message) = &mut request.message {
        message.context_id = "another".into();
    }
    refused(way.client.send(request).await)["code"].clone()
}

async fn extended_card(way: Way) -> Value {
    match way.client.extended_card().await {
        Ok(card) => json!(card.name),
        Err(error) => crate::kit::error_json(&error),
    }
}

async fn stream(way: Way) -> Value {
    let mut sent = Message::from_user(vec![Part::text("hello")]);
    sent.task_id = "no-such-task".into();
    match way.client.stream(message(sent)).await {
        Err(error) => crate::kit::error_json(&error),
        Ok(mut events) => {
            let next = futures_util::StreamExt::next(&mut events).await;
            refused(next.expect("an error"))
        }
    }
}

async fn changes_nothing(way: Way) -> Value {
    let task = way.send(text("hello")).await;
    refused(way.client.send(reply(&task, "and then?")).await);
    refused(way.cancel(&task.id).await);
    assert_eq!(task_json(&way.task(&task.id).await), task_json(&task));
    json!(task.history.len())
}
