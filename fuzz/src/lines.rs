//! Lines of a program that nobody vouches for, read by each of the dialects.

use nuncio_server::agent::process::claude::ClaudeCode;
use nuncio_server::agent::process::codex::Codex;
use nuncio_server::agent::process::codex_exec::CodexExec;
use nuncio_server::agent::process::cursor::Cursor;
use nuncio_server::agent::process::gemini::Gemini;
use nuncio_server::agent::process::generic::Generic;
use nuncio_server::agent::process::goose::Goose;
use nuncio_server::agent::process::opencode::OpenCode;
use nuncio_server::agent::process::qwen::QwenCode;
use nuncio_server::agent::process::report::{Dialect, Exit, Order, Program, Report};
use nuncio_server::agent::process::vibe::Vibe;
use nuncio_server::agent::{DecidedBy, Decision};

/// How many kinds of programs there are.
pub const KINDS: u8 = 10;

fn program(kind: u8) -> Box<dyn Program> {
    match kind % KINDS {
        0 => Box::new(ClaudeCode),
        1 => Box::new(Codex),
        2 => Box::new(CodexExec),
        3 => Box::new(Cursor),
        4 => Box::new(Gemini),
        5 => Box::new(Generic::new("agent")),
        6 => Box::new(Goose),
        7 => Box::new(OpenCode),
        8 => Box::new(QwenCode),
        _ => Box::new(Vibe),
    }
}

/// The first byte says which program, the second how it is run; the rest is what it prints.
///
/// # Panics
///
/// When a dialect panics, ends a turn twice, or never.
pub fn run(bytes: &[u8]) {
    let [kind, how, printed @ ..] = bytes else { return };
    let set = |bit: u8| how & (1 << bit) != 0;
    let order = Order {
        prompt: "do it".into(),
        session: set(0).then(|| "session-1".into()),
        force: set(1),
        ..Order::default()
    };
    let (_, dialect) = program(*kind).start(&order);
    let mut reader = Reader { dialect, approves: set(2), ends: 0 };
    for line in printed.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        if set(3) {
            let middle = line.char_indices().nth(line.chars().count() / 2).map_or(0, |(at, _)| at);
            reader.hear(|dialect, out| dialect.partial(&line[..middle], out));
        }
        reader.hear(|dialect, out| dialect.line(&line, out));
        if reader.ends > 0 {
            break;
        }
    }
    if reader.ends == 0 {
        let exit = Exit { code: Some(i32::from(set(4))), signal: None, stderr: "said".into() };
        reader.hear(|dialect, out| dialect.end(&exit, out));
    }
    assert_eq!(reader.ends, 1, "a turn ends once");
}

struct Reader {
    dialect: Box<dyn Dialect>,
    approves: bool,
    ends: usize,
}

impl Reader {
    /// Lets the dialect report, and answers what it asks.
    fn hear(&mut self, report: impl FnOnce(&mut dyn Dialect, &mut Vec<Report>)) {
        let mut all = Vec::new();
        report(&mut *self.dialect, &mut all);
        // Answers may lead to more reports, though not for ever.
        for _ in 0..10_000 {
            let Some(report) = all.pop() else { return };
            match report {
                Report::Approve { id, .. } => {
                    let by = DecidedBy::Caller;
                    let decision = Decision { approved: self.approves, option: None, reason: None, by };
                    self.dialect.decided(&id, &decision, &mut all);
                }
                Report::Ask { id, .. } => {
                    let answer = self.approves.then_some("yes");
                    self.dialect.answered(&id, answer, &mut all);
                }
                Report::Done | Report::Failed(_) | Report::AuthRequired(_) | Report::Rejected(_) => self.ends += 1,
                _ => {}
            }
        }
        assert!(all.is_empty(), "answers lead to ever more reports");
    }
}
