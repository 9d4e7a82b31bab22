//! Rules that answer approvals without asking anybody.

use super::subject::{Subject, glob};
use super::{Approval, DecidedBy, Decision};

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
        let subjects = Subject::all(approval);
        let denied = |subject: &Subject| self.deny.iter().any(|rule| rule.denies(&approval.tool, subject));
        if subjects.iter().any(denied) || Subject::touched(approval).any(|subject| denied(&subject)) {
            return Some(approval.decide(false, DecidedBy::Rule));
        }
        let allows = |subject: &Subject| self.allow.iter().any(|rule| rule.allows(&approval.tool, subject));
        let allowed = self.auto_approve || subjects.iter().all(allows);
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
    fn allows(&self, tool: &str, subject: &Subject) -> bool {
        glob(&self.tool, tool) && self.subject.as_deref().is_none_or(|pattern| subject.is_allowed(pattern))
    }

    fn denies(&self, tool: &str, subject: &Subject) -> bool {
        glob(&self.tool, tool) && self.subject.as_deref().is_none_or(|pattern| subject.is_denied(pattern))
    }
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::{Value, json};

    use super::*;

    fn policy(allow: &[&str], deny: &[&str], auto_approve: bool) -> Policy {
        let rules = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Policy { allow: rules(allow), deny: rules(deny), auto_approve, refuse_rest: false }
    }

    fn run(policy: &Policy, tool: &str, command: &str) -> Option<bool> {
        call(policy, tool, json!({ "command": command }))
    }

    fn call(policy: &Policy, tool: &str, input: Value) -> Option<bool> {
        let approval = Approval { tool: tool.into(), input, ..Approval::of("use a tool") };
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
    fn all_that_a_call_is_about_has_to_be_allowed() {
        let policy = policy(&["Edit(/w1/*)", "Grep(/w1/*)", "Grep(TODO)"], &[], false);
        assert_eq!(call(&policy, "Edit", json!({ "file_path": "/w1/x" })), Some(true));
        assert_eq!(call(&policy, "Grep", json!({ "path": "/w1/x", "pattern": "TODO" })), Some(true));
        for input in [
            json!({ "command": "/w1/x", "file_path": "/root/.bashrc" }),
            json!({ "file_path": "/w1/../../etc/passwd" }),
            json!({ "file_path": "/w1/x", "path": ["/w1/x", "/etc/passwd"] }),
            json!({ "file_path": "/w1/x", "path": { "of": "/etc/passwd" } }),
            json!({ "filePath": "/etc/passwd" }),
        ] {
            assert_eq!(call(&policy, "Edit", input.clone()), None, "{input}");
        }
    }

    #[test]
    fn one_thing_that_is_denied_is_enough() {
        let policy = policy(&[], &["Read(/etc/*)", "Bash(rm *)"], true);
        for command in [" rm -rf x", "cd /tmp && rm -rf x", "git status; rm x", "rm\t-rf x", "(rm x)", "ls\nrm x"] {
            assert_eq!(run(&policy, "Bash", command), Some(false), "{command}");
        }
        assert_eq!(run(&policy, "Bash", "git rm x"), Some(true));
        for path in ["/tmp/../etc/shadow", "//etc/shadow"] {
            assert_eq!(call(&policy, "Read", json!({ "file_path": path })), Some(false), "{path}");
            assert_eq!(call(&policy, "Read", json!({ "command": "x", "path": path })), Some(false), "{path}");
        }
    }

    #[test]
    fn files_that_a_call_would_touch_count_as_well() {
        let policy = policy(&["edit(/w1/*)"], &["edit(/w1/secret/*)"], false);
        let edit = |input: Value, paths: &[&str]| {
            let paths = paths.iter().map(|path| (*path).to_owned()).collect();
            let approval = Approval { tool: "edit".into(), input, paths, ..Approval::of("change /w1/x") };
            policy.decide(&approval).map(|decision| decision.approved)
        };
        assert_eq!(edit(json!({}), &["/w1/x", "/w1/y"]), Some(true));
        assert_eq!(edit(json!({}), &["/w1/x", "/etc/passwd"]), None);
        assert_eq!(edit(json!({}), &[]), None, "words are no path");
        assert_eq!(edit(json!({}), &["/w1/x", "/w1/a/../secret/y"]), Some(false));
        assert_eq!(edit(json!({ "path": "/w1/x" }), &["/w1/secret/y"]), Some(false));
        assert_eq!(edit(json!({ "path": "/w1/x" }), &["x"]), Some(true), "its input names what it is about");
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
