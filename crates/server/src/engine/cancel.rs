//! Ending a task on request: always in a terminal state, always within a deadline.

use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{Error, ErrorKind, Message, TaskId, TaskState};

use super::live::{Live, WriteError};
use super::schedule::{Control, Stop};
use super::turn::Turn;
use super::{Engine, TaskJson, append_error, carry_through};
use crate::call::Call;

impl Engine {
    /// Cancels a task of the caller and returns it. Once begun it is carried through.
    pub async fn cancel(self: &Arc<Self>, call: &Call, id: &TaskId) -> Result<TaskJson, Error> {
        let (engine, call, id) = (self.clone(), call.clone(), id.clone());
        carry_through(Box::pin(async move {
            match engine.is_shared() {
                true => engine.cancel_anywhere(&call, &id).await,
                false => engine.cancel_now(&call, &id).await,
            }
        }))
        .await
    }

    async fn cancel_now(self: &Arc<Self>, call: &Call, id: &TaskId) -> Result<TaskJson, Error> {
        let row = self.find(&call.scope, id).await?;
        let live = self.open(&row).await?;
        let (state, _) = live.read(|task| task.status.state);
        if self.options.manners.rest_is_over && (state.is_terminal() || live.rests()) {
            return Err(not_cancelable(id, state));
        }
        if !state.is_terminal() {
            self.stop(&live).await?;
        }
        live.wait(|_, state| state.is_terminal()).await.map_err(|error| append_error(&error))?;
        match live.committed().1 {
            TaskState::Canceled => self.current(&live).await,
            state => Err(not_cancelable(id, state)),
        }
    }

    pub(super) async fn stop(self: &Arc<Self>, live: &Arc<Live>) -> Result<(), Error> {
        if let Some(control) = self.schedule.control(live.key()) {
            control.stop(Stop::Canceled);
            if control.has_begun() {
                let patience = self.options.cancel_grace + Duration::from_secs(1);
                let _ = tokio::time::timeout(patience, live.wait(|_, state| state.is_terminal())).await;
            }
        }
        let _gate = live.gate.lock().await;
        // Not begun, or deaf: the turn ends here, and whatever it still writes is refused.
        let mut written = live.write(self.canceled());
        // At rest: there is no turn that could end it.
        if written == Err(WriteError::Closed) && !live.read(|task| task.status.state.is_terminal()).0 {
            self.claim_now(live, self.lease()).await?;
            written = live.write(self.canceled());
            if written.is_ok() {
                self.tell_agent(live);
            }
        }
        if let Ok(seq) = written {
            // A turn that began meanwhile hears of it too.
            if let Some(control) = self.schedule.control(live.key()) {
                control.stop(Stop::Canceled);
            }
            let _ = live.durable(seq).await;
        }
        self.strand(live);
        Ok(())
    }

    /// Lets the agent of a task that rested know that it is over. Nobody waits for that.
    pub(super) fn tell_agent(self: &Arc<Self>, live: &Arc<Live>) {
        let Some(agent) = self.roster.get(&live.agent).map(|served| served.agent.clone()) else { return };
        let rest = Turn::new(self.clone(), live.clone(), Control::new(), Message::default().into(), false);
        let grace = self.options.cancel_grace;
        tokio::spawn(async move { tokio::time::timeout(grace, agent.canceled(&rest)).await });
    }
}

pub(super) fn not_cancelable(id: &TaskId, state: TaskState) -> Error {
    let text = format!("The task is already over ({})", state.name());
    Error::new(ErrorKind::TaskNotCancelable, text).fact("taskId", id.as_str())
}
