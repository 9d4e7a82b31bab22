//! Colours and other sequences for terminals, which no client wants to read.

use std::borrow::Cow;

/// The text without escape sequences.
pub(super) fn strip(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            // `ESC [ … letter`
            Some('[') => {
                chars.by_ref().find(|c| ('@'..='~').contains(c));
            }
            // `ESC ] … BEL` or `ESC ] … ESC \`
            Some(']') => {
                let end = chars.by_ref().find(|&c| c == '\u{7}' || c == '\u{1b}');
                if end == Some('\u{1b}') {
                    chars.next();
                }
            }
            // Two characters.
            _ => {}
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::strip;

    #[test]
    fn only_the_words_stay() {
        assert_eq!(strip("plain"), "plain");
        assert_eq!(strip("\u{1b}[1;33mProceed?\u{1b}[0m [y/N]"), "Proceed? [y/N]");
        assert_eq!(strip("a\u{1b}]0;title\u{7}b\u{1b}]8;;x\u{1b}\\c\u{1b}cd"), "abcd");
        assert_eq!(strip("cut\u{1b}["), "cut");
        assert_eq!(strip("cut\u{1b}"), "cut");
    }
}
