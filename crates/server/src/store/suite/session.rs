//! Sessions: what agents remember of conversations.

use std::sync::Arc;

use super::kit::*;
use crate::store::{Older, Session, SessionKey, Store};

fn of(context: &str) -> SessionKey {
    SessionKey { scope: alice(), context_id: context.into(), agent: "coder".into() }
}

/// A session is kept under tenant, owner, context and agent, and replaced as a whole.
pub async fn sessions_are_kept_apart_and_replaced(store: Arc<dyn Store>) {
    let first = Session { native: Some("s1".into()), workspace: Some("/work".into()) };
    store.put_session(&of("c1"), first.clone(), 10).await.unwrap();
    assert_eq!(store.session(&of("c1")).await.unwrap(), Some(first));
    for other in [
        of("c2"),
        SessionKey { agent: "other".into(), ..of("c1") },
        SessionKey { scope: scope("t", "bob"), ..of("c1") },
        SessionKey { scope: scope("other", &alice().owner), ..of("c1") },
    ] {
        assert_eq!(store.session(&other).await.unwrap(), None, "{other:?}");
    }
    let second = Session { native: Some("s2".into()), workspace: None };
    store.put_session(&of("c1"), second.clone(), 20).await.unwrap();
    assert_eq!(store.session(&of("c1")).await.unwrap(), Some(second));
}

/// Trimming forgets sessions that were last used before.
pub async fn trim_forgets_old_sessions(store: Arc<dyn Store>) {
    store.put_session(&of("old"), Session::default(), 10).await.unwrap();
    store.put_session(&of("used"), Session::default(), 10).await.unwrap();
    store.put_session(&of("used"), Session::default(), 30).await.unwrap();
    store.trim(Older::than(20), 100).await.unwrap();
    assert_eq!(store.session(&of("old")).await.unwrap(), None);
    assert!(store.session(&of("used")).await.unwrap().is_some());
}

/// The session of a conversation stays for as long as the conversation has a task, finished or not, of the same caller.
pub async fn trim_keeps_sessions_of_conversations_with_tasks(store: Arc<dyn Store>) {
    let is_there = async |id: &str| store.session(&of(&format!("context of {id}"))).await.unwrap().is_some();
    for (id, state, at) in [("works", WORKING, 1), ("rests", INPUT_REQUIRED, 10), ("finished", COMPLETED, 50)] {
        let context = format!("context of {id}");
        let mut task = task(id);
        (task.state, task.at) = (state, at);
        store.create(task).await.unwrap();
        store.put_session(&of(&context), Session::default(), 10).await.unwrap();
        let other = SessionKey { scope: scope("acme", "bob"), ..of(&context) };
        store.put_session(&other, Session::default(), 10).await.unwrap();
        store.trim(Older::than(20), 100).await.unwrap();
        assert!(is_there(id).await, "{id}");
        assert_eq!(store.session(&other).await.unwrap(), None, "{id}");
    }
    assert_eq!(store.trim(Older::than(51), 100).await.unwrap(), 1);
    assert!(!is_there("finished").await);
    assert!(is_there("works").await && is_there("rests").await);
}
