//! Many subscribers of one task: what it costs the server to deliver an event to each.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::args::Args;
use crate::conn::Conn;
use crate::proc;
use crate::tally::Cost;
use crate::wire::Target;

/// Subscriptions that are opened at a time.
const OPENING: usize = 32;

struct Shared {
    target: Target,
    id: String,
    gate: Semaphore,
    /// Subscribers that have received something.
    ready: Cell<u64>,
    delivered: Cell<u64>,
    complete: Cell<u64>,
    sample: RefCell<Option<String>>,
}

/// The task speaks at a pace that leaves the server idle in between: otherwise events would be joined and the
/// cost of each would be that of a full queue.
pub async fn run(args: &Args) -> Result<Value, String> {
    let subscribers = args.count.unwrap_or(1000);
    let text = format!("stream {} {}", args.chunks, args.pause);
    let mut first = Conn::new(&args.target);
    let io = |e: std::io::Error| e.to_string();
    if !first.open(&args.target.send(&text, None, true)).await.map_err(io)? || !first.event().await.map_err(io)? {
        return Err(format!("no stream: {}", String::from_utf8_lossy(first.content())));
    }
    let id = args.target.binding.task_id(first.content()).ok_or("the first event names no task")?;
    let shared = Rc::new(Shared {
        target: args.target.clone(),
        id,
        gate: Semaphore::new(OPENING),
        ready: Cell::new(0),
        delivered: Cell::new(0),
        complete: Cell::new(0),
        sample: RefCell::default(),
    });
    let mut followers = JoinSet::new();
    for _ in 0..subscribers {
        followers.spawn_local(follow(shared.clone()));
    }
    // The stream that started the task is read too, but is no subscriber.
    followers.spawn_local(async move { while first.event().await.unwrap_or(false) {} });

    let longest = Duration::from_millis(args.chunks * args.pause) + Duration::from_secs(30);
    let begin = Instant::now();
    while shared.ready.get() < subscribers {
        if shared.complete.get() > 0 || begin.elapsed() > longest {
            let why = shared.sample.take().unwrap_or_default();
            return Err(format!("only {} of {subscribers} subscribed in time {why}", shared.ready.get()));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let opened = begin.elapsed().as_secs_f64();
    let me = std::process::id();
    let (from, gen0, srv0) = (Instant::now(), proc::usage(me), args.pid.map(proc::usage));
    let before = shared.delivered.get();
    let finish = async { while followers.join_next().await.is_some() {} };
    if tokio::time::timeout(longest, finish).await.is_err() {
        return Err("streams still open long after the end".into());
    }
    let (gen1, srv1) = (proc::usage(me), args.pid.map(proc::usage));
    let (secs, delivered) = (from.elapsed().as_secs_f64(), (shared.delivered.get() - before) as f64);
    let mut out = json!({
        "subscribers": subscribers, "complete": shared.complete.get(), "errors": subscribers - shared.complete.get(),
        "delivered": delivered, "events_rate": delivered / secs, "secs": secs, "opening_secs": opened,
    });
    Cost { secs, calls: delivered, server: srv0.zip(srv1), generator: (gen0, gen1) }.add_to(&mut out);
    if let Some(sample) = shared.sample.take() {
        out["error_sample"] = json!(sample);
    }
    Ok(out)
}

async fn follow(shared: Rc<Shared>) {
    let mut conn = Conn::new(&shared.target);
    let permit = shared.gate.acquire().await;
    let request = shared.target.subscribe(&shared.id);
    let mut done = false;
    let mut any = false;
    let read = async {
        if !conn.open(&request).await? {
            return Ok::<(), std::io::Error>(());
        }
        drop(permit);
        while conn.event().await? {
            if !any {
                any = true;
                shared.ready.set(shared.ready.get() + 1);
            }
            shared.delivered.set(shared.delivered.get() + 1);
            done = shared.target.binding.done(conn.content());
        }
        Ok(())
    };
    if read.await.is_ok() && done {
        shared.complete.set(shared.complete.get() + 1);
    } else if shared.sample.borrow().is_none() {
        let text = String::from_utf8_lossy(conn.content()).into_owned();
        *shared.sample.borrow_mut() = Some(format!("status {}: {text}", conn.status()));
    }
}
