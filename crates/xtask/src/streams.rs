//! What an open stream and a running turn cost in memory.

use std::process::Command;

use anyhow::{Result, ensure};
use nuncio_tests::{Server, Sse, at_once, id, message, use_binary};

const STREAMS: u32 = 8_000;
/// Half of the streams follow one task, the others one each.
const TASKS: u32 = STREAMS / 2;

/// Measures and prints.
pub(crate) fn run() -> Result<()> {
    let built = Command::new("cargo").args(["build", "--release", "--package", "nuncio"]).status()?;
    ensure!(built.success(), "the binary does not build");
    use_binary(std::env::current_dir()?.join("target/release/nuncio"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure());
    Ok(())
}

async fn measure() {
    let server = Server::configured("store: memory\nmax-running-turns: 10000\n");
    let mut tasks = Vec::new();
    server.send("hello").await;
    let empty = server.resident_kib();
    for _ in 0..TASKS {
        tasks.push(server.send_params(at_once(message("hold"))).await);
    }
    let working = server.resident_kib();
    let mut open = Vec::new();
    for _ in 0..STREAMS - TASKS {
        open.push(follow(&server, id(&tasks[0])).await);
    }
    let one = server.resident_kib();
    for task in &tasks {
        open.push(follow(&server, id(task)).await);
    }
    let each = server.resident_kib();
    let per = |from: u64, to: u64, count: u32| to.saturating_sub(from) as f64 / f64::from(count);
    println!("empty server                        {:>8.1} MiB", empty as f64 / 1024.0);
    println!("a running turn of the demo agent    {:>8.1} KiB", per(empty, working, TASKS));
    println!("a stream, all on one task           {:>8.1} KiB", per(working, one, STREAMS - TASKS));
    println!("a stream on a task of its own       {:>8.1} KiB", per(one, each, TASKS));
}

/// A stream that has shown its first event.
async fn follow(server: &Server, task: &str) -> Sse {
    let mut stream = server.subscribe(task, None).await;
    assert!(stream.next().await.is_some(), "the task as it is");
    stream
}
