//! The built-in agent: needs nothing and shows every behaviour. The text of the message selects it;
//! anything else is echoed.

use std::time::Duration;

use async_trait::async_trait;
use nuncio_protocol::{AgentCard, AgentSkill, Artifact, ArtifactId, Content, Message, Part, Value, json};

use super::{Agent, AgentError, Pending, ToolCall, ToolStep, Turn, Usage};

/// The longest that `hold` and `sleep` work.
const LONGEST: Duration = Duration::from_secs(600);
/// The largest file that `file` makes.
const LARGEST: usize = 16 << 20;

/// The agent that is served when no other is named.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demo;

#[async_trait]
impl Agent for Demo {
    fn is_pure(&self) -> bool {
        true
    }

    async fn run(&self, turn: &mut Turn) -> Result<(), AgentError> {
        let text = turn.text_in();
        match turn.answering() {
            Some(Pending::Question) => return turn.last_text(text).await,
            Some(Pending::Approval(decision)) => {
                return decided(turn, decision.is_some_and(|decision| decision.approved)).await;
            }
            Some(Pending::Credentials) | None => {}
        }
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((&text, ""));
        let rest = rest.trim();
        // Boxed, as all that is large: an echo would carry it along.
        match word {
            "stream" => Box::pin(stream(turn, rest, true)).await,
            "burst" => Box::pin(stream(turn, rest, false)).await,
            "sleep" => Box::pin(sleep(turn, rest)).await,
            "hold" if rest.is_empty() => wait(turn, LONGEST).await,
            "ask" if !rest.is_empty() => {
                let answer = Box::pin(turn.ask(rest)).await?;
                turn.last_text(answer.text()).await
            }
            "approve" if !rest.is_empty() => {
                let decision = Box::pin(turn.approve(rest)).await?;
                decided(turn, decision.approved).await
            }
            "think" if !rest.is_empty() => {
                turn.think(rest).await?;
                turn.last_text("thought").await
            }
            "tool" if !rest.is_empty() => Box::pin(tool(turn, rest)).await,
            "file" => Box::pin(file(turn, rest)).await,
            "usage" if rest.is_empty() => {
                turn.usage(Usage {
                    input_tokens: 12,
                    output_tokens: 34,
                    model: Some("demo".into()),
                    ..Usage::default()
                });
                turn.last_text("12 tokens in, 34 out").await
            }
            "fail" if !rest.is_empty() => turn.fail(rest).await,
            "reject" if !rest.is_empty() => turn.reject(rest).await,
            "auth" if !rest.is_empty() => turn.require_auth(rest).await,
            #[allow(clippy::panic)] // that is what it is for
            "crash" if rest.is_empty() => panic!("the demo agent was asked to crash"),
            _ => turn.last_text(text).await,
        }
    }

    async fn answer(&self, message: &Message) -> Option<Vec<Part>> {
        let text = message.text();
        let rest = text.strip_prefix("message ")?.trim();
        (!rest.is_empty()).then(|| vec![Part::text(rest)])
    }

    fn card(&self) -> AgentCard {
        let any = || vec!["text/plain".into(), "application/json".into(), "application/octet-stream".into()];
        let skill = |id: &str, name: &str, description: &str, examples: &[&str]| AgentSkill {
            id: id.into(),
            name: name.into(),
            description: description.into(),
            tags: vec!["demo".into()],
            examples: examples.iter().map(|&text| text.into()).collect(),
            ..AgentSkill::default()
        };
        AgentCard {
            name: "nuncio demo".into(),
            description: "Echoes what it is told, and shows every behaviour of an A2A agent on request".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            default_input_modes: any(),
            default_output_modes: any(),
            skills: vec![
                skill("echo", "Echo", "Answers with the same text", &["hello"]),
                skill("stream", "Stream", "Answers in many pieces", &["stream 10 100", "burst 1000"]),
                skill("work", "Work", "Works for a while, or until it is canceled", &["sleep 3", "hold"]),
                skill(
                    "ask",
                    "Ask",
                    "Asks a question or for an approval",
                    &["ask Which colour?", "approve rm -rf build"],
                ),
                skill(
                    "show",
                    "Show",
                    "Thinks, uses a tool, makes a file, reports usage, answers without a task, fails",
                    &["think hard", "tool search", "file notes.txt 100", "usage", "message hi", "fail on purpose"],
                ),
            ],
            ..AgentCard::default()
        }
    }
}

/// `stream N [MS]` and `burst N`: one artifact in N pieces.
async fn stream(turn: &mut Turn, rest: &str, polite: bool) -> Result<(), AgentError> {
    let mut words = rest.split_whitespace();
    let Some(count) = words.next().and_then(|word| word.parse::<usize>().ok()) else {
        return turn.fail("Say how many pieces: stream 10").await;
    };
    let pause = words.next().and_then(|word| word.parse().ok()).map(Duration::from_millis);
    for n in 0..count {
        let text = format!("chunk {n}");
        if n + 1 == count {
            turn.last_text(text).await?;
        } else {
            turn.text(text).await?;
        }
        match pause {
            Some(pause) => wait(turn, pause).await?,
            None if polite => tokio::task::yield_now().await,
            None => {}
        }
    }
    Ok(())
}

async fn sleep(turn: &mut Turn, rest: &str) -> Result<(), AgentError> {
    match rest.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
        Some(time) => {
            wait(turn, time.min(LONGEST)).await?;
            turn.last_text(format!("slept {rest} s")).await
        }
        None => turn.fail("Say how many seconds: sleep 3").await,
    }
}

async fn wait(turn: &Turn, time: Duration) -> Result<(), AgentError> {
    tokio::select! {
        () = tokio::time::sleep(time) => Ok(()),
        () = turn.cancelled() => Err(AgentError::Stopped),
    }
}

async fn decided(turn: &mut Turn, approved: bool) -> Result<(), AgentError> {
    turn.last_text(if approved { "approved" } else { "denied" }).await
}

async fn tool(turn: &mut Turn, name: &str) -> Result<(), AgentError> {
    let call = |step| ToolCall { id: "call-1", name, step };
    turn.tool(call(ToolStep::Started)).await?;
    let input = json!({ "query": "what the demo always asks" });
    turn.tool(call(ToolStep::Input(&input))).await?;
    for delta in ["one", "two", "three"] {
        turn.tool(call(ToolStep::Delta(delta))).await?;
    }
    let output = Value::from("one two three");
    turn.tool(call(ToolStep::Completed(&output))).await?;
    turn.last_text(format!("used {name}")).await
}

/// `file NAME BYTES`: a file of that size.
async fn file(turn: &mut Turn, rest: &str) -> Result<(), AgentError> {
    let (name, size) = rest.rsplit_once(' ').unwrap_or((rest, "0"));
    let Some(size) = size.parse::<usize>().ok().filter(|size| *size <= LARGEST && !name.is_empty()) else {
        return turn.fail("Say a name and a size of at most 16 MiB: file notes.txt 100").await;
    };
    let bytes: Vec<u8> = (b'a'..=b'z').cycle().take(size).collect();
    let part = Part {
        filename: name.into(),
        media_type: "application/octet-stream".into(),
        ..Part::from(Content::Raw(bytes.into()))
    };
    let artifact =
        Artifact { artifact_id: ArtifactId::fresh(), name: name.into(), parts: vec![part], ..Artifact::default() };
    turn.artifact(artifact).await
}
