//! Answers with states and roles that nobody here knows keep the rest of what they say.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use nuncio_protocol::codec::{decode, encode, mend};
use nuncio_protocol::{StreamResponse, Task, TaskState, Value, json, v03};
use proptest::prelude::*;

#[path = "support/strategy.rs"]
#[allow(unreachable_pub)]
mod strategy;

#[test]
fn an_unknown_state_becomes_unspecified() {
    let json = json!({"id": "T1", "status": {"state": "TASK_STATE_PAUSED", "message": {"messageId": "m", "role": 9,
        "parts": [{"text": "wait"}, {"data": {"state": "liquid"}}]}}, "metadata": {"role": "owner"}});
    let text = json.to_string();
    assert!(decode::<Task>(text.as_bytes()).is_err());
    let task: Task = decode(&mend(text.as_bytes()).unwrap()).unwrap();
    assert_eq!(task.status.state, TaskState::Unspecified);
    assert_eq!(task.metadata["role"], "owner");
    let message = task.status.message.unwrap();
    assert_eq!(message.text(), "wait");
    assert_eq!(encode(&message.parts[1]), encode(&json!({"data": {"state": "liquid"}})));
}

#[test]
fn both_dialects_of_03_are_mended_too() {
    let bare = json!({"kind": "task", "id": "T1", "contextId": "C1", "status": {"state": "paused"}}).to_string();
    let mended = mend(bare.as_bytes()).unwrap();
    let StreamResponse::Task(task) = v03::json::read_event(&mended).unwrap() else { panic!("a task") };
    assert_eq!((task.id.as_str(), task.status.state), ("T1", TaskState::Unspecified));
    let wrapped = json!({"task": {"id": "T1", "status": {"state": "TASK_STATE_PAUSED"}}}).to_string();
    let StreamResponse::Task(task) = v03::rest::read_event(&mend(wrapped.as_bytes()).unwrap()).unwrap() else {
        panic!("a task")
    };
    assert_eq!(task.id.as_str(), "T1");
}

#[test]
fn a_page_of_03_is_read_in_both_dialects() {
    let page = |tasks: Value| json!({"tasks": tasks, "nextPageToken": "n", "pageSize": 1, "totalSize": 9}).to_string();
    let bare = page(json!([{"kind": "task", "id": "T1", "contextId": "C1", "status": {"state": "canceled"}}]));
    let proto = page(json!([{"id": "T1", "contextId": "C1", "status": {"state": "TASK_STATE_CANCELLED"}}]));
    for read in [v03::json::read_tasks(&bare).unwrap(), v03::rest::read_tasks(&proto).unwrap()] {
        assert_eq!((read.next_page_token.as_str(), read.page_size, read.total_size), ("n", 1, 9));
        assert_eq!(read.tasks[0].status.state, TaskState::Canceled);
    }
    assert!(v03::rest::read_tasks("{}").unwrap().tasks.is_empty());
}

proptest! {
    #[test]
    fn what_is_known_needs_no_mending(event in strategy::event()) {
        prop_assert_eq!(mend(&encode(&event)), None);
        let mut old = Vec::new();
        v03::json::write_event(&event, &mut old);
        prop_assert_eq!(mend(&old), None);
        old.clear();
        v03::rest::write_event(&event, &mut old);
        prop_assert_eq!(mend(&old), None);
    }
}
