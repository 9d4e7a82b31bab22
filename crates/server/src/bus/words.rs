//! Hints as text: the sender's name, then one hint per word.

use super::Hint;
use crate::store::TaskKey;

/// The longest text. PostgreSQL takes less than 8000 bytes.
const LONGEST: usize = 7_500;

/// Writes hints as one or more texts.
pub(super) fn write<'a>(sender: &str, hints: impl IntoIterator<Item = &'a Hint>) -> Vec<String> {
    let mut texts = Vec::new();
    let mut text = sender.to_owned();
    for hint in hints {
        let word = match hint {
            Hint::Reached(task, seq) => format!(" {}:{seq}", task.0),
            Hint::Orders(node) => format!(" @{node}"),
            Hint::Work => " +".to_owned(),
        };
        if text.len() + word.len() > LONGEST {
            texts.push(std::mem::replace(&mut text, sender.to_owned()));
        }
        text.push_str(&word);
    }
    texts.push(text);
    texts
}

/// Reads a text; what one has said oneself is nothing new, and what cannot be read is left out.
pub(super) fn read(own: &str, text: &str) -> Vec<Hint> {
    let mut words = text.split(' ');
    if words.next() == Some(own) {
        return Vec::new();
    }
    let hint = |word: &str| match word {
        "+" => Some(Hint::Work),
        word => match (word.strip_prefix('@'), word.split_once(':')) {
            (Some(node), _) => Some(Hint::Orders(node.into())),
            (None, Some((task, seq))) => Some(Hint::Reached(TaskKey(task.parse().ok()?), seq.parse().ok()?)),
            (None, None) => None,
        },
    };
    words.filter_map(hint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_read_as_they_were_written_but_not_ones_own() {
        let mut hints = vec![Hint::Work, Hint::Orders("n-1".into())];
        hints.extend((0..2_000).map(|n| Hint::Reached(TaskKey(i64::MAX - n), n.unsigned_abs())));
        let texts = write("me", &hints);
        assert!(texts.len() > 1 && texts.iter().all(|text| text.len() <= LONGEST));
        let heard: Vec<_> = texts.iter().flat_map(|text| read("you", text)).collect();
        assert_eq!(heard, hints);
        assert!(texts.iter().all(|text| read("me", text).is_empty()));
        assert_eq!(read("you", "me 1 x:y :: 5:6 "), [Hint::Reached(TaskKey(5), 6)]);
    }
}
