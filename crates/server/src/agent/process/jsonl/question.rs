//! Questions with options, and the answers to them.

use std::fmt::Write as _;

use nuncio_protocol::Value;

use super::text;

/// How many questions are asked at once.
const MOST: usize = 16;

/// What an agent wants to know.
#[derive(Debug)]
pub(in super::super) struct Questions {
    all: Vec<Question>,
}

#[derive(Debug)]
struct Question {
    /// What the answer is filed under.
    key: String,
    text: String,
    options: Vec<Choice>,
}

#[derive(Debug)]
struct Choice {
    label: String,
    description: String,
}

impl Questions {
    /// Reads a list of `{question, options: [{label, description}]}`. The answers are filed under the
    /// member `key` of each.
    pub(in super::super) fn read(list: &Value, key: &str) -> Option<Self> {
        let list = list.as_array().filter(|list| !list.is_empty() && list.len() <= MOST)?;
        let all: Vec<Question> = list.iter().map(|item| Question::read(item, key)).collect::<Option<_>>()?;
        Some(Self { all })
    }

    /// The questions as people read them.
    pub(in super::super) fn show(&self) -> String {
        let mut shown = String::new();
        for (n, question) in self.all.iter().enumerate() {
            if n > 0 {
                shown.push_str("\n\n");
            }
            shown.push_str(&question.text);
            for (n, option) in question.options.iter().enumerate() {
                let _ = write!(shown, "\n{}. {}", n + 1, option.label);
                if !option.description.is_empty() {
                    let _ = write!(shown, ": {}", option.description);
                }
            }
        }
        if self.all.len() > 1 {
            shown.push_str("\n\nOne line for each answer, please.");
        }
        shown
    }

    /// The answer to each question, by its key. As many lines as questions answer one each; any other
    /// text answers them all.
    pub(in super::super) fn answers<'a>(&'a self, answer: &str) -> Vec<(&'a str, String)> {
        let lines: Vec<&str> = answer.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let each = (lines.len() == self.all.len()).then_some(lines);
        let answer_to = |n: usize| each.as_ref().and_then(|lines| lines.get(n).copied()).unwrap_or(answer.trim());
        self.all.iter().enumerate().map(|(n, question)| (&*question.key, question.choose(answer_to(n)))).collect()
    }
}

impl Question {
    fn read(item: &Value, key: &str) -> Option<Self> {
        let options = item.get("options").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let label = |option: &Value| Choice {
            label: option.as_str().unwrap_or_else(|| text(option, "label")).to_owned(),
            description: text(option, "description").to_owned(),
        };
        let question = Self {
            key: text(item, key).to_owned(),
            text: text(item, "question").to_owned(),
            options: options.iter().map(label).collect(),
        };
        (!question.key.is_empty() && !question.text.is_empty()).then_some(question)
    }

    /// The number or the label of an option means that option.
    fn choose(&self, answer: &str) -> String {
        let numbered = answer.trim_end_matches(['.', ')']).parse::<usize>().ok();
        let by_number = numbered.and_then(|n| self.options.get(n.checked_sub(1)?));
        let by_label = || self.options.iter().find(|option| option.label.eq_ignore_ascii_case(answer));
        by_number.or_else(by_label).map_or_else(|| answer.to_owned(), |option| option.label.clone())
    }
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::json;

    use super::*;

    fn two() -> Questions {
        let list = json!([
            { "id": "c", "question": "Which colour?", "options": [{ "label": "Red", "description": "warm" }, { "label": "Blue" }] },
            { "id": "n", "question": "How many?" }
        ]);
        Questions::read(&list, "id").expect("questions")
    }

    #[test]
    fn questions_are_shown_with_their_options() {
        assert_eq!(
            two().show(),
            "Which colour?\n1. Red: warm\n2. Blue\n\nHow many?\n\nOne line for each answer, please."
        );
    }

    #[test]
    fn answers_are_found_by_line_number_and_label() {
        assert_eq!(two().answers("2\n\n7\n"), [("c", "Blue".to_owned()), ("n", "7".to_owned())]);
        assert_eq!(two().answers("red"), [("c", "Red".to_owned()), ("n", "red".to_owned())]);
        assert_eq!(two().answers("0\n1."), [("c", "0".to_owned()), ("n", "1.".to_owned())]);
    }

    #[test]
    fn questions_without_words_are_none() {
        assert!(Questions::read(&json!([]), "id").is_none());
        assert!(Questions::read(&json!([{ "id": "a" }]), "id").is_none());
        assert!(Questions::read(&json!("x"), "id").is_none());
    }
}
