//! `nuncio push list | dead | replay | rotate-key`: the operator's view of webhooks, beside a server that may be running.

use nuncio_protocol::{TaskState, Timestamp};
use nuncio_server::store::operator::{Operator, OperatorPush, Which};
use nuncio_server::store::{StoreError, WAITING};
use serde_json::{Value as Json, json};

use crate::cli::{PushArgs, PushCommand, PushListArgs, PushOutput, PushReplayArgs, ServeArgs};
use crate::commands::serve::store_password;
use crate::config::{self, Config};
use crate::failure::{Failure, Kind};
use crate::output::{print, warn};

mod rotate;

/// Runs the command.
pub(crate) async fn run(args: &PushArgs) -> Result<(), Failure> {
    match &args.command {
        PushCommand::List(args) => show(args, Which::Open).await,
        PushCommand::Dead(args) => show(args, Which::Dead).await,
        PushCommand::Replay(args) => replay(args).await,
        PushCommand::RotateKey(args) => rotate::run(args).await,
    }
}

async fn open(args: &ServeArgs) -> Result<Operator, Failure> {
    open_in(args).await.map(|(operator, _)| operator)
}

/// The database, and the configuration that names it.
async fn open_in(args: &ServeArgs) -> Result<(Operator, Config), Failure> {
    let loaded = config::load(args)?;
    warn(&loaded.warnings);
    let config = loaded.config;
    let operator = match &config.store {
        config::Store::Memory => {
            let text = "webhooks of a store in memory can be seen in the metrics of its server only";
            return Err(Failure::usage(vec![text.to_owned()]));
        }
        config::Store::Sqlite => Operator::sqlite(&config.data_dir.join("nuncio.db")),
        config::Store::Postgres(url) => Operator::postgres(url.expose(), store_password(&config)?.as_deref()).await,
    };
    Ok((operator.map_err(|error| failed(&error))?, config))
}

fn failed(error: &StoreError) -> Failure {
    let kind = if matches!(error, StoreError::Newer { .. }) { Kind::Usage } else { Kind::Failed };
    Failure::new(kind, error.to_string())
}

async fn show(args: &PushListArgs, which: Which) -> Result<(), Failure> {
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let found = open(&args.serve).await?.list(which, args.task_id.as_deref(), limit).await;
    let found = found.map_err(|error| failed(&error))?;
    match args.output {
        PushOutput::Json => {
            let all: Vec<Json> = found.iter().map(describe).collect();
            print(&format!("{}\n", serde_json::to_string_pretty(&all).map_err(anyhow::Error::from)?))
        }
        PushOutput::Table => print(&table(&found, which)),
    }
}

async fn replay(args: &PushReplayArgs) -> Result<(), Failure> {
    let operator = open(&args.serve).await?;
    let dead = operator.list(Which::Dead, args.task_id.as_deref(), usize::MAX).await;
    let dead = dead.map_err(|error| failed(&error))?;
    let meant = |webhook: &&OperatorPush| args.config_id.as_deref().is_none_or(|id| webhook.config.id.as_str() == id);
    let mut replayed = 0;
    for webhook in dead.iter().filter(meant) {
        if operator.replay(webhook).await.map_err(|error| failed(&error))? {
            replayed += 1;
        }
    }
    if replayed == 0 && !args.all {
        return Err(Failure::failed("no such webhook has given anything up: `nuncio push dead` shows those that have"));
    }
    print(&format!("{replayed} webhook(s) are due again.\n"))
}

fn describe(webhook: &OperatorPush) -> Json {
    let config = &webhook.config;
    json!({
        "tenant": &*webhook.tenant,
        "caller": &*webhook.owner,
        "taskId": webhook.task_id.as_str(),
        "state": state(webhook),
        "events": webhook.seq,
        "id": config.id.as_str(),
        "url": webhook.url(),
        "version": &*config.version,
        "position": config.acked,
        "failedAttempts": config.attempts,
        "failingSince": config.since.map(time),
        "due": config.due.filter(|due| *due != WAITING).map(time),
        "lastError": config.last_error,
        "dead": config.dead.map(|dead| json!({ "first": dead.from, "events": dead.count, "at": time(dead.at) })),
    })
}

fn state(webhook: &OperatorPush) -> &'static str {
    TaskState::from_number(webhook.state.0.into()).map_or("", TaskState::name)
}

fn time(micros: i64) -> String {
    Timestamp::from_micros(micros).map(|time| time.to_string()).unwrap_or_default()
}

fn table(found: &[OperatorPush], which: Which) -> String {
    let head = match which {
        Which::Open => ["TASK", "WEBHOOK", "URL", "UP TO", "FAILED", "DUE", "LAST ERROR"],
        Which::Dead => ["TASK", "WEBHOOK", "URL", "FIRST", "EVENTS", "AT", "LAST ERROR"],
    };
    let mut rows = vec![head.map(str::to_owned)];
    for webhook in found {
        let config = &webhook.config;
        let [third, fourth, fifth] = match (which, config.dead) {
            (Which::Dead, Some(dead)) => [dead.from.to_string(), dead.count.to_string(), time(dead.at)],
            _ => {
                let due = match config.due {
                    Some(WAITING) | None => "when the task goes on".to_owned(),
                    Some(due) => time(due),
                };
                [format!("{}/{}", config.acked, webhook.seq), config.attempts.to_string(), due]
            }
        };
        let error = config.last_error.clone().unwrap_or_else(|| "-".to_owned());
        rows.push([webhook.task_id.to_string(), config.id.to_string(), webhook.url(), third, fourth, fifth, error]);
    }
    let mut widths = [0; 7];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; 7]| {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}
