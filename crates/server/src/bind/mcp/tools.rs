//! The five tools.

use http::request::Parts;
use nuncio_protocol::{
    CancelTaskRequest, Content, Error, ErrorKind, GetTaskRequest, Message, Metadata, Part, SendMessageConfiguration,
    SendMessageRequest, Task, TaskId, Value, codec, json,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::auth::Caller;
use crate::bind::dispatch::{Answer, Outcome, Request, dispatch};
use crate::bind::{App, params};
use crate::call::{Call, Version};
use crate::metrics::Binding;
use crate::store::Seq;
use crate::workspace::WORKSPACE;

/// Why a tool says nothing useful.
pub(super) enum Failed {
    /// Something that is told in place of a result.
    Told(String),
    /// The call itself is wrong, or cannot be carried out.
    Call(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Call(error)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    task: String,
    repo_path: Option<String>,
    model: Option<String>,
    force: Option<bool>,
    profile: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Poll {
    job_id: String,
    #[serde(default)]
    since_line: Seq,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    job_id: String,
}

/// What `tools/list` says.
pub(super) fn list() -> Value {
    let text = |what: &str| json!({ "type": "string", "description": what });
    let job = text("The job, as coding_agent_run named it.");
    let since = json!({ "type": "integer", "minimum": 0, "default": 0,
        "description": "How many events were read already; those after them are returned." });
    let profile = json!({ "type": "string", "enum": ["COMPLEX", "MID", "ROUTINE"],
        "description": "How hard the task is; without it, its words decide." });
    let force = json!({ "type": "boolean",
        "description": "Kept with the task; the server's configuration decides who approves what." });
    let run = json!({
        "task": text("What to do."),
        "repoPath": text("The folder to work in, below a root that the server allows."),
        "model": text("Kept with the task; the server's configuration decides the model."),
        "force": force,
        "profile": profile,
    });
    let tool = |name: &str, what: &str, properties: Value, required: &[&str]| {
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        json!({ "name": name, "description": what, "inputSchema": schema })
    };
    json!([
        tool("coding_agent_run", "Starts a coding task and returns its job_id at once.", run, &["task"]),
        tool(
            "coding_agent_poll",
            "Returns the events of a job and whether it is done.",
            json!({ "jobId": job, "sinceLine": since }),
            &["jobId"],
        ),
        tool(
            "coding_agent_result",
            "Returns the summary of a job. A job that is done is forgotten with it.",
            json!({ "jobId": job }),
            &["jobId"],
        ),
        tool("coding_agent_cancel", "Cancels a job and forgets it.", json!({ "jobId": job }), &["jobId"]),
        tool("coding_agent_info", "Tells which agent works here and what it can do.", json!({}), &[]),
    ])
}

/// Uses a tool.
pub(super) async fn call(
    app: &App,
    parts: &Parts,
    caller: &Caller,
    name: &str,
    arguments: Value,
) -> Result<Value, Failed> {
    let call = params::call(app, parts, caller, Version::V1, params::path_tenant(parts), None);
    match name {
        "coding_agent_run" => run(app, call, read(arguments)?).await,
        "coding_agent_poll" => poll(app, call, read(arguments)?).await,
        "coding_agent_result" => result(app, call, read(arguments)?).await,
        "coding_agent_cancel" => cancel(app, call, read(arguments)?).await,
        "coding_agent_info" => Ok(info(app, &call)),
        other => Err(Error::new(ErrorKind::InvalidParams, format!("There is no tool {other:?}")).into()),
    }
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, Error> {
    if !arguments.is_object() {
        return Err(Error::invalid("arguments", "must be an object"));
    }
    Ok(codec::from_value(arguments)?)
}

async fn run(app: &App, call: Call, run: Run) -> Result<Value, Failed> {
    let wishes = [
        (WORKSPACE, run.repo_path.map(Value::from)),
        ("model", run.model.map(Value::from)),
        ("force", run.force.map(Value::from)),
        ("profile", run.profile.map(Value::from)),
    ];
    let metadata: Metadata = wishes.into_iter().filter_map(|(key, wish)| Some((key.to_owned(), wish?))).collect();
    let message = Message { metadata, ..Message::from_user(vec![Part::text(run.task)]) };
    let at_once = SendMessageConfiguration { return_immediately: true, ..SendMessageConfiguration::default() };
    let request =
        SendMessageRequest { message: Some(message), configuration: Some(at_once), ..SendMessageRequest::default() };
    match carry_out(app, call, Request::Send(Box::new(request))).await {
        Ok(Answer::Sent(_, handle)) => Ok(json!({ "job_id": handle.task_id() })),
        Ok(Answer::Message(message)) => {
            Err(Failed::Told(format!("There is no job, the agent answered at once: {}", message.text())))
        }
        Ok(_) => Err(Error::internal().into()),
        // The folder, for one: whoever asked can ask for another.
        Err(error) if error.kind == ErrorKind::InvalidParams => Err(Failed::Told(error.message.into_owned())),
        Err(error) => Err(error.into()),
    }
}

async fn poll(app: &App, call: Call, poll: Poll) -> Result<Value, Failed> {
    let id = TaskId::from(poll.job_id);
    let scope = call.scope.clone();
    // The task before its events: one that is over has got them all.
    let task = job(app, call, &id).await?;
    let page = app.engine.events_after(&scope, &id, poll.since_line).await.map_err(|error| unknown(&id, error))?;
    let events: Result<Vec<Value>, _> = page.events.iter().map(|event| codec::decode(&event.body)).collect();
    let events = events.map_err(|error| {
        tracing::error!(%error, task = %id, "an event in the store cannot be read");
        Error::internal()
    })?;
    Ok(json!({ "events": events, "done": task.status.state.is_terminal() && !page.more }))
}

async fn result(app: &App, call: Call, Job { job_id }: Job) -> Result<Value, Failed> {
    let id = TaskId::from(job_id);
    let scope = call.scope.clone();
    let task = job(app, call, &id).await?;
    let done = task.status.state.is_terminal();
    // Of two who ask at once, one gets it.
    if done && !app.mcp.add(scope, id.clone()) {
        return Err(no_job(&id));
    }
    Ok(summed_up(&task, done))
}

/// The artifact `result`, or the last words of a job that has none.
fn summed_up(task: &Task, done: bool) -> Value {
    let results = task.artifacts.iter().rev().filter(|artifact| artifact.name == "result");
    let found = results.flat_map(|artifact| &artifact.parts).find_map(|part| match &part.content {
        Content::Data(data) => Some(data),
        _ => None,
    });
    let words = || task.status.message.as_ref().map(Message::text).unwrap_or_default();
    let summary = found.and_then(|found| found.get("summary")).cloned();
    let mut said = json!({ "summary": summary.unwrap_or_else(|| words().into()), "done": done });
    if let Some(stats) = found.and_then(|found| found.get("stats")) {
        said["stats"] = stats.clone();
    }
    said
}

async fn cancel(app: &App, call: Call, Job { job_id }: Job) -> Result<Value, Failed> {
    let id = TaskId::from(job_id);
    let scope = call.scope.clone();
    if app.mcp.has(&scope, &id) {
        return Err(no_job(&id));
    }
    let request = CancelTaskRequest { id: id.clone(), ..CancelTaskRequest::default() };
    carry_out(app, call, Request::Cancel(request)).await.map_err(|error| unknown(&id, error))?;
    app.mcp.add(scope, id);
    Ok(json!({ "cancelled": true }))
}

fn info(app: &App, call: &Call) -> Value {
    let card = app.card(&call.scope.tenant);
    let served = app.engine.roster().of_tenant(&call.scope.tenant);
    let adapter = served.first().map_or_else(|| app.engine.roster().first().name.clone(), |first| first.name.clone());
    let agent = card.agent();
    json!({ "adapter": &*adapter, "capabilities": codec::to_value(&agent.capabilities), "version": agent.version })
}

/// The task of a job.
async fn job(app: &App, call: Call, id: &TaskId) -> Result<Task, Failed> {
    if app.mcp.has(&call.scope, id) {
        return Err(no_job(id));
    }
    let request = GetTaskRequest { id: id.clone(), ..GetTaskRequest::default() };
    match carry_out(app, call, Request::Get(request)).await {
        Ok(Answer::Task(task)) => Ok(task.task()?),
        Ok(_) => Err(Error::internal().into()),
        Err(error) => Err(unknown(id, error)),
    }
}

async fn carry_out(app: &App, call: Call, request: Request) -> Result<Answer, Error> {
    app.metrics.call(request.operation(), Binding::JsonRpc, call.version);
    match dispatch(app, call, request).await? {
        Outcome::Answer(answer) => Ok(answer),
        Outcome::Stream(..) | Outcome::StreamOfOne(_) => Err(Error::internal()),
    }
}

fn no_job(id: &TaskId) -> Failed {
    Failed::Told(format!("Unknown job: {id}"))
}

/// A foreign job, a missing one and one without a name look the same.
fn unknown(id: &TaskId, error: Error) -> Failed {
    match error.kind {
        ErrorKind::TaskNotFound => no_job(id),
        ErrorKind::InvalidParams if id.is_empty() => no_job(id),
        _ => Failed::Call(error),
    }
}
