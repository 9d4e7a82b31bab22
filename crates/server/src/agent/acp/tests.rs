//! The parts together: programs that open badly or wait in the pool, and any frame that one may print.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use agent_client_protocol_schema::v1::{AgentCapabilities, RequestPermissionRequest};
use nuncio_protocol::{Message, Part, Value, codec, json};
use proptest::prelude::*;

use super::elicit::Question;
use super::peer::{Incoming, Peer};
use super::updates::{Said, Step, Updates};
use super::*;
use crate::agent::{DecidedBy, Decision};
use crate::workspace::Workspaces;

struct Place {
    folder: tempfile::TempDir,
    workspace: Workspace,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let workspace = Workspaces::new(folder.path(), vec![]).unwrap().choose(None).unwrap();
    Place { folder, workspace }
}

impl Place {
    /// A program that is a shell script; it writes its number into the file `pid` first.
    fn connect(&self, script: &str) -> Connection {
        let kin = Kin::new(&self.folder.path().to_string_lossy());
        let environment: Vec<(OsString, OsString)> = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let args = ["-c".to_owned(), format!("echo $$ >pid; {script}")];
        let start = Start { program: "sh", args: &args, environment: environment.clone(), cwd: self.folder.path() };
        let child = Child::start(start, &kin).unwrap();
        let terminals = Terminals::new(self.workspace.clone(), environment, kin);
        Connection::new(child, Desk::new(self.workspace.clone(), Offers::default(), terminals))
    }

    async fn open(&self, script: &str, timeout: Duration) -> String {
        let mut connection = self.connect(script);
        connection.begin();
        let offers = Offers::default();
        let opening = Opening { offers, auth_method: None, workspace: &self.workspace, session: None, timeout };
        match opening.open(connection).await {
            Ok(_) => "opened".into(),
            Err(OpenError::Failed(text) | OpenError::AuthRequired(text)) => text,
        }
    }

    async fn until_gone(&self) {
        let here = std::fs::canonicalize(self.folder.path()).unwrap();
        let is_here = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.is_ok_and(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == here))
        };
        for _ in 0..500 {
            if !std::fs::read_dir("/proc").unwrap().any(is_here) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("something still runs in {}", here.display());
    }
}

#[tokio::test]
async fn a_program_that_is_not_ready_in_time_is_ended() {
    let place = place();
    let told = place.open("echo hello; sleep 1000", Duration::from_millis(300)).await;
    assert!(told.contains("300ms") && told.contains("Agent Client Protocol"), "{told}");
    place.until_gone().await;
}

#[tokio::test]
async fn a_program_that_answers_something_else_is_told_apart() {
    let answers = |answer: &str| format!("read line; echo '{{\"jsonrpc\":\"2.0\",\"id\":1,{answer}}}'; sleep 1000");
    for (answer, part) in [
        ("\"result\":7", "does not speak"),
        ("\"result\":{\"protocolVersion\":2}", "version 2"),
        ("\"error\":{\"code\":-32000,\"message\":\"log in\"}", "log in"),
        ("\"error\":\"what?\"", "what?"),
    ] {
        let place = place();
        let told = place.open(&answers(answer), Duration::from_secs(20)).await;
        assert!(told.contains(part), "{answer}: {told}");
        place.until_gone().await;
    }
    let place = place();
    let told = place.open("echo broken >&2; exit 7", Duration::from_secs(20)).await;
    assert!(told.contains("code 7") && told.contains("broken"), "{told}");
}

fn attached(connection: Connection) -> Attached {
    let can = AgentCapabilities::default();
    Attached { connection, session: "s".into(), can, auth_methods: Vec::new(), cost: None }
}

fn key(context: &str) -> Key {
    Key { tenant: String::new(), caller: String::new(), context: context.into() }
}

#[tokio::test]
async fn an_agent_waits_for_its_next_turn_and_no_longer() {
    let [first, second, third] = [place(), place(), place()];
    let pool = Pool::new(Duration::from_secs(600), 2, Duration::from_millis(500));
    pool.keep(key("1"), attached(first.connect("cat")));
    pool.keep(key("2"), attached(second.connect("cat")));
    // There is room for two: the one that waits for the longest time has to go.
    pool.keep(key("3"), attached(third.connect("cat")));
    assert!(pool.take(&key("1")).is_none());
    first.until_gone().await;
    assert!(pool.take(&key("2")).is_some_and(|attached| attached.connection.is_alive()), "it can be had once");
    assert!(pool.take(&key("2")).is_none());
    second.until_gone().await;
    drop(pool);
    third.until_gone().await;

    let idle = place();
    let pool = Pool::new(Duration::from_millis(50), 2, Duration::from_millis(500));
    pool.keep(key("1"), attached(idle.connect("trap '' TERM; while :; do sleep 1; done")));
    idle.until_gone().await;
    assert!(pool.take(&key("1")).is_none());
}

#[tokio::test]
async fn an_agent_that_died_between_turns_is_not_used_again() {
    let place = place();
    let pool = Pool::new(Duration::from_secs(600), 2, Duration::from_millis(500));
    pool.keep(key("1"), attached(place.connect("read line")));
    let pid = || std::fs::read_to_string(place.folder.path().join("pid")).unwrap_or_default().trim().parse();
    for _ in 0..500 {
        if pid().is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let pid = rustix::process::Pid::from_raw(pid().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    place.until_gone().await;
    // It is noticed a moment later.
    let mut found = pool.take(&key("1"));
    for _ in 0..500 {
        match found {
            Some(attached) if attached.connection.is_alive() => pool.keep(key("1"), attached),
            _ => return,
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        found = pool.take(&key("1"));
    }
    panic!("it is still thought to run");
}

/// A value in the words of the protocol, right or wrong.
fn value() -> impl Strategy<Value = Value> {
    const WORDS: &[&str] = &[
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
        "agent_thought_chunk",
        "plan",
        "usage_update",
        "notice",
        "compaction_update",
        "current_mode_update",
        "completed",
        "failed",
        "pending",
        "text",
        "image",
        "resource",
        "diff",
        "terminal",
        "content",
        "form",
        "url",
        "allow_once",
        "reject_always",
        "USD",
        "c",
        "s",
        "",
    ];
    const KEYS: &[&str] = &[
        "sessionUpdate",
        "sessionId",
        "toolCallId",
        "toolCall",
        "options",
        "optionId",
        "name",
        "kind",
        "title",
        "status",
        "content",
        "type",
        "text",
        "path",
        "newText",
        "oldText",
        "rawInput",
        "rawOutput",
        "entries",
        "used",
        "size",
        "cost",
        "amount",
        "currency",
        "terminalId",
        "messageId",
        "mode",
        "message",
        "requestedSchema",
        "properties",
        "required",
        "enum",
        "update",
        "data",
        "mimeType",
        "uri",
        "resource",
        "priority",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(WORDS).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(KEYS), inner), 0..8)
                .prop_map(|entries| entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

/// A call in one of its states, so that whole lives of calls are seen too.
fn call() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec!["tool_call", "tool_call_update"]);
    let status = prop::sample::select(vec!["pending", "in_progress", "completed", "failed", "odd"]);
    (kind, 0..3_u8, prop::option::of(status), value()).prop_map(|(kind, id, status, content)| {
        let mut update = json!({ "sessionUpdate": kind, "toolCallId": format!("c{id}"), "title": "t" });
        if let Some(status) = status {
            update["status"] = status.into();
        }
        update["rawOutput"] = content;
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } })
    })
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let methods =
        ["session/update", "session/request_permission", "elicitation/create", "fs/read_text_file", "$/cancel_request"];
    let id = prop_oneof![Just(json!(1)), Just(json!("1")), Just(json!(2)), Just(Value::Null), value()];
    let any_frame = (prop::option::of(prop::sample::select(methods.to_vec())), prop::option::of(id), value(), value())
        .prop_map(|(method, id, params, result)| {
            let mut frame = json!({ "jsonrpc": "2.0", "params": params, "result": result });
            if let Some(method) = method {
                frame["method"] = method.into();
            }
            if let Some(id) = id {
                frame["id"] = id;
            }
            frame
        });
    let whole = prop_oneof![any_frame, call()].prop_map(|frame| codec::encode(&frame).to_vec());
    // Sometimes cut short, or with a byte changed.
    (whole, prop::option::weighted(0.2, (any::<prop::sample::Index>(), any::<u8>(), any::<bool>()))).prop_map(
        |(mut bytes, damage)| {
            if let Some((at, byte, cut)) = damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
                bytes.truncate(if cut { at } else { bytes.len() });
            }
            bytes
        },
    )
}

/// What a turn makes of a frame, without the turn.
fn take(said: Incoming, updates: &mut Updates, out: &mut Vec<Said>) {
    match said {
        Incoming::Notification { mut params, .. } => updates.read(params["update"].take(), &|_| None, out),
        Incoming::Request { params, .. } => {
            if let Some(question) = Question::read(&params) {
                let _ = question.answer(&Message::from_agent(vec![Part::text("1")]));
            }
            let Ok(request) = codec::from_value::<RequestPermissionRequest>(turn::known_options(params)) else {
                return;
            };
            updates.announce(request.tool_call.clone(), &|_| None, out);
            let approval = permission::approval(&request, &updates.calls);
            for approved in [true, false] {
                let decision = Decision { approved, option: None, reason: None, by: DecidedBy::Rule };
                let outcome = permission::outcome(&approval, &decision);
                let chosen = outcome["outcome"]["optionId"].as_str();
                let kind = |id: &str| approval.options.iter().find(|choice| choice.id == id).map(|choice| choice.kind);
                assert!(chosen.is_none_or(|id| kind(id).is_some_and(|kind| kind.allows() == approved)), "{outcome}");
            }
        }
        Incoming::Answer { .. } => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Whatever is printed: every request of ours is answered once at most, and every call begins before
    /// anything else is told of it and ends once at most.
    #[test]
    fn any_frames_make_a_sound_story(frames in prop::collection::vec(frame(), 0..24)) {
        let mut peer = Peer::default();
        peer.request("initialize", &json!({}));
        let mut updates = Updates::new(Path::new("/ws"), Some(0.0));
        let (mut answered, mut out) = (HashSet::new(), Vec::new());
        for frame in frames {
            let Some(said) = peer.read(&frame) else { continue };
            if let Incoming::Answer { id, .. } = &said {
                prop_assert!(*id == 1 && answered.insert(*id), "answered twice: {}", id);
            }
            take(said, &mut updates, &mut out);
        }
        let mut calls: HashMap<&str, bool> = HashMap::new();
        for said in &out {
            let Said::Tool { id, step, .. } = said else { continue };
            match step {
                Step::Started => prop_assert!(calls.insert(id, true).is_none(), "{} began twice", id),
                Step::Completed(_) | Step::Failed(_) => {
                    prop_assert_eq!(calls.insert(id, false), Some(true), "{} ended otherwise than once", id);
                }
                _ => prop_assert_eq!(calls.get(id.as_str()), Some(&true), "{} is told of at the wrong time", id),
            }
        }
        prop_assert!(updates.usage(None).is_none_or(|usage| usage.cost_usd.is_none_or(|cost| cost >= 0.0)));
    }
}
