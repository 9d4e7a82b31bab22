//! An agent that speaks like Goose and keeps a log of when it runs: `logbook-agent FOLDER run … --name=SESSION [--resume]`.
//!
//! It is asked to `work NAME CHUNKS MS`, and says `NAME.0`, `NAME.1`, … that far apart. A conversation is a file with the
//! prompt and how often it was started. Each line of the log is `MICROS NAME ATTEMPT PID start|beat|end`.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

fn main() -> ExitCode {
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody listens any more.
        Err(_) => ExitCode::FAILURE,
    }
}

fn work() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let folder = Path::new(args.first().map_or(".", String::as_str));
    let session = args.iter().find_map(|arg| arg.strip_prefix("--name=")).unwrap_or("none");
    let mut prompt = String::new();
    std::io::stdin().read_to_string(&mut prompt)?;
    let kept = folder.join(session);
    let (mut attempt, mut first) = (1, 0);
    if args.iter().any(|arg| arg == "--resume") {
        let text = std::fs::read_to_string(&kept)?;
        let (head, said) = text.split_once('\n').unwrap_or_default();
        let mut head = head.split(' ').map(|number| number.parse().unwrap_or(0));
        (attempt, first) = (head.next().unwrap_or(0) + 1, head.next().unwrap_or(0));
        if prompt.starts_with("Continue") {
            said.clone_into(&mut prompt);
        }
    }
    let words: Vec<&str> = prompt.split_whitespace().collect();
    let [.., "work", name, chunks, pause] = words[..] else {
        return say(&format!("You said: {}", prompt.trim())).and_then(|()| done());
    };
    let (chunks, pause) = (chunks.parse().unwrap_or(0), pause.parse().unwrap_or(0));
    let mut log = OpenOptions::new().create(true).append(true).open(folder.join("log"))?;
    let mut note = |what: &str| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
        // One write, so that lines of several processes do not mix.
        log.write_all(format!("{now} {name} {attempt} {} {what}\n", std::process::id()).as_bytes())
    };
    note("start")?;
    for chunk in first..chunks {
        // Whole or not at all, whenever it is killed.
        let new = kept.with_extension(std::process::id().to_string());
        std::fs::write(&new, format!("{attempt} {chunk}\n{prompt}"))?;
        std::fs::rename(&new, &kept)?;
        say(&format!("{name}.{chunk} "))?;
        std::thread::sleep(Duration::from_millis(pause));
        note("beat")?;
    }
    note("end")?;
    done()
}

fn say(text: &str) -> std::io::Result<()> {
    let block = serde_json::json!({ "type": "text", "text": text });
    line(&serde_json::json!({ "type": "message", "message": { "role": "assistant", "content": [block] } }))
}

fn done() -> std::io::Result<()> {
    line(&serde_json::json!({ "type": "complete", "total_tokens": null }))
}

fn line(value: &serde_json::Value) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{value}")?;
    out.flush()
}
