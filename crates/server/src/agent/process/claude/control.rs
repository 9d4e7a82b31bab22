//! What the program asks its host, and the answers.

use nuncio_protocol::{Value, json};

use super::super::jsonl::question::Questions;
use super::super::jsonl::{self, brief, calls, text};
use super::super::report::Report;
use crate::engine::approval::{Approval, Choice, ChoiceKind, DecidedBy, Decision};

/// How many answers are waited for at once.
const MOST: usize = 64;
/// The answers that an approval offers.
const ONCE: &str = "allow";
const ALWAYS: &str = "allow_always";
const DENY: &str = "deny";

/// The requests that wait for an answer.
#[derive(Debug)]
pub(super) struct Control {
    force: bool,
    suggestions_are_rules: bool,
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    id: String,
    /// The call that it is about.
    call: String,
    input: Value,
    about: About,
}

#[derive(Debug)]
enum About {
    /// May a tool be used? With the rules that would spare the question.
    Tool(Value),
    Questions(Questions),
}

impl Control {
    pub(super) fn new(force: bool, suggestions_are_rules: bool) -> Self {
        Self { force, suggestions_are_rules, waiting: Vec::new() }
    }

    /// The program asks something and waits.
    pub(super) fn request(&mut self, event: &Value, out: &mut Vec<Report>) {
        let id = text(event, "request_id");
        let request = event.get("request").unwrap_or(&Value::Null);
        if id.is_empty() || self.waiting.iter().any(|waiting| waiting.id == id) {
            return;
        }
        if text(request, "subtype") != "can_use_tool" {
            // Without an answer it would wait for ever.
            return out.push(refuse(id, &format!("unsupported request: {}", brief(text(request, "subtype"), 100))));
        }
        if self.waiting.len() == MOST {
            return out.push(answer(id, &json!({ "behavior": "deny", "message": "Too many requests at once." })));
        }
        self.tool(id, request, out);
    }

    fn tool(&mut self, id: &str, request: &Value, out: &mut Vec<Report>) {
        let (tool, call) = (text(request, "tool_name"), text(request, "tool_use_id").to_owned());
        let input = request.get("input").cloned().unwrap_or_else(|| json!({}));
        if matches!(tool, "AskUserQuestion" | "ask_user_question")
            && let Some(questions) = input.get("questions").and_then(|list| Questions::read(list, "question"))
        {
            out.push(Report::Ask { id: id.to_owned(), question: questions.show() });
            return self.waiting.push(Waiting { id: id.to_owned(), call, input, about: About::Questions(questions) });
        }
        if self.force {
            return out.push(answer(id, &json!({ "behavior": "allow", "updatedInput": input })));
        }
        let rules = request.get("permission_suggestions").filter(|_| self.suggestions_are_rules);
        let rules = rules.and_then(spared);
        let approval = Approval {
            action: action(tool, request, &input),
            tool: tool.to_owned(),
            call: call.clone(),
            input: input.clone(),
            options: options(rules.is_some()),
            ..Approval::default()
        };
        out.push(Report::Approve { id: id.to_owned(), approval });
        let about = About::Tool(rules.unwrap_or_default());
        self.waiting.push(Waiting { id: id.to_owned(), call, input, about });
    }

    /// The program no longer waits. It wants no answer then.
    pub(super) fn cancel(&mut self, event: &Value, out: &mut Vec<Report>) {
        if let Some(waiting) = self.take(text(event, "request_id")) {
            out.push(Report::Withdraw { id: waiting.id });
        }
    }

    /// A call has its result: the program waited no longer for leave.
    pub(super) fn settled(&mut self, call: &str, out: &mut Vec<Report>) {
        while let Some(at) = self.waiting.iter().position(|waiting| !call.is_empty() && waiting.call == call) {
            out.push(Report::Withdraw { id: self.waiting.swap_remove(at).id });
        }
    }

    pub(super) fn decided(&mut self, id: &str, decision: &Decision, out: &mut Vec<Report>) {
        let Some(Waiting { id, input, about, .. }) = self.take(id) else { return };
        let response = if decision.approved && decision.option.as_deref() != Some(DENY) {
            let mut response = json!({ "behavior": "allow", "updatedInput": input });
            if let (Some(ALWAYS), About::Tool(rules)) = (decision.option.as_deref(), about)
                && rules.is_array()
            {
                response["updatedPermissions"] = rules;
            }
            response
        } else {
            let why = decision.reason.as_deref().filter(|why| !why.trim().is_empty());
            let why = why.unwrap_or(match decision.by {
                DecidedBy::Caller => "The user does not want this to be done.",
                DecidedBy::Rule => "The configuration does not allow this.",
                DecidedBy::Nobody => "Nobody allowed this in time.",
            });
            json!({ "behavior": "deny", "message": why })
        };
        out.push(answer(&id, &response));
    }

    pub(super) fn answered(&mut self, id: &str, text: Option<&str>, out: &mut Vec<Report>) {
        let Some(Waiting { id, mut input, about, .. }) = self.take(id) else { return };
        let response = match (about, text) {
            (About::Questions(questions), Some(text)) => {
                let answers = questions.answers(text).into_iter();
                input["answers"] = answers.map(|(key, answer)| (key.to_owned(), Value::from(answer))).collect();
                json!({ "behavior": "allow", "updatedInput": input })
            }
            _ => json!({ "behavior": "deny", "message": "Nobody answered in time." }),
        };
        out.push(answer(&id, &response));
    }

    fn take(&mut self, id: &str) -> Option<Waiting> {
        let at = self.waiting.iter().position(|waiting| waiting.id == id)?;
        Some(self.waiting.swap_remove(at))
    }
}

/// The first line for the program.
pub(in super::super) fn initialize(request: &Value) -> Value {
    json!({ "type": "control_request", "request_id": "nuncio-initialize", "request": request })
}

/// Tells the program to stop what it does.
pub(super) fn interrupt() -> Report {
    let request = json!({ "subtype": "interrupt" });
    jsonl::write(&json!({ "type": "control_request", "request_id": "nuncio-interrupt", "request": request }))
}

/// The rules among the suggestions. Beside them it suggests to open folders and to accept all edits, which
/// is more than was asked; that counts only where there is nothing else.
fn spared(suggestions: &Value) -> Option<Value> {
    let all = suggestions.as_array().filter(|all| !all.is_empty())?;
    let rules: Vec<Value> = all.iter().filter(|one| text(one, "type") == "addRules").cloned().collect();
    Some(if rules.is_empty() { all.clone() } else { rules }.into())
}

fn answer(id: &str, response: &Value) -> Report {
    let response = json!({ "subtype": "success", "request_id": id, "response": response });
    jsonl::write(&json!({ "type": "control_response", "response": response }))
}

fn refuse(id: &str, why: &str) -> Report {
    let response = json!({ "subtype": "error", "request_id": id, "error": why });
    jsonl::write(&json!({ "type": "control_response", "response": response }))
}

/// What is to be done, in the program's words if it has some.
fn action(tool: &str, request: &Value, input: &Value) -> String {
    let title = text(request, "title");
    if title.trim().is_empty() { calls::title(tool, input) } else { brief(title, 300) }
}

fn options(always: bool) -> Vec<Choice> {
    let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
    let mut options = vec![choice(ONCE, "Allow", ChoiceKind::AllowOnce)];
    if always {
        options.push(choice(ALWAYS, "Always allow", ChoiceKind::AllowAlways));
    }
    options.push(choice(DENY, "Deny", ChoiceKind::RejectOnce));
    options
}
