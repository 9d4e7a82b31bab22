//! Registering who is told about a task.

use nuncio_protocol::{Error, ErrorKind, PushId, TaskId, TaskPushNotificationConfig, Violation};

use super::{Engine, now, store_error};
use crate::call::{Call, Version};
use crate::push::hook::{self, Hook};
use crate::push::{Desk, Tone};
use crate::store::{PushConfig, Seq, TaskRow};

impl Engine {
    fn desk(&self) -> Result<&Desk, Error> {
        self.push.as_deref().ok_or_else(not_supported)
    }

    /// Registers a webhook of a task, or replaces the one with the same id. It gets what happens from now on, and of
    /// a task that has come to rest, the status that it rests with.
    pub async fn put_webhook(
        &self,
        call: &Call,
        config: &TaskPushNotificationConfig,
        token_as_bearer: bool,
    ) -> Result<TaskPushNotificationConfig, Error> {
        let desk = self.desk()?;
        if config.task_id.is_empty() {
            return Err(Error::invalid("taskId", "is required"));
        }
        hook::check(config, &desk.options, "")?;
        let row = self.find(&call.scope, &config.task_id).await?;
        let seen = if row.state.is_active() { row.seq } else { row.seq.saturating_sub(1) };
        let config = self.webhook(call, config, &row.id, seen, token_as_bearer)?;
        self.store_webhook(&row, config.clone()).await?;
        Hook::show(&config, &row.id, &desk.options).map_err(|why| unreadable(&why))
    }

    /// One webhook of a task; without an id, its first.
    pub async fn get_webhook(
        &self,
        call: &Call,
        task: &TaskId,
        id: &PushId,
    ) -> Result<TaskPushNotificationConfig, Error> {
        let mut all = self.webhooks(call, task).await?.into_iter();
        let found = if id.is_empty() { all.next() } else { all.find(|config| config.id == *id) };
        found.ok_or_else(|| {
            let text = "The task has no such push notification config";
            Error::new(ErrorKind::TaskNotFound, text).fact("taskId", task.as_str()).fact("id", id.as_str())
        })
    }

    /// The webhooks of a task.
    pub async fn webhooks(&self, call: &Call, task: &TaskId) -> Result<Vec<TaskPushNotificationConfig>, Error> {
        let desk = self.desk()?;
        Error::check(required(task))?;
        let row = self.find(&call.scope, task).await?;
        let all = self.store.pushes(row.key).await.map_err(|error| store_error(&error))?;
        all.iter().map(|config| Hook::show(config, &row.id, &desk.options).map_err(|why| unreadable(&why))).collect()
    }

    /// Removes a webhook. One that is not there is as good as removed. Clients of 0.3 who name none know one webhook
    /// per task: none is left.
    pub async fn delete_webhook(&self, call: &Call, task: &TaskId, id: &PushId) -> Result<(), Error> {
        let desk = self.desk()?;
        let mut wrong = required(task);
        if id.is_empty() && call.version == Version::V1 {
            wrong.push(Violation::new("id", "is required"));
        }
        Error::check(wrong)?;
        let row = self.find(&call.scope, task).await?;
        let ids = match id.is_empty() {
            true => {
                let all = self.store.pushes(row.key).await.map_err(|error| store_error(&error))?;
                all.into_iter().map(|config| config.id).collect()
            }
            false => vec![id.clone()],
        };
        for id in ids {
            self.store.delete_push(row.key, &id).await.map_err(|error| store_error(&error))?;
            desk.interrupt(row.key, &id);
        }
        Ok(())
    }

    /// Checks a webhook that comes with a message, before anything is done about the message.
    pub(super) fn check_inline(&self, config: &TaskPushNotificationConfig) -> Result<(), Error> {
        hook::check(config, &self.desk()?.options, "configuration.taskPushNotificationConfig.")
    }

    /// A webhook as it is stored, with a cursor at the event `seen`.
    pub(super) fn webhook(
        &self,
        call: &Call,
        config: &TaskPushNotificationConfig,
        task: &TaskId,
        seen: Seq,
        token_as_bearer: bool,
    ) -> Result<PushConfig, Error> {
        let options = &self.desk()?.options;
        let id = match (&config.id, call.version) {
            (id, _) if !id.is_empty() => id.clone(),
            (_, Version::V1) => PushId::fresh(),
            // Clients of 0.3 know one webhook per task, which a second call replaces.
            (_, Version::V03) => task.as_str().into(),
        };
        let (mut hook, secrets) = Hook::new(config, call, token_as_bearer || options.token_as_bearer);
        hook.known_schemes = self.options.manners.known_schemes;
        let body = hook.seal(&id, secrets, options.keyring.as_deref()).map_err(|why| unreadable(&why))?;
        Ok(PushConfig {
            id,
            body,
            version: call.tone.map_or(call.version.as_str(), Tone::name).into(),
            acked: seen,
            attempts: 0,
            due: Some(now()),
            last_error: None,
            epoch: now(),
            since: None,
            told: None,
            dead: None,
            node: self.cluster.as_ref().map(|cluster| cluster.node()),
        })
    }

    /// Stores a webhook of a task that exists. Returns the one that it replaces.
    pub(super) async fn store_webhook(&self, row: &TaskRow, config: PushConfig) -> Result<Option<PushConfig>, Error> {
        let desk = self.desk()?;
        // One at a time for a task, or many at once could pass the limit together.
        let _turnstile = self.hooks.pass(row.key).await;
        let mut all = self.store.pushes(row.key).await.map_err(|error| store_error(&error))?;
        let before = all.iter().position(|other| other.id == config.id).map(|at| all.swap_remove(at));
        let most = self.options.max_webhooks;
        if all.len() >= most && before.is_none() {
            let text = format!("The task has {most} push notification configs: delete one before the next");
            return Err(Error::new(ErrorKind::InvalidParams, text).fact("taskId", row.id.as_str()));
        }
        let id = config.id.clone();
        self.store.put_push(row.key, config).await.map_err(|error| store_error(&error))?;
        desk.changed(row.key, &id);
        Ok(before)
    }

    /// Puts back what was there before a webhook came with a message that was refused.
    pub(super) async fn take_back_webhook(&self, row: &TaskRow, ours: &PushConfig, before: Option<PushConfig>) {
        let _turnstile = self.hooks.pass(row.key).await;
        let epoch = before.as_ref().map_or(ours.epoch, |before| ours.epoch.max(before.epoch + 1));
        let put_back = async {
            let all = self.store.pushes(row.key).await?;
            // Somebody may have replaced it since.
            if !all.iter().any(|other| other.id == ours.id && other.epoch == epoch) {
                return Ok(());
            }
            match before {
                Some(before) => self.store.put_push(row.key, before).await,
                None => self.store.delete_push(row.key, &ours.id).await.map(drop),
            }
        };
        if let Err(error) = put_back.await {
            tracing::warn!(task = %row.id, %error, "the webhook of a message that was refused stays");
        }
        if let Ok(desk) = self.desk() {
            desk.interrupt(row.key, &ours.id);
            desk.changed(row.key, &ours.id);
        }
    }
}

fn required(task: &TaskId) -> Vec<Violation> {
    if task.is_empty() { vec![Violation::new("taskId", "is required")] } else { Vec::new() }
}

/// The agent has no webhooks.
pub(crate) fn not_supported() -> Error {
    Error::new(ErrorKind::PushNotificationNotSupported, "This agent does not send push notifications")
}

/// The secrets of a webhook can be neither kept nor read.
fn unreadable(why: &str) -> Error {
    tracing::error!(why, "the secrets of a webhook cannot be kept or read");
    Error::internal()
}
