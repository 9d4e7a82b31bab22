//! An agent that says when it runs.

use std::collections::BTreeMap;
use std::time::Duration;

use nuncio_tests::{Value, json, message};

/// The agent `logbook-agent` and the folder of its log.
pub(crate) struct Logbook {
    folder: tempfile::TempDir,
}

/// One process of the agent: what it was asked to do, and when it showed that it lives.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) name: String,
    /// From 1; above that, the one before was interrupted.
    pub(crate) attempt: u32,
    /// Microseconds, ascending.
    pub(crate) signs: Vec<u64>,
}

impl Run {
    pub(crate) fn start(&self) -> u64 {
        self.signs[0]
    }

    pub(crate) fn end(&self) -> u64 {
        self.signs[self.signs.len() - 1]
    }

    /// When it last showed that it lives before it stood still for `pause`, and for how long it went on afterwards.
    pub(crate) fn split_at_pause(&self, pause: Duration) -> (u64, Duration) {
        let pause = u64::try_from(pause.as_micros()).expect("a short time");
        match self.signs.windows(2).find(|pair| pair[1] - pair[0] > pause) {
            Some(pair) => (pair[0], Duration::from_micros(self.end() - pair[1])),
            None => (self.end(), Duration::ZERO),
        }
    }
}

impl Logbook {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// Lines of configuration that serve it beside the demo agent, as the skill `logbook`.
    pub(crate) fn config(&self) -> String {
        let command = json!([env!("CARGO_BIN_EXE_logbook-agent"), self.folder.path()]);
        format!(
            "workspace: {}\nagents:\n- {{name: demo}}\n- {{name: logbook, kind: goose, command: {command}, skills: [logbook]}}\n",
            self.folder.path().display()
        )
    }

    /// Parameters of a send that has it say so many chunks so far apart.
    pub(crate) fn work(&self, name: &str, chunks: u64, ms: u64) -> Value {
        let mut params = message(&format!("work {name} {chunks} {ms}"));
        params["metadata"] = json!({ "skill": "logbook" });
        params
    }

    /// Every process there was.
    pub(crate) fn runs(&self) -> Vec<Run> {
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let mut runs: BTreeMap<(String, u32, String), Vec<u64>> = BTreeMap::new();
        for line in log.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let [at, name, attempt, pid, _] = fields[..] else { panic!("a line of the log: {line}") };
            let run = (name.to_owned(), attempt.parse().expect("a number"), pid.to_owned());
            runs.entry(run).or_default().push(at.parse().expect("a time"));
        }
        runs.into_iter().map(|((name, attempt, _), signs)| Run { name, attempt, signs }).collect()
    }
}
