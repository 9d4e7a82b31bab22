//! Where the turns of an agent work, and what they get of a message: the same for all agents that are programs.

use std::sync::Arc;

use nuncio_protocol::{Error, ErrorKind, Part};

use super::{AgentError, Arrival, Session, Turn};
use crate::workspace::{
    Accepts, PartError, Prompt, Workspace, WorkspaceError, Workspaces, read_parts, wanted_workspace,
};

/// The folders of an agent, and the kinds of parts that it takes.
#[derive(Clone, Debug)]
pub struct Workplace {
    workspaces: Arc<Workspaces>,
    accepts: Accepts,
}

impl Workplace {
    /// A place in these folders.
    pub fn new(workspaces: Workspaces, accepts: Accepts) -> Self {
        Self { workspaces: Arc::new(workspaces), accepts }
    }

    /// Refuses a message whose folder or parts the agent could not take. A conversation stays in the
    /// folder in which it began.
    pub async fn admit(&self, arrival: &Arrival<'_>) -> Result<(), Error> {
        let wanted = wanted_workspace(arrival.metadata, &arrival.message.metadata).map_err(|error| refused(&error))?;
        let session = arrival.session().await?;
        let workspace = self.choose(wanted.or(session.workspace.clone())).await.map_err(|error| refused(&error))?;
        let path = workspace.path().to_string_lossy().into_owned();
        if session.workspace.as_ref().is_some_and(|known| *known != path) {
            let text = "A2A context belongs to a different workspace";
            return Err(Error::new(ErrorKind::InvalidParams, text));
        }
        let parts = arrival.message.parts.clone();
        let read = self.read(parts, workspace).await.map_err(|_| Error::internal())?;
        read.map_err(|error| Error::new(ErrorKind::InvalidParams, error.to_string()))?;
        if session.workspace.is_none() {
            arrival.keep_session(Session { workspace: Some(path), ..session });
        }
        Ok(())
    }

    /// The folder of a turn, checked again, and what the agent remembers.
    pub(crate) async fn open(&self, turn: &Turn) -> Result<(Workspace, Session), AgentError> {
        let session = turn.session().await?;
        match self.choose(session.workspace.clone()).await {
            Ok(workspace) => Ok((workspace, session)),
            Err(error) => {
                tracing::warn!(task = %turn.task_id(), why = error.reason(), "a workspace was refused");
                Err(AgentError::Failed(error.to_string()))
            }
        }
    }

    /// What the parts of messages say to the agent.
    pub(crate) async fn prompt(&self, parts: Vec<Part>, workspace: &Workspace) -> Result<Prompt, AgentError> {
        let read = self.read(parts, workspace.clone()).await?;
        read.map_err(|error| AgentError::Failed(error.to_string()))
    }

    async fn choose(&self, wanted: Option<String>) -> Result<Workspace, WorkspaceError> {
        let workspaces = self.workspaces.clone();
        let chosen = tokio::task::spawn_blocking(move || workspaces.choose(wanted.as_deref())).await;
        chosen.unwrap_or_else(|_| Err(WorkspaceError::Refused("the check was given up".into())))
    }

    async fn read(&self, parts: Vec<Part>, workspace: Workspace) -> Result<Result<Prompt, PartError>, AgentError> {
        let accepts = self.accepts.clone();
        let read = tokio::task::spawn_blocking(move || read_parts(&parts, &workspace, &accepts)).await;
        read.map_err(|_| AgentError::Internal("the parts of a message could not be read".into()))
    }
}

fn refused(error: &WorkspaceError) -> Error {
    tracing::info!(why = error.reason(), "a workspace was refused");
    Error::new(ErrorKind::InvalidParams, error.to_string())
}
