//! Several workers of one store, on a real Redis.

use std::collections::HashMap;
use std::net::TcpListener as Port;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use nuncio_protocol::{PushId, TaskId};
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::engine::hub::Hub;
use crate::engine::live::Ties;
use crate::metrics::Metrics;
use crate::push::desk::Slot;
use crate::push::guard::{Guard, Openings};
use crate::push::{PushEvents, PushOptions, RedisOptions};
use crate::store::{Created, Early, Lease, MemoryStore, NewTask, PushConfig, Scope, State, Store};

const TASKS: u64 = 60;
const EVENTS: u64 = 12;
const LEASE: Duration = Duration::from_secs(3);

struct Redis(Child, u16, #[allow(dead_code)] tempfile::TempDir);

impl Redis {
    fn start() -> Self {
        let port = Port::bind("127.0.0.1:0").and_then(|port| port.local_addr()).unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string()]);
        command.arg("--dir").arg(folder.path()).stdout(Stdio::null());
        let child = command.spawn().expect("redis-server is missing: apt-get install redis-server");
        Self(child, port, folder)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What arrived for each webhook, and what is on its way.
#[derive(Default)]
struct Seen {
    posts: HashMap<String, Vec<u64>>,
    open: HashMap<String, usize>,
    doubled: usize,
}

/// Takes everything, slowly, and notes when two posts of one webhook overlap.
async fn receive(stream: TcpStream, seen: Arc<Mutex<Seen>>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut length, mut webhook, mut seq) = (0, String::new(), 0);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
            if let Some(path) = line.strip_prefix("POST ") {
                webhook = path.split(' ').next()?.to_owned();
            } else if let Some((name, value)) = line.trim_end().split_once(": ") {
                match name {
                    "content-length" => length = value.parse().ok()?,
                    "a2a-event-id" => seq = value.rsplit('/').next()?.parse().ok()?,
                    _ => {}
                }
            } else {
                break;
            }
        }
        stream.read_exact(&mut vec![0; length]).await.ok()?;
        {
            let mut seen = seen.lock();
            seen.posts.entry(webhook.clone()).or_default().push(seq);
            let open = seen.open.entry(webhook.clone()).or_default();
            *open += 1;
            seen.doubled += usize::from(*open > 1);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        *seen.lock().open.entry(webhook).or_default() -= 1;
        stream.get_mut().write_all(b"HTTP/1.1 200 x\r\nContent-Length: 0\r\n\r\n").await.ok()?;
    }
}

/// A task that is over, with a webhook that has heard nothing.
async fn task(store: &MemoryStore, number: u64, url: &str) -> Slot {
    let event = |state: &str| {
        let text = format!(r#"{{"statusUpdate":{{"taskId":"t{number}","status":{{"state":"TASK_STATE_{state}"}}}}}}"#);
        Bytes::from(text)
    };
    let early = (2..=EVENTS).map(|seq| {
        let body = event(if seq == EVENTS { "COMPLETED" } else { "WORKING" });
        Early { body, at: 1, state: None, snapshot: None }
    });
    let push = PushConfig {
        id: PushId::from("p"),
        body: format!(r#"{{"url":"{url}{number}"}}"#).into(),
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
    };
    let new = NewTask {
        scope: Scope { tenant: "".into(), owner: "".into() },
        id: TaskId::from(format!("t{number}")),
        context_id: "c".into(),
        agent: "a".into(),
        state: State(1),
        body: event("SUBMITTED"),
        at: 1,
        lease: Lease { node: "n".into() },
        key: None,
        push: Some(push),
        early: early.collect(),
    };
    match store.create(new).await {
        Ok(Created::New(key)) => (key, PushId::from("p")),
        other => panic!("{other:?}"),
    }
}

fn queue(name: &str, redis: &Redis) -> Queue {
    let queue = Queue::new(RedisOptions {
        url: format!("redis://127.0.0.1:{}/0", redis.1),
        stream: "jobs".into(),
        retry: "later".into(),
        dead: "dead".into(),
        group: "workers".into(),
        consumer: name.into(),
        lease: LEASE,
    });
    queue.unwrap()
}

/// A worker with threads of its own, so that it can end in the middle of everything.
fn worker(name: &str, redis: &Redis, store: &Arc<MemoryStore>, stop: &CancellationToken) -> (Runtime, Arc<Metrics>) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let _inside = runtime.enter();
    let openings = Openings { cidrs: vec!["127.0.0.0/8".parse().unwrap()], ..Openings::default() };
    let mut options = PushOptions::new(Guard::new(openings).unwrap());
    options.events = PushEvents::All;
    options.concurrent = 8;
    options.per_host = 8;
    options.queue = Some(Arc::new(queue(name, redis)));
    let metrics = Metrics::new();
    let ties = Ties { store: store.clone(), events: metrics.events.clone(), bell: Arc::default(), link: None };
    let desk = Desk::new(options, store.clone(), Hub::new(ties), metrics.clone(), None);
    runtime.spawn(desk.run(stop.clone()));
    (runtime, metrics)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_three_workers_two_finish_what_the_third_had_in_hand_when_it_went() {
    let (redis, store, stop) = (Redis::start(), Arc::new(MemoryStore::new()), CancellationToken::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let seen = Arc::<Mutex<Seen>>::default();
    let noted = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(receive(stream, noted.clone()));
        }
    });
    let mut slots = Vec::new();
    for number in 0..TASKS {
        slots.push(task(&store, number, &url).await);
    }
    let news = queue("nobody", &redis);
    let mut workers: Vec<_> = ["one", "two", "three"].map(|name| worker(name, &redis, &store, &stop)).into();
    let until = Instant::now() + Duration::from_secs(60);
    let wait_for = async |posts: u64| {
        while seen.lock().posts.values().map(|posts| posts.len() as u64).sum::<u64>() < posts {
            assert!(Instant::now() < until, "{posts} posts do not arrive");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    wait_for(TASKS * EVENTS / 4).await;
    // Whoever has done most has much in hand.
    workers.sort_by_key(|(_, metrics)| metrics.push.delivered.get());
    workers.remove(2).0.shutdown_background();
    let all_over = || {
        let seen = seen.lock();
        let over = seen.posts.values().filter(|posts| posts.contains(&EVENTS)).count();
        over as u64 == TASKS
    };
    while !all_over() {
        // More jobs than there is to do: they change nothing.
        news.offer(&slots, true).await.unwrap();
        assert!(Instant::now() < until, "what one has left, the others do not finish");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.cancel();
    for (worker, _) in workers {
        worker.shutdown_background();
    }
    let seen = seen.lock();
    assert_eq!(seen.doubled, 0, "never two at a time for one webhook");
    for (webhook, posts) in &seen.posts {
        let mut first: Vec<u64> = Vec::new();
        for seq in posts {
            if !first.contains(seq) {
                first.push(*seq);
            }
        }
        assert_eq!(first, (1..=EVENTS).collect::<Vec<_>>(), "{webhook}");
    }
}
