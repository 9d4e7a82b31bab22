use nuncio_protocol::{
    AgentCapabilities, AgentExtension, TaskArtifactUpdateEvent, TaskState, TaskStatusUpdateEvent, json,
};
use proptest::prelude::*;

use super::*;

fn artifact(id: &str, texts: &[&str]) -> Artifact {
    Artifact {
        artifact_id: id.into(),
        parts: texts.iter().map(|&text| Part::text(text)).collect(),
        ..Artifact::default()
    }
}

fn update(id: &str, text: &str, append: bool) -> StreamResponse {
    StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
        artifact: artifact(id, &[text]),
        append,
        ..TaskArtifactUpdateEvent::default()
    })
}

fn snapshot(artifacts: Vec<Artifact>) -> StreamResponse {
    StreamResponse::Task(Task { artifacts, ..Task::default() })
}

fn status(state: TaskState, text: &str) -> TaskStatus {
    let message = (!text.is_empty()).then(|| Message::from_agent(vec![Part::text(text)]));
    TaskStatus { state, message, ..TaskStatus::default() }
}

#[allow(clippy::needless_pass_by_value, reason = "it reads better where it is called")]
fn said(state: TaskState, text: &str, metadata: serde_json::Value) -> StreamResponse {
    let metadata = metadata.as_object().cloned().unwrap_or_default().into();
    let status = status(state, text);
    StreamResponse::StatusUpdate(TaskStatusUpdateEvent { status, metadata, ..TaskStatusUpdateEvent::default() })
}

/// The answer that these events make, and the talk beside it.
fn told(answer: &mut Answer, events: &[StreamResponse]) -> (String, String) {
    let (mut text, mut talk) = (String::new(), String::new());
    for piece in events.iter().flat_map(|event| answer.event(event)) {
        match piece {
            Piece::Answer(piece) => text.push_str(&piece),
            Piece::Talk(piece) => talk.push_str(&piece),
        }
    }
    (text, talk)
}

fn plain(events: &[StreamResponse]) -> String {
    told(&mut Answer::default(), events).0
}

#[test]
fn chunks_and_the_task_at_the_end_are_one_text() {
    let chunks = [update("a", "Hello", false), update("a", " world", true)];
    assert_eq!(plain(&chunks), "Hello world");
    let whole = snapshot(vec![artifact("a", &["Hello", " world"])]);
    assert_eq!(plain(&[chunks[0].clone(), chunks[1].clone(), whole.clone()]), "Hello world");
    assert_eq!(plain(&[chunks[0].clone(), whole.clone(), whole.clone()]), "Hello world");
    assert_eq!(plain(&[chunks[0].clone(), update("a", "Hello world", false)]), "Hello world");
    assert_eq!(plain(&[whole]), "Hello world");
}

#[test]
fn artifacts_begin_on_lines_of_their_own() {
    assert_eq!(plain(&[update("a", "one", false), update("b", "two", false), update("b", "!", true)]), "one\ntwo!");
    assert_eq!(plain(&[update("a", "first", false), update("a", "other", false)]), "first\nother");
}

#[test]
fn whoever_continues_a_task_is_told_only_what_is_new() {
    let mut answer = Answer::default();
    answer.know(&Task { artifacts: vec![artifact("a", &["old"])], ..Task::default() });
    assert!(answer.is_empty());
    let later = snapshot(vec![artifact("a", &["old", " and more"]), artifact("b", &["new"])]);
    assert_eq!(told(&mut answer, &[later]).0, " and more\nnew");
}

#[test]
fn no_part_vanishes() {
    let mut file = Part::from(Content::Raw(bytes::Bytes::from_static(b"123")));
    file.filename = "x.bin".into();
    let parts = [Part::text("see"), Part::data(json!({ "a": 1 })), file, Part::from(Content::Url("http://h/f".into()))];
    assert_eq!(render("", &parts), "see\n{\"a\":1}\n[x.bin: 3 bytes]\nhttp://h/f\n");
    assert_eq!(render("open", &parts[1..2]), "\n{\"a\":1}\n");
}

#[test]
fn what_agents_say_while_they_work_is_talk() {
    let mut answer = Answer::default();
    let events = [said(TaskState::Working, "Using tool: ls", json!({})), update("a", "done", false)];
    assert_eq!(told(&mut answer, &events), ("done".into(), "Using tool: ls".into()));
    assert_eq!(answer.last(&status(TaskState::Completed, "done")), None, "said before");
    let more = answer.last(&status(TaskState::Completed, "2 files changed"));
    assert_eq!(more, Some(Piece::Answer("\n2 files changed\n".into())));
}

#[test]
fn agents_that_answer_in_their_status_are_understood() {
    let extensions = vec![AgentExtension { uri: IAC_CODE.into(), ..AgentExtension::default() }];
    let capabilities = AgentCapabilities { extensions, ..AgentCapabilities::default() };
    let card = AgentCard { capabilities, ..AgentCard::default() };
    let mut answer = Answer::of(Some(&card));
    let events = [
        said(TaskState::Working, "ha", json!({})),
        said(TaskState::Working, "ha", json!({})),
        said(TaskState::Working, "haha", json!({ "iac_code": { "assistantFinal": { "complete": true } } })),
        said(TaskState::InputRequired, "", json!({})),
    ];
    assert_eq!(told(&mut answer, &events), ("haha".into(), String::new()));
    assert_eq!(answer.last(&status(TaskState::InputRequired, "haha")), None);
    assert!(answer.rests_on_input());
}

#[test]
fn an_answer_in_the_history_is_found() {
    let mut answer = Answer::default();
    let user = Message::from_user(vec![Part::text("hi")]);
    let agent = |text: &str| Message::from_agent(vec![Part::text(text)]);
    let history = vec![agent("old"), user, agent("hello"), agent("you")];
    let found = answer.history(&Task { history, ..Task::default() });
    assert_eq!(found, Some(Piece::Answer("hello\nyou\n".into())));
    assert_eq!(answer.history(&Task::default()), None);
}

proptest! {
    /// However often the whole task comes in between, the text is the same.
    #[test]
    fn snapshots_in_between_change_nothing(
        chunks in prop::collection::vec("[ab\\n]{1,3}", 1..8), looks in prop::collection::vec(any::<bool>(), 8),
    ) {
        let mut events = Vec::new();
        for (n, chunk) in chunks.iter().enumerate() {
            events.push(update("a", chunk, n > 0));
            if looks[n] {
                let texts: Vec<&str> = chunks[..=n].iter().map(String::as_str).collect();
                events.push(snapshot(vec![artifact("a", &texts)]));
            }
        }
        prop_assert_eq!(plain(&events), chunks.concat());
    }
}
