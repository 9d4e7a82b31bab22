//! `${VAR}` in the values of a file, and `~` in paths.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::node::{Node, Value};
use super::problem::{Problem, Spot};

/// Expands every text below `node`. `lookup` gives the value of a variable.
pub(crate) fn expand(
    node: &mut Node,
    spot: &Spot<'_>,
    lookup: &dyn Fn(&str) -> Option<String>,
    problems: &mut Vec<Problem>,
) {
    match &mut node.value {
        Value::Text(text) => match expand_text(text, lookup) {
            Ok(Expanded::Same) => {}
            Ok(Expanded::Escaped(text)) => node.value = Value::Text(text),
            Ok(Expanded::Variable(text)) => node.value = Value::Loose(text),
            Err(message) => problems.push(spot.at(node.line).problem(message)),
        },
        Value::List(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                expand(item, &spot.item(index, item.line), lookup, problems);
            }
        }
        Value::Map(fields) => {
            for field in fields {
                let spot = spot.child(&field.key, field.line);
                expand(&mut field.node, &spot, lookup, problems);
            }
        }
        _ => {}
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Expanded {
    Same,
    /// Only `$$` was replaced: still the text that the file has.
    Escaped(String),
    /// A variable was put in.
    Variable(String),
}

fn expand_text(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Expanded, Cow<'static, str>> {
    if !text.contains('$') {
        return Ok(Expanded::Same);
    }
    let mut result = String::with_capacity(text.len());
    let mut variable = false;
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        result.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        if let Some(escaped) = after.strip_prefix('$') {
            result.push('$');
            rest = escaped;
        } else if let Some(braced) = after.strip_prefix('{') {
            let (name, after) = braced.split_once('}').ok_or("`${` without `}`; write `$$` for a plain `$`")?;
            result.push_str(&value_of(name, lookup)?);
            variable = true;
            rest = after;
        } else {
            result.push('$');
            rest = after;
        }
    }
    result.push_str(rest);
    Ok(if variable { Expanded::Variable(result) } else { Expanded::Escaped(result) })
}

fn value_of(name: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, Cow<'static, str>> {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !plain || name.is_empty() {
        // Not repeated: what stands there may be a secret with a `$` in it.
        return Err("what stands in `${…}` is no variable name; write `$$` for a plain `$`".into());
    }
    lookup(name).ok_or_else(|| {
        format!("the environment variable `{name}` is not set; set it, or write `$$` for a plain `$`").into()
    })
}

/// Expands a leading `~`.
pub(crate) fn expand_home(path: &str, home: Option<&Path>) -> Result<PathBuf, &'static str> {
    let Some(rest) = path.strip_prefix('~') else {
        return Ok(PathBuf::from(path));
    };
    if !rest.is_empty() && !rest.starts_with('/') {
        return Err("only `~` and `~/…` are expanded; write the other home directory in full");
    }
    let home = home.ok_or("the home directory is unknown; set HOME or write the path in full")?;
    let rest = rest.trim_start_matches('/');
    Ok(if rest.is_empty() { home.to_owned() } else { home.join(rest) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Expanded, Cow<'static, str>> {
        expand_text(text, &|name| (name == "A").then(|| "x$$y${B}".to_owned()))
    }

    #[test]
    fn replaces_variables_once() {
        assert_eq!(read("plain"), Ok(Expanded::Same));
        assert_eq!(read("<${A}>"), Ok(Expanded::Variable("<x$$y${B}>".to_owned())));
        assert_eq!(read("$${A}"), Ok(Expanded::Escaped("${A}".to_owned())));
        assert_eq!(read("5$ $A"), Ok(Expanded::Escaped("5$ $A".to_owned())));
    }

    #[test]
    fn says_what_is_wrong() {
        assert!(read("${B}").unwrap_err().contains("variable `B` is not set"));
        assert!(read("${A").unwrap_err().contains("without `}`"));
        let secret = read("${hunter-2}").unwrap_err();
        assert!(!secret.contains("hunter"), "{secret}");
        assert!(read("${}").is_err());
    }

    #[test]
    fn expands_the_own_home_only() {
        let home = Some(Path::new("/h"));
        assert_eq!(expand_home("~", home), Ok(PathBuf::from("/h")));
        assert_eq!(expand_home("~/a/b", home), Ok(PathBuf::from("/h/a/b")));
        assert_eq!(expand_home("a/~", home), Ok(PathBuf::from("a/~")));
        assert!(expand_home("~bob/a", home).is_err());
        assert!(expand_home("~/a", None).is_err());
    }
}
