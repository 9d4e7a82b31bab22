//! What the log of a task tells, in a form that can be compared.

use nuncio_tests::{Server, SseEvent, Stage, Value, id, json, message, state, texts};

const TOOL: &str = "urn:nuncio:a2a:tool:v1";
const THINKING: &str = "urn:nuncio:a2a:thinking:v1";
const USAGE: &str = "urn:nuncio:a2a:usage:v1";
/// What an agent waits for.
pub(crate) const INPUT: &str = "urn:nuncio:a2a:input:v1";

/// A task and its events.
pub(crate) struct Told {
    pub(crate) task: Value,
    pub(crate) events: Vec<SseEvent>,
}

impl Told {
    /// Sends a text and waits for the end of the turn; then nothing of the agent may be left.
    pub(crate) async fn by(stage: &Stage, text: &str) -> Self {
        Self::after(stage, message(text)).await
    }

    /// The same, with these parameters.
    pub(crate) async fn after(stage: &Stage, params: Value) -> Self {
        let task = stage.server.send_params(params).await;
        Self::of(stage, &task).await
    }

    /// All about a task whose turn is over.
    pub(crate) async fn of(stage: &Stage, task: &Value) -> Self {
        stage.until_idle().await;
        let task = stage.server.task(id(task)).await;
        let mut events = Vec::new();
        let mut log = stage.server.subscribe(id(&task), Some(0)).await;
        while let Some(event) = log.next().await {
            // The task may go on with the next message, so its stream stays open.
            let waits = event.state() == "TASK_STATE_AUTH_REQUIRED";
            events.push(event);
            if waits {
                break;
            }
        }
        let told = Self { events, task };
        told.check();
        told
    }

    /// What holds for every log: numbers rise, the end comes once and last, and the task is the sum of its events.
    fn check(&self) {
        let numbers: Vec<u64> = self.events.iter().filter_map(|event| event.id).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
        let ends = |event: &&SseEvent| is_end(event.state());
        assert_eq!(self.events.iter().filter(ends).count(), 1, "one end: {:#?}", self.events);
        let last = self.events.last().expect("an event");
        assert!(is_end(last.state()), "the end is last: {last:?}");
        assert_eq!(self.text(), texts(&self.task).concat(), "the task is the sum of its events");
    }

    /// The state, without `TASK_STATE_`.
    pub(crate) fn state(&self) -> &str {
        state(&self.task)
    }

    /// All text of all artifacts.
    pub(crate) fn text(&self) -> String {
        self.events.iter().filter_map(SseEvent::chunk).collect()
    }

    /// What status messages said, in order.
    pub(crate) fn words(&self) -> Vec<&str> {
        let text = "/statusUpdate/status/message/parts/0/text";
        self.events.iter().filter_map(|event| event.body().pointer(text)?.as_str()).collect()
    }

    /// All thinking.
    pub(crate) fn thinking(&self) -> String {
        self.metadata(THINKING).filter_map(|what| what["text"].as_str()).collect()
    }

    /// The steps of tool calls: `id name phase`, and what is known then.
    pub(crate) fn tools(&self) -> Vec<(String, Value)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let step = |what: &Value| {
            let known = ["input", "output", "error", "delta"].iter().find_map(|key| what.get(key)).cloned();
            let name = format!("{} {} {}", text(&what["id"]), text(&what["name"]), text(&what["phase"]));
            (name, known.unwrap_or_default())
        };
        self.metadata(TOOL).map(step).collect()
    }

    /// What the turn used.
    pub(crate) fn usage(&self) -> Value {
        self.metadata(USAGE).last().cloned().unwrap_or_default()
    }

    /// The states in which the task was, each once.
    pub(crate) fn states(&self) -> Vec<&str> {
        let mut states: Vec<&str> = self.events.iter().map(SseEvent::state).filter(|state| !state.is_empty()).collect();
        states.dedup();
        states
    }

    fn metadata<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter_map(move |event| event.body()["statusUpdate"]["metadata"].get(key))
    }
}

/// Whether a state ends a turn, in any dialect.
fn is_end(state: &str) -> bool {
    let state = state.trim_start_matches("TASK_STATE_").to_uppercase().replace('-', "_");
    ["COMPLETED", "FAILED", "CANCELED", "REJECTED", "AUTH_REQUIRED"].contains(&&*state)
}

/// Answers a task on the wires of 0.3, which the question did not come by.
pub(crate) async fn answer_on_another_wire(server: &Server, task: &Value, text: &str) -> Value {
    let parts = json!([{ "kind": "text", "text": text }]);
    let message =
        json!({ "kind": "message", "messageId": "m-2", "role": "user", "parts": parts, "taskId": task["id"] });
    let answer = server.rpc("message/send", json!({ "message": message })).await;
    assert_eq!(answer["result"]["id"], task["id"], "{answer}");
    server.task(id(task)).await
}
