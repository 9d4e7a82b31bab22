//! `nuncio client task-subscribe`: prints what happens to a task while it happens.

use futures_util::StreamExt;
use nuncio_protocol::{ErrorKind, Message, StreamResponse, TaskState, TaskStatus, codec};

use super::again::Again;
use super::answer::{Answer, Piece};
use super::connect::{Agent, Card, connect, failure};
use super::kinds::{bad_end, state_name};
use super::notes::{Note, notes};
use super::settings::Settings;
use crate::failure::{Failure, Kind};
use crate::terminal::{Screen, one_line};

/// Runs the command.
pub(crate) async fn run(settings: &Settings, after: Option<u64>) -> Result<(), Failure> {
    let id = Settings::need(settings.task_id.as_ref(), "task-id")?;
    let Agent { client, address } = connect(settings, Card::Useful).await?;
    let again = Again::new(settings, &address);
    let mut events = client.subscribe(id.into(), after).await.map_err(|error| {
        let over = error.kind() == Some(ErrorKind::UnsupportedOperation);
        let look = again.line("task-get", &[("--task-id", id)]);
        if over { failure(error).with(&format!("see the task with:\n  {look}")) } else { failure(error) }
    })?;
    let mut followed =
        Followed { screen: Screen::new(), answer: Answer::of(client.card()), status: TaskStatus::default() };
    let follow = async {
        while let Some(event) = events.next().await {
            followed.event(settings, event.map_err(failure)?.response, &again, id)?;
            if followed.screen.is_left() {
                break;
            }
        }
        Ok(())
    };
    let done = if settings.is_set("timeout") {
        let late = || {
            let line = again.line("task-subscribe", &[("--task-id", id)]);
            Failure::new(Kind::Timeout, format!("no end within {:?}. Go on with:\n  {line}", settings.timeout))
        };
        tokio::time::timeout(settings.timeout, follow).await.unwrap_or_else(|_| Err(late()))
    } else {
        follow.await
    };
    followed.screen.end_answer()?;
    followed.screen.close();
    done.and(followed.verdict())
}

/// What was seen of the task.
struct Followed {
    screen: Screen,
    answer: Answer,
    status: TaskStatus,
}

impl Followed {
    fn event(&mut self, settings: &Settings, event: StreamResponse, again: &Again, id: &str) -> Result<(), Failure> {
        if settings.is_json() {
            self.screen.answer(&format!("{}\n", String::from_utf8_lossy(&codec::encode(&event))))?;
        } else {
            if let StreamResponse::StatusUpdate(update) = &event {
                for note in notes(&update.metadata) {
                    match note {
                        Note::Thinking(text) => self.screen.think(&text),
                        Note::Line(text) => self.screen.note(&text),
                    }
                }
            }
            for piece in self.answer.event(&event) {
                match piece {
                    Piece::Answer(text) => self.screen.answer(&text)?,
                    Piece::Talk(text) => self.screen.note(&text),
                }
            }
        }
        let status = match event {
            StreamResponse::Task(task) => task.status,
            StreamResponse::StatusUpdate(update) => update.status,
            StreamResponse::Message(_) | StreamResponse::ArtifactUpdate(_) => return Ok(()),
        };
        if status.state != self.status.state && !settings.is_json() {
            self.changed(&status, again, id)?;
        }
        self.status = status;
        Ok(())
    }

    fn changed(&mut self, status: &TaskStatus, again: &Again, id: &str) -> Result<(), Failure> {
        if status.state.is_interrupted() {
            let said = status.message.as_ref().map(Message::text).unwrap_or_default();
            let line = again.line("call", &[("--task-id", id)]);
            self.screen.say(&format!(
                "{said}\nThe task waits ({}). Answer with:\n  {line} --prompt '…'",
                state_name(status.state)
            ));
            self.answer.next_turn();
        } else if status.state == TaskState::Completed {
            if let Some(Piece::Answer(text)) = self.answer.last(status) {
                self.screen.answer(&text)?;
            }
        } else if !status.state.is_terminal() {
            self.screen.note(&state_name(status.state));
        }
        Ok(())
    }

    fn verdict(&self) -> Result<(), Failure> {
        if self.screen.is_left() {
            return Ok(());
        }
        let Some(end) = bad_end(self.status.state) else { return Ok(()) };
        let said = self.status.message.as_ref().map(Message::text).unwrap_or_default();
        let words = if said.is_empty() { String::new() } else { format!(": {}", one_line(&said)) };
        Err(Failure::failed(format!("{end}{words}")))
    }
}
