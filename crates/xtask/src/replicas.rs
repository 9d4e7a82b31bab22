//! What one, two and three servers do on one PostgreSQL, in one run: calls per second, and what each part works for a call.

use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use futures_util::StreamExt;
use nuncio_client::{Binding, Client, Options};
use nuncio_protocol::{Message, Part, SendMessageRequest};
use nuncio_tests::{Bus, Cluster, Postgres, cpu_seconds, use_binary};

/// Medians of so many rounds, in each of which every number of servers has its turn.
const ROUNDS: usize = 3;
const CALLERS: usize = 16;
const CASES: [(&str, &str, usize); 2] =
    [("SendMessage", "lorem ipsum", 4_000), ("stream of 100 chunks", "stream 100", 200)];

/// What a round has shown.
struct Cost {
    per_second: f64,
    /// Microseconds per call.
    servers: f64,
    postgres: f64,
    redis: f64,
}

/// Measures and prints.
pub(crate) fn run() -> Result<()> {
    let built = Command::new("cargo").args(["build", "--release", "--package", "nuncio"]).status()?;
    ensure!(built.success(), "the binary does not build");
    use_binary(std::env::current_dir()?.join("target/release/nuncio"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // As in production: every commit is on the disk.
    let postgres = Postgres::start_with(&["shared_buffers=1GB", "max_wal_size=4GB"]);
    runtime.block_on(throughput(&postgres))
}

async fn throughput(postgres: &Postgres) -> Result<()> {
    let clusters: Vec<Cluster> = (1..=3).map(|count| Cluster::start_on(postgres, count, Bus::Redis, "")).collect();
    println!("16 callers for each server; CPU µs per call; medians of {ROUNDS} interleaved rounds");
    println!(
        "{:22} {:>8} {:>9} {:>9} {:>9} {:>9} {:>12}",
        "", "servers", "calls/s", "servers", "postgres", "redis", "calls/CPU s"
    );
    for (what, text, count) in CASES {
        let mut all: Vec<Vec<Cost>> = clusters.iter().map(|_| Vec::new()).collect();
        for round in 0..=ROUNDS {
            for (cluster, costs) in clusters.iter().zip(&mut all) {
                let cost = measure(cluster, postgres, text, count).await?;
                // The first one warms up.
                if round > 0 {
                    costs.push(cost);
                }
            }
        }
        for (n, costs) in (1..).zip(&all) {
            let middle = |of: fn(&Cost) -> f64| median(&mut costs.iter().map(of).collect::<Vec<_>>());
            let (servers, postgres, redis) = (middle(|it| it.servers), middle(|it| it.postgres), middle(|it| it.redis));
            println!(
                "{what:22} {n:>8} {:>9.0} {servers:>9.1} {postgres:>9.1} {redis:>9.1} {:>12.0}",
                middle(|it| it.per_second),
                1e6 / (servers + postgres + redis)
            );
        }
    }
    Ok(())
}

/// So many calls for each server, from all callers at once.
async fn measure(cluster: &Cluster, postgres: &Postgres, text: &str, count: usize) -> Result<Cost> {
    let work = || {
        let redis = cluster.redis.as_ref().and_then(nuncio_tests::Redis::pid).map_or(0.0, cpu_seconds);
        let servers: f64 = cluster.replicas.iter().map(|replica| cpu_seconds(replica.pid())).sum();
        anyhow::Ok([servers, cpu_seconds(postgres.pid().context("it runs")?), redis])
    };
    let (before, start) = (work()?, Instant::now());
    let streams = text.starts_with("stream");
    let callers = cluster.replicas.iter().map(|replica| {
        let client = Client::direct(&replica.url, Options { binding: Some(Binding::JsonRpc), ..Options::default() });
        let text = text.to_owned();
        tokio::spawn(async move { call(&client?, &text, count, streams).await })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await??;
    }
    let (took, after) = (start.elapsed().as_secs_f64(), work()?);
    let calls = f64::from(u32::try_from(count * cluster.replicas.len())?);
    let [servers, postgres, redis] = std::array::from_fn(|n| (after[n] - before[n]) * 1e6 / calls);
    Ok(Cost { per_second: calls / took, servers, postgres, redis })
}

/// So many calls, from all callers at once.
async fn call(client: &Client, text: &str, count: usize, streams: bool) -> Result<()> {
    let text: Arc<str> = text.into();
    let callers = (0..CALLERS).map(|_| {
        let (client, text) = (client.clone(), text.clone());
        tokio::spawn(async move {
            for _ in 0..count / CALLERS {
                let message = Some(Message::from_user(vec![Part::text(&*text)]));
                let request = SendMessageRequest { message, ..SendMessageRequest::default() };
                if streams {
                    let mut events = client.stream(request).await?;
                    while let Some(event) = events.next().await {
                        event?;
                    }
                } else {
                    client.send(request).await?;
                }
            }
            anyhow::Ok(())
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await??;
    }
    Ok(())
}

fn median(costs: &mut [f64]) -> f64 {
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}
