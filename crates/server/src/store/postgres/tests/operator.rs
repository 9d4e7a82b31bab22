//! What an operator sees and changes beside the servers.

use crate::push::keyring::Keyring;
use crate::store::operator::{KeyKind, Operator, Which};
use crate::store::{Dead, PushConfig};

use super::*;

fn keys(names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| ((*name).to_owned(), format!("print of {name}"))).collect()
}

#[tokio::test]
async fn servers_with_other_keys_are_refused() {
    let url = server().database();
    let store = open(&url).await.unwrap();
    store.agree(KeyKind::Keyring, &keys(&["a"])).await.unwrap();
    store.agree(KeyKind::Keyring, &keys(&["a"])).await.unwrap();
    let other = store.agree(KeyKind::Keyring, &keys(&["b"])).await.unwrap_err().to_string();
    assert!(other.contains("NUNCIO_PUSH_KEYRING") && other.contains("keyring-dir"), "{other}");
    store.agree(KeyKind::Signing, &keys(&["b"])).await.unwrap();
    // A new key comes beside an old one, and may stay alone.
    store.agree(KeyKind::Keyring, &keys(&["b", "a"])).await.unwrap();
    store.agree(KeyKind::Keyring, &keys(&["b"])).await.unwrap();
    let same_name = vec![("b".to_owned(), "another".to_owned())];
    store.agree(KeyKind::Keyring, &same_name).await.unwrap_err();
    let operator = Operator::postgres(&url, None).await.unwrap();
    operator.agree(KeyKind::Keyring, &keys(&["b"])).await.unwrap();
    store.agree(KeyKind::Keyring, &keys(&["a"])).await.unwrap_err();
}

#[tokio::test]
async fn an_operator_sees_webhooks_and_sends_again() {
    let url = server().database();
    let missing = Operator::postgres(&url, None).await.err().unwrap().to_string();
    assert!(missing.contains("start the server once"), "{missing}");
    let store = open(&url).await.unwrap();
    let (one, two) = (create(&store, "one").await, create(&store, "two").await);
    let hook = |id: &str, due, dead| PushConfig {
        id: id.into(),
        body: Bytes::from(r#"{"url":"https://example.org/"}"#),
        version: "1.0".into(),
        acked: 9,
        attempts: 0,
        due,
        last_error: None,
        epoch: 0,
        since: None,
        told: None,
        dead,
        node: Some("n".into()),
    };
    store.put_push(one, hook("a", Some(20), None)).await.unwrap();
    store.put_push(two, hook("b", Some(10), None)).await.unwrap();
    store.put_push(two, hook("c", None, Some(Dead { from: 3, count: 2, at: 30 }))).await.unwrap();
    let operator = Operator::postgres(&url, None).await.unwrap();
    let ids = async |which, task| -> Vec<String> {
        let found = operator.list(which, task, 10).await.unwrap();
        found.iter().map(|push| format!("{}/{}", push.task_id, push.config.id)).collect()
    };
    assert_eq!(ids(Which::Open, None).await, ["two/b", "one/a"]);
    assert_eq!(ids(Which::Open, Some("one")).await, ["one/a"]);
    assert_eq!(ids(Which::Dead, None).await, ["two/c"]);
    let dead = operator.list(Which::Dead, None, 10).await.unwrap();
    assert_eq!(dead[0].seq, 1);
    assert!(operator.replay(&dead[0]).await.unwrap() && !operator.replay(&dead[0]).await.unwrap());
    let replayed = store.pushes(two).await.unwrap().remove(1);
    assert_eq!((replayed.acked, replayed.epoch, replayed.dead), (2, 1, None));
    let folder = tempfile::tempdir().unwrap();
    let keyring = Keyring::open_in(folder.path(), |_| None).unwrap();
    assert_eq!(operator.reseal(&keyring).await.unwrap().changed, 0, "there is nothing secret in them");
}

#[tokio::test]
async fn the_settings_of_a_database_are_examined() {
    let store = open(&server().database()).await.unwrap();
    let found = store.examine().await.unwrap();
    let schema = format!("schema nuncio version {}", crate::store::postgres::migrate::KNOWN);
    assert!(found.about.starts_with("PostgreSQL ") && found.about.contains(&schema), "{found:?}");
    assert!(found.warnings.iter().any(|warning| warning.starts_with("fsync is off")), "{found:?}");
    let many = open(&format!("{}?pool=900", server().database())).await.unwrap();
    let found = many.examine().await.unwrap();
    assert!(found.warnings.iter().any(|warning| warning.contains("raise max_connections")), "{found:?}");
}
