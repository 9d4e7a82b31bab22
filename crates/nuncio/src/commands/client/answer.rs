//! The text of an answer, each piece of it once, however an agent delivers it.

use std::collections::HashMap;

use nuncio_protocol::{
    AgentCard, Artifact, ArtifactId, Content, Message, Part, Role, StreamResponse, Task, TaskStatus,
};

/// Agents that declare this put their answer into status messages instead of artifacts.
pub(crate) const IAC_CODE: &str = "urn:iac-code:a2a:artifact-metadata:v1";

/// What an event adds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// To the answer.
    Answer(String),
    /// To the talk about it.
    Talk(String),
}

/// What of an answer was told already.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// What was told of each artifact.
    artifacts: HashMap<ArtifactId, String>,
    /// Whether status messages are the answer.
    in_status: bool,
    /// What the status messages of this turn said.
    said: String,
    /// Whether the last line has no end yet.
    midline: bool,
    /// Whether anything was told since the turn began.
    any: bool,
}

impl Answer {
    /// Of an agent with this card.
    pub(crate) fn of(card: Option<&AgentCard>) -> Self {
        let declares = |card: &AgentCard| card.capabilities.extensions.iter().any(|known| known.uri == IAC_CODE);
        Self { in_status: card.is_some_and(declares), ..Self::default() }
    }

    /// What a task holds already need not be told.
    pub(crate) fn know(&mut self, task: &Task) {
        let told = |artifact: &Artifact| (artifact.artifact_id.clone(), render("", &artifact.parts));
        self.artifacts.extend(task.artifacts.iter().map(told));
    }

    /// Whether the agent's normal end of a turn is to wait for the next message.
    pub(crate) fn rests_on_input(&self) -> bool {
        self.in_status
    }

    /// Another message was sent.
    pub(crate) fn next_turn(&mut self) {
        self.said.clear();
        self.any = false;
    }

    /// What an event adds.
    pub(crate) fn event(&mut self, event: &StreamResponse) -> Vec<Piece> {
        match event {
            StreamResponse::Message(message) => self.message(message),
            StreamResponse::Task(task) => {
                let mut pieces: Vec<Piece> =
                    task.artifacts.iter().filter_map(|artifact| self.whole(artifact)).collect();
                pieces.extend(self.status(&task.status, false));
                pieces
            }
            StreamResponse::StatusUpdate(update) => {
                let repeats = update.metadata.get("iac_code").is_some_and(|own| own.get("assistantFinal").is_some());
                self.status(&update.status, repeats).into_iter().collect()
            }
            StreamResponse::ArtifactUpdate(update) if update.append => {
                self.more(&update.artifact).into_iter().collect()
            }
            StreamResponse::ArtifactUpdate(update) => self.whole(&update.artifact).into_iter().collect(),
        }
    }

    /// What the last status says beyond what was told.
    pub(crate) fn last(&mut self, status: &TaskStatus) -> Option<Piece> {
        let words = status.message.as_ref().map(Message::text).unwrap_or_default();
        let told = words.trim();
        let known = told.is_empty()
            || self.said.contains(told)
            || (self.any && self.artifacts.values().any(|text| text.contains(told)));
        if known { None } else { self.tell_line(&words) }
    }

    /// Whether this turn told anything.
    pub(crate) fn is_empty(&self) -> bool {
        !self.any
    }

    /// The answer of an agent that has it nowhere but in the history: what it said since the last message to it.
    pub(crate) fn history(&mut self, task: &Task) -> Option<Piece> {
        let since = task.history.iter().rposition(|message| message.role != Role::Agent).map_or(0, |last| last + 1);
        let texts: Vec<String> = task.history[since..].iter().map(Message::text).collect();
        let text = texts.join("\n");
        if text.trim().is_empty() { None } else { self.tell_line(&text) }
    }

    fn message(&mut self, message: &Message) -> Vec<Piece> {
        let text = render("", &message.parts);
        self.tell_line(&text).into_iter().collect()
    }

    fn status(&mut self, status: &TaskStatus, repeats: bool) -> Option<Piece> {
        let text = status.message.as_ref().map(Message::text).filter(|text| !text.is_empty())?;
        // What ends or interrupts a turn is told when the turn has ended.
        if status.state.is_terminal() || status.state.is_interrupted() {
            return None;
        }
        if !self.in_status {
            return Some(Piece::Talk(text));
        }
        if repeats && !self.said.is_empty() {
            return None;
        }
        self.said.push_str(&text);
        self.tell(text)
    }

    /// A piece to append to an artifact.
    fn more(&mut self, artifact: &Artifact) -> Option<Piece> {
        let is_new = !self.artifacts.contains_key(&artifact.artifact_id);
        let known = self.artifacts.entry(artifact.artifact_id.clone()).or_default();
        let text = render(known, &artifact.parts);
        known.push_str(&text);
        let text = if is_new { self.apart(text) } else { text };
        self.tell(text)
    }

    /// A whole artifact, of which something may be known.
    fn whole(&mut self, artifact: &Artifact) -> Option<Piece> {
        let text = render("", &artifact.parts);
        let known = self.artifacts.insert(artifact.artifact_id.clone(), text.clone()).unwrap_or_default();
        match text.strip_prefix(known.as_str()) {
            Some(rest) if known.is_empty() => {
                let rest = self.apart(rest.to_owned());
                self.tell(rest)
            }
            Some(rest) => self.tell(rest.to_owned()),
            // It became another text: that one is the answer now.
            None => {
                let text = self.apart(text);
                self.tell(text)
            }
        }
    }

    /// On a line of its own.
    fn apart(&self, text: String) -> String {
        if self.midline && !text.is_empty() { format!("\n{text}") } else { text }
    }

    fn tell_line(&mut self, text: &str) -> Option<Piece> {
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let text = self.apart(format!("{text}{end}"));
        self.tell(text)
    }

    fn tell(&mut self, text: String) -> Option<Piece> {
        let last = text.chars().last()?;
        self.midline = last != '\n';
        self.any = true;
        Some(Piece::Answer(text))
    }
}

/// Parts as text, after what is there already. What is no text gets a line of its own.
pub(crate) fn render(before: &str, parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        let line = match &part.content {
            Content::Text(piece) => {
                text.push_str(piece);
                continue;
            }
            Content::Url(url) => url.clone(),
            Content::Data(value) => value.to_string(),
            Content::Raw(bytes) => {
                let name = if part.filename.is_empty() { "file" } else { &part.filename };
                let media = if part.media_type.is_empty() { String::new() } else { format!("{}, ", part.media_type) };
                format!("[{name}: {media}{} bytes]", bytes.len())
            }
        };
        let whole = if text.is_empty() { before } else { &text };
        if !whole.is_empty() && !whole.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
