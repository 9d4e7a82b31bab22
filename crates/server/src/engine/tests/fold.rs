//! The fold against the naive sum, wherever it starts from.

use nuncio_protocol::{
    Artifact, ArtifactId, Message, Metadata, Part, StreamResponse, Task, TaskArtifactUpdateEvent, TaskState,
    TaskStatus, TaskStatusUpdateEvent, codec,
};
use proptest::prelude::*;

use super::naive;
use crate::engine::fold::{Fold, trim_history};

fn metadata() -> impl Strategy<Value = Metadata> {
    prop::collection::vec((0..3_u8, 0..5_i32), 0..3)
        .prop_map(|all| all.into_iter().map(|(key, value)| (format!("m{key}"), value.into())).collect())
}

fn event() -> impl Strategy<Value = StreamResponse> {
    let state = prop::sample::select(vec![TaskState::Submitted, TaskState::Working, TaskState::InputRequired]);
    let said = prop::option::of(0..9_u8).prop_map(|n| n.map(|n| Message::from_agent(vec![Part::text(n.to_string())])));
    let status = (state, said, metadata()).prop_map(|(state, message, metadata)| {
        let status = TaskStatus { state, message, timestamp: None };
        StreamResponse::StatusUpdate(TaskStatusUpdateEvent { status, metadata, ..TaskStatusUpdateEvent::default() })
    });
    let artifact = (0..4_u8, 0..3_usize, metadata(), any::<bool>()).prop_map(|(id, parts, metadata, append)| {
        let artifact_id = ArtifactId::from(format!("a{id}").as_str());
        let parts = (0..parts).map(|n| Part::text(n.to_string())).collect();
        let artifact = Artifact { artifact_id, parts, metadata, ..Artifact::default() };
        StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
            artifact,
            append,
            ..TaskArtifactUpdateEvent::default()
        })
    });
    let message = (0..9_u8).prop_map(|n| StreamResponse::Message(Message::from_agent(vec![Part::text(n.to_string())])));
    prop_oneof![4 => status, 6 => artifact, 1 => message]
}

proptest! {
    #[test]
    fn is_the_sum_of_its_events(
        events in prop::collection::vec(event(), 0..60),
        stored in prop::collection::vec(any::<bool>(), 60),
    ) {
        let (mut fold, mut sum) = (Fold::default(), Task::default());
        for (event, stored) in events.into_iter().zip(stored) {
            fold.apply(event.clone());
            naive::apply(&mut sum, event);
            prop_assert_eq!(fold.task(), &sum);
            for n in 0..4 {
                let id = ArtifactId::from(format!("a{n}").as_str());
                prop_assert_eq!(fold.has_artifact(&id), sum.artifacts.iter().any(|artifact| artifact.artifact_id == id));
            }
            if stored {
                // Goes on from a snapshot, as after a restart.
                fold = Fold::new(codec::decode(&codec::encode(fold.task())).unwrap());
            }
        }
    }

    #[test]
    fn the_newest_messages_stay(said in 0..20_usize, most in prop::option::of(-3..25_i32)) {
        let history: Vec<_> = (0..said).map(|n| Message::from_user(vec![Part::text(n.to_string())])).collect();
        let mut task = Task { history: history.clone(), ..Task::default() };
        trim_history(&mut task, most);
        let kept = most.map_or(said, |most| said.min(usize::try_from(most).unwrap_or(0)));
        prop_assert_eq!(&task.history[..], &history[said - kept..]);
    }
}
