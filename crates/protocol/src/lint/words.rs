//! What an agent says of itself.

use std::collections::HashSet;

use super::{EXTENSION, Findings, HIDDEN, LONG, MEDIA_TYPE, NO_SKILL, PROVIDER, SAME_SKILL, SKILL};
use crate::card::AgentCard;

/// No text on a card needs more characters.
const LONGEST: usize = 4000;

pub(super) fn check(card: &AgentCard, found: &mut Findings) {
    if let Some(provider) = &card.provider {
        for (name, text) in [("organization", &provider.organization), ("url", &provider.url)] {
            if text.is_empty() {
                found.add(PROVIDER, format!("provider.{name}"), "is missing");
            }
        }
    }
    check_skills(card, found);
    check_modes(card, found);
    check_extensions(card, found);
    let mut texts = vec![("name".to_owned(), &card.name), ("description".to_owned(), &card.description)];
    for (i, skill) in card.skills.iter().enumerate() {
        texts.push((format!("skills[{i}].name"), &skill.name));
        texts.push((format!("skills[{i}].description"), &skill.description));
        let examples = skill.examples.iter().enumerate();
        texts.extend(examples.map(|(n, example)| (format!("skills[{i}].examples[{n}]"), example)));
        texts.extend(skill.tags.iter().enumerate().map(|(n, tag)| (format!("skills[{i}].tags[{n}]"), tag)));
    }
    for (at, text) in texts {
        if text.chars().any(is_hidden) {
            found.add(HIDDEN, at.clone(), "holds characters that people do not see and models read");
        }
        if text.chars().count() > LONGEST {
            found.add(LONG, at, format!("has more than {LONGEST} characters"));
        }
    }
}

fn check_skills(card: &AgentCard, found: &mut Findings) {
    if card.skills.is_empty() {
        found.add(NO_SKILL, "skills", "is empty: nobody learns what the agent is for");
    }
    let mut ids = HashSet::new();
    for (i, skill) in card.skills.iter().enumerate() {
        let members = [
            ("id", skill.id.is_empty()),
            ("name", skill.name.is_empty()),
            ("description", skill.description.is_empty()),
            ("tags", skill.tags.is_empty()),
        ];
        for (name, _) in members.iter().filter(|(_, is_empty)| *is_empty) {
            found.add(SKILL, format!("skills[{i}].{name}"), "is missing or empty");
        }
        if !skill.id.is_empty() && !ids.insert(&skill.id) {
            found.add(SAME_SKILL, format!("skills[{i}].id"), format!("\"{}\" is the id of an earlier skill", skill.id));
        }
    }
}

fn check_modes(card: &AgentCard, found: &mut Findings) {
    let mut lists = vec![
        ("defaultInputModes".to_owned(), &card.default_input_modes),
        ("defaultOutputModes".to_owned(), &card.default_output_modes),
    ];
    for (i, skill) in card.skills.iter().enumerate() {
        lists.push((format!("skills[{i}].inputModes"), &skill.input_modes));
        lists.push((format!("skills[{i}].outputModes"), &skill.output_modes));
    }
    for (at, modes) in lists {
        for (i, mode) in modes.iter().enumerate().filter(|(_, mode)| !is_media_type(mode)) {
            found.add(MEDIA_TYPE, format!("{at}[{i}]"), format!("\"{mode}\" is no media type"));
        }
    }
}

fn check_extensions(card: &AgentCard, found: &mut Findings) {
    let mut seen = HashSet::new();
    for (i, extension) in card.capabilities.extensions.iter().enumerate() {
        let at = format!("capabilities.extensions[{i}].uri");
        if !extension.uri.contains(':') {
            found.add(EXTENSION, at, format!("\"{}\" is no URI", extension.uri));
        } else if !seen.insert(&extension.uri) {
            found.add(EXTENSION, at, format!("{} is declared twice", extension.uri));
        }
    }
}

fn is_media_type(text: &str) -> bool {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&^_.+-*".contains(&b));
    let kind = text.split(';').next().unwrap_or_default().trim();
    kind.split_once('/').is_some_and(|(kind, subtype)| is_name(kind) && is_name(subtype))
}

/// Control characters, and those that change the direction of writing or have no width.
fn is_hidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}
