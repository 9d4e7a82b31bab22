//! Tasks that are asked for, listed and canceled.

use nuncio_protocol::{ContextId, GetTaskRequest, ListTasksRequest, Message, Part, TaskState};
use nuncio_tests::{Value, json};
use serde_json::to_value;

use crate::kit::{message, refused, reply, task_json, text};
use crate::scenarios;
use crate::ways::Way;

scenarios! {
    "a task asked for": Nothing, asked_for;
    "a task without its history": V1, without_history;
    "a task that is not there": Nothing, not_there;
    "a task without an id": V1, no_id;
    "a page of a context": V1, page;
    "page after page": V1, pages;
    "tasks in one state": V1, by_state;
    "tasks with artifacts": V1, with_artifacts;
    "a wrong page token": V1, wrong_token;
    "a wrong page size": V1, wrong_size;
    "a task canceled": Nothing, canceled;
    "a task canceled twice": Nothing, canceled_twice;
    "a finished task canceled": Nothing, finished;
    "a missing task canceled": Nothing, cancel_missing;
}

async fn asked_for(way: Way) -> Value {
    let asked = way.send(text("ask why?")).await;
    let done = way.send(reply(&asked, "because")).await;
    let task = way.task(&done.id).await;
    assert_eq!(task_json(&task), task_json(&done), "the answer to a send is the task");
    task_json(&task)
}

async fn without_history(way: Way) -> Value {
    let task = way.send(text("hello")).await;
    let request = GetTaskRequest { id: task.id, history_length: Some(0), ..GetTaskRequest::default() };
    let task = way.client.get(request).await.expect("the task");
    assert!(task.history.is_empty());
    task_json(&task)
}

async fn not_there(way: Way) -> Value {
    refused(way.client.get(GetTaskRequest { id: "no-such-task".into(), ..GetTaskRequest::default() }).await)
}

async fn no_id(way: Way) -> Value {
    // REST has the id in its path, so that there is no such request; an empty one is a listing there.
    if way.name == "REST" {
        return json!({ "code": -32602, "field": "id" });
    }
    let error = refused(way.client.get(GetTaskRequest::default()).await);
    json!({ "code": error["code"], "field": error["violations"][0][0] })
}

/// A context with tasks of its own.
async fn some(way: &Way, words: &[&str]) -> ContextId {
    let context = ContextId::from(format!("context-{}", Message::from_user(Vec::new()).message_id.as_str()).as_str());
    for words in words {
        let mut sent = Message::from_user(vec![Part::text(*words)]);
        sent.context_id = context.clone();
        way.send(message(sent)).await;
    }
    context
}

fn of(context: &ContextId) -> ListTasksRequest {
    ListTasksRequest { context_id: context.clone(), ..ListTasksRequest::default() }
}

async fn page(way: Way) -> Value {
    let context = some(&way, &["one", "two", "three"]).await;
    let page = way.client.list(of(&context)).await.expect("a page");
    assert_eq!((page.tasks.len(), page.total_size, page.next_page_token.as_str()), (3, 3, ""));
    let states: Vec<_> = page.tasks.iter().map(|task| (task.status.state as i32, task.history.len())).collect();
    json!([states, page.page_size])
}

async fn pages(way: Way) -> Value {
    let context = some(&way, &["one", "two", "three", "four", "five"]).await;
    let (mut token, mut ids, mut sizes) = (String::new(), Vec::new(), Vec::new());
    for _ in 0..10 {
        let request = ListTasksRequest { page_size: Some(2), page_token: token, ..of(&context) };
        let page = way.client.list(request).await.expect("a page");
        sizes.push((page.tasks.len(), page.total_size, page.page_size));
        ids.extend(page.tasks.into_iter().map(|task| task.id));
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((count, ids.len()), (5, 5), "each once");
    json!(sizes)
}

async fn by_state(way: Way) -> Value {
    let context = some(&way, &["one", "fail on purpose", "ask why?"]).await;
    let mut counts = Vec::new();
    for status in [TaskState::Completed, TaskState::Failed, TaskState::InputRequired, TaskState::Working] {
        let page = way.client.list(ListTasksRequest { status, ..of(&context) }).await.expect("a page");
        assert!(page.tasks.iter().all(|task| task.status.state == status));
        counts.push(page.tasks.len());
    }
    assert_eq!(counts, [1, 1, 1, 0]);
    json!(counts)
}

async fn with_artifacts(way: Way) -> Value {
    let context = some(&way, &["hello"]).await;
    let plain = way.client.list(of(&context)).await.expect("a page");
    assert!(plain.tasks[0].artifacts.is_empty());
    let asked = ListTasksRequest { include_artifacts: Some(true), history_length: Some(5), ..of(&context) };
    let page = way.client.list(asked).await.expect("a page");
    assert_eq!(page.tasks[0].artifacts.len(), 1);
    let mut task = to_value(&page.tasks[0]).unwrap();
    task["contextId"] = json!("context");
    task["history"][0]["contextId"] = json!("context");
    task
}

async fn wrong_token(way: Way) -> Value {
    refused(way.client.list(ListTasksRequest { page_token: "nonsense".into(), ..Default::default() }).await)
}

async fn wrong_size(way: Way) -> Value {
    let mut all = Vec::new();
    for size in [0, -1, 101] {
        all.push(refused(way.client.list(ListTasksRequest { page_size: Some(size), ..Default::default() }).await));
    }
    json!(all)
}

async fn canceled(way: Way) -> Value {
    let task = way.held().await;
    let canceled = way.cancel(&task.id).await.expect("canceled");
    assert_eq!(canceled.status.state, TaskState::Canceled);
    assert_eq!(task_json(&way.task(&task.id).await), task_json(&canceled));
    task_json(&canceled)
}

async fn canceled_twice(way: Way) -> Value {
    let task = way.held().await;
    let first = way.cancel(&task.id).await.expect("canceled");
    let again = way.cancel(&task.id).await.expect("that it is canceled is what was wanted");
    assert_eq!(task_json(&first), task_json(&again));
    task_json(&again)
}

async fn finished(way: Way) -> Value {
    let task = way.send(text("hello")).await;
    refused(way.cancel(&task.id).await)
}

async fn cancel_missing(way: Way) -> Value {
    refused(way.cancel(&"no-such-task".into()).await)
}
