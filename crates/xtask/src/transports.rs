//! What a call costs the server over each transport: its CPU time, as a ratio to JSON-RPC over HTTP in the same run.

use std::io::BufReader;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use futures_util::StreamExt;
use nuncio_client::{Binding, Client, Options};
use nuncio_protocol::{Message, Part, SendMessageRequest};
use nuncio_tests::cpu_seconds;

/// Medians of so many rounds, in each of which every way has its turn.
const ROUNDS: usize = 3;
const CALLERS: usize = 16;
const CALLS: usize = 20_000;
const STREAMS: usize = 600;

/// Measures and prints.
pub(crate) fn run() -> Result<()> {
    let built = Command::new("cargo").args(["build", "--release", "--package", "nuncio"]).status()?;
    ensure!(built.success(), "the binary does not build");
    let data = tempfile::tempdir()?;
    let mut server = Command::new("target/release/nuncio")
        .args(["serve", "--port", "0", "--store", "memory", "--data-dir"])
        .arg(data.path())
        .env("NUNCIO_LOG", "json")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut log = BufReader::new(server.stderr.take().context("a pipe")?);
    let address = super::instructions::address(&mut log);
    let result = address.and_then(|address| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(measure(&server, &address))
    });
    server.kill()?;
    server.wait()?;
    result
}

async fn measure(server: &Child, address: &str) -> Result<()> {
    let ways = [
        ("JSON-RPC", format!("http://{address}/"), Binding::JsonRpc),
        ("REST", format!("http://{address}"), Binding::Rest),
        ("gRPC", format!("grpc://{address}"), Binding::Grpc),
        ("WebSocket", format!("ws://{address}/ws"), Binding::WebSocket),
    ];
    println!("CPU µs of the server, in memory, {CALLERS} callers, medians of {ROUNDS}");
    for (what, text, count) in [("SendMessage", "lorem ipsum", CALLS), ("stream of 100 chunks", "stream 100", STREAMS)]
    {
        let mut costs = vec![Vec::new(); ways.len()];
        for _ in 0..ROUNDS {
            for ((_, url, binding), costs) in ways.iter().zip(&mut costs) {
                let client = Client::direct(url, Options { binding: Some(*binding), ..Options::default() })?;
                let before = cpu_seconds(server.id());
                call(&client, text, count, what != "SendMessage").await?;
                costs.push((cpu_seconds(server.id()) - before) * 1e6 / f64::from(u32::try_from(count)?));
            }
        }
        let medians: Vec<f64> = costs.iter_mut().map(|costs| median(costs)).collect();
        for ((name, ..), cost) in ways.iter().zip(&medians) {
            println!("{what:22} {name:10} {cost:>9.1} {:>6.2}x", cost / medians[0]);
        }
    }
    Ok(())
}

/// So many calls, from all callers at once.
pub(crate) async fn call(client: &Client, text: &str, count: usize, streams: bool) -> Result<()> {
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

pub(crate) fn median(costs: &mut [f64]) -> f64 {
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}
