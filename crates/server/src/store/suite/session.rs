//! Sessions: what agents remember of conversations.

use std::sync::Arc;

use super::kit::{alice, scope};
use crate::store::{Session, SessionKey, Store};

fn key(context: &str) -> SessionKey {
    SessionKey { scope: alice(), context_id: context.into(), agent: "coder".into() }
}

/// A session is kept under tenant, owner, context and agent, and replaced as a whole.
pub async fn sessions_are_kept_apart_and_replaced(store: Arc<dyn Store>) {
    let first = Session { native: Some("s1".into()), workspace: Some("/work".into()) };
    store.put_session(&key("c1"), first.clone(), 10).await.unwrap();
    assert_eq!(store.session(&key("c1")).await.unwrap(), Some(first));
    for other in [
        key("c2"),
        SessionKey { agent: "other".into(), ..key("c1") },
        SessionKey { scope: scope("t", "bob"), ..key("c1") },
        SessionKey { scope: scope("other", &alice().owner), ..key("c1") },
    ] {
        assert_eq!(store.session(&other).await.unwrap(), None, "{other:?}");
    }
    let second = Session { native: Some("s2".into()), workspace: None };
    store.put_session(&key("c1"), second.clone(), 20).await.unwrap();
    assert_eq!(store.session(&key("c1")).await.unwrap(), Some(second));
}

/// Trimming forgets sessions that were last used before.
pub async fn trim_forgets_old_sessions(store: Arc<dyn Store>) {
    store.put_session(&key("old"), Session::default(), 10).await.unwrap();
    store.put_session(&key("used"), Session::default(), 10).await.unwrap();
    store.put_session(&key("used"), Session::default(), 30).await.unwrap();
    store.trim(20, 100).await.unwrap();
    assert_eq!(store.session(&key("old")).await.unwrap(), None);
    assert!(store.session(&key("used")).await.unwrap().is_some());
}
