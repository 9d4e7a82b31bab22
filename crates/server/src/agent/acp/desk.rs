//! What the agent may ask of us while it works: files and commands. Each request is answered on its own,
//! so that none of them waits for a person who is asked for something else.

use agent_client_protocol_schema::v1::{CreateTerminalResponse, Error, WaitForTerminalExitResponse};
use nuncio_protocol::{Value, codec, json};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::terminal::Terminals;
use super::{Offers, fs};
use crate::workspace::Workspace;

/// Answers requests for files and commands.
pub(crate) struct Desk {
    workspace: Workspace,
    offers: Offers,
    terminals: Terminals,
}

impl Desk {
    pub(crate) fn new(workspace: Workspace, offers: Offers, terminals: Terminals) -> Self {
        Self { workspace, offers, terminals }
    }

    /// Whether a request is for this desk.
    pub(crate) fn serves(method: &str) -> bool {
        method.starts_with("fs/") || method.starts_with("terminal/")
    }

    /// The answer to a request. It may take as long as a command runs.
    pub(crate) async fn answer(&self, method: &str, params: Value) -> Result<Value, Error> {
        match method {
            "fs/read_text_file" if self.offers.read => {
                let (workspace, request) = (self.workspace.clone(), read(params)?);
                blocking(move || fs::read(&workspace, &request)).await
            }
            "fs/write_text_file" if self.offers.write => {
                let (workspace, request) = (self.workspace.clone(), read(params)?);
                blocking(move || fs::write(&workspace, &request)).await
            }
            _ if method.starts_with("terminal/") && self.offers.terminals => self.terminal(method, params).await,
            _ => Err(Error::method_not_found()),
        }
    }

    async fn terminal(&self, method: &str, params: Value) -> Result<Value, Error> {
        if method == "terminal/create" {
            return Ok(codec::to_value(&CreateTerminalResponse::new(self.terminals.create(&read(params)?)?)));
        }
        let id = params.get("terminalId").and_then(Value::as_str);
        let id = id.ok_or_else(|| Error::invalid_params().data(json!("terminalId is missing")))?;
        match method {
            "terminal/output" => Ok(codec::to_value(&self.terminals.get(id)?.output())),
            "terminal/wait_for_exit" => {
                let terminal = self.terminals.get(id)?;
                Ok(codec::to_value(&WaitForTerminalExitResponse::new(terminal.ended().await)))
            }
            "terminal/kill" => {
                self.terminals.get(id)?.kill();
                Ok(json!({}))
            }
            "terminal/release" => self.terminals.release(id).map(|()| json!({})),
            _ => Err(Error::method_not_found()),
        }
    }

    /// What a terminal printed, for the report of a tool call.
    pub(crate) fn printed(&self, terminal: &str) -> Option<String> {
        self.terminals.printed(terminal)
    }

    /// Ends everything that runs.
    pub(crate) fn clear(&self) {
        self.terminals.release_all();
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    codec::from_value(params).map_err(|error| Error::invalid_params().data(json!(error.to_string())))
}

async fn blocking<T: Serialize + Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<Value, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map(|answer| codec::to_value(&answer)),
        Err(error) => Err(Error::internal_error().data(json!(error.to_string()))),
    }
}
