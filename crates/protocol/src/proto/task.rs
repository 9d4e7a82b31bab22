//! Tasks, messages, parts and events of 1.0.

use bytes::Bytes;

use super::v1::{self, part, send_message_response, stream_response};
use super::{Down, Up, at, json, required, same, wrong};
use crate::codec::{self, DecodeError};
use crate::{
    Artifact, Content, Message, Part, SendMessageResponse, StreamResponse, Task, TaskArtifactUpdateEvent, TaskStatus,
    TaskStatusUpdateEvent,
};

same! {
    Task = v1::Task { id, context_id, status, artifacts, history, metadata }
    TaskStatus = v1::TaskStatus { state, message, timestamp }
    Message = v1::Message {
        message_id, context_id, task_id, role, parts, metadata, extensions, reference_task_ids,
    }
    Artifact = v1::Artifact { artifact_id, name, description, parts, metadata, extensions }
    TaskStatusUpdateEvent = v1::TaskStatusUpdateEvent { task_id, context_id, status, metadata }
    TaskArtifactUpdateEvent = v1::TaskArtifactUpdateEvent {
        task_id, context_id, artifact, append, last_chunk, metadata,
    }
}

required! {
    TaskStatus = v1::TaskStatus;
    Artifact = v1::Artifact;
}

impl Down<Part> for v1::Part {
    fn down(model: Part) -> Self {
        let content = match model.content {
            Content::Text(text) => part::Content::Text(text),
            Content::Raw(raw) => part::Content::Raw(raw),
            Content::Url(url) => part::Content::Url(url),
            Content::Data(value) => part::Content::Data(json::write_value(&value).into()),
        };
        Self {
            content: Some(content),
            metadata: Bytes::down(model.metadata),
            filename: model.filename,
            media_type: model.media_type,
        }
    }
}

impl Up<v1::Part> for Part {
    fn up(wire: v1::Part) -> Result<Self, DecodeError> {
        let content = match wire.content {
            Some(part::Content::Text(text)) => Content::Text(text),
            Some(part::Content::Raw(raw)) => Content::Raw(raw),
            Some(part::Content::Url(url)) => Content::Url(url),
            Some(part::Content::Data(value)) => Content::Data(at("data", json::read_value(&value))?),
            None => return Err(wrong("a part needs one of `text`, `raw`, `url`, `data`")),
        };
        let metadata = at("metadata", codec::Metadata::up(wire.metadata))?;
        Ok(Self { content, metadata, filename: wire.filename, media_type: wire.media_type })
    }
}

impl Down<StreamResponse> for v1::StreamResponse {
    fn down(model: StreamResponse) -> Self {
        use stream_response::Payload;
        let payload = match model {
            StreamResponse::Task(task) => Payload::Task(Down::down(task)),
            StreamResponse::Message(message) => Payload::Message(Down::down(message)),
            StreamResponse::StatusUpdate(event) => Payload::StatusUpdate(Down::down(event)),
            StreamResponse::ArtifactUpdate(event) => Payload::ArtifactUpdate(Down::down(event)),
        };
        Self { payload: Some(payload) }
    }
}

impl Up<v1::StreamResponse> for StreamResponse {
    fn up(wire: v1::StreamResponse) -> Result<Self, DecodeError> {
        use stream_response::Payload;
        Ok(match wire.payload {
            Some(Payload::Task(task)) => Self::Task(at("task", Up::up(task))?),
            Some(Payload::Message(message)) => Self::Message(at("message", Up::up(message))?),
            Some(Payload::StatusUpdate(event)) => Self::StatusUpdate(at("status_update", Up::up(event))?),
            Some(Payload::ArtifactUpdate(event)) => Self::ArtifactUpdate(at("artifact_update", Up::up(event))?),
            None => return Err(wrong("none of `task`, `message`, `statusUpdate`, `artifactUpdate`")),
        })
    }
}

impl Down<SendMessageResponse> for v1::SendMessageResponse {
    fn down(model: SendMessageResponse) -> Self {
        use send_message_response::Payload;
        let payload = match model {
            SendMessageResponse::Task(task) => Payload::Task(Down::down(task)),
            SendMessageResponse::Message(message) => Payload::Message(Down::down(message)),
        };
        Self { payload: Some(payload) }
    }
}

impl Up<v1::SendMessageResponse> for SendMessageResponse {
    fn up(wire: v1::SendMessageResponse) -> Result<Self, DecodeError> {
        use send_message_response::Payload;
        Ok(match wire.payload {
            Some(Payload::Task(task)) => Self::Task(at("task", Up::up(task))?),
            Some(Payload::Message(message)) => Self::Message(at("message", Up::up(message))?),
            None => return Err(wrong("none of `task`, `message`")),
        })
    }
}
