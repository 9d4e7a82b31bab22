//! `nuncio client push-config-create | -get | -list | -delete`: the webhooks of a task.

use nuncio_protocol::{AuthenticationInfo, ListTaskPushNotificationConfigsRequest, TaskPushNotificationConfig, json};

use super::connect::{Agent, Card, connect, failure};
use super::settings::Settings;
use super::tasks::next_page;
use super::{print_json, show};
use crate::config::Secret;
use crate::failure::Failure;
use crate::output::{print, tell};

/// Registers a webhook.
pub(crate) async fn create(settings: &Settings) -> Result<(), Failure> {
    let task = Settings::need(settings.task_id.as_ref(), "task-id")?;
    let url = Settings::need(settings.callback_url.as_ref(), "callback-url")?;
    let secret = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.expose().to_owned()).unwrap_or_default();
    let authentication = match (&settings.auth_scheme, &settings.auth_credentials) {
        (None, None) => None,
        (None, Some(_)) => return Err(Failure::usage(vec!["auth-credentials needs auth-scheme as well".into()])),
        (Some(scheme), credentials) => {
            Some(AuthenticationInfo { scheme: scheme.clone(), credentials: secret(credentials) })
        }
    };
    let config = TaskPushNotificationConfig {
        id: settings.config_id.as_deref().unwrap_or_default().into(),
        task_id: task.into(),
        url: url.into(),
        token: secret(&settings.notification_token),
        authentication,
        ..TaskPushNotificationConfig::default()
    };
    let Agent { client, .. } = connect(settings, Card::Useful).await?;
    print_webhook(settings, &client.create_push(config).await.map_err(failure)?)
}

/// Prints a webhook.
pub(crate) async fn get(settings: &Settings) -> Result<(), Failure> {
    let (task, id) = names(settings)?;
    let Agent { client, .. } = connect(settings, Card::Useful).await?;
    print_webhook(settings, &client.get_push(task.into(), id.into()).await.map_err(failure)?)
}

/// Removes a webhook.
pub(crate) async fn delete(settings: &Settings) -> Result<(), Failure> {
    let (task, id) = names(settings)?;
    let Agent { client, .. } = connect(settings, Card::Useful).await?;
    client.delete_push(task.into(), id.into()).await.map_err(failure)?;
    if settings.is_json() {
        return print_json(&json!({}));
    }
    tell(&format!("Webhook {id} of task {task} is gone.\n"));
    Ok(())
}

/// Prints the webhooks of a task.
pub(crate) async fn list(settings: &Settings) -> Result<(), Failure> {
    let task = Settings::need(settings.task_id.as_ref(), "task-id")?;
    let Agent { client, address } = connect(settings, Card::Useful).await?;
    let request = ListTaskPushNotificationConfigsRequest {
        task_id: task.into(),
        page_size: settings.page_size.unwrap_or_default(),
        page_token: settings.page_token.clone().unwrap_or_default(),
        ..ListTaskPushNotificationConfigsRequest::default()
    };
    let page = client.list_push(request).await.map_err(failure)?;
    if settings.is_json() {
        return print_json(&page);
    }
    if page.configs.is_empty() {
        tell(&format!("Task {task} has no webhooks.\n"));
        return Ok(());
    }
    print(&show::webhooks(&page.configs))?;
    if !page.next_page_token.is_empty() {
        tell(&format!("Next page: {}\n", next_page(settings, &address, "push-config-list", &page.next_page_token)));
    }
    Ok(())
}

fn names(settings: &Settings) -> Result<(&str, &str), Failure> {
    let task = Settings::need(settings.task_id.as_ref(), "task-id")?;
    Ok((task, Settings::need(settings.config_id.as_ref(), "config-id")?))
}

fn print_webhook(settings: &Settings, config: &TaskPushNotificationConfig) -> Result<(), Failure> {
    if settings.is_json() { print_json(config) } else { print(&show::webhook(config)) }
}
