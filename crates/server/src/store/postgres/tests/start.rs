//! Opening: several at once, releases of different age, and what is wrong with a database.

use super::*;

fn database(url: &str) -> &str {
    url.rsplit('/').next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn several_servers_can_start_on_an_empty_database_at_once() {
    let url = server().database();
    let opens = (0..8).map(|_| {
        let url = format!("{url}?pool=2&writers=1");
        tokio::spawn(async move { open(&url).await.unwrap() })
    });
    let mut names = Vec::new();
    for open in opens.collect::<Vec<_>>() {
        let store = open.await.unwrap();
        store.check().await.unwrap();
        names.push(store.name.clone());
    }
    names.dedup();
    assert_eq!(names.len(), 1);
    assert_eq!(server().ask(database(&url), "SELECT count(*) FROM nuncio.release"), "1");
}

#[tokio::test]
async fn a_newer_schema_is_used_if_it_says_so_and_refused_otherwise() {
    let url = server().database();
    let task = create(&open(&url).await.unwrap(), "t").await;
    let set = |compatible: i32| {
        let sql = format!("UPDATE nuncio.release SET version = 99, compatible_since = {compatible}");
        server().ask(database(&url), &sql);
    };
    set(1);
    let store = open(&url).await.unwrap();
    append(&store, task, 2).await.unwrap();
    assert_eq!(server().ask(database(&url), "SELECT version FROM nuncio.release"), "99");
    set(98);
    let error = open(&url).await.err().unwrap();
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
}

/// Sessions from before they knew their context are told which one it is.
#[tokio::test]
async fn sessions_of_the_first_schema_are_kept_as_long_as_their_tasks() {
    let url = server().database();
    let store = open(&url).await.unwrap();
    create(&store, "t").await;
    let context_id = new_task("t").context_id;
    let key = SessionKey { scope: Scope::default(), context_id, agent: "demo".into() };
    store.put_session(&key, Session::default(), 1).await.unwrap();
    drop(store);
    let back = "ALTER TABLE nuncio.session DROP COLUMN context; UPDATE nuncio.release SET version = 1";
    server().ask(database(&url), back);
    let store = open(&url).await.unwrap();
    store.trim(Older::than(2), 10).await.unwrap();
    assert!(store.session(&key).await.unwrap().is_some());
}

#[tokio::test]
async fn stores_of_one_database_are_kept_apart_by_their_schemas() {
    let url = server().database();
    let (one, two) = (open(&url).await.unwrap(), open(&format!("{url}?schema=other")).await.unwrap());
    create(&one, "t").await;
    create(&two, "t").await;
    assert_ne!(one.name, two.name);
    assert_eq!(two.list(all()).await.unwrap().total, 1);
}

#[tokio::test]
async fn what_is_wrong_is_said_without_the_password() {
    let mut postgres = Postgres::down(&[]);
    postgres.put("pg_hba.conf", "host all nuncio 127.0.0.1/32 trust\nhost all guarded 127.0.0.1/32 scram-sha-256\n");
    postgres.up();
    let url = postgres.database();
    postgres.ask("postgres", "CREATE ROLE guarded LOGIN PASSWORD 'right'");
    let guarded = url.replace("nuncio@", "guarded:hunter2@");
    let error = open(&guarded).await.err().unwrap().to_string();
    assert!(error.contains("password authentication failed") && error.contains("check user and password"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");

    // The right one comes from elsewhere, and may not make schemas.
    let options = PostgresOptions { password: Some("right".into()), ..PostgresOptions::default() };
    let error = PostgresStore::open(&guarded, options.clone()).await.err().unwrap().to_string();
    assert!(error.contains("permission denied") && error.contains("create the schema"), "{error}");
    postgres.ask(database(&url), "CREATE SCHEMA nuncio AUTHORIZATION guarded");
    let store = PostgresStore::open(&guarded, options).await.unwrap();
    store.check().await.unwrap();

    let nowhere = open(&url.replace(database(&url), "nowhere")).await.err().unwrap().to_string();
    assert!(nowhere.contains("does not exist") && nowhere.contains("create the database"), "{nowhere}");
    postgres.ask("postgres", "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    let latin = open(&postgres.url("latin")).await.err().unwrap().to_string();
    assert!(latin.contains("LATIN1") && latin.contains("UTF8"), "{latin}");
    let away = open("postgres://me:hunter2@127.0.0.1:1/db").await.err().unwrap().to_string();
    assert!(away.starts_with("postgres://me@127.0.0.1:1/db: error connecting"), "{away}");
}
