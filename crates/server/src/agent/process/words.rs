//! A line of arguments, taken apart.

/// A quote was opened and never closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a quote is opened and not closed; put a \" where the argument ends")]
pub struct OpenQuote;

/// Splits at spaces. A `"` begins or ends a stretch in which spaces do not count; no other character
/// is special, because no shell is involved.
pub fn split(line: &str) -> Result<Vec<String>, OpenQuote> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                // So that "" is an argument.
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if quoted { Err(OpenQuote) } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_split_and_quotes_hold_together() {
        assert_eq!(split(r#"--a "b c" d"#).unwrap(), ["--a", "b c", "d"]);
        assert_eq!(split("  a \t b  ").unwrap(), ["a", "b"]);
        assert_eq!(split(r#"--name="two words"x"#).unwrap(), ["--name=two wordsx"]);
        assert!(split("").unwrap().is_empty());
    }

    #[test]
    fn nothing_in_quotes_is_an_argument() {
        assert_eq!(split(r#"a "" b"#).unwrap(), ["a", "", "b"]);
    }

    #[test]
    fn no_other_character_is_special() {
        assert_eq!(split(r"it's a\ b $HOME").unwrap(), ["it's", r"a\", "b", "$HOME"]);
    }

    #[test]
    fn an_open_quote_is_an_error() {
        assert_eq!(split(r#"--a "b c"#), Err(OpenQuote));
    }
}
