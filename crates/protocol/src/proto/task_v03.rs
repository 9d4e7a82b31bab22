//! Tasks, messages, parts and events of 0.3.

use bytes::Bytes;

use super::v03::{self, file_part, part, send_message_response, stream_response};
use super::{Down, Up, at, json, required, same, wrong};
use crate::codec::{self, DecodeError, Value, encode_base64};
use crate::v03::{carried_object, decode_again, is_final, restore_data};
use crate::{
    Artifact, Content, Message, Part, SendMessageResponse, StreamResponse, Task, TaskArtifactUpdateEvent, TaskStatus,
    TaskStatusUpdateEvent,
};

same! {
    Task = v03::Task { id, context_id, status, artifacts, history, metadata }
    Artifact = v03::Artifact { artifact_id, name, description, parts, metadata, extensions }
    TaskArtifactUpdateEvent = v03::TaskArtifactUpdateEvent {
        task_id, context_id, artifact, append, last_chunk, metadata,
    }
}

required! {
    TaskStatus = v03::TaskStatus;
    Artifact = v03::Artifact;
}

impl Down<TaskStatus> for v03::TaskStatus {
    fn down(model: TaskStatus) -> Self {
        let TaskStatus { state, message, timestamp } = model;
        Self { state: i32::down(state), update: Down::down(message), timestamp: Down::down(timestamp) }
    }
}

impl Up<v03::TaskStatus> for TaskStatus {
    fn up(wire: v03::TaskStatus) -> Result<Self, DecodeError> {
        Ok(Self {
            state: Up::up(wire.state)?,
            message: at("message", Up::up(wire.update))?,
            timestamp: at("timestamp", Up::up(wire.timestamp))?,
        })
    }
}

impl Down<Message> for v03::Message {
    fn down(model: Message) -> Self {
        Self {
            message_id: Down::down(model.message_id),
            context_id: Down::down(model.context_id),
            task_id: Down::down(model.task_id),
            role: i32::down(model.role),
            content: Down::down(model.parts),
            metadata: Down::down(model.metadata),
            extensions: model.extensions,
        }
    }
}

impl Up<v03::Message> for Message {
    fn up(wire: v03::Message) -> Result<Self, DecodeError> {
        Ok(Self {
            message_id: wire.message_id.into(),
            context_id: wire.context_id.into(),
            task_id: wire.task_id.into(),
            role: Up::up(wire.role)?,
            parts: at("content", Up::up(wire.content))?,
            metadata: at("metadata", Up::up(wire.metadata))?,
            extensions: wire.extensions,
            reference_task_ids: Vec::new(),
        })
    }
}

impl Down<Part> for v03::Part {
    fn down(mut model: Part) -> Self {
        let object = carried_object(&mut model);
        let file = |file| {
            part::Part::File(v03::FilePart { file: Some(file), mime_type: model.media_type, name: model.filename })
        };
        let content = match model.content {
            Content::Text(text) => part::Part::Text(text),
            // Most peers keep base64 in this field of bytes.
            Content::Raw(raw) => file(file_part::File::FileWithBytes(encode_base64(&raw).into())),
            Content::Url(url) => file(file_part::File::FileWithUri(url)),
            Content::Data(_) => {
                let data = json::write_object(&object.unwrap_or_default()).into();
                part::Part::Data(v03::DataPart { data })
            }
        };
        Self { part: Some(content), metadata: Bytes::down(model.metadata) }
    }
}

impl Up<v03::Part> for Part {
    fn up(wire: v03::Part) -> Result<Self, DecodeError> {
        let metadata = at("metadata", codec::Metadata::up(wire.metadata))?;
        let (content, filename, media_type) = match wire.part {
            Some(part::Part::Text(text)) => (Content::Text(text), String::new(), String::new()),
            Some(part::Part::Data(data)) => {
                let object = at("data", json::read_object(&data.data))?;
                (Content::Data(Value::Object(object)), String::new(), String::new())
            }
            Some(part::Part::File(file)) => {
                let content = match file.file {
                    Some(file_part::File::FileWithUri(uri)) => Content::Url(uri),
                    Some(file_part::File::FileWithBytes(bytes)) => Content::Raw(decode_again(bytes)),
                    None => return at("file", Err(wrong("a file needs one of `fileWithUri`, `fileWithBytes`"))),
                };
                (content, file.name, file.mime_type)
            }
            None => return Err(wrong("a part needs one of `text`, `file`, `data`")),
        };
        let mut part = Self { content, metadata, filename, media_type };
        restore_data(&mut part);
        Ok(part)
    }
}

impl Down<TaskStatusUpdateEvent> for v03::TaskStatusUpdateEvent {
    fn down(model: TaskStatusUpdateEvent) -> Self {
        let r#final = is_final(model.status.state);
        Self {
            task_id: Down::down(model.task_id),
            context_id: Down::down(model.context_id),
            status: Down::down(model.status),
            r#final,
            metadata: Down::down(model.metadata),
        }
    }
}

impl Up<v03::TaskStatusUpdateEvent> for TaskStatusUpdateEvent {
    fn up(wire: v03::TaskStatusUpdateEvent) -> Result<Self, DecodeError> {
        Ok(Self {
            task_id: wire.task_id.into(),
            context_id: wire.context_id.into(),
            status: at("status", Up::up(wire.status))?,
            metadata: at("metadata", Up::up(wire.metadata))?,
        })
    }
}

impl Down<StreamResponse> for v03::StreamResponse {
    fn down(model: StreamResponse) -> Self {
        use stream_response::Payload;
        let payload = match model {
            StreamResponse::Task(task) => Payload::Task(Down::down(task)),
            StreamResponse::Message(message) => Payload::Msg(Down::down(message)),
            StreamResponse::StatusUpdate(event) => Payload::StatusUpdate(Down::down(event)),
            StreamResponse::ArtifactUpdate(event) => Payload::ArtifactUpdate(Down::down(event)),
        };
        Self { payload: Some(payload) }
    }
}

impl Up<v03::StreamResponse> for StreamResponse {
    fn up(wire: v03::StreamResponse) -> Result<Self, DecodeError> {
        use stream_response::Payload;
        Ok(match wire.payload {
            Some(Payload::Task(task)) => Self::Task(at("task", Up::up(task))?),
            Some(Payload::Msg(message)) => Self::Message(at("message", Up::up(message))?),
            Some(Payload::StatusUpdate(event)) => Self::StatusUpdate(at("status_update", Up::up(event))?),
            Some(Payload::ArtifactUpdate(event)) => Self::ArtifactUpdate(at("artifact_update", Up::up(event))?),
            None => return Err(wrong("none of `task`, `message`, `statusUpdate`, `artifactUpdate`")),
        })
    }
}

impl Down<SendMessageResponse> for v03::SendMessageResponse {
    fn down(model: SendMessageResponse) -> Self {
        use send_message_response::Payload;
        let payload = match model {
            SendMessageResponse::Task(task) => Payload::Task(Down::down(task)),
            SendMessageResponse::Message(message) => Payload::Msg(Down::down(message)),
        };
        Self { payload: Some(payload) }
    }
}

impl Up<v03::SendMessageResponse> for SendMessageResponse {
    fn up(wire: v03::SendMessageResponse) -> Result<Self, DecodeError> {
        use send_message_response::Payload;
        Ok(match wire.payload {
            Some(Payload::Task(task)) => Self::Task(at("task", Up::up(task))?),
            Some(Payload::Msg(message)) => Self::Message(at("message", Up::up(message))?),
            None => return Err(wrong("none of `task`, `message`")),
        })
    }
}
