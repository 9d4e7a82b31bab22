//! An open loop: calls come at a given rate whether earlier ones are answered or not, as callers do who
//! know nothing of each other. Latency counts from the moment at which a call was due.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::args::Args;
use crate::conn::Conn;
use crate::proc;
use crate::tally::{Cost, TOO_MANY, Tally, spread};
use crate::wire::Target;

/// Calls that may wait before the server is said to be too slow for the rate.
const BACKLOG: usize = 20_000;

struct Shared {
    target: Target,
    text: String,
    due: RefCell<VecDeque<Instant>>,
    bell: Notify,
    over: Cell<bool>,
    from: Instant,
    tally: RefCell<Tally>,
}

pub async fn run(args: &Args) -> Result<Value, String> {
    if args.rate <= 0.0 {
        return Err("open needs --rate".into());
    }
    let from = Instant::now() + Duration::from_secs_f64(args.warm);
    let until = from + Duration::from_secs_f64(args.secs);
    let shared = Rc::new(Shared {
        target: args.target.clone(),
        text: args.text(),
        due: RefCell::default(),
        bell: Notify::new(),
        over: Cell::new(false),
        from,
        tally: RefCell::default(),
    });
    let mut workers = JoinSet::new();
    for _ in 0..args.conc {
        workers.spawn_local(work(shared.clone()));
    }
    let me = std::process::id();
    let usage = || (proc::usage(me), args.pid.map(proc::usage));
    let mut before = None;
    let mut gaps = Gaps(0x2545_f491_4f6c_dd1d);
    let mut next = Instant::now();
    // Timers are too coarse for gaps of microseconds, so this side keeps its core busy.
    loop {
        let now = Instant::now();
        if before.is_none() && now >= from {
            before = Some(usage());
        }
        if now >= until {
            break;
        }
        while next <= now {
            shared.due.borrow_mut().push_back(next);
            shared.bell.notify_one();
            next += Duration::from_secs_f64(gaps.next() / args.rate);
        }
        if shared.due.borrow().len() > BACKLOG {
            return Err(format!("{BACKLOG} calls wait: the server cannot follow {} per second", args.rate));
        }
        tokio::task::yield_now().await;
    }
    let (gen1, srv1) = usage();
    let (gen0, srv0) = before.unwrap_or_default();
    shared.over.set(true);
    shared.bell.notify_waiters();
    let finish = async { while workers.join_next().await.is_some() {} };
    if tokio::time::timeout(Duration::from_secs(30), finish).await.is_err() {
        return Err("calls still unanswered 30 s after the end".into());
    }
    let t = shared.tally.take();
    let calls = t.latency.len() as f64;
    let mut out = json!({
        "conc": args.conc, "asked_rate": args.rate, "rate": calls / args.secs, "calls": calls, "errors": t.errors,
        "latency": spread(t.latency),
    });
    Cost { secs: args.secs, calls, server: srv0.zip(srv1), generator: (gen0, gen1) }.add_to(&mut out);
    if let Some(sample) = t.sample {
        out["error_sample"] = json!(sample);
    }
    Ok(out)
}

async fn work(shared: Rc<Shared>) {
    let mut conn = Conn::new(&shared.target);
    let mut request = shared.target.send(&shared.text, None, false);
    loop {
        let due = shared.due.borrow_mut().pop_front();
        let Some(due) = due else {
            if shared.over.get() {
                return;
            }
            shared.bell.notified().await;
            continue;
        };
        let n = {
            let mut t = shared.tally.borrow_mut();
            if t.errors > TOO_MANY {
                return;
            }
            t.next += 1;
            t.next
        };
        request.renumber(n);
        let answered = conn.call(&request).await;
        let ok = matches!(answered, Ok(true)) && shared.target.binding.done(conn.content());
        let mut t = shared.tally.borrow_mut();
        if !ok {
            t.error(&conn, "a call at its time");
        } else if due >= shared.from {
            t.latency.push(u32::try_from(due.elapsed().as_micros()).unwrap_or(u32::MAX));
        }
    }
}

/// Exponentially distributed gaps with a mean of 1, the same in every run.
struct Gaps(u64);

impl Gaps {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let unit = (self.0 >> 11) as f64 / (1u64 << 53) as f64;
        -(1.0 - unit).ln()
    }
}
