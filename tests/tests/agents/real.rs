//! The real OpenCode and the real Gemini CLI, with a model on this machine. They need Node.js and, the first time, a
//! network.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nuncio_tests::{Stage, Value, at_once, fake, id, in_context, installed, json, message, state, texts, words};

use crate::lines::told;

/// The model, which ends with the test.
struct Model {
    child: Child,
    port: u16,
    /// Files that it tells programs to read.
    files: tempfile::TempDir,
}

impl Model {
    fn start() -> Self {
        let files = tempfile::tempdir().expect("a temporary folder");
        let mut child = Command::new(fake("reader"))
            .env("MODEL_FILES", files.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the model can be started");
        let mut port = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut port).expect("its port");
        Self { child, port: port.trim().parse().expect("a number"), files }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program in a home of its own, working where the model has its files.
struct Real {
    model: Model,
    stage: Stage,
    _home: tempfile::TempDir,
}

impl Real {
    fn new(kind: &str, settings: impl Fn(&Path, u16) -> Vec<String>) -> Self {
        let folder = installed(&format!("cli-{kind}"));
        let (model, home) = (Model::start(), tempfile::tempdir().expect("a temporary folder"));
        let mut variables = settings(home.path(), model.port);
        variables.push(format!("HOME={}", home.path().display()));
        let roots = model.files.path().display();
        let more = format!("env: {}\nturn-timeout: 100s\nworkspace-roots: [{roots}]", json!(variables));
        let stage = Stage::new(kind, &json!([folder.join("node_modules/.bin").join(kind)]), &more);
        Self { model, stage, _home: home }
    }

    /// Sends a text and waits until the task rests; these programs take their time.
    async fn ask(&self, mut params: Value) -> Value {
        let folder = self.model.files.path().to_str().expect("a plain path");
        params["metadata"] = json!({ "urn:nuncio:a2a:workspace:v1": { "path": folder } });
        let task = self.stage.server.send_params(at_once(params)).await;
        for _ in 0..600 {
            let now = self.stage.server.task(id(&task)).await;
            if !["SUBMITTED", "WORKING"].contains(&state(&now)) {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        self.stage.server.task(id(&task)).await
    }

    /// Answers, reads a file by a tool, remembers.
    async fn works(&self, tool: &str) {
        std::fs::write(self.model.files.path().join("note.txt"), "the secret word\n").expect("the folder is ours");
        let first = self.ask(message("remember the number 23, grün")).await;
        assert_eq!(state(&first), "COMPLETED", "{first}");
        assert_eq!(texts(&first), ["You said: remember the number 23, grün"]);
        let recall = self.ask(in_context(&first["contextId"], "recall")).await;
        assert_eq!(texts(&recall), ["The number 23."], "{recall}");
        let read = self.ask(message("read note.txt")).await;
        let told = told(&self.stage.server, &read).await;
        told.completed("It says: secret word");
        let steps: Vec<&str> = told.tools.iter().filter_map(|tool| tool["phase"].as_str()).collect();
        assert_eq!(steps, ["started", "input", "completed"], "{told:?}");
        assert_eq!(told.tools[0]["name"], tool);
        assert!(told.usage["inputTokens"].as_u64().is_some_and(|count| count > 0), "{told:?}");
        self.stage.until_idle().await;
    }
}

fn opencode(_home: &Path, port: u16) -> Vec<String> {
    let options = json!({ "baseURL": format!("http://127.0.0.1:{port}/v1"), "apiKey": "k" });
    let provider =
        json!({ "npm": "@ai-sdk/openai-compatible", "name": "Own", "options": options, "models": { "m": {} } });
    let config = json!({
        "model": "own/m", "small_model": "own/m", "share": "disabled", "autoupdate": false,
        "enabled_providers": ["own"], "provider": { "own": provider },
    });
    vec![format!("OPENCODE_CONFIG_CONTENT={config}"), "OPENCODE_DISABLE_MODELS_FETCH=1".into()]
}

fn gemini(home: &Path, port: u16) -> Vec<String> {
    let settings = json!({ "security": { "auth": { "selectedType": "gemini-api-key" } }, "privacy": { "usageStatisticsEnabled": false } });
    std::fs::create_dir(home.join(".gemini")).expect("the home is ours");
    std::fs::write(home.join(".gemini/settings.json"), settings.to_string()).expect("the home is ours");
    vec!["GEMINI_API_KEY=k".into(), format!("GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:{port}")]
}

#[tokio::test]
async fn the_real_opencode_answers_uses_tools_and_remembers() {
    Real::new("opencode", opencode).works("read").await;
}

#[tokio::test]
async fn the_real_opencode_without_a_valid_key_says_so() {
    let real = Real::new("opencode", opencode);
    let task = real.ask(message("login")).await;
    assert_eq!(state(&task), "AUTH_REQUIRED", "{task}");
    assert!(words(&task).contains("Incorrect API key"), "{task}");
    real.stage.until_idle().await;
}

#[tokio::test]
async fn the_real_gemini_answers_uses_tools_and_remembers() {
    Real::new("gemini", |home, port| [gemini(home, port), vec!["GEMINI_MODEL=gemini-2.5-flash".into()]].concat())
        .works("read_file")
        .await;
}

#[tokio::test]
async fn the_real_gemini_without_a_login_requires_one() {
    let real = Real::new("gemini", |_, _| Vec::new());
    let task = real.ask(message("hello")).await;
    assert_eq!(state(&task), "AUTH_REQUIRED", "{task}");
    assert!(words(&task).contains("GEMINI_API_KEY"), "{task}");
    real.stage.until_idle().await;
}
