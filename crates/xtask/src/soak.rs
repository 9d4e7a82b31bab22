//! A long run of mixed load, after which memory, descriptors, threads and latency must be what they were before.

mod load;
mod server;
mod verdict;
mod webhook;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use load::Load;
use server::Server;

const USAGE: &str = "\
usage: bench/soak [--minutes N] [--out DIR] [--stores memory,sqlite] [--share S] [--every SECONDS]

  --minutes   how long the load lasts (30)
  --out       folder for samples, errors and the verdict (bench/results/soak)
  --stores    servers to load, all at once (memory,sqlite)
  --share     part of a core that all servers together are kept busy (0.5)
  --every     seconds between two samples (10)
";

/// How long the load runs unhindered, to learn what a call costs.
const CALIBRATION: Duration = Duration::from_secs(10);

struct Options {
    minutes: f64,
    out: PathBuf,
    stores: Vec<String>,
    share: f64,
    every: f64,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            minutes: 30.0,
            out: "bench/results/soak".into(),
            stores: vec!["memory".into(), "sqlite".into()],
            share: 0.5,
            every: 10.0,
        };
        while let Some(flag) = words.next() {
            let value = words.next().with_context(|| format!("{flag} needs a value\n\n{USAGE}"))?;
            match flag.as_str() {
                "--minutes" => options.minutes = value.parse::<f64>()?.clamp(0.1, 24.0 * 60.0),
                "--out" => options.out = value.into(),
                "--stores" => options.stores = value.split(',').map(str::to_owned).collect(),
                "--share" => options.share = value.parse::<f64>()?.clamp(0.01, 1.0),
                "--every" => options.every = value.parse::<f64>()?.clamp(0.5, 600.0),
                _ => bail!("{flag} is unknown\n\n{USAGE}"),
            }
        }
        Ok(options)
    }
}

/// Loads, samples, judges.
pub(crate) fn run(words: impl Iterator<Item = String>) -> Result<()> {
    let options = Options::parse(words)?;
    std::fs::create_dir_all(&options.out)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(soak(&options))
}

async fn soak(options: &Options) -> Result<()> {
    let webhook = webhook::Receiver::start().await?;
    let mut runs = Vec::new();
    for store in &options.stores {
        let server = Server::start(store)?;
        let load = Arc::new(Load::new(&server.address, webhook.url(store))?);
        runs.push((server, load));
    }
    let part = options.share / f64::from(u32::try_from(runs.len())?);
    let mut samples = File::create(options.out.join("samples.csv"))?;
    let mut errors = File::create(options.out.join("errors.log"))?;
    writeln!(samples, "{}", verdict::HEAD)?;
    for (server, load) in &runs {
        calibrate(server, load, part).await?;
    }
    for (_, load) in &runs {
        load.begin();
    }
    let (begin, every) = (Instant::now(), Duration::from_secs_f64(options.every));
    let mut rows = Vec::new();
    while begin.elapsed().as_secs_f64() < options.minutes * 60.0 {
        tokio::time::sleep(every).await;
        for (server, load) in &runs {
            let row = verdict::Row::take(begin.elapsed(), server, load)?;
            writeln!(samples, "{row}")?;
            rows.push(row);
            for error in load.take_errors() {
                writeln!(errors, "{:.0} {} {error}", begin.elapsed().as_secs_f64(), server.store)?;
            }
        }
    }
    for (_, load) in &runs {
        load.end().await;
    }
    let webhooks = webhook.told();
    ensure!(webhooks > 0, "no webhook was told anything");
    let told = format!("{webhooks} notifications arrived at webhooks\n");
    let (text, flat) = verdict::judge(&options.stores, &rows);
    std::fs::write(options.out.join("verdict.txt"), format!("{text}{told}"))?;
    print!("{text}{told}");
    for (server, _) in &mut runs {
        server.stop()?;
    }
    ensure!(flat, "something grew or failed: see {}", options.out.display());
    Ok(())
}

/// Learns what a call of the mix costs the server, and sets the pace at which it is busy for `part` of a core.
async fn calibrate(server: &Server, load: &Arc<Load>, part: f64) -> Result<()> {
    load.unhindered();
    load.begin();
    tokio::time::sleep(CALIBRATION / 5).await;
    let (calls, busy, from) = (load.calls(), server.cpu()?, Instant::now());
    tokio::time::sleep(CALIBRATION).await;
    let (calls, busy, secs) = (load.calls() - calls, server.cpu()? - busy, from.elapsed().as_secs_f64());
    load.end().await;
    ensure!(calls > 0 && busy > 0.0, "no call was answered: {:?}", load.take_errors().first());
    let fastest = f64::from(u32::try_from(calls)?) / secs;
    let each = busy / f64::from(u32::try_from(calls)?);
    let pace = (part / each).min(fastest);
    println!(
        "{}: {:.0} µs of the server per call; {pace:.0} calls per second keep it busy for {:.0} % of a core",
        server.store,
        each * 1e6,
        pace * each * 100.0
    );
    load.pace(pace);
    load.take_latencies();
    Ok(())
}
