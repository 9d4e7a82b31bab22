//! Messages and what answers them.

use futures_util::future::join_all;
use nuncio_client::SendOptions;
use nuncio_protocol::{Content, ContextId, Message, Part, SendMessageConfiguration, SendMessageResponse, TaskState};
use nuncio_tests::{Value, json};
use serde_json::to_value;

use crate::kit::{at_once, message, reply, said, task_json, text};
use crate::scenarios;
use crate::ways::Way;

scenarios! {
    "an echo": Nothing, echo;
    "a task at once": Nothing, task_at_once;
    "no history": V1, no_history;
    "the newest of the history": Nothing, newest_history;
    "a direct answer": Nothing, direct_answer;
    "a failure": Nothing, failure;
    "a rejection": Nothing, rejection;
    "a wish for credentials": Nothing, credentials;
    "a crash": Nothing, crash;
    "a question and its answer": Nothing, question;
    "an approval given": Nothing, approval_given;
    "an approval denied": Nothing, approval_denied;
    "a file": Nothing, file;
    "usage": Nothing, usage;
    "every kind of part": Nothing, parts;
    "metadata of a message": Nothing, metadata;
    "a context that goes on": Nothing, context;
    "text of every alphabet": Nothing, alphabets;
    "a megabyte of text": Nothing, megabyte;
    "one key, one task": Nothing, one_key;
    "thirty at once": Nothing, thirty;
}

async fn echo(way: Way) -> Value {
    let task = way.send(text("hello")).await;
    assert_eq!((task.status.state, said(&task).as_str()), (TaskState::Completed, "hello"));
    task_json(&task)
}

async fn task_at_once(way: Way) -> Value {
    let task = way.held().await;
    assert!(!task.status.state.is_terminal());
    let canceled = way.cancel(&task.id).await.expect("canceled");
    assert_eq!(canceled.status.state, TaskState::Canceled);
    json!([task.history.len(), task_json(&canceled)])
}

async fn no_history(way: Way) -> Value {
    with_history(way, 0).await
}

async fn newest_history(way: Way) -> Value {
    with_history(way, 1).await
}

async fn with_history(way: Way, length: i32) -> Value {
    let asked = way.send(text("ask why?")).await;
    let mut request = reply(&asked, "because");
    let configuration = SendMessageConfiguration { history_length: Some(length), ..Default::default() };
    request.configuration = Some(configuration);
    let task = way.send(request).await;
    assert_eq!(task.history.len(), usize::try_from(length).unwrap());
    task_json(&task)
}

async fn direct_answer(way: Way) -> Value {
    let SendMessageResponse::Message(answer) = way.client.send(text("message hi there")).await.expect("an answer")
    else {
        panic!("a task")
    };
    assert_eq!(answer.text(), "hi there");
    to_value(&answer).unwrap()
}

async fn ends(way: Way, words: &str, state: TaskState) -> Value {
    let task = way.send(text(words)).await;
    assert_eq!(task.status.state, state);
    task_json(&task)
}

async fn failure(way: Way) -> Value {
    ends(way, "fail on purpose", TaskState::Failed).await
}

async fn rejection(way: Way) -> Value {
    ends(way, "reject that", TaskState::Rejected).await
}

async fn credentials(way: Way) -> Value {
    ends(way, "auth at the bank", TaskState::AuthRequired).await
}

async fn crash(way: Way) -> Value {
    ends(way, "crash", TaskState::Failed).await
}

async fn question(way: Way) -> Value {
    let asked = way.send(text("ask which colour?")).await;
    assert_eq!(asked.status.state, TaskState::InputRequired);
    let done = way.send(reply(&asked, "blue")).await;
    assert_eq!((done.status.state, said(&done).as_str()), (TaskState::Completed, "blue"));
    json!([task_json(&asked), task_json(&done)])
}

async fn approved(way: Way, answer: &str, said_then: &str) -> Value {
    let asked = way.send(text("approve rm -rf build")).await;
    assert_eq!(asked.status.state, TaskState::InputRequired);
    let done = way.send(reply(&asked, answer)).await;
    assert_eq!(said(&done), said_then);
    json!([asked.status.message.map(|message| message.text()), done.status.state as i32, said(&done)])
}

async fn approval_given(way: Way) -> Value {
    approved(way, "y", "approved").await
}

async fn approval_denied(way: Way) -> Value {
    approved(way, "n", "denied").await
}

async fn file(way: Way) -> Value {
    let task = way.send(text("file notes.bin 1000")).await;
    let part = &task.artifacts[0].parts[0];
    let Content::Raw(bytes) = &part.content else { panic!("bytes: {part:?}") };
    assert_eq!((bytes.len(), part.filename.as_str()), (1000, "notes.bin"));
    task_json(&task)
}

async fn usage(way: Way) -> Value {
    let task = way.send(text("usage")).await;
    assert_eq!(task.status.state, TaskState::Completed);
    task_json(&way.task(&task.id).await)
}

async fn parts(way: Way) -> Value {
    let named = |part: Part, name: &str, kind: &str| Part { filename: name.into(), media_type: kind.into(), ..part };
    let of = |content| Part { content, ..Part::text("") };
    let parts = vec![
        Part::text("hello"),
        Part::data(json!({ "deep": [1, 2.5, null, true, { "a": "b" }] })),
        named(of(Content::Raw(vec![0, 1, 2, 255].into())), "raw.bin", "application/octet-stream"),
        named(of(Content::Url("https://files.example/a.png".into())), "a.png", "image/png"),
    ];
    let task = way.send(message(Message::from_user(parts.clone()))).await;
    assert_eq!(task.history[0].parts.len(), 4);
    assert_eq!(to_value(&task.history[0].parts).unwrap(), to_value(&parts).unwrap());
    task_json(&task)
}

async fn metadata(way: Way) -> Value {
    let mut sent = Message::from_user(vec![Part::text("hello")]);
    sent.metadata.insert("colour".into(), json!({ "name": "blue", "depth": 3 }));
    sent.extensions = vec!["https://example.com/ext/v1".into()];
    // 0.3 has no place for them in its protobuf form.
    if way.is_v1() {
        sent.reference_task_ids = vec!["another".into()];
    }
    let task = way.send(message(sent.clone())).await;
    let kept = &task.history[0];
    assert_eq!(kept.metadata, sent.metadata);
    assert_eq!((&kept.extensions, &kept.reference_task_ids), (&sent.extensions, &sent.reference_task_ids));
    task_json(&task)
}

async fn context(way: Way) -> Value {
    let mut first = Message::from_user(vec![Part::text("one")]);
    let context = format!("talk-{}", first.message_id.as_str());
    first.context_id = ContextId::from(context.as_str());
    let mut second = Message::from_user(vec![Part::text("two")]);
    second.context_id = first.context_id.clone();
    let (first, second) = (way.send(message(first)).await, way.send(message(second)).await);
    assert_eq!((first.context_id.as_str(), second.context_id.as_str()), (context.as_str(), context.as_str()));
    assert_ne!(first.id, second.id);
    json!([said(&first), said(&second)])
}

async fn alphabets(way: Way) -> Value {
    let words = "Grüße, 你好, \u{1F680}, \u{0}\u{1}\"\\\n\r\t, ‏שלום, \u{2028}\u{feff}";
    let task = way.send(text(words)).await;
    assert_eq!(said(&task), words);
    task_json(&task)
}

async fn megabyte(way: Way) -> Value {
    let words = "0123456789abcdef".repeat(65_536);
    let task = way.send(text(&words)).await;
    assert_eq!(said(&task), words);
    json!(said(&task).len())
}

async fn one_key(way: Way) -> Value {
    let request = text("hello");
    let how = SendOptions::key(format!("key-{}", request.message.as_ref().unwrap().message_id.as_str()));
    let mut ids = Vec::new();
    for _ in 0..3 {
        let SendMessageResponse::Task(task) = way.client.send_with(request.clone(), &how).await.expect("an answer")
        else {
            panic!("a message")
        };
        ids.push(task.id);
    }
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "one task: {ids:?}");
    let other = way.send(text("hello")).await;
    assert_ne!(other.id, ids[0]);
    json!(ids.len())
}

async fn thirty(way: Way) -> Value {
    let sends = (0..30).map(|n| {
        let way = way.clone();
        async move { said(&way.send(text(&format!("number {n}"))).await) }
    });
    let answers = join_all(sends).await;
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(*answer, format!("number {n}"), "answers belong to their questions");
    }
    let held = way.send(at_once(text("sleep 0"))).await;
    let done = way.until(&held.id, TaskState::Completed).await;
    json!([answers, done.status.state as i32])
}
