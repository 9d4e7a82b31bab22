use proptest::prelude::*;

use super::*;

fn printed(terminal: &str) -> Option<String> {
    (terminal == "term-1").then(|| "printed".to_owned())
}

fn read(updates: &mut Updates, update: Value) -> Vec<Said> {
    let mut out = Vec::new();
    updates.read(update, &printed, &mut out);
    out
}

fn all(updates: &[Value]) -> Vec<Said> {
    let mut reader = Updates::new(Path::new("/ws"), Some(0.0));
    updates.iter().flat_map(|update| read(&mut reader, update.clone())).collect()
}

fn tool(id: &str, name: &str, step: Step) -> Said {
    Said::Tool { id: id.into(), name: name.into(), step }
}

#[allow(clippy::needless_pass_by_value, reason = "it reads better where it is called")]
fn chunk(kind: &str, content: Value) -> Value {
    json!({ "sessionUpdate": kind, "content": content })
}

#[test]
fn text_and_thoughts_are_told_and_the_callers_own_words_are_not() {
    let text = json!({ "type": "text", "text": "hi" });
    let several = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
    let said = all(&[
        chunk("agent_message_chunk", text.clone()),
        chunk("agent_thought_chunk", text.clone()),
        chunk("user_message_chunk", text),
        chunk("agent_message_chunk", several),
    ]);
    assert_eq!(
        said,
        [Said::Text("hi".into()), Said::Think("hi".into()), Said::Text("a".into()), Said::Text("b".into())]
    );
}

#[test]
fn a_new_message_begins_a_paragraph() {
    let piece = |id: &str, text: &str| json!({ "sessionUpdate": "agent_message_chunk", "messageId": id, "content": { "type": "text", "text": text } });
    let said = all(&[piece("1", "a"), piece("1", "b"), piece("2", "c")]);
    assert_eq!(said, [Said::Text("a".into()), Said::Text("b".into()), Said::Text("\n\nc".into())]);
}

#[test]
fn a_picture_becomes_an_artifact() {
    let said =
        all(&[chunk("agent_message_chunk", json!({ "type": "image", "data": "AQID", "mimeType": "image/png" }))]);
    let [Said::Artifact(artifact)] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(artifact.parts[0].content, Content::Raw(vec![1, 2, 3].into()));
    assert_eq!(artifact.parts[0].media_type, "image/png");
}

#[test]
fn a_tool_call_is_told_step_by_step_and_ends_once() {
    let text = |text: &str| json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
    let call = |more: Value| {
        let mut all = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c" });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let input = json!({ "path": "/ws/a" });
    let said = all(&[
        json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Read a", "kind": "read", "rawInput": input }),
        call(json!({ "status": "in_progress", "title": "Reading", "rawInput": input })),
        call(json!({ "content": text("one ") })),
        call(json!({ "content": text("one two") })),
        call(json!({ "status": "completed" })),
        call(json!({ "status": "completed", "content": text("late") })),
    ]);
    assert_eq!(
        said,
        [
            tool("c", "Read a", Step::Started),
            tool("c", "Read a", Step::Input(input)),
            tool("c", "Read a", Step::Delta("one ".into())),
            tool("c", "Read a", Step::Delta("two".into())),
            tool("c", "Read a", Step::Completed("one two".into())),
        ]
    );
}

#[test]
fn a_call_that_was_never_announced_is_started_first() {
    let said = all(&[json!({
        "sessionUpdate": "tool_call_update", "toolCallId": "x", "name": "bash", "status": "failed",
        "content": [{ "type": "terminal", "terminalId": "term-1" }],
    })]);
    assert_eq!(said, [tool("x", "bash", Step::Started), tool("x", "bash", Step::Failed("printed".into()))]);
}

#[test]
fn a_change_is_told_when_it_was_made_and_not_when_it_was_denied() {
    let diff = json!([{ "type": "diff", "path": "/ws/src/a.rs", "oldText": "x", "newText": "y" }, { "type": "odd" }]);
    let started =
        |id: &str| json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": "Edit", "content": diff });
    let done =
        |id: &str, status: &str| json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status });
    let mut updates = Updates::new(Path::new("/ws"), None);
    assert_eq!(read(&mut updates, started("c")), [tool("c", "Edit", Step::Started)]);
    let said = read(&mut updates, done("c", "completed"));
    let part = Part::data(json!({ "path": "src/a.rs", "newText": "y", "oldText": "x" }));
    assert_eq!(said, [tool("c", "Edit", Step::Completed(Value::Null)), Said::Change(part)]);
    read(&mut updates, started("d"));
    updates.calls.deny("d");
    assert_eq!(
        read(&mut updates, done("d", "completed")),
        [tool("d", "Edit", Step::Failed("Permission was denied".into()))]
    );
    read(&mut updates, started("f"));
    assert_eq!(read(&mut updates, done("f", "failed")), [tool("f", "Edit", Step::Failed("The call failed".into()))]);
}

#[test]
fn a_plan_is_told_in_words_and_as_data() {
    let entries = json!([
        { "content": "look", "priority": "high", "status": "completed" },
        { "content": "fix", "priority": "low", "status": "in_progress" },
        { "content": "test", "priority": "medium", "status": "pending" },
    ]);
    let said = all(&[json!({ "sessionUpdate": "plan", "entries": entries })]);
    let text = "Plan:\n[x] look\n[>] fix\n[ ] test".to_owned();
    assert_eq!(said, [Said::Plan { text, entries: json!({ "entries": entries }) }]);
}

#[test]
fn only_what_this_turn_cost_is_its_cost() {
    let spent = |amount: f64, currency: &str| {
        json!({
            "sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": { "amount": amount, "currency": currency },
        })
    };
    let mut updates = Updates::new(Path::new("/"), Some(1.0));
    read(&mut updates, spent(1.25, "USD"));
    read(&mut updates, spent(1.5, "usd"));
    read(&mut updates, spent(900.0, "credits"));
    let usage = updates.usage(Some(&json!({ "inputTokens": 7, "outputTokens": 3, "cachedReadTokens": 2 }))).unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_tokens), (7, 3, Some(2)));
    assert_eq!(usage.cost_usd, Some(0.5));
    let mut resumed = Updates::new(Path::new("/"), None);
    assert_eq!(resumed.usage(None), None);
    read(&mut resumed, spent(4.0, "USD"));
    read(&mut resumed, spent(4.5, "USD"));
    assert_eq!(resumed.usage(None).unwrap().cost_usd, Some(0.5));
}

#[test]
fn what_nobody_knows_is_passed_over() {
    let said = all(&[
        json!({ "sessionUpdate": "mind_reading", "content": 1 }),
        json!({ "sessionUpdate": "available_commands_update", "availableCommands": [] }),
        json!({ "sessionUpdate": "current_mode_update", "currentModeId": "ask" }),
        json!({ "sessionUpdate": "session_info_update", "title": "t" }),
        json!({ "sessionUpdate": "agent_message_chunk" }),
        json!({ "sessionUpdate": "tool_call" }),
        json!(null),
        json!([]),
        json!({ "sessionUpdate": "notice", "severity": "odd", "title": "Slow", "description": "today" }),
    ]);
    assert_eq!(said, [Said::Status("Mode: ask".into()), Said::Status("Slow: today".into())]);
}

/// Any JSON, with the words of the protocol in it.
fn anything() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
        "plan",
        "usage_update",
        "completed",
        "failed",
        "text",
        "diff",
        "terminal",
        "content",
        "c",
        "",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        words.prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "sessionUpdate",
        "toolCallId",
        "title",
        "status",
        "content",
        "type",
        "text",
        "path",
        "newText",
        "oldText",
        "rawInput",
        "rawOutput",
        "entries",
        "used",
        "size",
        "cost",
        "terminalId",
        "messageId",
        "kind",
    ]);
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..6)
                .prop_map(|entries| entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_update_breaks_the_reader(updates in prop::collection::vec(anything(), 0..8)) {
        let mut reader = Updates::new(Path::new("/ws"), None);
        for update in updates {
            read(&mut reader, update);
        }
    }
}
