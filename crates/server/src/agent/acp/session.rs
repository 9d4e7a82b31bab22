//! The beginning of a conversation with an agent: initialize, then resume, load or new.

use std::time::Duration;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, AuthMethod, AuthenticateRequest, ClientCapabilities, ClientSessionCapabilities,
    CompactionCapabilities, ElicitationCapabilities, ElicitationFormCapabilities, ElicitationUrlCapabilities, Error,
    ErrorCode, FileSystemCapabilities, Implementation, InitializeRequest, InitializeResponse, LoadSessionRequest,
    NewSessionRequest, NewSessionResponse, NoticeCapabilities, ResumeSessionRequest,
};
use nuncio_protocol::codec;

use super::Offers;
use super::connection::{CallError, Connection};
use super::peer::{Incoming, words};
use super::pool::Attached;
use crate::workspace::Workspace;

/// How a conversation begins.
pub(crate) struct Opening<'a> {
    pub(crate) offers: Offers,
    /// The way to authenticate that the configuration names.
    pub(crate) auth_method: Option<&'a str>,
    pub(crate) workspace: &'a Workspace,
    /// What the agent calls the conversation, if there is one already.
    pub(crate) session: Option<&'a str>,
    pub(crate) timeout: Duration,
}

/// Why it does not begin.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// The agent needs credentials; in words for the caller.
    AuthRequired(String),
    /// In words for the caller.
    Failed(String),
}

/// How it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// For the first time.
    New,
    /// The agent remembers.
    Continued,
    /// There was one before, but the agent cannot go back to it.
    Forgotten,
}

impl Opening<'_> {
    /// Talks to an agent that was just started until it is ready for a prompt.
    pub(crate) async fn open(&self, connection: Connection) -> Result<(Attached, Opened), OpenError> {
        match tokio::time::timeout(self.timeout, self.talk(connection)).await {
            Ok(opened) => opened,
            Err(_) => Err(OpenError::Failed(format!(
                "The agent was not ready within {:?}; does its command speak the Agent Client Protocol?",
                self.timeout
            ))),
        }
    }

    async fn talk(&self, mut connection: Connection) -> Result<(Attached, Opened), OpenError> {
        let Some(cwd) = self.workspace.path().to_str().map(str::to_owned) else {
            return Err(OpenError::Failed("The name of the workspace is not UTF-8".into()));
        };
        let hello = self.initialize(&mut connection).await?;
        let (can, auth_methods) = (hello.agent_capabilities, hello.auth_methods);
        let refused = |error: CallError| explain(error, &auth_methods);
        if let Some(session) = self.session
            && (can.session_capabilities.resume.is_some() || can.load_session)
        {
            let mut cost = None;
            let again = reattach(&mut connection, &can, session, &cwd, &mut cost).await;
            match again {
                Ok(()) => {
                    let session = session.to_owned();
                    let attached = Attached { connection, session, can, auth_methods, cost };
                    return Ok((attached, Opened::Continued));
                }
                Err(CallError::Refused(error)) if error.code != ErrorCode::AuthRequired => {
                    tracing::info!(error = words(&error), "an agent cannot go on with a conversation");
                }
                Err(error) => return Err(refused(error)),
            }
        }
        let answer = connection.call("session/new", &NewSessionRequest::new(cwd), |_| {}).await.map_err(refused)?;
        let answer: NewSessionResponse = codec::from_value(answer).map_err(|error| {
            tracing::warn!(%error, "an agent answers session/new with something else");
            OpenError::Failed("The agent did not begin a session".into())
        })?;
        let opened = if self.session.is_some() { Opened::Forgotten } else { Opened::New };
        let session = answer.session_id.to_string();
        Ok((Attached { connection, session, can, auth_methods, cost: Some(0.0) }, opened))
    }

    async fn initialize(&self, connection: &mut Connection) -> Result<InitializeResponse, OpenError> {
        let request = InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(capabilities(self.offers))
            .client_info(Implementation::new("nuncio", env!("CARGO_PKG_VERSION")).title("Nuncio".to_owned()));
        let answer = connection.call("initialize", &request, |_| {}).await.map_err(|error| explain(error, &[]))?;
        let hello: InitializeResponse = codec::from_value(answer).map_err(|error| {
            tracing::warn!(%error, "an agent answers initialize with something else");
            OpenError::Failed("The agent does not speak the Agent Client Protocol".into())
        })?;
        if hello.protocol_version != ProtocolVersion::V1 {
            let theirs = hello.protocol_version;
            return Err(OpenError::Failed(format!(
                "The agent speaks version {theirs} of the Agent Client Protocol, the server only version 1"
            )));
        }
        if let Some(method) = self.auth_method {
            let request = AuthenticateRequest::new(method.to_owned());
            let answer = connection.call("authenticate", &request, |_| {}).await;
            answer.map_err(|error| match explain(error, &hello.auth_methods) {
                OpenError::Failed(what) => OpenError::Failed(format!("The agent could not authenticate: {what}")),
                required => required,
            })?;
        }
        Ok(hello)
    }
}

/// Goes back to an earlier conversation. What `session/load` tells of its past is not told again; only
/// what it cost is remembered.
async fn reattach(
    connection: &mut Connection,
    can: &AgentCapabilities,
    session: &str,
    cwd: &str,
    cost: &mut Option<f64>,
) -> Result<(), CallError> {
    if can.session_capabilities.resume.is_some() {
        let request = ResumeSessionRequest::new(session.to_owned(), cwd);
        match connection.call("session/resume", &request, |_| {}).await {
            Err(CallError::Refused(error)) if can.load_session && error.code != ErrorCode::AuthRequired => {}
            result => return result.map(drop),
        }
    }
    let remember = |said: &Incoming| {
        if let Incoming::Notification { params, .. } = said {
            let told = &params["update"]["cost"];
            let is_usd = told["currency"].as_str().is_some_and(|currency| currency.eq_ignore_ascii_case("USD"));
            *cost = told["amount"].as_f64().filter(|_| is_usd).or(*cost);
        }
    };
    connection.call("session/load", &LoadSessionRequest::new(session.to_owned(), cwd), remember).await.map(drop)
}

fn capabilities(offers: Offers) -> ClientCapabilities {
    let fs = FileSystemCapabilities::new().read_text_file(offers.read).write_text_file(offers.write);
    let session =
        ClientSessionCapabilities::new().notices(NoticeCapabilities::new()).compaction(CompactionCapabilities::new());
    let elicitation =
        ElicitationCapabilities::new().form(ElicitationFormCapabilities::new()).url(ElicitationUrlCapabilities::new());
    ClientCapabilities::new().fs(fs).terminal(offers.terminals).session(session).elicitation(elicitation)
}

fn explain(error: CallError, methods: &[AuthMethod]) -> OpenError {
    match error {
        CallError::Refused(error) if error.code == ErrorCode::AuthRequired => {
            OpenError::AuthRequired(how_to_sign_in(&error, methods))
        }
        CallError::Refused(error) => OpenError::Failed(words(&error)),
        CallError::Gone(why) => OpenError::Failed(why),
    }
}

/// What is to be done so that the agent can work, in words.
pub(crate) fn how_to_sign_in(error: &Error, methods: &[AuthMethod]) -> String {
    let mut text = format!("{}. The agent needs to be signed in on the server", words(error).trim_end_matches('.'));
    let methods: Vec<String> = methods
        .iter()
        .map(|method| match method.description().filter(|more| !more.is_empty()) {
            Some(more) => format!("{} ({more})", method.name()),
            None => method.name().to_owned(),
        })
        .collect();
    match methods.as_slice() {
        [] => text.push('.'),
        all => text.push_str(&format!(" by one of: {}.", all.join("; "))),
    }
    text
}
