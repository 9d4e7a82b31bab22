//! The database goes away and comes back: nothing is lost, doubled or refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use nuncio_tests::Postgres;
use tokio::sync::watch;

use super::proxy::Proxy;
use super::*;
use crate::store::{Letter, Posted, PushConfig, Shared};

/// Reads do not wait as long as writes do.
macro_rules! patiently {
    ($read:expr) => {{
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            match $read.await {
                Ok(found) => break found,
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
        }
    }};
}

/// Everything that a server writes, over and over, until it is told to stop; each task is checked when it is done.
struct Load {
    store: Arc<PostgresStore>,
    stop: Arc<AtomicBool>,
    tasks: Arc<AtomicUsize>,
}

impl Load {
    fn start(store: &Arc<PostgresStore>, workers: usize) -> (Self, Vec<tokio::task::JoinHandle<()>>) {
        let (stop, tasks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let load = Self { store: store.clone(), stop, tasks };
        let work = |worker: usize| {
            let (store, stop, tasks) = (load.store.clone(), load.stop.clone(), load.tasks.clone());
            tokio::spawn(async move {
                let mut round = 0;
                while !stop.load(Ordering::Relaxed) {
                    one_task(&store, &format!("{worker}/{round}")).await;
                    tasks.fetch_add(1, Ordering::Relaxed);
                    round += 1;
                }
            })
        };
        let workers = (0..workers).map(work).collect();
        (load, workers)
    }

    async fn reaches(&self, tasks: usize) {
        let until = Instant::now() + Duration::from_secs(120);
        while self.tasks.load(Ordering::Relaxed) < tasks {
            assert!(Instant::now() < until, "the load does not get on: {}", self.tasks.load(Ordering::Relaxed));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A task from its creation to its end, with a key, a message, a letter and a webhook on the way.
async fn one_task(store: &PostgresStore, id: &str) {
    let task = match store.create(with_key(id, id)).await.unwrap() {
        Created::New(task) => task,
        other => panic!("{id} is {other:?}"),
    };
    let (last, mut heard) = watch::channel(Ok(0));
    let ack = Arc::new(Last(last));
    const EVENTS: Seq = 40;
    for seq in 2..=EVENTS {
        let mut next = event(task, seq, &ack);
        match seq {
            10 => next.state = Some(State(2)),
            20 => {
                next.message = Some(Bytes::from("message"));
                next.key = Some(IdempotencyKey { key: format!("{id} again").into(), since: 0 });
            }
            25 => {
                let letter = Letter { message: Bytes::from("letter"), key: None, at: 1 };
                next.letter = Some(store.post(task, letter).await.unwrap());
            }
            EVENTS => {
                next.state = Some(State(3));
                next.snapshot = Some(Bytes::from("whole"));
            }
            _ => {}
        }
        let letter = next.letter;
        store.append(next);
        if seq % 5 == 0 {
            // Not refused, whatever happens to the connection.
            let upto = heard.wait_for(|last| !matches!(last, Ok(upto) if *upto < seq)).await.unwrap().clone();
            assert!(upto.is_ok(), "event {seq} of {id}: {upto:?}");
        }
        if let Some(letter) = letter {
            assert_eq!(patiently!(store.posted(letter)), Posted::Taken(25));
        }
    }
    store.put_push(task, push(id)).await.unwrap();
    let stored = patiently!(store.pushes(task)).remove(0);
    assert!(store.advance_push(task, PushConfig { acked: 7, ..stored }).await.unwrap());
    let row = patiently!(store.task_by_key(task)).unwrap();
    assert_eq!((row.seq, row.state, row.leased, row.snapshot_seq), (EVENTS, State(3), false, EVENTS));
    let events = patiently!(store.events(task, 1, 1_000, usize::MAX));
    assert_eq!(events.len() as Seq, EVENTS - 1);
    for (seq, event) in (2..).zip(events) {
        assert_eq!((event.seq, event.body), (seq, Bytes::from(format!("event {seq} of {}", task.0))));
    }
    assert_eq!(patiently!(store.messages(task)).len(), 1);
    let again = store.create(with_key(&format!("{id} twice"), id)).await.unwrap();
    assert_eq!(again, Created::Known(task, 1));
}

fn push(id: &str) -> PushConfig {
    PushConfig {
        id: "p".into(),
        body: Bytes::from(id.to_owned()),
        version: "1.0".into(),
        acked: 0,
        attempts: 0,
        due: Some(1),
        last_error: None,
        epoch: 0,
        since: None,
        told: None,
        dead: None,
        node: None,
    }
}

fn patient() -> PostgresOptions {
    PostgresOptions { patience: Duration::from_secs(60), ..PostgresOptions::default() }
}

/// As many tasks as were made, each once, each done, and counted so.
async fn whole(store: &PostgresStore, tasks: usize) {
    let page = store.list(ListQuery { limit: 10_000, state: Some(State(3)), ..all() }).await.unwrap();
    assert_eq!((page.tasks.len(), page.total), (tasks, tasks as u64));
    assert_eq!(store.list(all()).await.unwrap().total, tasks as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_break_lose_and_double_nothing() {
    let url = server().database();
    let proxy = Proxy::to(server().port).await;
    let through = url.replace(&format!(":{}/", server().port), &format!(":{}/", proxy.port));
    let through = format!("{through}?pool=4&writers=2&sslmode=disable");
    let store = Arc::new(PostgresStore::open(&through, patient()).await.unwrap());
    let (load, workers) = Load::start(&store, 8);
    let until = Instant::now() + Duration::from_secs(120);
    for n in 1..=90 {
        // Anything between a greeting and a commit; a hundred breaks cross each other's recovery as well.
        proxy.break_after(1 + n * 7 % 23);
        while proxy.breaks() < n {
            assert!(Instant::now() < until, "only {} breaks", proxy.breaks());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    load.reaches(load.tasks.load(Ordering::Relaxed) + 16).await;
    load.stop.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    whole(&store, load.tasks.load(Ordering::Relaxed)).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_database_takes_nothing_with_it() {
    let mut postgres = Postgres::start();
    let url = postgres.database();
    let store = Arc::new(PostgresStore::open(&url, patient()).await.unwrap());
    let (load, workers) = Load::start(&store, 8);
    for round in 1..=4 {
        load.reaches(load.tasks.load(Ordering::Relaxed) + 10).await;
        postgres = tokio::task::spawn_blocking(move || {
            if round % 2 == 0 {
                postgres.stop();
            } else {
                postgres.kill();
            }
            postgres.up();
            postgres
        })
        .await
        .unwrap();
    }
    load.reaches(load.tasks.load(Ordering::Relaxed) + 10).await;
    load.stop.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    whole(&store, load.tasks.load(Ordering::Relaxed)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn patience_ends_and_everything_goes_on_afterwards() {
    let mut postgres = Postgres::quick();
    let options = PostgresOptions { patience: Duration::from_millis(300), ..PostgresOptions::default() };
    let store = PostgresStore::open(&postgres.database(), options).await.unwrap();
    let task = create(&store, "t").await;
    postgres = tokio::task::spawn_blocking(move || {
        postgres.stop();
        postgres
    })
    .await
    .unwrap();
    let refused = append(&store, task, 2).await;
    assert!(matches!(refused, Err(AppendError::Store(StoreError::Failed { .. }))), "{refused:?}");
    let failed = store.create(new_task("u")).await.unwrap_err().to_string();
    assert!(failed.starts_with("postgres://nuncio@127.0.0.1:") && failed.contains("connecting"), "{failed}");
    assert!(store.check().await.is_err());
    assert!(store.task_by_key(task).await.is_err());
    assert!(store.claim(task, 1, Lease { node: "m".into() }, false).await.is_err());
    let _postgres = tokio::task::spawn_blocking(move || {
        postgres.up();
        postgres
    })
    .await
    .unwrap();
    append(&store, task, 2).await.unwrap();
    store.check().await.unwrap();
    assert_eq!(store.task_by_key(task).await.unwrap().unwrap().seq, 2);
}
