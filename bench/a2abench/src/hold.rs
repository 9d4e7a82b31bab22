//! Idle streams: what each costs the server in memory.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::args::Args;
use crate::conn::Conn;
use crate::proc;

#[derive(Default)]
struct Held {
    conns: Vec<Conn>,
    next: u64,
    errors: u64,
    sample: Option<String>,
}

pub async fn run(args: &Args) -> Result<Value, String> {
    let count = args.count.ok_or("hold needs --count")?;
    let before = args.pid.map_or(0, proc::rss_kib);
    let begin = Instant::now();
    let held = Rc::new(RefCell::new(Held::default()));
    let mut workers = JoinSet::new();
    for _ in 0..args.conc {
        let (held, target) = (held.clone(), args.target.clone());
        workers.spawn_local(async move {
            loop {
                let n = {
                    let mut h = held.borrow_mut();
                    if h.next >= count || h.errors > 100 {
                        break;
                    }
                    h.next += 1;
                    h.next
                };
                let mut conn = Conn::new(&target);
                let mut request = target.send("hold", None, true);
                request.renumber(n);
                let opened = tokio::time::timeout(Duration::from_secs(30), async {
                    // Wait for the event that says the agent is at work.
                    if !conn.open(&request).await? {
                        return Ok::<bool, std::io::Error>(false);
                    }
                    while conn.event().await? {
                        if target.binding.working(conn.content()) {
                            return Ok(true);
                        }
                    }
                    Ok(false)
                })
                .await;
                let mut h = held.borrow_mut();
                if matches!(opened, Ok(Ok(true))) {
                    h.conns.push(conn);
                } else {
                    h.errors += 1;
                    if h.sample.is_none() {
                        h.sample = Some(String::from_utf8_lossy(conn.content()).into_owned());
                    }
                }
            }
        });
    }
    while workers.join_next().await.is_some() {}
    let secs = begin.elapsed().as_secs_f64();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let held = held.take();
    let open = held.conns.len();
    let mut out = json!({ "open": open, "errors": held.errors, "secs": secs });
    if let Some(pid) = args.pid {
        let after = proc::rss_kib(pid);
        let (idle0, wait) = (proc::usage(pid), args.secs.min(10.0));
        tokio::time::sleep(Duration::from_secs_f64(wait)).await;
        let cpu = proc::usage(pid).cpu_us() - idle0.cpu_us();
        out["rss_before_kib"] = json!(before);
        out["rss_after_kib"] = json!(after);
        out["rss_per_stream_kib"] = json!((after as f64 - before as f64) / open.max(1) as f64);
        out["idle_cpu_pct"] = json!(cpu as f64 / (wait * 1e4));
    }
    if let Some(sample) = held.sample {
        out["error_sample"] = json!(sample);
    }
    Ok(out)
}
