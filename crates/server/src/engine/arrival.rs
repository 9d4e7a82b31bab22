//! A message at the door, before anything is stored for it.

use std::sync::Arc;

use nuncio_protocol::{Error, Message, Metadata};
use parking_lot::Mutex;

use super::{Engine, now, store_error};
use crate::store::{Scope, Session, SessionKey};

/// What an agent may look at before it admits a message.
pub struct Arrival<'a> {
    engine: &'a Engine,
    key: SessionKey,
    /// The message; its context is known.
    pub message: &'a Message,
    /// What the request says beside the message.
    pub metadata: &'a Metadata,
    kept: Mutex<Option<Session>>,
}

/// What is to be remembered of a conversation once a message of it is taken.
pub(super) struct Kept(SessionKey, Session);

impl<'a> Arrival<'a> {
    pub(crate) fn new(
        engine: &'a Engine,
        scope: &Scope,
        agent: &Arc<str>,
        message: &'a Message,
        metadata: &'a Metadata,
    ) -> Self {
        let key = SessionKey { scope: scope.clone(), context_id: message.context_id.clone(), agent: agent.clone() };
        Self { engine, key, message, metadata, kept: Mutex::default() }
    }

    /// What the agent remembers of the conversation.
    pub async fn session(&self) -> Result<Session, Error> {
        let session = self.engine.store.session(&self.key).await;
        session.map(Option::unwrap_or_default).map_err(|error| store_error(&error))
    }

    /// Remembers something of the conversation, once the message is taken.
    pub fn keep_session(&self, session: Session) {
        *self.kept.lock() = Some(session);
    }

    pub(super) fn into_kept(self) -> Option<Kept> {
        self.kept.into_inner().map(|session| Kept(self.key, session))
    }
}

impl Engine {
    /// Stores what an agent remembers of a message that is about to be taken.
    pub(super) async fn keep(&self, kept: Option<Kept>) -> Result<(), Error> {
        let Some(Kept(key, session)) = kept else { return Ok(()) };
        self.store.put_session(&key, session, now()).await.map_err(|error| store_error(&error))
    }
}
