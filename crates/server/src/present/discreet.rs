//! Text without what belongs to this machine alone.

use nuncio_protocol::Value;

/// What stands for a path.
const PATH: &str = "[PATH]";
/// What stands for a secret.
const SECRET: &str = "[SECRET]";
/// How the keys of well-known providers begin.
const KEYS: [&str; 7] = ["sk-", "ghp_", "gho_", "github_pat_", "xoxb-", "AKIA", "LTAI"];
/// Shorter words are no keys.
const SHORTEST_KEY: usize = 8;

/// The same text with a mark for every absolute path and every key of a provider.
pub(super) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(is_between).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let tail = word.trim_end_matches(['.', ':', '!', '?']);
        match mark(tail) {
            Some(mark) => {
                out.push_str(mark);
                out.push_str(&word[tail.len()..]);
            }
            None => out.push_str(word),
        }
        let next = after.chars().next().map_or(0, char::len_utf8);
        out.push_str(&after[..next]);
        rest = &after[next..];
    }
    out
}

/// The same value with all its texts cleaned.
pub(super) fn clean_all(value: Value) -> Value {
    match value {
        Value::String(text) => clean(&text).into(),
        Value::Array(all) => all.into_iter().map(clean_all).collect(),
        Value::Object(all) => Value::Object(all.into_iter().map(|(key, value)| (key, clean_all(value))).collect()),
        other => other,
    }
}

fn is_between(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '<' | '>' | ',' | ';' | '=')
}

fn mark(word: &str) -> Option<&'static str> {
    let path = word.strip_prefix("file://").unwrap_or(word);
    // One step below the root is a word with a slash before it: `/help`, `/v1`.
    if path.starts_with('/') && !path.starts_with("//") && path[1..].trim_end_matches('/').contains('/') {
        return Some(PATH);
    }
    let is_key = word.len() >= SHORTEST_KEY && KEYS.iter().any(|key| word.starts_with(key));
    is_key.then_some(SECRET)
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::json;

    use super::*;

    #[test]
    fn paths_and_keys_are_marked_and_words_are_not() {
        for (text, cleaned) in [
            ("RuntimeError: boom /srv/secret/path sk-12345678", "RuntimeError: boom [PATH] [SECRET]"),
            ("open \"/home/me/x.tf\": no such file", "open \"[PATH]\": no such file"),
            ("see file:///tmp/a/b.", "see [PATH]."),
            ("GET /health or and/or 3/4 https://a.example/b/c", "GET /health or and/or 3/4 https://a.example/b/c"),
            ("cwd=/a/b,rest", "cwd=[PATH],rest"),
            ("", ""),
        ] {
            assert_eq!(clean(text), cleaned);
        }
        assert_eq!(clean_all(json!({ "a": ["/x/y", 1] })), json!({ "a": ["[PATH]", 1] }));
    }
}
