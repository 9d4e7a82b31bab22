//! What every program that prints lines becomes on the wire, and what is left of it.

use nuncio_tests::{Server, SseEvent, Stage, Value, id, in_context, json, message, state, words};

const THINKING: &str = "urn:nuncio:a2a:thinking:v1";
const TOOL: &str = "urn:nuncio:a2a:tool:v1";
const USAGE: &str = "urn:nuncio:a2a:usage:v1";

/// The text that comes in pieces.
const COLOURS: &str = "grün 😀 und blau";
/// A key that a program gets and nobody else.
pub(crate) const KEY: &str = "sk-fake-0123456789";

/// A program and what is particular about it.
pub(crate) struct Case {
    pub(crate) kind: &'static str,
    pub(crate) program: &'static str,
    /// Whether it says by a line that it is done.
    pub(crate) says_done: bool,
    /// What it prints of its thinking.
    pub(crate) thinking: &'static str,
    /// What stands between two texts that it prints one after the other.
    pub(crate) apart: &'static str,
    /// What stands before the names of its tools.
    pub(crate) tools: &'static str,
    /// What it says of its use of tokens.
    pub(crate) usage: Value,
}

impl Case {
    /// A server for it, with more lines of configuration.
    pub(crate) fn stage(&self, more: &str) -> Stage {
        Stage::fake(self.kind, self.program, &format!("thinking-exposure: all\n{more}"))
    }

    /// Plays every scenario that does not depend on the program.
    pub(crate) async fn speaks(&self) {
        self.speaks_with("").await;
    }

    /// The same, with more lines of configuration.
    pub(crate) async fn speaks_with(&self, more: &str) {
        let more = format!("{more}\nstore: memory\nenv: [FAKE_API_KEY={KEY}, HOME=/home/somebody]");
        let stage = self.stage(&more);
        let server = &stage.server;
        self.answers(server).await;
        self.reports(server).await;
        self.fails(server).await;
        stage.until_idle().await;
    }

    async fn answers(&self, server: &Server) {
        let told = run(server, "hello\nworld -- \"quoted\" $HOME").await;
        told.completed("You said: hello\nworld -- \"quoted\" $HOME");
        assert_eq!(told.usage, self.usage);
        run(server, "--help me").await.completed("You said: --help me");
        run(server, "pieces").await.completed(COLOURS);
        run(server, "crlf").await.completed(COLOURS);
        run(server, "noise").await.completed(&format!("Heard {}through.", self.apart));
        run(server, "long").await.completed(&"x".repeat(2 << 20));
        let nothing = run(server, "nothing").await;
        nothing.completed("");
        assert_eq!(nothing.artifacts, 0, "an empty answer is no artifact");
    }

    async fn reports(&self, server: &Server) {
        let told = run(server, "tools").await;
        told.completed("Let me look.\n\nFound it.");
        let (read, shell) = (format!("{}read", self.tools), format!("{}shell", self.tools));
        let steps: Vec<(&str, &str)> =
            told.tools.iter().map(|tool| (text(&tool["name"]), text(&tool["phase"]))).collect();
        let wanted = [
            (&*read, "started"),
            (&*read, "input"),
            (&*read, "completed"),
            (&*shell, "started"),
            (&*shell, "input"),
            (&*shell, "failed"),
        ];
        assert_eq!(steps, wanted);
        assert_eq!(told.tools[1]["input"], json!({ "path": "a.txt" }));
        assert!(told.tools[2]["output"].to_string().contains("content of a"), "{:?}", told.tools);
        assert!(text(&told.tools[5]["error"]).contains("exit code 1"), "{:?}", told.tools);
        assert!(told.tools[..3].iter().all(|tool| tool["id"] == told.tools[0]["id"]), "one id per call");
        assert_eq!(told.order, "text tool text", "what was said before the tools comes before them");
        let told = run(server, "think").await;
        told.completed("Done thinking.");
        assert_eq!(told.thinking, self.thinking);
    }

    async fn fails(&self, server: &Server) {
        let told = run(server, "fail").await;
        told.ended("FAILED", "the model is overloaded");
        assert_eq!(told.text, "I try.");
        let told = run(server, "no result").await;
        match self.says_done {
            true => told.ended("FAILED", "agent ended without a result"),
            false => told.ended("COMPLETED", ""),
        }
        assert_eq!(told.text, "Half an answer");
        let told = run(server, "crash").await;
        told.ended("FAILED", "agent was ended by signal 9");
        assert_eq!(told.text, "Half an answer");
        let told = run(server, "exit 7").await;
        told.ended("FAILED", "agent exited with code 7: out of memory");
        assert_eq!(told.text, "Half an answer");
        let told = run(server, "refuse to start").await;
        told.ended("FAILED", "agent exited with code 3: fatal: cannot reach the model\nkey=*** in ~/.config");
        assert_eq!(told.artifacts, 0);
        // A task that waits for credentials is not over, so its log has no end to read to.
        let login = server.send("login").await;
        assert_eq!(state(&login), "AUTH_REQUIRED", "{login}");
        assert!(!words(&login).is_empty(), "{login}");
    }

    /// A conversation goes on after a restart, and begins anew when the program has lost it.
    pub(crate) async fn remembers(&self) {
        let mut stage = self.stage("");
        let first = stage.server.send("remember the number 41").await;
        assert_eq!(state(&first), "COMPLETED", "{first}");
        let context = first["contextId"].clone();
        let recall =
            async |server: &Server| told(server, &server.send_params(in_context(&context, "recall")).await).await;
        recall(&stage.server).await.completed("The number 41.");
        run(&stage.server, "recall").await.completed("I know no number.");
        stage.server.kill();
        stage.server.restart();
        recall(&stage.server).await.completed("The number 41.");
        std::fs::remove_file(stage.workspace.path().join(".fake-sessions.json")).expect("the fake keeps it there");
        recall(&stage.server).await.completed("I know no number.");
        stage.until_idle().await;
    }

    /// The arguments after the program, with a model and permission for everything.
    pub(crate) async fn arguments(&self, more: &str) -> Vec<String> {
        let stage = self.stage(&format!("store: memory\n{more}"));
        let told = run(&stage.server, "show args").await;
        serde_json::from_str(&told.text).expect("a list")
    }
}

/// What a task told, put in order.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) text: String,
    /// Kinds of events, without repetitions.
    pub(crate) order: String,
    pub(crate) artifacts: usize,
    pub(crate) thinking: String,
    pub(crate) tools: Vec<Value>,
    /// What it said that it does.
    pub(crate) notes: Vec<String>,
    pub(crate) usage: Value,
    pub(crate) state: String,
    pub(crate) words: String,
}

impl Told {
    #[track_caller]
    pub(crate) fn completed(&self, text: &str) {
        assert_eq!((&*self.state, &*self.words), ("COMPLETED", ""));
        assert_eq!(self.text, text);
    }

    #[track_caller]
    pub(crate) fn ended(&self, state: &str, words: &str) {
        assert_eq!(self.state, state, "{self:?}");
        assert!(self.words.contains(words), "{:?} lacks {words:?}", self.words);
        assert!(!self.words.contains('\u{1b}') && !self.words.contains(KEY), "{:?}", self.words);
    }

    fn kind(&mut self, kind: &str) {
        if self.order.rsplit(' ').next() != Some(kind) {
            self.order = format!("{} {kind}", self.order).trim().to_owned();
        }
    }
}

/// Sends a text and reads the log of what became of it.
pub(crate) async fn run(server: &Server, text: &str) -> Told {
    told(server, &server.send_params(message(text)).await).await
}

/// Reads the log of a task that rests: exactly one event says how its turn ended, and it is the last.
pub(crate) async fn told(server: &Server, task: &Value) -> Told {
    let mut told = Told { state: state(task).to_owned(), words: words(task).to_owned(), ..Told::default() };
    let log = server.log(id(task)).await;
    let resting = |event: &&SseEvent| !["", "TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&event.state());
    let is_status = |event: &&SseEvent| event.body().get("statusUpdate").is_some();
    assert_eq!(log.iter().filter(is_status).filter(resting).count(), 1, "{log:?}");
    assert!(log.last().as_ref().is_some_and(resting), "{log:?}");
    let mut artifacts = Vec::new();
    for event in &log {
        let body = event.body();
        if let Some(update) = body.get("artifactUpdate") {
            let artifact = text(&update["artifact"]["artifactId"]).to_owned();
            if !artifacts.contains(&artifact) {
                artifacts.push(artifact);
            }
            told.text.push_str(event.chunk().unwrap_or_default());
            told.kind("text");
        }
        let update = &body["statusUpdate"];
        let metadata = &update["metadata"];
        if let Some(thought) = metadata[THINKING]["text"].as_str() {
            told.thinking.push_str(thought);
        }
        if metadata[TOOL].is_object() {
            told.tools.push(metadata[TOOL].clone());
            told.kind("tool");
        }
        if event.state() == "TASK_STATE_WORKING" {
            told.notes.extend(update["status"]["message"]["parts"][0]["text"].as_str().map(str::to_owned));
        }
        if metadata[USAGE].is_object() {
            told.usage = metadata[USAGE].clone();
        }
    }
    told.artifacts = artifacts.len();
    assert!(told.artifacts <= 1, "one artifact for the answer: {artifacts:?}");
    told
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
