//! Many stored tasks: filling the store, and listing from it.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::args::Args;
use crate::conn::Conn;
use crate::proc;
use crate::tally::{micros, spread};

#[derive(Default)]
struct Filled {
    next: u64,
    stored: u64,
    errors: u64,
}

pub async fn fill(args: &Args) -> Result<Value, String> {
    let count = args.count.ok_or("fill needs --count")?;
    let before = args.pid.map(proc::rss_kib);
    let begin = Instant::now();
    let until = begin + Duration::from_secs_f64(args.secs);
    let state = Rc::new(RefCell::new(Filled::default()));
    let mut workers = JoinSet::new();
    for _ in 0..args.conc {
        let (state, target, text) = (state.clone(), args.target.clone(), args.text());
        let (pid, max_kib) = (args.pid, args.max_rss_mib * 1024);
        workers.spawn_local(async move {
            let mut conn = Conn::new(&target);
            loop {
                let n = {
                    let mut s = state.borrow_mut();
                    if s.next >= count || s.errors > 1000 || Instant::now() >= until {
                        break;
                    }
                    s.next += 1;
                    if s.next % 1024 == 0 && pid.is_some_and(|p| proc::rss_kib(p) > max_kib) {
                        s.next = count; // ends every worker
                    }
                    s.next
                };
                let mut request = target.send(&text, Some(&format!("ctx-{:04}", n % 1000)), false);
                request.renumber(n);
                let answered = conn.call(&request).await;
                let mut s = state.borrow_mut();
                if matches!(answered, Ok(true)) && target.binding.done(conn.content()) {
                    s.stored += 1;
                } else {
                    s.errors += 1;
                }
            }
        });
    }
    while workers.join_next().await.is_some() {}
    let Filled { stored, errors, .. } = state.take();
    let secs = begin.elapsed().as_secs_f64();
    let mut out = json!({ "stored": stored, "errors": errors, "secs": secs, "rate": stored as f64 / secs });
    if let Some(pid) = args.pid {
        let (before, after) = (before.unwrap_or(0), proc::rss_kib(pid));
        out["rss_before_kib"] = json!(before);
        out["rss_after_kib"] = json!(after);
        out["rss_per_task_bytes"] = json!((after as f64 - before as f64) * 1024.0 / stored.max(1) as f64);
    }
    Ok(out)
}

pub async fn list(args: &Args) -> Result<Value, String> {
    let mut conn = Conn::new(&args.target);
    let request = args.target.list(args.page, args.context.as_deref());
    // The first call is not counted: it may build an index or warm a cache.
    let first = Instant::now();
    let ok = conn.call(&request).await.map_err(|e| e.to_string())?;
    let first = micros(first);
    let answer: Value = serde_json::from_slice(conn.content()).unwrap_or_default();
    let result = answer.get("result").unwrap_or(&answer);
    let rows = result["tasks"].as_array().map_or(0, Vec::len);
    let total = result.get("totalSize").cloned().unwrap_or(Value::Null);
    if !ok || rows == 0 {
        let content = conn.content();
        return Err(format!("no tasks: {}", String::from_utf8_lossy(&content[..content.len().min(300)])));
    }
    let begin = Instant::now();
    let limit = args.count.unwrap_or(1000);
    let (mut latency, mut errors, mut bytes) = (Vec::new(), 0, 0);
    let before = args.pid.map(proc::usage);
    while (latency.len() as u64) < limit && (begin.elapsed().as_secs_f64() < args.secs || latency.len() < 3) {
        let start = Instant::now();
        match conn.call(&request).await {
            Ok(true) => latency.push(micros(start)),
            _ => errors += 1,
        }
        bytes = conn.content().len();
        if errors > 100 {
            return Err("too many errors".into());
        }
    }
    let calls = latency.len();
    let mut out = json!({
        "calls": calls, "errors": errors, "rows": rows, "total_size": total, "bytes": bytes,
        "first_us": first, "latency": spread(latency),
    });
    if let Some((from, to)) = before.zip(args.pid.map(proc::usage)) {
        out["srv_cpu_us_per_call"] = json!((to.cpu_us() - from.cpu_us()) as f64 / calls.max(1) as f64);
    }
    Ok(out)
}
