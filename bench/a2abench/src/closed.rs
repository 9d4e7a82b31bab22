//! Closed loops: each connection makes its next call when the last one is answered.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::args::Args;
use crate::conn::Conn;
use crate::proc;
use crate::tally::{Cost, TOO_MANY, Tally, micros, spread};
use crate::wire::{Request, Target};

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Send,
    Get,
    Stream,
}

/// What all connections of a run share.
struct Shared {
    kind: Kind,
    target: Target,
    text: String,
    chunks: u64,
    gets: Vec<Request>,
    from: Instant,
    until: Instant,
    limit: u64,
    tally: RefCell<Tally>,
}

/// What one call brought.
#[derive(Default)]
struct Outcome {
    ok: bool,
    first: u32,
    events: u64,
    bytes: u64,
}

pub async fn run(args: &Args, kind: Kind) -> Result<Value, String> {
    let load = proc::load1();
    let mut gets = Vec::new();
    if kind == Kind::Get {
        let mut conn = Conn::new(&args.target);
        for n in 0..256 {
            let id = make_task(args, &mut conn, 900_000_000_000 + n).await?;
            gets.push(args.target.get_task(&id));
        }
    }
    let text = if kind == Kind::Stream { format!("{} {}", args.word, args.chunks) } else { args.text() };
    let from = Instant::now() + Duration::from_secs_f64(args.warm);
    let shared = Rc::new(Shared {
        kind,
        target: args.target.clone(),
        text,
        chunks: args.chunks,
        gets,
        from,
        until: from + Duration::from_secs_f64(args.secs),
        limit: args.count.unwrap_or(u64::MAX),
        tally: RefCell::default(),
    });
    let mut workers = JoinSet::new();
    for w in 0..args.conc {
        workers.spawn_local(work(shared.clone(), w));
    }

    // Usage over exactly the measured interval.
    tokio::time::sleep_until(from.into()).await;
    let me = std::process::id();
    let (gen0, srv0) = (proc::usage(me), args.pid.map(proc::usage));
    let finish = async { while workers.join_next().await.is_some() {} };
    tokio::pin!(finish);
    let mut finished = false;
    tokio::select! {
        () = tokio::time::sleep_until(shared.until.into()) => {}
        () = &mut finish => finished = true,
    }
    let secs = from.elapsed().as_secs_f64().min(args.secs);
    let (gen1, srv1) = (proc::usage(me), args.pid.map(proc::usage));
    if !finished && tokio::time::timeout(Duration::from_secs(30), finish).await.is_err() {
        return Err("calls still unanswered 30 s after the end".into());
    }

    let t = shared.tally.take();
    let calls = t.latency.len() as f64;
    let mut out = json!({
        "conc": args.conc, "secs": secs, "calls": calls, "total": t.next, "errors": t.errors,
        "rate": calls / secs, "latency": spread(t.latency), "bytes_per_call": t.bytes as f64 / calls.max(1.0),
        "load1": load,
    });
    if kind == Kind::Stream {
        out["events_rate"] = json!(t.events as f64 / secs);
        out["events_per_stream"] = json!(t.events as f64 / calls.max(1.0));
        out["first_event"] = spread(t.first);
    }
    Cost { secs, calls, server: srv0.zip(srv1), generator: (gen0, gen1) }.add_to(&mut out);
    if let Some(pid) = args.pid {
        out["srv_rss_kib"] = json!(proc::rss_kib(pid));
    }
    if let Some(sample) = t.sample {
        out["error_sample"] = json!(sample);
    }
    Ok(out)
}

async fn work(shared: Rc<Shared>, w: usize) {
    let mut conn = Conn::new(&shared.target);
    let mut request = shared.target.send(&shared.text, None, shared.kind == Kind::Stream);
    loop {
        let start = Instant::now();
        let n = {
            let mut t = shared.tally.borrow_mut();
            if start >= shared.until || t.next >= shared.limit || t.errors > TOO_MANY {
                return;
            }
            t.next += 1;
            t.next
        };
        request.renumber(n);
        let outcome = match shared.kind {
            Kind::Send => unary(&shared, &mut conn, &request).await,
            Kind::Get => unary(&shared, &mut conn, &shared.gets[(n as usize * 7 + w) % shared.gets.len()]).await,
            Kind::Stream => stream(&shared, &mut conn, &request, start).await,
        };
        let now = Instant::now();
        let mut t = shared.tally.borrow_mut();
        if !outcome.ok {
            t.error(&conn, &format!("{} events", outcome.events));
        } else if now >= shared.from && now < shared.until {
            t.latency.push((now - start).as_micros() as u32);
            t.bytes += outcome.bytes;
            t.events += outcome.events;
            if shared.kind == Kind::Stream {
                t.first.push(outcome.first);
            }
        }
    }
}

async fn unary(shared: &Shared, conn: &mut Conn, request: &Request) -> Outcome {
    let answered = conn.call(request).await;
    let content = conn.content();
    let ok = matches!(answered, Ok(true)) && shared.target.binding.done(content);
    Outcome { ok, bytes: content.len() as u64, ..Outcome::default() }
}

/// A stream counts when it brought every chunk and ended with a completed task.
async fn stream(shared: &Shared, conn: &mut Conn, request: &Request, start: Instant) -> Outcome {
    let binding = shared.target.binding;
    let (mut out, mut artifacts, mut complete) = (Outcome::default(), 0, false);
    let read = async {
        if !conn.open(request).await? {
            return Ok::<(), io::Error>(());
        }
        while conn.event().await? {
            if out.events == 0 {
                out.first = micros(start);
            }
            let event = conn.content();
            out.events += 1;
            out.bytes += event.len() as u64;
            artifacts += u64::from(binding.artifact(event));
            complete = binding.done(event);
        }
        Ok(())
    };
    out.ok = read.await.is_ok() && complete && artifacts == shared.chunks;
    out
}

async fn make_task(args: &Args, conn: &mut Conn, n: u64) -> Result<String, String> {
    let mut request = args.target.send(&args.text(), None, false);
    request.renumber(n);
    conn.call(&request).await.map_err(|e| e.to_string())?;
    let (content, binding) = (conn.content(), args.target.binding);
    binding
        .task_id(content)
        .filter(|_| binding.done(content))
        .ok_or_else(|| format!("no completed task: {}", String::from_utf8_lossy(content)))
}
