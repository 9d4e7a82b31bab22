//! Instructions per call: the same on a busy machine as on a quiet one, so that a change can be judged.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// The difference between two runs leaves out what starting and stopping cost.
const CALLS: (u64, u64) = (500, 1500);

const SEND: &str = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"lorem ipsum dolor sit amet"}]}}}"#;
const STREAM: &str = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"stream 100"}]}}}"#;

/// Counts and prints.
pub(crate) fn run() -> Result<()> {
    let built = Command::new("cargo").args(["build", "--release", "--package", "nuncio"]).status()?;
    ensure!(built.success(), "the binary does not build");
    println!("instructions per call, user space");
    for store in ["memory", "sqlite"] {
        for (name, body) in [("SendMessage", SEND), ("SendMessage of 100 chunks", STREAM)] {
            let few = count(store, body, CALLS.0)?;
            let many = count(store, body, CALLS.1)?;
            println!("{store:8} {name:26} {:>9}", many.saturating_sub(few) / (CALLS.1 - CALLS.0));
        }
    }
    Ok(())
}

/// Runs the server under valgrind, makes so many calls one after the other, and reads the count.
fn count(store: &str, body: &str, calls: u64) -> Result<u64> {
    let data = std::env::temp_dir().join(format!("nuncio-xtask-{}", std::process::id()));
    let mut server = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "target/release/nuncio", "serve", "--port", "0"])
        .args(["--store", store, "--data-dir"])
        .arg(&data)
        .env("NUNCIO_LOG", "json")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("valgrind cannot be started; install it with: apt-get install valgrind")?;
    let mut log = BufReader::new(server.stderr.take().context("a pipe")?);
    let result = talk(&mut log, body, calls);
    stop(&mut server)?;
    let _ = std::fs::remove_dir_all(&data);
    result?;
    let mut rest = String::new();
    log.read_to_string(&mut rest)?;
    let line = rest.lines().find_map(|line| line.split("Collected :").nth(1)).context("valgrind counted nothing")?;
    Ok(line.trim().parse()?)
}

fn talk(log: &mut BufReader<ChildStderr>, body: &str, calls: u64) -> Result<()> {
    let address = address(log)?;
    let mut stream = TcpStream::connect(&address)?;
    stream.set_nodelay(true)?;
    let request = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut answers = BufReader::new(stream.try_clone()?);
    for _ in 0..calls {
        stream.write_all(request.as_bytes())?;
        let answer = read_answer(&mut answers)?;
        ensure!(answer.contains("TASK_STATE_COMPLETED"), "a call failed: {answer}");
    }
    Ok(())
}

/// Where the server listens, from its log.
pub(crate) fn address(log: &mut BufReader<ChildStderr>) -> Result<String> {
    let mut line = String::new();
    while log.read_line(&mut line)? > 0 {
        if let Some((_, rest)) = line.split_once("\"card\":\"http://") {
            return Ok(rest.split('/').next().unwrap_or_default().to_owned());
        }
        line.clear();
    }
    bail!("the server did not start")
}

fn read_answer(from: &mut impl BufRead) -> Result<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        ensure!(from.read_line(&mut line)? > 0, "the server closed the connection");
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(String::from_utf8(body)?)
}

fn stop(server: &mut Child) -> Result<()> {
    Command::new("kill").arg(server.id().to_string()).status()?;
    server.wait()?;
    Ok(())
}
