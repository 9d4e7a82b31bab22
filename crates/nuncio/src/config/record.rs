//! The keys of a mapping: known, unknown, doubled.

use super::keys::KEYS;
use super::nearest::nearest;
use super::node::Field;
use super::problem::{Problem, Spot};

/// A spelling, and the key that it means.
pub(crate) type Named = (&'static str, &'static str);

/// Finds the meaning of each key. Unknown and repeated ones are problems.
pub(crate) fn check_fields<'n>(
    fields: &'n [Field],
    names: &[Named],
    spot: &Spot<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<(&'static str, &'n Field)> {
    let mut known: Vec<(&'static str, &'n Field)> = Vec::new();
    for field in fields {
        let spelling = field.key.replace('_', "-");
        let spot = spot.child(&field.key, field.line);
        let Some((_, key)) = names.iter().find(|(name, _)| *name == spelling) else {
            problems.push(unknown(&spelling, names, &spot));
            continue;
        };
        match known.iter().find(|(earlier, _)| earlier == key) {
            Some((_, earlier)) => problems.push(repeated(earlier, field, &spot)),
            None => known.push((key, field)),
        }
    }
    known
}

fn unknown(spelling: &str, names: &[Named], spot: &Spot<'_>) -> Problem {
    let hint = match nearest(spelling, names.iter().map(|(name, _)| *name)) {
        Some(name) => format!("did you mean `{name}`?"),
        // Only the list of all keys of the server is too long to be told.
        None if names.len() < KEYS.len() => {
            let names: Vec<_> = names.iter().map(|(name, _)| format!("`{name}`")).collect();
            format!("known are {}", names.join(", "))
        }
        None => "`nuncio config schema` lists the known ones".to_owned(),
    };
    Problem { line: spot.line, text: format!("unknown key {spot}: {hint}") }
}

fn repeated(earlier: &Field, field: &Field, spot: &Spot<'_>) -> Problem {
    let before = match earlier.line {
        Some(line) => format!("is already set in line {line}"),
        None => "is already set".to_owned(),
    };
    let text = if earlier.key == field.key {
        format!("duplicate key {spot}: it {before}; keep one of them")
    } else {
        let name = &earlier.key;
        format!("duplicate key {spot}: it means the same as `{name}`, which {before}; keep one of them")
    };
    Problem { line: spot.line, text }
}
