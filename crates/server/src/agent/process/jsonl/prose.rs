//! An answer that comes in pieces.

use std::collections::VecDeque;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

/// How many messages are remembered.
const MESSAGES: usize = 16;
/// How many blocks of a message are remembered.
const BLOCKS: usize = 256;

/// Keeps the paragraphs of an answer apart: what an agent says before and after a tool call is not one
/// sentence.
#[derive(Debug, Default)]
pub(in super::super) struct Prose {
    begun: bool,
    on_new_line: bool,
    break_due: bool,
}

impl Prose {
    /// Whether anything was said.
    pub(in super::super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// What comes next is a paragraph of its own.
    pub(in super::super) fn paragraph(&mut self) {
        self.break_due = self.begun;
    }

    /// The piece as it is to be said; `None` if there is nothing to say.
    pub(in super::super) fn piece(&mut self, text: &str) -> Option<String> {
        let last = text.chars().next_back()?;
        let apart = std::mem::take(&mut self.break_due) && !self.on_new_line && !text.starts_with('\n');
        self.begun = true;
        self.on_new_line = last == '\n';
        Some(if apart { format!("\n\n{text}") } else { text.to_owned() })
    }
}

/// How much of each message was said, so that what comes in pieces and again as a whole is said once.
/// Keeps lengths and hashes, not texts.
#[derive(Debug, Default)]
pub(in super::super) struct Said {
    messages: VecDeque<Message>,
}

#[derive(Debug)]
struct Message {
    id: String,
    /// Bytes that came in pieces.
    pieces: usize,
    /// Bytes that came in whole blocks.
    whole: usize,
    /// The whole blocks that came.
    blocks: Vec<u64>,
}

impl Said {
    /// A piece of this message is said.
    pub(in super::super) fn piece(&mut self, id: &str, text: &str) {
        let message = self.message(id);
        message.pieces = message.pieces.saturating_add(text.len());
    }

    /// Whether any of this message was said.
    pub(in super::super) fn any(&self, id: &str) -> bool {
        self.messages.iter().any(|message| message.id == id && (message.pieces > 0 || message.whole > 0))
    }

    /// What of a whole block is still to be said.
    pub(in super::super) fn rest<'a>(&mut self, id: &str, block: &'a str) -> &'a str {
        let mut hasher = DefaultHasher::new();
        block.hash(&mut hasher);
        let hash = hasher.finish();
        let message = self.message(id);
        if message.blocks.contains(&hash) {
            return "";
        }
        if message.blocks.len() < BLOCKS {
            message.blocks.push(hash);
        }
        let covered = message.pieces.saturating_sub(message.whole);
        message.whole = message.whole.saturating_add(block.len());
        message.pieces = message.pieces.max(message.whole);
        block.get(covered..).unwrap_or_default()
    }

    /// The message with this id. Pieces without an id belong to the next message that has one.
    fn message(&mut self, id: &str) -> &mut Message {
        let known = self.messages.iter().position(|message| message.id == id);
        let at = known.or_else(|| {
            let nameless = self.messages.iter().position(|message| message.id.is_empty())?;
            id.clone_into(&mut self.messages[nameless].id);
            Some(nameless)
        });
        let at = at.unwrap_or_else(|| {
            if self.messages.len() == MESSAGES {
                self.messages.pop_front();
            }
            self.messages.push_back(Message { id: id.to_owned(), pieces: 0, whole: 0, blocks: Vec::new() });
            self.messages.len() - 1
        });
        &mut self.messages[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_block_is_only_said_where_its_pieces_were_not() {
        let mut said = Said::default();
        said.piece("m", "Hel");
        said.piece("m", "lo");
        assert_eq!(said.rest("m", "Hello"), "");
        assert_eq!(said.rest("m", "Hello"), "");
        assert_eq!(said.rest("m", " again"), " again");
        said.piece("n", "grü");
        assert_eq!(said.rest("n", "grün"), "n");
    }

    #[test]
    fn pieces_without_an_id_belong_to_the_message_that_follows() {
        let mut said = Said::default();
        said.piece("", "Hello");
        assert_eq!(said.rest("m", "Hello"), "");
    }

    #[test]
    fn paragraphs_do_not_run_into_each_other() {
        let mut prose = Prose::default();
        prose.paragraph();
        assert_eq!(prose.piece("One.").as_deref(), Some("One."));
        prose.paragraph();
        assert_eq!(prose.piece(""), None);
        assert_eq!(prose.piece("Two.\n").as_deref(), Some("\n\nTwo.\n"));
        prose.paragraph();
        assert_eq!(prose.piece("Three.").as_deref(), Some("Three."));
    }

    proptest::proptest! {
        #[test]
        fn a_message_is_said_whole_however_it_is_cut(text in ".{0,60}", cuts in proptest::collection::vec(0usize..60, 0..6)) {
            let mut said = Said::default();
            let mut heard = String::new();
            let mut from = 0;
            let mut cuts = cuts;
            cuts.sort_unstable();
            for cut in cuts {
                if let Some(piece) = text.get(from..cut) {
                    said.piece("m", piece);
                    heard.push_str(piece);
                    from = cut;
                }
            }
            heard.push_str(said.rest("m", &text));
            proptest::prop_assert_eq!(heard, text);
        }
    }
}
