//! A cold start: from the start of the process to its first agent card.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::args::Args;
use crate::conn::Conn;
use crate::proc;
use crate::tally::{micros, spread};

pub async fn run(args: &Args) -> Result<Value, String> {
    let (program, rest) = args.command.split_first().ok_or("cold needs -- COMMAND")?;
    let card = args.target.card();
    let mut times = Vec::new();
    for _ in 0..args.count.unwrap_or(5) {
        let start = Instant::now();
        let mut child = Command::new(program)
            .args(rest)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| e.to_string())?;
        let found = loop {
            let mut conn = Conn::http(&args.target);
            if matches!(conn.call(&card).await, Ok(true)) {
                break Ok(micros(start));
            }
            if start.elapsed().as_secs() > 30 {
                break Err("no card after 30 s".to_string());
            }
            if let Ok(Some(status)) = child.try_wait() {
                break Err(format!("the server ended: {status}"));
            }
            tokio::time::sleep(Duration::from_micros(500)).await;
        };
        let rss = proc::rss_kib(child.id());
        let _ = child.kill();
        let _ = child.wait();
        times.push((found?, rss));
    }
    let us: Vec<u32> = times.iter().map(|t| t.0).collect();
    Ok(json!({ "starts": times.len(), "latency": spread(us), "rss_kib": times[0].1 }))
}
