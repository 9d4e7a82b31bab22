//! What is counted while calls are made, and how it is told.

use std::time::Instant;

use serde_json::{Value, json};

use crate::conn::Conn;
use crate::proc::Usage;

/// Errors after which a run is pointless.
pub const TOO_MANY: u64 = 10_000;

pub fn micros(since: Instant) -> u32 {
    u32::try_from(since.elapsed().as_micros()).unwrap_or(u32::MAX)
}

fn quantile(sorted: &[u32], q: f64) -> u32 {
    if sorted.is_empty() {
        return 0;
    }
    sorted[((sorted.len() - 1) as f64 * q).round() as usize]
}

pub fn spread(mut us: Vec<u32>) -> Value {
    us.sort_unstable();
    json!({
        "p50_us": quantile(&us, 0.50),
        "p90_us": quantile(&us, 0.90),
        "p99_us": quantile(&us, 0.99),
        "p999_us": quantile(&us, 0.999),
        "max_us": us.last().copied().unwrap_or(0),
    })
}

#[derive(Default)]
pub struct Tally {
    pub latency: Vec<u32>,
    pub first: Vec<u32>,
    pub errors: u64,
    pub bytes: u64,
    pub events: u64,
    pub sample: Option<String>,
    pub next: u64,
}

impl Tally {
    /// Keeps what the first failed call had to say.
    pub fn error(&mut self, conn: &Conn, what: &str) {
        self.errors += 1;
        if self.sample.is_none() {
            let content = conn.content();
            let tail = &content[content.len().saturating_sub(400)..];
            self.sample = Some(format!("{what}, status {}: {}", conn.status(), String::from_utf8_lossy(tail)));
        }
    }
}

/// What server and generator used between two moments, per call and in % of a core.
pub struct Cost {
    pub secs: f64,
    pub calls: f64,
    pub server: Option<(Usage, Usage)>,
    pub generator: (Usage, Usage),
}

impl Cost {
    pub fn add_to(&self, out: &mut Value) {
        let share = |us: u64| us as f64 / (self.secs * 1e4);
        let (from, to) = self.generator;
        out["gen_cpu_pct"] = json!(share(to.cpu_us() - from.cpu_us()));
        out["gen_wait_pct"] = json!(share(to.wait_us - from.wait_us));
        let Some((from, to)) = self.server else { return };
        let cpu = to.cpu_us() - from.cpu_us();
        out["srv_cpu_pct"] = json!(share(cpu));
        out["srv_wait_pct"] = json!(share(to.wait_us.saturating_sub(from.wait_us)));
        out["srv_cpu_us_per_call"] = json!(cpu as f64 / self.calls.max(1.0));
        out["srv_user_us_per_call"] = json!((to.user_us - from.user_us) as f64 / self.calls.max(1.0));
    }
}
