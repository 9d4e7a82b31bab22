//! Tasks, cards and webhooks for people.

use std::io;

use nuncio_protocol::{AgentCard, Message, Task, TaskPushNotificationConfig, TaskState, Timestamp};

use super::answer::render;
use super::kinds::state_name;
use crate::terminal::{Cell, Paint, Table, clean, colours, one_line, width};

/// Lines of a label and a value.
#[derive(Default)]
struct Sheet {
    text: String,
}

impl Sheet {
    fn line(&mut self, label: &str, value: &str) {
        let value = one_line(value);
        if !value.is_empty() {
            let label = Paint::Bold.on(colours(&io::stdout()), &format!("{label:<10}"));
            self.text.push_str(&format!("{label} {value}\n"));
        }
    }

    fn block(&mut self, text: &str) {
        for line in clean(text).lines() {
            self.text.push_str(format!("  {line}").trim_end());
            self.text.push('\n');
        }
    }
}

/// One task with all that it made.
pub(crate) fn task(task: &Task) -> String {
    let mut sheet = Sheet::default();
    sheet.line("Task", task.id.as_str());
    sheet.line("Context", task.context_id.as_str());
    sheet.line("State", &state_name(task.status.state));
    sheet.line("Updated", &task.status.timestamp.map(|time| time.to_string()).unwrap_or_default());
    sheet.line("Message", &task.status.message.as_ref().map(Message::text).unwrap_or_default());
    for artifact in &task.artifacts {
        sheet.line("Artifact", &format!("{} {}", artifact.artifact_id, artifact.name));
        sheet.block(&render("", &artifact.parts));
    }
    for message in &task.history {
        let role = message.role.name().trim_start_matches("ROLE_").to_lowercase();
        sheet.line("Said", &format!("{role}: {}", message.text()));
    }
    sheet.text
}

/// Tasks as a table.
pub(crate) fn tasks(tasks: &[Task]) -> String {
    // The id is what people copy, so it gives way last.
    let order = [(4, 9), (2, 6), (4, 3), (0, 8)];
    let mut table = Table::new(&["ID", "Status", "Context", "Updated", "Message"]).giving_way(&order);
    let width = width();
    for task in tasks {
        let state = task.status.state;
        let time = task.status.timestamp;
        let updated = if width.is_some() { time.map(age) } else { time.map(|time| time.to_string()) };
        let updated = updated.unwrap_or_default();
        table.row(vec![
            Cell::new(task.id.as_str()),
            Cell::painted(&state_name(state), paint(state)),
            Cell::new(task.context_id.as_str()),
            Cell::new(&updated),
            Cell::new(&words(task)),
        ]);
    }
    table.render(width, colours(&io::stdout()))
}

/// How long ago something was; a person has no use for more, and little room.
fn age(time: Timestamp) -> String {
    let seconds = Timestamp::now().as_micros().saturating_sub(time.as_micros()) / 1_000_000;
    match seconds {
        ..1 => "now".into(),
        1..60 => format!("{seconds}s ago"),
        60..3600 => format!("{}m ago", seconds / 60),
        3600..86_400 => format!("{}h ago", seconds / 3600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

fn paint(state: TaskState) -> Paint {
    match state {
        TaskState::Completed => Paint::Green,
        TaskState::Failed | TaskState::Rejected => Paint::Red,
        TaskState::InputRequired | TaskState::AuthRequired => Paint::Yellow,
        TaskState::Canceled => Paint::Dim,
        _ => Paint::Plain,
    }
}

/// What is known of a task in a few words: what the agent says last, else what it was told last.
fn words(task: &Task) -> String {
    let said = task.status.message.as_ref().map(Message::text);
    let told = || task.history.iter().rev().map(Message::text).find(|text| !text.is_empty());
    said.filter(|text| !text.is_empty()).or_else(told).unwrap_or_default()
}

/// A card.
pub(crate) fn card(card: &AgentCard) -> String {
    let mut sheet = Sheet::default();
    sheet.line("Agent", &format!("{} {}", card.name, card.version));
    sheet.line("About", &card.description);
    if let Some(provider) = &card.provider {
        sheet.line("Provider", &format!("{} {}", provider.organization, provider.url));
    }
    for interface in &card.supported_interfaces {
        let tenant =
            if interface.tenant.is_empty() { String::new() } else { format!(" (tenant {})", interface.tenant) };
        let (binding, version) = (&interface.protocol_binding, &interface.protocol_version);
        sheet.line("Interface", &format!("{binding} {version} {}{tenant}", interface.url));
    }
    let capabilities = &card.capabilities;
    let can = [
        ("streams", capabilities.streaming),
        ("webhooks", capabilities.push_notifications),
        ("extended card", capabilities.extended_agent_card),
    ];
    let can: Vec<&str> = can.iter().filter(|(_, can)| *can == Some(true)).map(|(name, _)| *name).collect();
    sheet.line("Can", &can.join(", "));
    for extension in &capabilities.extensions {
        let needed = if extension.required { " (required)" } else { "" };
        sheet.line("Extension", &format!("{}{needed}", extension.uri));
    }
    let schemes: Vec<&str> = card.security_schemes.keys().map(String::as_str).collect();
    sheet.line("Auth", &schemes.join(", "));
    sheet.line("Signed", if card.signatures.is_empty() { "" } else { "yes" });
    for skill in &card.skills {
        sheet.line("Skill", &format!("{}: {}", skill.id, skill.description));
        for example in &skill.examples {
            sheet.block(example);
        }
    }
    sheet.text
}

/// A webhook. Its secrets are not shown.
pub(crate) fn webhook(config: &TaskPushNotificationConfig) -> String {
    let mut sheet = Sheet::default();
    sheet.line("Webhook", config.id.as_str());
    sheet.line("Task", config.task_id.as_str());
    sheet.line("URL", &config.url);
    sheet.line("Token", if config.token.is_empty() { "" } else { "(set)" });
    sheet.line("Auth", &config.authentication.as_ref().map(|auth| auth.scheme.clone()).unwrap_or_default());
    sheet.text
}

/// Webhooks as a table.
pub(crate) fn webhooks(configs: &[TaskPushNotificationConfig]) -> String {
    let mut table = Table::new(&["ID", "Auth", "Token", "URL"]);
    for config in configs {
        let scheme = config.authentication.as_ref().map(|auth| auth.scheme.as_str()).unwrap_or_default();
        let token = if config.token.is_empty() { "" } else { "(set)" };
        table.row(vec![Cell::new(config.id.as_str()), Cell::new(scheme), Cell::new(token), Cell::new(&config.url)]);
    }
    table.render(width(), colours(&io::stdout()))
}
