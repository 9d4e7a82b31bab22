//! What an append and a create cost: `cargo bench -p nuncio-server --bench store`.
//!
//! 64 tasks write at once. "each" waits for every acknowledgement before the next event, as a task
//! that streams does; "ahead" keeps 64 events under way per task, as a burst does. `SCALE=32` does it
//! beside a million tasks; arguments choose among `memory`, `normal`, `full`, `postgres` and `scale`. The last two start a
//! PostgreSQL of their own; `scale` reads beside ten thousand, a million and two million tasks there, and `WRITERS` says how many
//! connections write.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use nuncio_protocol::{ContextId, TaskId};
use nuncio_server::store::{
    Acknowledge, Append, AppendError, Created, Durability, Early, Lease, ListQuery, MemoryStore, NewTask,
    PostgresOptions, PostgresStore, Scope, Seq, SqliteOptions, SqliteStore, State, Store, TaskKey,
};
use nuncio_tests::Postgres;
use tokio::sync::watch;

const TASKS: u64 = 64;

struct Heard(watch::Sender<Seq>);

impl Acknowledge for Heard {
    fn committed(&self, seq: Seq) {
        self.0.send_replace(seq);
    }

    fn refused(&self, seq: Seq, why: AppendError) {
        eprintln!("refused {seq}: {why}");
        std::process::abort();
    }
}

fn new_task(n: u64) -> NewTask {
    NewTask {
        scope: Scope { tenant: "".into(), owner: "alice@example.org".into() },
        id: TaskId::fresh(),
        context_id: ContextId::fresh(),
        agent: "demo".into(),
        state: State(1),
        body: Bytes::from_static(&[b'x'; 220]),
        at: n.cast_signed(),
        lease: Lease { node: "bench".into() },
        key: None,
        push: None,
        early: Vec::new(),
    }
}

async fn stream(store: Arc<dyn Store>, task: TaskKey, first: Seq, events: u64, ahead: u64, slowest: Arc<AtomicU64>) {
    let (heard, mut durable) = watch::channel(first - 1);
    let ack: Arc<dyn Acknowledge> = Arc::new(Heard(heard));
    for seq in first..first + events {
        let started = Instant::now();
        store.append(Append {
            task,
            epoch: 1,
            seq,
            body: Bytes::from_static(&[b'x'; 220]),
            at: 0,
            state: None,
            snapshot: None,
            message: None,
            key: None,
            letter: None,
            ack: ack.clone(),
        });
        let need = (seq + 1).saturating_sub(ahead);
        durable.wait_for(|durable| *durable >= need).await.expect("the store answers");
        slowest.fetch_max(u64::try_from(started.elapsed().as_micros()).unwrap_or(0), Ordering::Relaxed);
    }
    durable.wait_for(|durable| *durable >= first + events - 1).await.expect("the store answers");
}

/// User and system time of the whole process.
fn cpu() -> Duration {
    cpu_of("self")
}

fn cpu_of(process: &str) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

/// The same of the processes that serve a database, as long as they live.
fn cpu_of_server(postgres: &Postgres) -> Duration {
    let parent = postgres.pid().unwrap_or_default();
    let children = format!("/proc/{parent}/task/{parent}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    children.split_whitespace().map(cpu_of).sum()
}

fn report(what: &str, n: u64, started: Instant, before: Duration, slowest: u64) {
    let rate = n as f64 / started.elapsed().as_secs_f64();
    let each = (cpu() - before).as_secs_f64() * 1e6 / n as f64;
    println!("  {what:<16} {rate:>10.0} /s {each:>8.2} µs CPU each, slowest {:>7.1} ms", slowest as f64 / 1e3);
}

async fn measure(name: &str, store: Arc<dyn Store>, creates: u64, events: u64) {
    measure_with(name, store, creates, events, || Duration::ZERO).await;
}

async fn measure_with(name: &str, store: Arc<dyn Store>, creates: u64, events: u64, server: impl Fn() -> Duration) {
    let told = |what: &str, n: u64, before: Duration| {
        let used = server().saturating_sub(before);
        if used > Duration::ZERO {
            println!("  {what:<16} {:>23.2} µs CPU each in the database", used.as_secs_f64() * 1e6 / n as f64);
        }
    };
    println!("{name}");
    let slowest = Arc::new(AtomicU64::new(0));
    let (started, before, there) = (Instant::now(), cpu(), server());
    let mut workers = Vec::new();
    for _ in 0..TASKS {
        let (store, slowest) = (store.clone(), slowest.clone());
        workers.push(tokio::spawn(async move {
            let mut last = None;
            for n in 0..creates / TASKS {
                let started = Instant::now();
                last = Some(store.create(new_task(n)).await.expect("created"));
                slowest.fetch_max(u64::try_from(started.elapsed().as_micros()).unwrap_or(0), Ordering::Relaxed);
            }
            last
        }));
    }
    let mut tasks = Vec::new();
    for worker in workers {
        if let Ok(Some(Created::New(key))) = worker.await {
            tasks.push(key);
        }
    }
    report("create", creates, started, before, slowest.load(Ordering::Relaxed));
    told("create", creates, there);

    let mut first = 2;
    for (what, ahead) in [("append, each", 1), ("append, ahead", 64)] {
        let slowest = Arc::new(AtomicU64::new(0));
        let (started, before, there) = (Instant::now(), cpu(), server());
        let work = tasks
            .iter()
            .map(|task| tokio::spawn(stream(store.clone(), *task, first, events / TASKS, ahead, slowest.clone())));
        for worker in work.collect::<Vec<_>>() {
            worker.await.expect("streamed");
        }
        report(what, events, started, before, slowest.load(Ordering::Relaxed));
        told(what, events, there);
        first += events / TASKS;
    }
    read(&*store, tasks[0]).await;
    store.close().await;
}

/// Reads, one after the other: what one caller waits for.
async fn read(store: &dyn Store, task: TaskKey) {
    let all = ListQuery {
        scope: new_task(0).scope,
        context_id: None,
        state: None,
        since: None,
        after: None,
        limit: 50,
        bytes: usize::MAX,
    };
    let submitted = ListQuery { state: Some(State(1)), ..all.clone() };
    let failed = ListQuery { state: Some(State(4)), ..all.clone() };
    let recent = ListQuery { since: Some(0), ..all.clone() };
    for (what, query) in [("page", all), ("submitted", submitted), ("failed", failed), ("since", recent)] {
        let started = Instant::now();
        let page = store.list(query).await.expect("listed");
        let (ms, rows) = (started.elapsed().as_secs_f64() * 1e3, page.tasks.len());
        println!("  {what:<16} {ms:>10.2} ms, {rows} of {}", page.total);
    }
    for n in [1, 1_000] {
        let started = Instant::now();
        for _ in 0..100 {
            store.events(task, 100, n, usize::MAX).await.expect("read");
        }
        println!("  {:<16} {:>10.3} ms", format!("replay {n}"), started.elapsed().as_secs_f64() * 10.0);
    }
}

fn sqlite(folder: &Path, durability: Durability) -> Arc<dyn Store> {
    let options = SqliteOptions { durability, ..SqliteOptions::default() };
    let path = folder.join(format!("{durability:?}.db"));
    Arc::new(SqliteStore::open(&path, options).expect("opened"))
}

async fn open_postgres(postgres: &Postgres, durability: Durability) -> PostgresStore {
    let writers = std::env::var("WRITERS").unwrap_or_else(|_| "2".into());
    let url = format!("{}?writers={writers}", postgres.database());
    let options = PostgresOptions { durability, ..PostgresOptions::default() };
    PostgresStore::open(&url, options).await.expect("opened")
}

/// A finished task of a few events, as a short answer leaves it.
fn answered() -> NewTask {
    let new = new_task(1_700_000_000_000_000);
    let body = |n: usize| Bytes::from(vec![b'x'; n]);
    let early =
        |state, snapshot: Option<usize>| Early { body: body(220), at: new.at, state, snapshot: snapshot.map(body) };
    let early =
        vec![early(Some(State(2)), None), early(None, None), early(None, None), early(Some(State(3)), Some(600))];
    NewTask { early, ..new }
}

/// What reads cost beside so many tasks: the median of many.
async fn scale(store: &PostgresStore, tasks: &str) {
    let all = ListQuery {
        scope: new_task(0).scope,
        context_id: None,
        state: None,
        since: None,
        after: None,
        limit: 50,
        bytes: usize::MAX,
    };
    let page = store.list(all.clone()).await.expect("listed");
    let middle = page.tasks[page.tasks.len() / 2].clone();
    let mut medians = Vec::new();
    for what in ["get", "list", "list completed", "list context", "replay"] {
        let mut times = Vec::new();
        for _ in 0..300 {
            let started = Instant::now();
            match what {
                "get" => drop(store.task(&middle.scope, &middle.id).await.expect("read")),
                "replay" => drop(store.events(middle.key, 0, 100, usize::MAX).await.expect("read")),
                _ => {
                    let state = (what == "list completed").then_some(State(3));
                    let context_id = (what == "list context").then(|| middle.context_id.clone());
                    drop(store.list(ListQuery { state, context_id, ..all.clone() }).await.expect("listed"));
                }
            }
            times.push(started.elapsed());
        }
        times.sort_unstable();
        medians.push(format!("{what} {:.3} ms", times[times.len() / 2].as_secs_f64() * 1e3));
    }
    println!("  {tasks:>9} tasks: {} ({} in all)", medians.join(", "), page.total);
}

async fn measure_scale() {
    let postgres = Postgres::quick();
    println!("postgres, reads, median of 300");
    // Five events each: the last are ten million.
    for (tasks, name) in [(10_000, "10,000"), (1_000_000, "1,000,000"), (2_000_000, "2,000,000")] {
        let store = open_postgres(&postgres, Durability::Normal).await;
        let Ok(Created::New(model)) = store.create(answered()).await else { return };
        let started = Instant::now();
        store.multiply(model, tasks).await.expect("multiplied");
        store.analyze().await.expect("analyzed");
        println!("  {name:>9} tasks made in {:.1} s", started.elapsed().as_secs_f64());
        scale(&store, name).await;
        store.close().await;
    }
}

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| args.is_empty() || args.iter().any(|arg| arg == name);
    let scale_of: u64 = std::env::var("SCALE").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    if wanted("memory") {
        measure("memory", Arc::new(MemoryStore::new()), 64_000 * scale_of, 640_000).await;
    }
    for (name, durability) in [("normal", Durability::Normal), ("full", Durability::Full)] {
        if wanted(name) {
            let store = sqlite(folder.path(), durability);
            measure(&format!("sqlite, {name}"), store, 32_000 * scale_of, 192_000).await;
            let started = Instant::now();
            drop(sqlite(folder.path(), durability));
            println!("  {:<16} {:>10.1} ms", "open and close", started.elapsed().as_secs_f64() * 1e3);
        }
    }
    for (name, durability) in [("normal", Durability::Normal), ("full", Durability::Full)] {
        if wanted("postgres") {
            let postgres = Postgres::start();
            let store = Arc::new(open_postgres(&postgres, durability).await);
            let server = || cpu_of_server(&postgres);
            measure_with(&format!("postgres, {name}"), store, 16_000 * scale_of, 192_000, server).await;
        }
    }
    if wanted("scale") {
        measure_scale().await;
    }
}
