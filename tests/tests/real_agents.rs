//! Real coding agents behind the real server. They need Node.js and, the first time, a network; no account: whoever
//! has none hears that, and a model of our own answers the others.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nuncio_tests::{
    Stage, Value, at_once, fake, follow_up, id, in_context, installed, is_over, json, message, state, texts, words,
};

/// The program of a real agent, which is installed the first time.
fn install(name: &str) -> PathBuf {
    installed(&format!("cli-{name}")).join("node_modules/.bin").join(name)
}

/// A model that answers without sense.
struct Model {
    process: Child,
    port: u16,
}

impl Model {
    fn start() -> Self {
        let mut process = Command::new(fake("model")).stdout(Stdio::piped()).spawn().expect("python3");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("a pipe")).read_line(&mut line).expect("a port");
        Self { process, port: line.trim().parse().expect("a port") }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A real agent with a home of its own.
struct Real {
    stage: Stage,
    home: tempfile::TempDir,
}

impl Real {
    fn new(kind: &str, program: &Path, home: tempfile::TempDir, variables: &[String]) -> Self {
        let folder = home.path().display();
        let mut env = vec![
            format!("HOME={folder}"),
            format!("CLAUDE_CONFIG_DIR={folder}"),
            format!("CODEX_HOME={folder}"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1".to_owned(),
        ];
        env.extend_from_slice(variables);
        let more = format!("store: memory\nenv: {}", json!(env));
        Self { stage: Stage::new(kind, &json!([program]), &more), home }
    }

    /// Sends something and returns the task as soon as it rests.
    async fn send(&self, params: Value) -> Value {
        let task = self.stage.server.send_params(at_once(params)).await;
        self.until(task, |task| !matches!(state(task), "SUBMITTED" | "WORKING")).await
    }

    /// Real agents take their time, even to start.
    async fn until(&self, mut task: Value, done: fn(&Value) -> bool) -> Value {
        let until = Instant::now() + Duration::from_secs(180);
        while !done(&task) {
            assert!(Instant::now() < until, "it hangs: {task}");
            tokio::time::sleep(Duration::from_millis(50)).await;
            task = self.stage.server.task(id(&task)).await;
        }
        task
    }

    /// It answers, asks, does what it may and not what it may not, and remembers its conversation.
    async fn works(&self, replies: &[&str]) {
        let server = &self.stage.server;
        let hello = self.send(message("hello")).await;
        assert_eq!((state(&hello), texts(&hello)), ("COMPLETED", vec!["Hello from the model.".into()]), "{hello}");
        let usage = &hello["metadata"]["urn:nuncio:a2a:usage:v1"];
        assert_eq!(usage["inputTokens"].as_u64().map(|tokens| tokens >= 11), Some(true), "{hello}");

        for reply in replies {
            let file = format!("{reply}.txt");
            let asked = self.send(in_context(&hello["contextId"], &format!("run touch {file}"))).await;
            assert_eq!(state(&asked), "INPUT_REQUIRED", "{asked}");
            assert!(words(&asked).contains(&format!("touch {file}")), "{asked}");
            let answered = server.send_params(at_once(follow_up(&asked, reply))).await;
            let over = self.until(answered, is_over).await;
            assert_eq!(state(&over), "COMPLETED", "{over}");
            assert!(texts(&over).concat().ends_with("Hello from the model."), "{over}");
            assert_eq!(self.stage.workspace.path().join(file).exists(), *reply == "y", "{over}");
            let news: Vec<Value> = server.log(id(&over)).await.into_iter().map(|event| event.data).collect();
            let lost = |event: &&Value| event.to_string().contains("could not be continued");
            assert_eq!(news.iter().find(lost), None, "the conversation goes on");
        }
        self.stage.until_idle().await;
    }

    async fn lacks_credentials(&self, why: &str) {
        let task = self.send(message("hello")).await;
        assert_eq!(state(&task), "AUTH_REQUIRED", "{} {task}", self.home.path().display());
        assert!(words(&task).contains(why), "{task}");
        self.stage.until_idle().await;
    }
}

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[tokio::test]
async fn claude_code() {
    let program = install("claude");
    let real = Real::new("claude-code", &program, home(), &[]);
    real.lacks_credentials("Please run /login").await;
    let model = Model::start();
    let with = |key: &str| {
        let variables =
            [format!("ANTHROPIC_BASE_URL=http://127.0.0.1:{}", model.port), format!("ANTHROPIC_API_KEY={key}")];
        Real::new("claude-code", &program, home(), &variables)
    };
    with("good").works(&["n", "y"]).await;
    with("wrong").lacks_credentials("authentication_failed").await;
}

#[tokio::test]
async fn qwen_code() {
    let program = install("qwen");
    let real = Real::new("qwen", &program, home(), &[]);
    real.lacks_credentials("No auth type is selected").await;
    let model = Model::start();
    let with = |key: &str| {
        let variables = [
            format!("OPENAI_BASE_URL=http://127.0.0.1:{}/v1", model.port),
            format!("OPENAI_API_KEY={key}"),
            "OPENAI_MODEL=none".to_owned(),
        ];
        Real::new("qwen", &program, home(), &variables)
    };
    // It takes half a minute to get this far where it has no network.
    with("good").works(&["y"]).await;
    with("wrong").lacks_credentials("401").await;
}

#[tokio::test]
async fn codex() {
    let program = install("codex");
    let real = Real::new("codex", &program, home(), &[]);
    real.lacks_credentials("codex login").await;
    let model = Model::start();
    let with = |kind: &str, key: &str| {
        let home = home();
        let url = format!("http://127.0.0.1:{}/v1", model.port);
        let provider =
            format!("name = \"fake\"\nbase_url = \"{url}\"\nwire_api = \"responses\"\nenv_key = \"FAKE_KEY\"");
        let config = format!("model = \"none\"\nmodel_provider = \"fake\"\n[model_providers.fake]\n{provider}\n");
        std::fs::write(home.path().join("config.toml"), config).expect("a file");
        Real::new(kind, &program, home, &[format!("FAKE_KEY={key}")])
    };
    with("codex", "good").works(&["n", "y"]).await;
    with("codex", "wrong").lacks_credentials("401").await;
    let exec = with("codex-exec", "good");
    let hello = exec.send(message("hello")).await;
    assert_eq!((state(&hello), texts(&hello)), ("COMPLETED", vec!["Hello from the model.".into()]), "{hello}");
    let again = exec.send(in_context(&hello["contextId"], "hello again")).await;
    assert_eq!((state(&again), texts(&again)), ("COMPLETED", vec!["Hello from the model.".into()]), "{again}");
    with("codex-exec", "wrong").lacks_credentials("401").await;
}
