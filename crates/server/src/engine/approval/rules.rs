//! Rules that answer approvals without asking anybody.

use nuncio_protocol::Value;

use super::{Approval, DecidedBy, Decision};

/// Characters by which a shell command becomes more than the one command that a rule means.
const MORE_THAN_ONE: &[char] = &[';', '&', '|', '<', '>', '$', '`', '(', ')', '\n', '\r'];
/// Where the subject of a tool call is looked for in its input.
const SUBJECTS: &[&str] = &["command", "file_path", "path", "url", "query", "pattern"];

/// What is decided without asking.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Never done. Counts before everything else.
    pub deny: Vec<Rule>,
    /// Done without asking.
    pub allow: Vec<Rule>,
    /// Whether everything else is done without asking.
    pub auto_approve: bool,
    /// Whether what is left then is refused without asking.
    pub refuse_rest: bool,
}

impl Policy {
    /// Whether an agent that can do without asking needs not ask at all.
    pub fn never_asks(&self) -> bool {
        self.auto_approve && self.deny.is_empty()
    }

    pub(crate) fn decide(&self, approval: &Approval) -> Option<Decision> {
        let subject = subject(approval);
        if self.deny.iter().any(|rule| rule.denies(&approval.tool, &subject)) {
            return Some(approval.decide(false, DecidedBy::Rule));
        }
        let allowed = self.auto_approve || self.allow.iter().any(|rule| rule.allows(&approval.tool, &subject));
        (allowed || self.refuse_rest).then(|| approval.decide(allowed, DecidedBy::Rule))
    }
}

/// `Tool`, or `Tool(subject)`, with `*` for any text in either: `Read`, `Bash(git *)`, `mcp__*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    tool: String,
    subject: Option<String>,
}

/// Why a rule cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a rule as Tool or Tool(subject), for example Read or Bash(git *)")]
pub struct RuleError;

impl std::str::FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let (tool, subject) = match text.split_once('(') {
            Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').ok_or(RuleError)?.to_owned())),
            None => (text, None),
        };
        if tool.is_empty() || tool.contains([' ', ')']) {
            return Err(RuleError);
        }
        Ok(Self { tool: tool.to_owned(), subject })
    }
}

impl Rule {
    /// A `*` in the subject stands for part of one command, never for another one after it.
    fn allows(&self, tool: &str, subject: &str) -> bool {
        glob(&self.tool, tool)
            && self.subject.as_deref().is_none_or(|pattern| {
                pattern == subject || (!subject.contains(MORE_THAN_ONE) && glob(pattern, subject))
            })
    }

    fn denies(&self, tool: &str, subject: &str) -> bool {
        glob(&self.tool, tool) && self.subject.as_deref().is_none_or(|pattern| glob(pattern, subject))
    }
}

/// What a tool call is about: its command, file or address.
fn subject(approval: &Approval) -> String {
    let found = SUBJECTS.iter().find_map(|key| match &approval.input[*key] {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            words.map(|words| words.join(" "))
        }
        _ => None,
    });
    found.unwrap_or_else(|| approval.action.clone())
}

/// Whether `pattern` describes all of `text`; `*` stands for any text, also none.
fn glob(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::json;

    use super::*;

    fn policy(allow: &[&str], deny: &[&str], auto_approve: bool) -> Policy {
        let rules = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Policy { allow: rules(allow), deny: rules(deny), auto_approve, refuse_rest: false }
    }

    fn run(policy: &Policy, tool: &str, command: &str) -> Option<bool> {
        let approval =
            Approval { tool: tool.into(), input: json!({ "command": command }), ..Approval::of("run a command") };
        policy.decide(&approval).map(|decision| decision.approved)
    }

    #[test]
    fn what_no_rule_names_is_asked() {
        let policy = policy(&["Read", "Bash(git *)"], &["Bash(*rm -rf*)"], false);
        assert_eq!(run(&policy, "Read", "x"), Some(true));
        assert_eq!(run(&policy, "Bash", "git status"), Some(true));
        assert_eq!(run(&policy, "Bash", "npm test"), None);
        assert_eq!(run(&policy, "Bash", "cd x && rm -rf /"), Some(false));
    }

    #[test]
    fn a_star_allows_one_command_only() {
        let policy = policy(&["Bash(git *)"], &[], false);
        for command in ["git x; curl evil", "git x && sh", "git $(sh)", "git x\nsh", "git x | sh", "git > /etc/x"] {
            assert_eq!(run(&policy, "Bash", command), None, "{command}");
        }
    }

    #[test]
    fn deny_counts_before_allow() {
        let policy = policy(&["*"], &["Bash"], true);
        assert_eq!(run(&policy, "Bash", "ls"), Some(false));
        assert_eq!(run(&policy, "Edit", "x"), Some(true));
        assert!(!policy.never_asks());
    }

    #[test]
    fn rules_that_cannot_be_meant_are_refused() {
        for text in ["", "(x)", "Bash(x", "Ba sh", "Bash)"] {
            assert_eq!(text.parse::<Rule>(), Err(RuleError), "{text}");
        }
    }
}
