//! What an agent says while it works, in the words that all agents share. No I/O.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{
    CompactionStatus, ContentBlock, ContentChunk, EmbeddedResourceResource, MessageId, Plan, PlanEntryStatus,
    SessionUpdate, ToolCallUpdate, UsageUpdate,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_protocol::{Artifact, ArtifactId, Content, Part, Value, codec, json};

use crate::agent::Usage;

mod calls;

pub(crate) use calls::{Call, Calls, Step, paths};

/// The plan of an agent: `{"entries": [{"content", "priority", "status"}]}`, on the message that tells it.
pub(crate) const PLAN: &str = "urn:nuncio:a2a:plan:v1";

/// What an update means for the turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    Text(String),
    Think(String),
    Status(String),
    Plan {
        text: String,
        entries: Value,
    },
    Tool {
        id: String,
        name: String,
        step: Step,
    },
    /// A file was changed: a part of the artifact `changes`.
    Change(Part),
    Artifact(Artifact),
}

/// Reads the updates of one turn.
pub(crate) struct Updates {
    /// Where the agent works; paths are told from there.
    root: PathBuf,
    pub(crate) calls: Calls,
    /// The message that the last text belongs to.
    message: Option<MessageId>,
    /// What the conversation cost before this turn, and what the agent said in this turn that it costs so far.
    cost_before: Option<f64>,
    cost: Option<f64>,
}

impl Updates {
    pub(crate) fn new(root: &Path, cost: Option<f64>) -> Self {
        let (calls, message) = (Calls::default(), None);
        Self { root: root.to_owned(), calls, message, cost_before: cost, cost: None }
    }

    /// Reads one update. What nobody knows is passed over. `printed` tells what a terminal printed.
    pub(crate) fn read(&mut self, update: Value, printed: &dyn Fn(&str) -> Option<String>, out: &mut Vec<Said>) {
        for update in single(update) {
            match codec::from_value::<SessionUpdate>(update) {
                Ok(update) => self.take(update, printed, out),
                Err(error) => tracing::debug!(%error, "an update of an agent is passed over"),
            }
        }
    }

    /// Reads what a request for permission says of its call.
    pub(crate) fn announce(
        &mut self,
        call: ToolCallUpdate,
        printed: &dyn Fn(&str) -> Option<String>,
        out: &mut Vec<Said>,
    ) {
        self.calls.updated(call, &self.root, printed, out);
    }

    fn take(&mut self, update: SessionUpdate, printed: &dyn Fn(&str) -> Option<String>, out: &mut Vec<Said>) {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.text(chunk, out),
            SessionUpdate::AgentThoughtChunk(chunk) => {
                if let ContentBlock::Text(text) = chunk.content {
                    out.push(Said::Think(text.text));
                }
            }
            SessionUpdate::ToolCall(call) => self.calls.started(call, &self.root, printed, out),
            SessionUpdate::ToolCallUpdate(update) => self.calls.updated(update, &self.root, printed, out),
            SessionUpdate::Plan(plan) => out.push(told(&plan)),
            SessionUpdate::UsageUpdate(usage) => self.spent(&usage),
            SessionUpdate::Notice(notice) => out.push(Said::Status(match notice.description {
                Some(more) => format!("{}: {more}", notice.title),
                None => notice.title,
            })),
            SessionUpdate::CompactionUpdate(update) => match update.status {
                CompactionStatus::InProgress => out.push(Said::Status("Compacting the conversation".into())),
                CompactionStatus::Failed => out.push(Said::Status("Compacting the conversation failed".into())),
                _ => {}
            },
            SessionUpdate::CurrentModeUpdate(mode) => {
                out.push(Said::Status(format!("Mode: {}", mode.current_mode_id)));
            }
            // The caller's own words, and settings that callers have no part in.
            _ => {}
        }
    }

    fn text(&mut self, chunk: ContentChunk, out: &mut Vec<Said>) {
        let another = chunk.message_id.is_some() && self.message.is_some() && chunk.message_id != self.message;
        if chunk.message_id.is_some() {
            self.message = chunk.message_id;
        }
        match chunk.content {
            // Two messages in a row are two paragraphs.
            ContentBlock::Text(text) if another => out.push(Said::Text(format!("\n\n{}", text.text))),
            ContentBlock::Text(text) => out.push(Said::Text(text.text)),
            other => out.extend(file(other).map(Said::Artifact)),
        }
    }

    /// Usage updates tell the cost of the whole conversation; what came before this turn is not its.
    fn spent(&mut self, usage: &UsageUpdate) {
        if let Some(cost) = usage.cost.as_ref().filter(|cost| cost.currency.eq_ignore_ascii_case("USD")) {
            // What an earlier process of the same conversation spent is not known: count from here.
            self.cost_before.get_or_insert(cost.amount);
            self.cost = Some(cost.amount);
        }
    }

    /// What the conversation cost so far, as far as that is known.
    pub(crate) fn cost(&self) -> Option<f64> {
        self.cost.or(self.cost_before)
    }

    /// What the turn used, as far as the agent says: `told` is part of its answer to the prompt.
    pub(crate) fn usage(&self, told: Option<&Value>) -> Option<Usage> {
        let count = |key: &str| told.and_then(|told| told.get(key)).and_then(Value::as_u64);
        let cost_usd = self.cost.zip(self.cost_before).map(|(now, before)| (now - before).max(0.0));
        if told.is_none_or(Value::is_null) && cost_usd.is_none() {
            return None;
        }
        Some(Usage {
            input_tokens: count("inputTokens").unwrap_or_default(),
            output_tokens: count("outputTokens").unwrap_or_default(),
            cache_read_tokens: count("cachedReadTokens"),
            cache_write_tokens: count("cachedWriteTokens"),
            cost_usd,
            ..Usage::default()
        })
    }
}

/// Some agents put several blocks where one belongs.
fn single(update: Value) -> Vec<Value> {
    let is_chunk = update["sessionUpdate"].as_str().is_some_and(|kind| kind.ends_with("_chunk"));
    match update.get("content") {
        Some(Value::Array(blocks)) if is_chunk => blocks
            .iter()
            .map(|block| {
                let mut one = update.clone();
                one["content"] = block.clone();
                one
            })
            .collect(),
        _ => vec![update],
    }
}

fn told(plan: &Plan) -> Said {
    let mut text = String::from("Plan:");
    for entry in &plan.entries {
        let sign = match entry.status {
            PlanEntryStatus::Completed => 'x',
            PlanEntryStatus::InProgress => '>',
            _ => ' ',
        };
        text.push_str(&format!("\n[{sign}] {}", entry.content));
    }
    Said::Plan { text, entries: json!({ "entries": codec::to_value(&plan.entries) }) }
}

/// Content that is no text, as an artifact of its own.
fn file(content: ContentBlock) -> Option<Artifact> {
    let raw = |data: &str| STANDARD.decode(data).ok().map(|bytes| Part::from(Content::Raw(bytes.into())));
    let (part, name, media_type) = match content {
        ContentBlock::Image(image) => (raw(&image.data)?, String::new(), Some(image.mime_type)),
        ContentBlock::Audio(audio) => (raw(&audio.data)?, String::new(), Some(audio.mime_type)),
        ContentBlock::ResourceLink(link) => (Part::from(Content::Url(link.uri)), link.name, link.mime_type),
        ContentBlock::Resource(resource) => match resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => {
                (Part::text(text.text), last(&text.uri), text.mime_type)
            }
            EmbeddedResourceResource::BlobResourceContents(blob) => (raw(&blob.blob)?, last(&blob.uri), blob.mime_type),
            _ => return None,
        },
        _ => return None,
    };
    let part = Part { filename: name.clone(), media_type: media_type.unwrap_or_default(), ..part };
    Some(Artifact { artifact_id: ArtifactId::fresh(), name, parts: vec![part], ..Artifact::default() })
}

fn last(uri: &str) -> String {
    uri.rsplit('/').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
