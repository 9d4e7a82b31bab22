//! The end of what a program wrote to stderr, fit for others to read.

use std::collections::VecDeque;

/// How much is kept.
const KEPT: usize = 64 << 10;
/// How much of it is shown.
const SHOWN: usize = 2000;

/// The last bytes of a stream.
#[derive(Default)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
}

impl Tail {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(KEPT)..];
        let over = (self.bytes.len() + bytes.len()).saturating_sub(KEPT);
        self.bytes.drain(..over);
        self.bytes.extend(bytes);
    }

    /// Readable text: no colours, no control characters, no secrets, no name of somebody's home, not too long.
    pub(crate) fn clean(&mut self, secrets: &[String], home: Option<&str>) -> String {
        let text = String::from_utf8_lossy(self.bytes.make_contiguous());
        let mut text = plain(&text);
        for secret in secrets {
            text = text.replace(secret.as_str(), "***");
        }
        if let Some(home) = home {
            text = text.replace(home, "~");
        }
        let text = text.trim();
        if text.len() <= SHOWN {
            return text.to_owned();
        }
        let mut from = text.len() - SHOWN;
        while !text.is_char_boundary(from) {
            from += 1;
        }
        format!("…{}", &text[from..])
    }
}

/// Text without terminal sequences and control characters.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                // A control sequence ends with a letter or one of @[\]^_`{|}~.
                Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
                // A system command ends with a bell or ESC \.
                Some(']') => {
                    while let Some(c) = chars.next() {
                        if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                            break;
                        }
                    }
                }
                _ => {}
            },
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept_and_shown() {
        let mut tail = Tail::default();
        for n in 0..100_000 {
            tail.add(format!("line {n}\n").as_bytes());
        }
        assert!(tail.bytes.len() <= KEPT);
        let shown = tail.clean(&[], None);
        assert!(shown.len() < SHOWN + 10 && shown.ends_with("line 99999"), "{shown}");
    }

    #[test]
    fn colours_controls_and_secrets_are_gone() {
        let mut tail = Tail::default();
        tail.add("\u{1b}[31mred\u{1b}[0m\u{7} \u{1b}]0;title\u{7}key=sk-12345678 in /home/ada/x \u{0}end".as_bytes());
        assert_eq!(tail.clean(&["sk-12345678".into()], Some("/home/ada")), "red key=*** in ~/x end");
    }
}
