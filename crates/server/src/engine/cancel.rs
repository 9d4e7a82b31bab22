//! Ending a task on request: always in a terminal state, always within a deadline.

use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{Error, ErrorKind, TaskId, TaskState};

use super::live::{Live, Update};
use super::schedule::Stop;
use super::{Engine, TaskJson, append_error, carry_through, store_error};
use crate::call::Call;

impl Engine {
    /// Cancels a task of the caller and returns it. Once begun it is carried through.
    pub async fn cancel(self: &Arc<Self>, call: &Call, id: &TaskId) -> Result<TaskJson, Error> {
        let (engine, call, id) = (self.clone(), call.clone(), id.clone());
        carry_through(async move { engine.cancel_now(&call, &id).await }).await
    }

    async fn cancel_now(self: &Arc<Self>, call: &Call, id: &TaskId) -> Result<TaskJson, Error> {
        let row = self.find(&call.scope, id).await?;
        let live = self.open(&row).await?;
        let (state, _) = live.read(|task| task.status.state);
        if !state.is_terminal() {
            self.stop(&live).await?;
        }
        live.wait(|_, state| state.is_terminal()).await.map_err(|error| append_error(&error))?;
        match live.committed().1 {
            TaskState::Canceled => self.current(&live).await,
            state => {
                let text = format!("The task is already over ({})", state.name());
                Err(Error::new(ErrorKind::TaskNotCancelable, text).fact("taskId", id.as_str()))
            }
        }
    }

    async fn stop(&self, live: &Arc<Live>) -> Result<(), Error> {
        if live.is_open() {
            if let Some(control) = self.schedule.control(live.key) {
                control.stop(Stop::Canceled);
                if control.has_begun() {
                    let patience = self.options.cancel_grace + Duration::from_secs(1);
                    let _ = tokio::time::timeout(patience, live.wait(|_, state| state.is_terminal())).await;
                }
            }
            // Not begun, or deaf: the turn ends here, and whatever it still writes is refused. It may
            // also just begin, which changes its lease.
            let _gate = live.gate.lock().await;
            let _ = live.write(Update::state(TaskState::Canceled));
            return Ok(());
        }
        let _gate = live.gate.lock().await;
        if live.is_open() || live.read(|task| task.status.state.is_terminal()).0 {
            return Ok(());
        }
        let claimed = self.store.claim(live.key, live.epoch(), self.lease(), false).await;
        let row = claimed.map_err(|error| store_error(&error))?;
        let row = row.ok_or_else(|| Error::new(ErrorKind::Unavailable, "The task is busy elsewhere: try again"))?;
        live.open(row.epoch);
        let _ = live.write(Update::state(TaskState::Canceled));
        Ok(())
    }
}
