//! Runs one turn from its start to its one final state.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use nuncio_protocol::{Message, Part, TaskState};

use super::Engine;
use super::event::Update;
use super::live::{Live, WriteError};
use super::schedule::{Job, Stop};
use super::turn::Turn;
use crate::agent::AgentError;
use crate::present::Ending;

/// How the agent left its turn.
enum Outcome {
    Done,
    Failed(String),
    Stopped(Option<Stop>),
    /// Nobody answered; the task stays as it is.
    Rests,
}

impl Engine {
    /// Starts a turn on a task of its own: no connection has a part in its life.
    pub(super) fn start(self: &Arc<Self>, job: Job) {
        tokio::spawn(self.clone().turn(job));
    }

    /// A turn, from taking its place to giving it to the next.
    pub(super) async fn turn(self: Arc<Self>, job: Job) {
        let (live, control) = (self.hub.hold(job.live.clone()), job.control.clone());
        // Where other nodes can take over, turns start with their lease.
        let lease = self.is_shared().then(|| live.epoch());
        // Whatever happens in the turn, its place is free afterwards.
        if let Err(panic) = AssertUnwindSafe(self.run(job)).catch_unwind().await {
            tracing::error!(task = %live.id, what = panic_text(&*panic), "a turn panicked");
        }
        self.strand(&live);
        if let Some(epoch) = lease {
            Box::pin(self.give_back(&live, epoch)).await;
        }
        let next = self.schedule.finished(Some((live.key(), &control)), &live.scope, &live.context_id);
        drop(live);
        if let Some(next) = next {
            self.start(next);
        }
        if lease.is_some() {
            self.place_is_free();
        }
    }

    /// Lets another turn run in place of one that waits for an answer.
    pub(super) fn pause(self: &Arc<Self>) {
        if let Some(next) = self.schedule.pause() {
            self.start(next);
        }
    }

    async fn run(self: &Arc<Self>, job: Job) {
        let Job { live, cue, claimed, resumed, control } = job;
        if !claimed && !self.claim_for(&live).await {
            return;
        }
        control.begin();
        let mut turn = Turn::new(self.clone(), Arc::clone(&live), control.clone(), cue, resumed);
        let mut begin = Update::state(TaskState::Working);
        loop {
            if control.why().is_none() && live.write(begin).is_err() {
                break;
            }
            let outcome = self.call_agent(&live, &mut turn, &control).await;
            match close(&live, &mut turn, outcome) {
                Ok(Some(message)) => {
                    control.begin();
                    begin = Update::next_turn(&message);
                    turn.take(message);
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(task = %live.id, %error, "the turn was ended by somebody else");
                    break;
                }
            }
        }
        // What others take over is not waited for.
        if live.is_cut_off() {
            return;
        }
        let (_, last) = live.read(|_| ());
        if let Err(error) = live.durable(last).await {
            tracing::error!(task = %live.id, %error, "the end of a turn could not be stored; it is taken up again later");
        }
    }

    /// Makes this node the writer of a task that waited. Behind the gate, so that nobody who writes
    /// to a waiting task does so under the lease that ends here.
    async fn claim_for(&self, live: &Arc<Live>) -> bool {
        let _gate = live.gate.lock().await;
        if live.is_lost() || live.read(|task| task.status.state.is_terminal()).0 {
            return false;
        }
        match self.claim(live, self.lease()).await {
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::error!(task = %live.id, %error, "a waiting task could not be claimed");
                false
            }
        }
    }

    async fn call_agent(&self, live: &Arc<Live>, turn: &mut Turn, control: &super::schedule::Control) -> Outcome {
        if control.why().is_some() {
            return Outcome::Stopped(control.why());
        }
        let Some(agent) = self.roster.get(&live.agent).map(|served| served.agent.clone()) else {
            return Outcome::Failed("The agent of this task is not served any more".into());
        };
        let grace = self.options.cancel_grace;
        let work = AssertUnwindSafe(async { agent.run(turn).await }).catch_unwind();
        let overdue = async {
            tokio::select! {
                () = control.stop.cancelled() => {}
                () = live.lost() => control.stop(Stop::Lost),
            }
            // What another node may be about to begin ends here at once.
            if !(self.is_shared() && control.why() == Some(Stop::Lost)) {
                tokio::time::sleep(grace).await;
            }
        };
        let result = tokio::select! {
            biased;
            result = work => result,
            () = overdue => return Outcome::Stopped(control.why()),
        };
        match (result, control.why()) {
            (_, Some(why)) => Outcome::Stopped(Some(why)),
            (Ok(Ok(())), None) => Outcome::Done,
            (Ok(Err(AgentError::Failed(text))), None) => Outcome::Failed(text),
            (Ok(Err(AgentError::Unanswered)), None) => Outcome::Rests,
            (Ok(Err(AgentError::Stopped)), None) => Outcome::Stopped(None),
            (Ok(Err(AgentError::Internal(what))), None) => {
                tracing::error!(task = %live.id, what, "the agent failed");
                Outcome::Failed("The agent failed".into())
            }
            (Err(panic), None) => {
                tracing::error!(task = %live.id, what = panic_text(&*panic), "the agent panicked");
                Outcome::Failed("The agent crashed".into())
            }
        }
    }
}

/// Writes the final state that the outcome calls for, or returns the message that waits.
fn close(live: &Arc<Live>, turn: &mut Turn, outcome: Outcome) -> Result<Option<Message>, WriteError> {
    let (state, text) = match outcome {
        Outcome::Done if !turn.ended() => {
            let last = lead_up(live, turn.closing(TaskState::Completed, None))?;
            return if last.ends_task() { live.end_or_next(last) } else { live.rest_or_next(last) };
        }
        // The agent has said how its turn ends. A task that is to wait may have its next message already.
        Outcome::Done | Outcome::Rests => {
            let message = Message::from_agent(vec![Part::text("Waiting for an answer")]);
            return live.rest_or_next(turn.closing(TaskState::InputRequired, Some(message)).last);
        }
        Outcome::Failed(text) | Outcome::Stopped(Some(Stop::TimedOut(text))) => (TaskState::Failed, Some(text)),
        Outcome::Stopped(Some(Stop::Canceled)) => (TaskState::Canceled, None),
        Outcome::Stopped(Some(Stop::Lost)) => return Ok(None),
        Outcome::Stopped(None) => (TaskState::Failed, Some("The agent stopped".into())),
    };
    let message = text.map(|text| Message::from_agent(vec![Part::text(text)]));
    let last = lead_up(live, turn.closing(state, message))?;
    live.write(last).map(|_| None)
}

/// Writes what comes right before the end, and returns the end.
fn lead_up(live: &Arc<Live>, ending: Ending) -> Result<Update, WriteError> {
    for update in ending.before {
        live.write(update)?;
    }
    Ok(ending.last)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
