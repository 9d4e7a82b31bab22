//! The forms of events other than the stored one. Each is made once for all who read it.

use bytes::Bytes;
use nuncio_protocol::{StreamResponse, draft, proto, v03};

use super::dialect::Accent;
use super::grpc::framed;
use crate::call::Version;
use crate::engine::Form;

/// JSON of 0.3.
pub(crate) const V03: Form = Form { place: 0, make: |event| v03(Accent::Plain, event) };

/// The same as protoAgent has it. A server has one accent at most, so that they share a place.
pub(super) const PROTO_AGENT: Form = Form { place: 1, make: |event| v03(Accent::ProtoAgent, event) };

/// The same as coding-agent-a2a has it.
pub(super) const CODING_AGENT: Form = Form { place: 1, make: |event| v03(Accent::CodingAgent, event) };

/// JSON of 0.3 as its REST has it.
pub(super) const V03_REST: Form = Form { place: 2, make: |event| written(|out| v03::rest::write_event(event, out)) };

/// JSON of a draft of 1.0.
pub(super) const DRAFT: Form = Form { place: 3, make: |event| written(|out| draft::write_event(event, out)) };

/// A message of gRPC, with what stands before it there.
pub(super) fn proto(version: Version) -> Form {
    match version {
        Version::V1 => PROTO,
        Version::V03 => PROTO_V03,
    }
}

const PROTO: Form =
    Form { place: 4, make: |event| framed(&proto::write::<proto::v1::StreamResponse, _>(event.clone())) };

const PROTO_V03: Form =
    Form { place: 5, make: |event| framed(&proto::write::<proto::v03::StreamResponse, _>(event.clone())) };

fn v03(accent: Accent, event: &StreamResponse) -> Bytes {
    written(|out| accent.write(|out| v03::json::write_event(event, out), out))
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut out = Vec::with_capacity(512);
    write(&mut out);
    out.into()
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::{
        Artifact, Content, ContextId, Message, Metadata, Part, Role, TaskArtifactUpdateEvent, TaskId, TaskState,
        TaskStatus, Timestamp, codec, json,
    };

    use super::*;
    use crate::engine::Event;

    const ALL: [Form; 7] = [V03, PROTO_AGENT, CODING_AGENT, V03_REST, DRAFT, PROTO, PROTO_V03];

    fn object(value: nuncio_protocol::Value) -> Metadata {
        codec::from_value(value).expect("an object")
    }

    fn events() -> Vec<StreamResponse> {
        let part = |content: Content| Part { metadata: object(json!({ "x": [1, null] })), ..Part::from(content) };
        let parts = vec![
            Part::text("a \"b\"\n\u{1f980}"),
            part(Content::Raw(vec![0, 255, 7].into())),
            part(Content::Url("https://example.com/a?b".into())),
            part(Content::Data(json!({ "n": 1.5, "big": 9_007_199_254_740_993_u64 }))),
            part(Content::Data(json!([1, "two"]))),
        ];
        let (task_id, context_id) = (TaskId::from("t"), ContextId::from("c"));
        let message = Message { task_id: task_id.clone(), role: Role::Agent, ..Message::from_agent(parts.clone()) };
        let status = |state, message| TaskStatus { state, message, timestamp: Some(Timestamp::now()) };
        let changed = |status, metadata| {
            let (task_id, context_id) = (task_id.clone(), context_id.clone());
            StreamResponse::StatusUpdate(nuncio_protocol::TaskStatusUpdateEvent {
                task_id,
                context_id,
                status,
                metadata,
            })
        };
        let artifact = Artifact { artifact_id: "a".into(), name: "n".into(), parts, ..Artifact::default() };
        let made = |append, last_chunk| {
            StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                task_id: task_id.clone(),
                context_id: context_id.clone(),
                artifact: artifact.clone(),
                append,
                last_chunk,
                metadata: Metadata::new(),
            })
        };
        vec![
            changed(status(TaskState::Working, None), Metadata::new()),
            changed(status(TaskState::InputRequired, Some(message)), object(json!({ "u": { "v": true } }))),
            made(false, false),
            made(true, true),
        ]
    }

    /// Whether a reader asked before an event was written or after, it sees the same.
    #[test]
    fn a_form_is_the_same_whenever_it_is_made() {
        for form in ALL {
            for (seq, event) in (1..).zip(events()) {
                let late = Event::new(seq, codec::encode(&event));
                assert_eq!((form.make)(&event), late.form(form), "form {} of {event:?}", form.place);
                assert!(!late.form(form).is_empty());
            }
        }
    }
}
