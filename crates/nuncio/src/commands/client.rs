//! `nuncio client`: talks to an agent. The answer goes to stdout, everything else to stderr.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::StreamExt;
use nuncio_client::{Client, ClientError, Options};
use nuncio_protocol::{
    ArtifactId, Content, Message, Part, SendMessageRequest, SendMessageResponse, StreamResponse, Task, TaskState, codec,
};

use crate::cli::{CallArgs, ClientArgs, ClientCommand, ClientOutput, DiscoverArgs, Token};
use crate::failure::{Failure, Kind};
use crate::output::print;

/// Runs the command.
pub(crate) async fn run(args: &ClientArgs) -> Result<(), Failure> {
    match &args.command {
        ClientCommand::Call(args) => call(args).await,
        ClientCommand::Discover(args) => discover(args).await,
    }
}

async fn discover(args: &DiscoverArgs) -> Result<(), Failure> {
    let client = connect(&args.url, args.token.as_ref(), None).await?;
    let Some(card) = client.card() else { return Err(Failure::failed("the agent has no card")) };
    if matches!(args.output, ClientOutput::Json) {
        return print(&format!("{}\n", codec::encode_pretty(card)));
    }
    let mut text = format!("{} {}\n{}\n\n", card.name, card.version, card.description);
    for interface in &card.supported_interfaces {
        text.push_str(&format!("{} {}  {}\n", interface.protocol_binding, interface.protocol_version, interface.url));
    }
    for skill in &card.skills {
        text.push_str(&format!("\n{}: {}\n", skill.id, skill.description));
        for example in &skill.examples {
            text.push_str(&format!("  {example}\n"));
        }
    }
    print(&text)
}

async fn call(args: &CallArgs) -> Result<(), Failure> {
    let timeout = Duration::from_secs(args.timeout);
    let client = connect(&args.url, args.token.as_ref(), Some(timeout)).await?;
    let mut message = Message::from_user(vec![Part::text(&args.prompt)]);
    message.context_id = args.context_id.as_deref().unwrap_or_default().into();
    message.task_id = args.task_id.as_deref().unwrap_or_default().into();
    let request = SendMessageRequest { message: Some(message), ..SendMessageRequest::default() };
    if args.stream {
        return stream(&client, args, request).await;
    }
    let answer = client.send(request).await.map_err(failure)?;
    if matches!(args.output, ClientOutput::Json) {
        print(&format!("{}\n", codec::encode_pretty(&answer)))?;
    }
    match answer {
        SendMessageResponse::Message(message) => print_text(args, &format!("{}\n", message.text())),
        SendMessageResponse::Task(task) => {
            let mut shown = Shown::default();
            for piece in shown.artifacts(&task) {
                print_text(args, &piece)?;
            }
            shown.end_line(args)?;
            verdict(args, &task)
        }
    }
}

async fn stream(client: &Client, args: &CallArgs, request: SendMessageRequest) -> Result<(), Failure> {
    let mut events = client.stream(request).await.map_err(failure)?;
    let mut shown = Shown::default();
    while let Some(event) = events.next().await {
        let event = event.map_err(failure)?;
        if matches!(args.output, ClientOutput::Json) {
            print(&format!("{}\n", String::from_utf8_lossy(&codec::encode(&event.response))))?;
        }
        for piece in shown.event(event.response) {
            print_text(args, &piece)?;
        }
    }
    shown.end_line(args)?;
    match &shown.task {
        Some(task) => verdict(args, task),
        None => Ok(()),
    }
}

fn print_text(args: &CallArgs, text: &str) -> Result<(), Failure> {
    if matches!(args.output, ClientOutput::Json) { Ok(()) } else { print(text) }
}

/// What of a task was printed already.
#[derive(Default)]
struct Shown {
    task: Option<Task>,
    artifacts: HashSet<ArtifactId>,
    midline: bool,
}

impl Shown {
    /// The pieces of text that an event adds.
    fn event(&mut self, event: StreamResponse) -> Vec<String> {
        match event {
            StreamResponse::Message(message) => vec![self.note(format!("{}\n", message.text()))],
            StreamResponse::Task(task) => {
                let pieces = self.artifacts(&task);
                self.task = Some(task);
                pieces
            }
            StreamResponse::StatusUpdate(update) => {
                if let Some(task) = &mut self.task {
                    task.status = update.status;
                }
                Vec::new()
            }
            StreamResponse::ArtifactUpdate(update) => {
                self.artifacts.insert(update.artifact.artifact_id);
                update.artifact.parts.iter().map(|part| self.note(show(part))).collect()
            }
        }
    }

    /// The artifacts of a whole task that were not printed piece by piece.
    fn artifacts(&mut self, task: &Task) -> Vec<String> {
        let mut pieces = Vec::new();
        for artifact in &task.artifacts {
            if self.artifacts.insert(artifact.artifact_id.clone()) {
                pieces.extend(artifact.parts.iter().map(|part| self.note(show(part))));
            }
        }
        pieces
    }

    fn note(&mut self, text: String) -> String {
        self.midline = !text.ends_with('\n');
        text
    }

    fn end_line(&self, args: &CallArgs) -> Result<(), Failure> {
        if self.midline { print_text(args, "\n") } else { Ok(()) }
    }
}

fn show(part: &Part) -> String {
    match &part.content {
        Content::Text(text) => text.clone(),
        Content::Url(url) => format!("{url}\n"),
        Content::Data(value) => format!("{value}\n"),
        Content::Raw(bytes) => {
            let name = if part.filename.is_empty() { "file" } else { &part.filename };
            format!("[{name}, {} bytes]\n", bytes.len())
        }
    }
}

/// Says where the task stands and how to go on; a task that failed is a failed command.
fn verdict(args: &CallArgs, task: &Task) -> Result<(), Failure> {
    let said = task.status.message.as_ref().map(Message::text).unwrap_or_default();
    match task.status.state {
        TaskState::Completed => {
            if !said.is_empty() {
                print_text(args, &format!("{said}\n"))?;
            }
            Ok(())
        }
        TaskState::Failed | TaskState::Rejected | TaskState::Canceled => {
            let state = task.status.state.name().trim_start_matches("TASK_STATE_").to_lowercase();
            let words = if said.is_empty() { String::new() } else { format!(": {said}") };
            Err(Failure::failed(format!("the task was {state}{words}")))
        }
        TaskState::InputRequired | TaskState::AuthRequired => {
            eprintln!(
                "{said}\n\nanswer with:\n  nuncio client call --url {} --task-id {} --prompt \"…\"",
                args.url, task.id
            );
            Ok(())
        }
        _ => Ok(()),
    }
}

async fn connect(url: &str, token: Option<&Token>, timeout: Option<Duration>) -> Result<Client, Failure> {
    let mut options = token.map(|token| Options::bearer(token.expose())).unwrap_or_default();
    if let Some(timeout) = timeout {
        options.timeout = timeout;
    }
    Client::discover(url, options).await.map_err(failure)
}

#[allow(clippy::needless_pass_by_value)] // the shape that map_err wants
fn failure(error: ClientError) -> Failure {
    let kind = match &error {
        ClientError::Unreachable { .. } | ClientError::Cut { .. } => Kind::Unreachable,
        ClientError::Unauthorized { .. } => Kind::Authentication,
        ClientError::Timeout { .. } => Kind::Timeout,
        ClientError::Invalid { .. } => Kind::Usage,
        _ => Kind::Failed,
    };
    Failure::new(kind, error.to_string())
}
