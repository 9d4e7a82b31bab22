//! `nuncio client task-get | task-list | task-cancel`.

use nuncio_protocol::{CancelTaskRequest, ErrorKind, GetTaskRequest, ListTasksRequest, Task, TaskState};

use super::again::Again;
use super::connect::{Agent, Card, connect, failure};
use super::kinds::state_name;
use super::settings::Settings;
use super::{print_json, show};
use crate::failure::Failure;
use crate::output::{print, tell};

/// Prints a task.
pub(crate) async fn get(settings: &Settings) -> Result<(), Failure> {
    let id = Settings::need(settings.task_id.as_ref(), "task-id")?.into();
    let Agent { client, .. } = connect(settings, Card::Useful).await?;
    let request = GetTaskRequest { id, history_length: settings.history_length, ..GetTaskRequest::default() };
    print_task(settings, &client.get(request).await.map_err(failure)?)
}

/// Cancels a task. One that is canceled already is fine.
pub(crate) async fn cancel(settings: &Settings) -> Result<(), Failure> {
    let id = Settings::need(settings.task_id.as_ref(), "task-id")?;
    let Agent { client, .. } = connect(settings, Card::Useful).await?;
    let task = match client.cancel(CancelTaskRequest { id: id.into(), ..CancelTaskRequest::default() }).await {
        Err(error) if error.kind() == Some(ErrorKind::TaskNotCancelable) => {
            let request = GetTaskRequest { id: id.into(), history_length: Some(0), ..GetTaskRequest::default() };
            let task = client.get(request).await.map_err(failure)?;
            if task.status.state != TaskState::Canceled {
                return Err(failure(error).with(&format!("the task is {}", state_name(task.status.state))));
            }
            task
        }
        other => other.map_err(failure)?,
    };
    print_task(settings, &task)
}

fn print_task(settings: &Settings, task: &Task) -> Result<(), Failure> {
    if settings.is_json() { print_json(task) } else { print(&show::task(task)) }
}

/// Prints a page of tasks.
pub(crate) async fn list(settings: &Settings) -> Result<(), Failure> {
    let Agent { client, address } = connect(settings, Card::Useful).await?;
    let request = ListTasksRequest {
        context_id: settings.context_id.as_deref().unwrap_or_default().into(),
        status: settings.status.unwrap_or_default(),
        page_size: settings.page_size,
        page_token: settings.page_token.clone().unwrap_or_default(),
        include_artifacts: settings.include_artifacts.then_some(true),
        ..ListTasksRequest::default()
    };
    let page = client.list(request).await.map_err(failure)?;
    if settings.is_json() {
        return print_json(&page);
    }
    if page.tasks.is_empty() {
        tell("No A2A tasks found.\n");
        return Ok(());
    }
    print(&show::tasks(&page.tasks))?;
    let total = usize::try_from(page.total_size).unwrap_or_default().max(page.tasks.len());
    tell(&format!("Showing {} of {total} tasks.\n", page.tasks.len()));
    if !page.next_page_token.is_empty() {
        tell(&format!("Next page: {}\n", next_page(settings, &address, "task-list", &page.next_page_token)));
    }
    Ok(())
}

/// The line for the page after. Filters that the file sets need not be repeated.
pub(crate) fn next_page(settings: &Settings, address: &str, command: &str, token: &str) -> String {
    let size = settings.page_size.map(|size| size.to_string());
    let status = settings.status.map(|state| state.name().to_owned());
    let with_artifacts = settings.include_artifacts.then(String::new);
    let all = [
        ("task-id", &settings.task_id),
        ("context-id", &settings.context_id),
        ("status", &status),
        ("page-size", &size),
        ("include-artifacts", &with_artifacts),
    ];
    let given = all.iter().filter(|(key, _)| settings.rank(key) == 0);
    let mut line = Again::new(settings, address).line(command, &[]);
    for (key, value) in given {
        match value.as_deref() {
            Some("") => line.push_str(&format!(" --{key}")),
            Some(value) => line.push_str(&format!(" --{key} {}", super::again::quote(value))),
            None => {}
        }
    }
    format!("{line} --page-token {}", super::again::quote(&crate::terminal::one_line(token)))
}
