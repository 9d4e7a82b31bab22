//! What the server asks, and the answers.

use nuncio_protocol::{Value, json};

use super::super::jsonl::question::Questions;
use super::super::jsonl::{self, brief, calls, text};
use super::super::report::Report;
use super::form::Form;
use super::item::Items;
use crate::engine::approval::{Approval, Choice, ChoiceKind, Decision};

/// How many answers are waited for at once.
const MOST: usize = 64;

/// The requests that wait for an answer.
#[derive(Debug)]
pub(super) struct Requests {
    force: bool,
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    /// The id as the server wrote it: a number or a string.
    id: Value,
    about: About,
}

#[derive(Debug)]
enum About {
    /// A command or a change of files, and the decisions that may be taken.
    Item(Vec<String>),
    /// More rights.
    Rights(Value),
    Questions(Questions),
    /// A yes or no for an MCP server.
    Consent,
    Form(Form),
}

impl Requests {
    pub(super) fn new(force: bool) -> Self {
        Self { force, waiting: Vec::new() }
    }

    /// The server asks something and waits.
    pub(super) fn ask(&mut self, id: &Value, method: &str, params: &Value, items: &Items, out: &mut Vec<Report>) {
        if self.waiting.iter().any(|waiting| waiting.id == *id) {
            return;
        }
        if self.waiting.len() == MOST {
            return out.push(refuse(id, -32000, "too many requests at once"));
        }
        let call = text(params, "itemId");
        let about = match method {
            "item/commandExecution/requestApproval" => {
                let decisions = decisions(params);
                self.approve(id, command(params), call, items_options(&decisions), out);
                About::Item(decisions)
            }
            "item/fileChange/requestApproval" => {
                let decisions = decisions(params);
                self.approve(id, change(params, items.changes(call)), call, items_options(&decisions), out);
                About::Item(decisions)
            }
            "item/permissions/requestApproval" => {
                self.approve(id, rights(params), call, rights_options(), out);
                About::Rights(params.get("permissions").cloned().unwrap_or_else(|| json!({})))
            }
            "item/tool/requestUserInput" => {
                let Some(questions) = params.get("questions").and_then(|list| Questions::read(list, "id")) else {
                    return out.push(reply(id, &json!({ "answers": {} })));
                };
                out.push(Report::Ask { id: key(id), question: questions.show() });
                About::Questions(questions)
            }
            "mcpServer/elicitation/request" => match Form::read(params) {
                Some(form) => {
                    out.push(Report::Ask { id: key(id), question: form.show() });
                    About::Form(form)
                }
                None => {
                    self.approve(id, consent(params), call, Vec::new(), out);
                    About::Consent
                }
            },
            _ => return out.push(refuse(id, -32601, "method not found")),
        };
        let waiting = Waiting { id: id.clone(), about };
        // Who may do everything is not asked; questions and forms still need somebody.
        if self.force && !matches!(waiting.about, About::Questions(_) | About::Form(_)) {
            return out.push(waiting.decide(true, None));
        }
        self.waiting.push(waiting);
    }

    fn approve(&self, id: &Value, asked: Approval, call: &str, options: Vec<Choice>, out: &mut Vec<Report>) {
        if !self.force {
            out.push(Report::Approve { id: key(id), approval: Approval { call: call.to_owned(), options, ..asked } });
        }
    }

    /// The server no longer waits.
    pub(super) fn resolved(&mut self, params: &Value, out: &mut Vec<Report>) {
        let id = params.get("requestId").map(key).unwrap_or_default();
        if self.take(&id).is_some() {
            out.push(Report::Withdraw { id });
        }
    }

    pub(super) fn decided(&mut self, id: &str, decision: &Decision, out: &mut Vec<Report>) {
        out.extend(self.take(id).map(|waiting| waiting.decide(decision.approved, decision.option.as_deref())));
    }

    pub(super) fn answered(&mut self, id: &str, answer: Option<&str>, out: &mut Vec<Report>) {
        let Some(waiting) = self.take(id) else { return };
        out.push(match (&waiting.about, answer) {
            (About::Questions(questions), Some(answer)) => {
                let file = |(key, answer): (&str, String)| (key.to_owned(), json!({ "answers": [answer] }));
                let answers: Value = questions.answers(answer).into_iter().map(file).collect();
                reply(&waiting.id, &json!({ "answers": answers }))
            }
            (About::Form(form), Some(answer)) => {
                reply(&waiting.id, &json!({ "action": "accept", "content": form.fill(answer), "_meta": null }))
            }
            (About::Form(_), None) => {
                reply(&waiting.id, &json!({ "action": "cancel", "content": null, "_meta": null }))
            }
            (About::Questions(_), None) => reply(&waiting.id, &json!({ "answers": {} })),
            _ => waiting.decide(false, None),
        });
    }

    fn take(&mut self, key_of: &str) -> Option<Waiting> {
        let at = self.waiting.iter().position(|waiting| key(&waiting.id) == key_of)?;
        Some(self.waiting.swap_remove(at))
    }
}

impl Waiting {
    fn decide(&self, approved: bool, option: Option<&str>) -> Report {
        let result = match &self.about {
            About::Item(offered) => json!({ "decision": decision(offered, approved, option) }),
            About::Rights(wanted) => {
                let scope = if option == Some("session") { "session" } else { "turn" };
                let granted = if approved { granted(wanted) } else { json!({}) };
                json!({ "permissions": granted, "scope": if approved { scope } else { "turn" } })
            }
            About::Consent if approved => json!({ "action": "accept", "content": {}, "_meta": null }),
            About::Consent | About::Form(_) => json!({ "action": "decline", "content": null, "_meta": null }),
            About::Questions(_) => json!({ "answers": {} }),
        };
        reply(&self.id, &result)
    }
}

/// What the dialect calls a request.
fn key(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

fn reply(id: &Value, result: &Value) -> Report {
    jsonl::write(&json!({ "id": id, "result": result }))
}

fn refuse(id: &Value, code: i64, message: &str) -> Report {
    jsonl::write(&json!({ "id": id, "error": { "code": code, "message": message } }))
}

/// The decisions that the server takes. Those that change its rules for good are left to its owner. A plain no,
/// after which the agent goes on, is always understood, also where only the one that ends the turn is offered.
fn decisions(params: &Value) -> Vec<String> {
    let known = ["accept", "acceptForSession", "decline", "cancel"];
    let offered = params.get("availableDecisions").and_then(Value::as_array);
    let offered: Vec<&str> = match offered {
        Some(offered) => offered.iter().filter_map(Value::as_str).collect(),
        None => known.to_vec(),
    };
    known.into_iter().filter(|known| *known == "decline" || offered.contains(known)).map(str::to_owned).collect()
}

/// The decision to send. What was chosen counts if it agrees with the yes or no.
fn decision<'a>(offered: &'a [String], approved: bool, option: Option<&'a str>) -> &'a str {
    let fits = |decision: &str| decision.starts_with("accept") == approved;
    let chosen = option.filter(|option| offered.iter().any(|known| known == option) && fits(option));
    let usual = if approved { "accept" } else { "decline" };
    let other = || offered.iter().map(String::as_str).find(|decision| fits(decision));
    chosen
        .or_else(|| offered.iter().map(String::as_str).find(|decision| *decision == usual))
        .or_else(other)
        .unwrap_or(usual)
}

/// Members that were not asked for are not granted.
fn granted(wanted: &Value) -> Value {
    let members = wanted.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    members.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn command(params: &Value) -> Approval {
    let input: Value = ["command", "cwd", "reason", "networkApprovalContext"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), params.get(name).filter(|value| !value.is_null())?.clone())))
        .collect();
    let host = params.pointer("/networkApprovalContext/host").and_then(Value::as_str);
    let action = match host {
        Some(host) if text(params, "command").is_empty() => format!("network access to {}", brief(host, 200)),
        _ => calls::title("shell", &input),
    };
    Approval { action, tool: "shell".into(), input, ..Approval::default() }
}

fn change(params: &Value, changes: Option<&Value>) -> Approval {
    let mut input = changes.cloned().unwrap_or_else(|| json!({}));
    let changes = changes.and_then(|changes| changes.get("changes")).and_then(Value::as_array);
    let touched = |change| ["path", "movePath"].map(|name| text(change, name).to_owned());
    let mut paths: Vec<String> = changes.into_iter().flatten().flat_map(touched).collect();
    paths.retain(|path| !path.is_empty());
    let mut action = match &*paths {
        [] => "change files".to_owned(),
        paths => format!("change {}", brief(&paths.join(", "), 300)),
    };
    paths.extend(params.get("grantRoot").and_then(Value::as_str).map(str::to_owned));
    for name in ["reason", "grantRoot"] {
        let said = text(params, name);
        if !said.is_empty() {
            input[name] = said.into();
        }
    }
    if !text(params, "reason").is_empty() {
        action = format!("{action}: {}", brief(text(params, "reason"), 300));
    }
    Approval { action, tool: "apply_patch".into(), input, paths, ..Approval::default() }
}

fn rights(params: &Value) -> Approval {
    let reason = text(params, "reason");
    let action = if reason.is_empty() { "get more rights".to_owned() } else { brief(reason, 300) };
    let input = params.get("permissions").cloned().unwrap_or_default();
    Approval { action, tool: "request_permissions".into(), input, ..Approval::default() }
}

fn consent(params: &Value) -> Approval {
    let (server, url) = (text(params, "serverName"), text(params, "url"));
    let mut action = format!("{server}: {}", brief(text(params, "message"), 1000));
    if !url.is_empty() {
        action = format!("{action} {}", brief(url, 1000));
    }
    let input = if url.is_empty() { json!({}) } else { json!({ "url": url }) };
    Approval { action, tool: server.to_owned(), input, ..Approval::default() }
}

fn items_options(decisions: &[String]) -> Vec<Choice> {
    let option = |decision: &String| {
        let (name, kind) = match &**decision {
            "accept" => ("Allow", ChoiceKind::AllowOnce),
            "acceptForSession" => ("Allow for this conversation", ChoiceKind::AllowAlways),
            "decline" => ("Deny", ChoiceKind::RejectOnce),
            _ => ("Deny and stop", ChoiceKind::RejectOnce),
        };
        Choice { id: decision.clone(), name: name.to_owned(), kind }
    };
    decisions.iter().map(option).collect()
}

fn rights_options() -> Vec<Choice> {
    let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
    vec![
        choice("turn", "Allow for this turn", ChoiceKind::AllowOnce),
        choice("session", "Allow for this conversation", ChoiceKind::AllowAlways),
        choice("decline", "Deny", ChoiceKind::RejectOnce),
    ]
}
