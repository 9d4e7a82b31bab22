//! Whatever is missed, the updates that make up for it lead to the same task.

use nuncio_protocol::{Content, json};
use proptest::prelude::*;

use super::*;

/// One update of an artifact: which one, with what, and whether it goes behind what is there.
fn update() -> impl Strategy<Value = TaskArtifactUpdateEvent> {
    let part = prop_oneof![
        4 => "[ab]{0,3}".prop_map(Part::text),
        1 => Just(Part::data(json!({"k": 1}))),
        1 => Just(Content::Url("https://files.test/a".into()).into()),
    ];
    let parts = proptest::collection::vec(part, 1..3);
    ("[XY]", parts, proptest::bool::weighted(0.9)).prop_map(|(id, parts, append)| TaskArtifactUpdateEvent {
        task_id: "T1".into(),
        context_id: "C1".into(),
        artifact: Artifact { artifact_id: id.into(), parts, ..Default::default() },
        append,
        ..Default::default()
    })
}

fn snapshot(known: &Known) -> Task {
    Task {
        id: "T1".into(),
        context_id: "C1".into(),
        status: known.status.clone(),
        artifacts: known.artifacts.clone(),
        ..Default::default()
    }
}

/// The content with neighbouring texts joined, since pieces may be cut anywhere; an empty one is none.
fn content(known: &Known) -> Vec<(String, Vec<String>)> {
    let joined = |artifact: &Artifact| {
        let mut all: Vec<String> = Vec::new();
        let mut open = false;
        for part in artifact.parts.iter().filter(|part| part.as_text() != Some("")) {
            match (part.as_text(), open) {
                (Some(text), true) => all.last_mut().expect("an open text").push_str(text),
                (Some(text), false) => all.push(text.to_owned()),
                (None, _) => all.push(format!("{:?}", part.content)),
            }
            open = part.as_text().is_some();
        }
        (artifact.artifact_id.to_string(), all)
    };
    let mut all: Vec<_> = known.artifacts.iter().map(joined).collect();
    all.sort();
    all
}

fn joined_texts(mut task: Task) -> Task {
    for artifact in &mut task.artifacts {
        let mut parts: Vec<Part> = Vec::new();
        for part in artifact.parts.drain(..) {
            match (parts.last_mut().map(|last| &mut last.content), &part.content) {
                (Some(Content::Text(before)), Content::Text(text)) => before.push_str(text),
                _ => parts.push(part),
            }
        }
        artifact.parts = parts;
    }
    task
}

proptest! {
    #[test]
    fn a_look_makes_up_for_what_was_missed(
        updates in proptest::collection::vec(update(), 1..12),
        cut in any::<prop::sample::Index>(),
        look in any::<prop::sample::Index>(),
        joins in any::<bool>(),
    ) {
        let cut = cut.index(updates.len());
        let look = cut + look.index(updates.len() - cut);
        let mut client = Known::default();
        let mut server = Known::default();
        client.fold(&StreamResponse::Task(Task { id: "T1".into(), ..Default::default() }));
        for (n, update) in updates.into_iter().enumerate() {
            let event = StreamResponse::ArtifactUpdate(update);
            server.fold(&event);
            if n < cut || n > look {
                client.fold(&event);
            }
            if n == look {
                let task = if joins { joined_texts(snapshot(&server)) } else { snapshot(&server) };
                client.catch_up(task);
            }
        }
        prop_assert_eq!(content(&client), content(&server));
    }
}

#[test]
fn text_that_was_passed_on_is_not_repeated() {
    let mut known = Known::default();
    let mut task = Task { id: "T1".into(), ..Default::default() };
    task.artifacts = vec![Artifact { artifact_id: "X".into(), parts: vec![Part::text("ab")], ..Default::default() }];
    known.fold(&StreamResponse::Task(task.clone()));
    assert!(known.catch_up(task.clone()).is_empty());
    task.artifacts[0].parts = vec![Part::text("abc"), Part::data(json!(1)), Part::text("d")];
    let missed = known.catch_up(task.clone());
    let [StreamResponse::ArtifactUpdate(update)] = &missed[..] else { panic!("{missed:?}") };
    assert_eq!(update.artifact.parts, [Part::text("c"), Part::data(json!(1)), Part::text("d")]);
    assert!(update.append);
    assert!(!known.is_ahead_of(&task));
    task.artifacts[0].parts = vec![Part::text("a")];
    assert!(known.is_ahead_of(&task));
    task.artifacts[0].parts = vec![Part::text("other")];
    let missed = known.catch_up(task);
    let [StreamResponse::ArtifactUpdate(update)] = &missed[..] else { panic!("{missed:?}") };
    assert!(!update.append);
}

#[test]
fn words_between_two_looks_are_found_in_the_history() {
    let message = |id: &str| Message { message_id: id.into(), ..Message::from_agent(vec![Part::text(id)]) };
    let status = |id: &str| TaskStatus { state: TaskState::Working, message: Some(message(id)), timestamp: None };
    let mut known = Known::default();
    known.fold(&StreamResponse::Task(Task { id: "T1".into(), status: status("m1"), ..Default::default() }));
    let user = Message { message_id: "u1".into(), ..Message::from_user(vec![Part::text("hi")]) };
    let history = vec![user, message("m1"), message("m2"), message("m3")];
    let now = Task { id: "T1".into(), status: status("m3"), history, ..Default::default() };
    let missed = known.catch_up(now.clone());
    let said: Vec<String> = missed
        .iter()
        .map(|event| match event {
            StreamResponse::StatusUpdate(update) => {
                update.status.message.as_ref().map(Message::text).unwrap_or_default()
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(said, ["m2", "m3"]);
    assert!(known.catch_up(now).is_empty());
}
