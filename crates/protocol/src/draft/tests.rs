use super::*;
use crate::codec::{Value, decode, json};
use crate::{
    Artifact, Content, ErrorKind, ListTasksResponse, Message, Part, Role, SendMessageResponse, StreamResponse, Task,
    TaskArtifactUpdateEvent, TaskStatus, TaskStatusUpdateEvent, Timestamp,
};

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Value {
    let mut out = Vec::new();
    write(&mut out);
    decode(&out).unwrap()
}

fn sent(parts: &Value) -> Result<Vec<Part>, crate::Error> {
    let params = json!({ "message": { "messageId": "m", "role": "user", "parts": parts } });
    read_send(&params.to_string()).map(|request| request.message.unwrap().parts)
}

#[test]
fn parts_are_read_in_the_form_of_the_draft_and_in_that_of_1_0() {
    let parts = sent(&json!([
        { "text": "a", "metadata": { "k": 1 } },
        { "file": { "fileWithUri": { "uri": "https://x/y", "mimeType": "text/csv" } } },
        { "file": { "fileWithBytes": { "bytes": "aGk=" }, "mediaType": "text/plain" } },
        { "data": { "data": [1, 2] } },
        { "data": { "a": 1 } },
        { "raw": "aGk=", "mediaType": "text/plain" },
    ]))
    .unwrap();
    assert_eq!(parts[0].metadata["k"], 1);
    assert_eq!((&parts[1].content, &*parts[1].media_type), (&Content::Url("https://x/y".into()), "text/csv"));
    assert_eq!((&parts[2].content, &*parts[2].media_type), (&Content::Raw("hi".into()), "text/plain"));
    assert_eq!(parts[3].content, Content::Data(json!([1, 2])));
    assert_eq!(parts[4].content, Content::Data(json!({ "a": 1 })));
    assert_eq!(parts[5], parts[2]);
}

#[test]
fn a_part_holds_one_thing_and_a_mistake_is_found_with_its_place() {
    for wrong in [json!({}), json!({ "text": "a", "data": { "data": 1 } }), json!({ "file": {} }), json!({ "text": 1 })]
    {
        let error = sent(&json!([{ "text": "fine" }, wrong])).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidParams);
        assert!(error.message.contains("message.parts[1]"), "{error}");
    }
    assert_eq!(read_send("[]").unwrap_err().kind, ErrorKind::InvalidParams);
}

#[test]
fn a_send_carries_its_webhook_as_0_3_has_it() {
    let params = json!({
        "message": { "messageId": "m", "role": "agent", "parts": [{ "text": "a" }] },
        "configuration": { "blocking": false, "pushNotificationConfig": {
            "url": "https://x/", "authentication": { "schemes": ["bearer"], "credentials": "c" } } },
    });
    let request = read_send(&params.to_string()).unwrap();
    assert_eq!(request.message.unwrap().role, Role::Agent);
    let configuration = request.configuration.unwrap();
    assert!(configuration.return_immediately);
    let push = configuration.task_push_notification_config.unwrap();
    assert_eq!((&*push.url, push.authentication.unwrap().scheme.as_str()), ("https://x/", "bearer"));
}

#[test]
fn lists_have_limits_sets_of_states_and_cursors() {
    let list = |params: Value| read_list(&params.to_string());
    assert_eq!(list(json!({})).unwrap(), Listing { limit: 20, ..Listing::default() });
    let all = list(json!({ "contextId": "c", "state": ["completed", "cancelled", "canceled"], "limit": 100 })).unwrap();
    assert_eq!(all.states, [TaskState::Completed, TaskState::Canceled, TaskState::Canceled]);
    assert_eq!((all.context_id.as_str(), all.limit), ("c", 100));
    for limit in [0, 101, -1] {
        assert_eq!(list(json!({ "limit": limit })).unwrap_err().kind, ErrorKind::InvalidParams);
    }
    assert!(list(json!({ "state": ["asleep"] })).is_err());
    let cursor = cursor(1_700_000_000_123_000, &"task:1".into());
    assert_eq!(list(json!({ "cursor": cursor })).unwrap().after, Some((1_700_000_000_123_000, "task:1".into())));
    for wrong in ["?", "bm8=", "MTox"] {
        assert_eq!(list(json!({ "cursor": wrong })).is_ok(), wrong == "MTox", "{wrong}");
    }
}

#[test]
fn an_id_is_the_webhook_beside_a_task() {
    let names = |params: Value| read_names(&params.to_string()).unwrap();
    assert_eq!(names(json!({ "id": "t" })), Names { task: "t".into(), config: "".into() });
    assert_eq!(names(json!({ "taskId": "t" })), Names { task: "t".into(), config: "".into() });
    assert_eq!(names(json!({ "taskId": "t", "id": "c" })), Names { task: "t".into(), config: "c".into() });
    let long = json!({ "id": "t", "pushNotificationConfigId": "c" });
    assert_eq!(names(long), Names { task: "t".into(), config: "c".into() });
}

fn status(state: TaskState) -> TaskStatus {
    TaskStatus { state, timestamp: Timestamp::parse("2026-01-17T12:00:00Z"), message: None }
}

#[test]
fn frames_are_flat_and_the_last_status_is_final() {
    let task =
        Task { id: "abc".into(), context_id: "c".into(), status: status(TaskState::Submitted), ..Task::default() };
    let time = "2026-01-17T12:00:00.000Z";
    let frame = |event: StreamResponse| written(|out| write_event(&event, out));
    assert_eq!(
        frame(StreamResponse::Task(task)),
        json!({ "taskId": "abc", "contextId": "c", "status": { "state": "submitted", "timestamp": time } })
    );
    let update = |state| {
        frame(StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: "abc".into(),
            status: status(state),
            ..TaskStatusUpdateEvent::default()
        }))
    };
    assert_eq!(update(TaskState::Working)["type"], "status");
    assert_eq!(update(TaskState::Working).get("final"), None);
    for (state, name) in STATES.map(|(name, state)| (state, name)).into_iter().skip(1) {
        let frame = update(state);
        assert_eq!(frame["status"]["state"], name);
        let ends = !matches!(name, "submitted" | "working" | "auth-required");
        assert_eq!(frame.get("final").is_some(), ends, "{name}");
    }
    let artifact = Artifact {
        artifact_id: "a".into(),
        parts: vec![
            Part::text("x"),
            Part::data(json!(7)),
            Part { media_type: "a/b".into(), ..Content::Url("u".into()).into() },
        ],
        ..Artifact::default()
    };
    let piece = TaskArtifactUpdateEvent { task_id: "abc".into(), artifact, ..TaskArtifactUpdateEvent::default() };
    assert_eq!(
        frame(StreamResponse::ArtifactUpdate(piece.clone())),
        json!({ "type": "artifact", "taskId": "abc", "contextId": "", "artifact": { "artifactId": "a", "parts": [
            { "text": "x" },
            { "data": { "data": 7 } },
            { "file": { "fileWithUri": { "uri": "u", "mimeType": "a/b" }, "mediaType": "a/b" } },
        ] } })
    );
    assert_eq!(
        frame(StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent { append: true, ..piece }))["append"],
        true
    );
}

#[test]
fn tasks_and_pages_have_the_names_of_the_draft() {
    let said = Message::from_agent(vec![Part::text("bye")]);
    let task = Task {
        id: "t".into(),
        context_id: "c".into(),
        status: TaskStatus { message: Some(said.clone()), ..status(TaskState::Canceled) },
        history: vec![Message { role: Role::User, ..said }],
        ..Task::default()
    };
    let tree = written(|out| write_sent(&SendMessageResponse::Task(task.clone()), out));
    assert_eq!(
        (&tree["id"], &tree["taskId"], &tree["status"]["state"]),
        (&json!("t"), &json!("t"), &json!("cancelled"))
    );
    assert_eq!((&tree["status"]["message"]["role"], &tree["history"][0]["role"]), (&json!("agent"), &json!("user")));
    let page = ListTasksResponse { tasks: vec![task], ..ListTasksResponse::default() };
    let tree = written(|out| write_list(&page, Some("n"), out));
    assert_eq!((tree["tasks"][0]["id"].as_str(), tree["nextCursor"].as_str()), (Some("t"), Some("n")));
    assert_eq!(written(|out| write_list(&page, None, out)).get("nextCursor"), None);
}

#[test]
fn a_webhook_hears_where_the_task_stands_and_what_it_made() {
    let made = Artifact { artifact_id: "a".into(), parts: vec![Part::text("x")], ..Artifact::default() };
    let body = written(|out| write_notification(&"abc-123".into(), &status(TaskState::Completed), Some(&made), out));
    assert_eq!(
        body,
        json!({
            "taskId": "abc-123",
            "status": { "state": "completed", "timestamp": "2026-01-17T12:00:00.000Z" },
            "artifact": { "artifactId": "a", "parts": [{ "text": "x" }] },
        })
    );
    let required = ExtensionRequired { required: vec!["https://a"], provided: vec![] };
    let tree = crate::codec::to_value(&required);
    assert_eq!((&tree["code"], &tree["data"]), (&json!(-32008), &json!({ "required": ["https://a"], "provided": [] })));
}
