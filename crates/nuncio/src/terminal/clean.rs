//! Foreign text must not drive the terminal: no cursor moves, no titles, no clipboard, no colours.

/// Removes escape sequences and control characters, also those that come in pieces.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    state: State,
}

/// Where in a sequence the text is.
#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// Parameters of a control sequence.
    Control,
    /// Inside a title, a clipboard or the like, which ends with BEL or `ESC \`.
    Quoted,
    /// After ESC inside of one.
    QuotedEscape,
}

impl Cleaner {
    /// What of the next piece may be shown.
    pub(crate) fn clean(&mut self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        for c in text.chars() {
            self.step(c, &mut shown);
        }
        shown
    }

    fn step(&mut self, c: char, shown: &mut String) {
        self.state = match (self.state, c) {
            // What is never ended must not swallow the rest of the answer.
            (State::Text, _) | (State::Quoted, '\n') => return self.text(c, shown),
            (State::Escape, '[') | (State::Control, ' '..='?') => State::Control,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::Quoted,
            (State::Escape, ' '..='/') => State::Escape,
            (State::Escape, '0'..='~')
            | (State::Control, '@'..='~')
            | (State::Quoted, '\x07' | '\u{9c}')
            | (State::QuotedEscape, '\\') => State::Text,
            (State::Quoted, '\x1b') => State::QuotedEscape,
            (State::Quoted, _) => State::Quoted,
            (State::QuotedEscape, _) => {
                self.state = State::Escape;
                return self.step(c, shown);
            }
            (State::Escape | State::Control, _) => return self.text(c, shown),
        };
    }

    fn text(&mut self, c: char, shown: &mut String) {
        self.state = match c {
            '\x1b' => State::Escape,
            '\u{9b}' => State::Control,
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => State::Quoted,
            _ => State::Text,
        };
        // The second group turns the direction of writing, and so makes text look like another.
        let harmless = !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if harmless || matches!(c, '\n' | '\t') {
            shown.push(c);
        }
    }
}

/// A whole text that may be shown.
pub(crate) fn clean(text: &str) -> String {
    Cleaner::default().clean(text)
}

/// The same on one line.
pub(crate) fn one_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sequences_go_and_text_stays() {
        assert_eq!(clean("a\x1b[31mred\x1b[0m b"), "ared b");
        assert_eq!(clean("\x1b]0;title\x07x\x1b]52;c;aGk=\x1b\\y"), "xy");
        assert_eq!(clean("1\r2\x082\x07\u{9b}2J3\x1bc4"), "12234");
        assert_eq!(clean("\x1bP never ended\nstill there"), "\nstill there");
        assert_eq!(clean("tab\tand\nline, 你好 🎉"), "tab\tand\nline, 你好 🎉");
        assert_eq!(clean("a\u{202e}b"), "ab");
        assert_eq!(clean("\x1b\n\x1b[1\nx"), "\n\nx");
        assert_eq!(one_line(" a\n\tb  c "), "a b c");
    }

    proptest! {
        #[test]
        fn nothing_controls_and_pieces_do_not_matter(
            parts in prop::collection::vec("[a-z\\x1b\\]\\[;0-9\\x07\\n\\\\P\u{9b}\u{9d} m]{0,6}", 0..12)
        ) {
            let whole = clean(&parts.concat());
            let mut cleaner = Cleaner::default();
            let pieces: String = parts.iter().map(|part| cleaner.clean(part)).collect();
            prop_assert_eq!(&whole, &pieces);
            prop_assert!(whole.chars().all(|c| !c.is_control() || c == '\n'), "{whole:?}");
        }
    }
}
