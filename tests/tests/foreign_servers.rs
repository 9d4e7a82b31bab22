//! Our client against agents on the official SDKs. They need Python, Node.js and, the first time, a network.

#![allow(clippy::panic, reason = "a panic is how a test reports")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use nuncio_client::{Binding, CardKeys, Client, ClientError, EventStream, Options, Version};
use nuncio_protocol::sign::{Algorithm, Form, Reason, Verdict};
use nuncio_protocol::{
    CancelTaskRequest, ErrorKind, GetTaskRequest, ListTaskPushNotificationConfigsRequest, ListTasksRequest, Message,
    Part, SendMessageRequest, SendMessageResponse, StreamResponse, Task, TaskId, TaskPushNotificationConfig, TaskState,
};
use nuncio_tests::PATIENCE;

const SECRET: &str = "a secret of at least thirty-two bytes";

/// A running agent; it ends with the test.
struct Agent {
    child: Child,
    url: String,
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Agent {
    async fn start(name: &str) -> Self {
        let installed = Command::new(script()).arg(name).stdin(Stdio::null()).status().expect("the script starts");
        assert!(installed.success(), "{name} cannot be installed");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
        let url = format!("http://{free}");
        let child = Command::new(script())
            .args([name, &free.port().to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the script starts");
        let mut agent = Self { child, url };
        let until = Instant::now() + PATIENCE;
        while let Err(error) = Client::read_card(&agent.url, Options::default()).await {
            assert!(matches!(agent.child.try_wait(), Ok(None)), "{name} has ended");
            assert!(error.is_transient() && Instant::now() < until, "{name} does not start: {error}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        agent
    }

    /// The key set that the agent publishes.
    fn keys(&self) -> CardKeys {
        CardKeys::jwks_url(&format!("{}/jwks.json", self.url)).expect("an address on this machine")
    }

    /// Does everything that a client can do, in one binding and version.
    async fn drive(&self, binding: Binding, version: Version) {
        // Agents of 0.3 in Python leave the streams of a canceled task open and say nothing.
        let look = Some(Duration::from_millis(500));
        let options = Options { binding: Some(binding), version: Some(version), look, ..Options::default() };
        let client = Client::discover(&self.url, options).await.expect("the card names this interface");
        println!("{binding} {version} at {}", client.url());
        let drive = async {
            sends(&client).await;
            streams(&client).await;
            follows_and_cancels(&client).await;
            webhooks(&client).await;
            refuses(&client).await;
            let card = client.extended_card().await.expect("an extended card");
            assert_eq!(card.name, "Echo for friends");
        };
        tokio::time::timeout(2 * PATIENCE, drive).await.expect("everything within the time");
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign/servers/start")
}

fn message(text: &str) -> SendMessageRequest {
    SendMessageRequest { message: Some(Message::from_user(vec![Part::text(text)])), ..Default::default() }
}

fn text_of(task: &Task) -> String {
    task.artifacts.iter().flat_map(|artifact| &artifact.parts).filter_map(Part::as_text).collect()
}

fn by_id(id: &TaskId) -> GetTaskRequest {
    GetTaskRequest { id: id.clone(), ..Default::default() }
}

async fn send(client: &Client, text: &str) -> Task {
    match client.send(message(text)).await.expect("an answer") {
        SendMessageResponse::Task(task) => task,
        SendMessageResponse::Message(message) => panic!("a task, not {message:?}"),
    }
}

/// What the events say: the task, its last state and its text.
async fn all(mut events: EventStream) -> (TaskId, TaskState, String) {
    let (mut id, mut state, mut text) = (TaskId::default(), TaskState::default(), String::new());
    while let Some(event) = events.next().await {
        match event.expect("an event").response {
            StreamResponse::Task(task) => (id, state, text) = (task.id.clone(), task.status.state, text_of(&task)),
            StreamResponse::StatusUpdate(update) => state = update.status.state,
            StreamResponse::ArtifactUpdate(update) => {
                if !update.append {
                    text.clear();
                }
                text.extend(update.artifact.parts.iter().filter_map(Part::as_text));
            }
            StreamResponse::Message(message) => panic!("a task, not {message:?}"),
        }
    }
    (id, state, text)
}

/// The task of a stream that goes on.
async fn named(events: &mut EventStream) -> TaskId {
    match events.next().await.expect("a first event").expect("a task").response {
        StreamResponse::Task(task) => task.id,
        StreamResponse::StatusUpdate(update) => update.task_id,
        other => panic!("a task, not {other:?}"),
    }
}

async fn sends(client: &Client) {
    let task = send(client, "what a day").await;
    assert_eq!((task.status.state, text_of(&task)), (TaskState::Completed, "what a day".into()));
    let again = client.get(by_id(&task.id)).await.expect("the task");
    assert_eq!((&again.id, text_of(&again)), (&task.id, text_of(&task)));
    let listed = client.list(ListTasksRequest::default()).await;
    // Nobody says what 0.3 lists, or how it is refused.
    if client.version() == Version::V1_0 {
        let page = listed.expect("a page");
        assert!(page.tasks.iter().any(|listed| listed.id == task.id), "{page:?}");
    }
}

async fn streams(client: &Client) {
    let events = client.stream(message("one two three four")).await.expect("a stream");
    let (id, state, text) = all(events).await;
    assert_eq!((state, text.as_str()), (TaskState::Completed, "one two three four"));
    assert_eq!(text_of(&client.get(by_id(&id)).await.expect("the task")), text);
}

async fn follows_and_cancels(client: &Client) {
    let mut events = client.stream(message("wait for it")).await.expect("a stream");
    let id = named(&mut events).await;
    let mut other = client.subscribe(id.clone(), None).await.expect("a second stream");
    // In 0.3 nobody says that a subscription begins with the task.
    if client.version() == Version::V1_0 {
        assert_eq!(named(&mut other).await, id);
    }
    let request = CancelTaskRequest { id: id.clone(), ..Default::default() };
    client.cancel(request.clone()).await.expect("it can be canceled");
    assert_eq!(all(events).await.1, TaskState::Canceled);
    assert_eq!(all(other).await.1, TaskState::Canceled);
    assert_eq!(client.get(by_id(&id)).await.expect("the task").status.state, TaskState::Canceled);
    match client.cancel(request).await {
        // Some agents say only that it is so.
        Ok(task) => assert_eq!(task.status.state, TaskState::Canceled),
        Err(error) => assert_eq!(error.kind(), Some(ErrorKind::TaskNotCancelable), "{error:?}"),
    }
}

async fn webhooks(client: &Client) {
    let task = send(client, "push").await;
    let hook = TaskPushNotificationConfig {
        task_id: task.id.clone(),
        id: "hook-1".into(),
        url: "http://127.0.0.1:9/hook".into(),
        token: "t".into(),
        ..Default::default()
    };
    let made = match client.create_push(hook.clone()).await {
        // The 0.3 layer of one SDK wants another shape than all others here.
        Err(error) if client.version() == Version::V0_3 && client.binding() == Binding::Rest => {
            return assert_eq!(error.kind(), Some(ErrorKind::InvalidParams), "{error:?}");
        }
        made => made.expect("a webhook"),
    };
    assert_eq!((made.url.as_str(), made.task_id.as_str()), (hook.url.as_str(), task.id.as_str()));
    let got = client.get_push(task.id.clone(), made.id.clone()).await.expect("the webhook");
    assert_eq!((got.url, got.id), (hook.url, made.id.clone()));
    let list = ListTaskPushNotificationConfigsRequest { task_id: task.id.clone(), ..Default::default() };
    match client.list_push(list.clone()).await {
        Ok(page) => assert_eq!(page.configs.len(), 1, "{page:?}"),
        Err(error) => assert_eq!((client.version(), client.binding()), (Version::V0_3, Binding::Rest), "{error}"),
    }
    match client.delete_push(task.id.clone(), made.id.clone()).await {
        Ok(()) => {
            let left = client.list_push(list).await.map_or(0, |page| page.configs.len());
            assert_eq!(left, 0);
        }
        Err(error) => assert_eq!((client.version(), client.binding()), (Version::V0_3, Binding::Rest), "{error}"),
    }
}

async fn refuses(client: &Client) {
    let nobody = TaskId::from("nobody-has-this");
    let error = client.get(by_id(&nobody)).await.expect_err("no such task");
    assert_eq!(error.kind(), Some(ErrorKind::TaskNotFound), "{error:?}");
    let cancel = CancelTaskRequest { id: nobody.clone(), ..Default::default() };
    let error = client.cancel(cancel).await.expect_err("no such task");
    assert_eq!(error.kind(), Some(ErrorKind::TaskNotFound), "{error:?}");
    let mut request = message("more");
    request.message.get_or_insert_default().task_id = nobody.clone();
    let error = client.send(request).await.expect_err("no such task");
    assert_eq!(error.kind(), Some(ErrorKind::TaskNotFound), "{error:?}");
    let refused = match client.subscribe(nobody, None).await {
        Err(error) => Some(error),
        // Some agents say so inside of the stream.
        Ok(mut events) => events.next().await.and_then(Result::err),
    };
    match refused {
        // Agents of 0.3 break the connection instead, or stumble.
        Some(ClientError::Cut { .. } | ClientError::Agent(_)) if client.version() == Version::V0_3 => {}
        refused => {
            assert_eq!(refused.as_ref().and_then(ClientError::kind), Some(ErrorKind::TaskNotFound), "{refused:?}");
        }
    }
}

/// Every card that the agent signs is verified, and with any other key it is not.
async fn verify_signatures(agent: &Agent, form: Form) {
    let keys = agent.keys();
    for alg in Algorithm::ALL {
        let url = format!("{}/cards/{alg}.json", agent.url);
        let keys = if alg == Algorithm::Hs256 { CardKeys::secret(SECRET).expect("a secret") } else { keys.clone() };
        let options = Options { card_keys: keys, require_signature: true, ..Options::default() };
        let client = Client::discover(&url, options.clone()).await.unwrap_or_else(|error| panic!("{alg}: {error}"));
        let Some(Verdict::Verified { kid, alg: made, form: covered, .. }) = client.signature() else {
            panic!("{:?}", client.signature())
        };
        assert_eq!((kid.as_str(), *made, *covered), (&*alg.name().to_lowercase(), alg, form));
        let changed = String::from_utf8(client.card_json().expect("a card").to_vec()).expect("text");
        let changed = changed.replacen("Says what", "Said what", 1);
        let verdict = options.card_keys.judge(changed.as_bytes(), &options).await;
        assert!(matches!(verdict, Verdict::Wrong(Reason::Mismatch(_))), "{alg}: {verdict:?}");
    }
    let other = CardKeys::secret("another secret of thirty-two bytes").expect("a secret");
    let url = format!("{}/cards/HS256.json", agent.url);
    let refused = Client::discover(&url, Options { card_keys: other, ..Options::default() }).await;
    assert!(matches!(refused, Err(ClientError::CardSignature { .. })), "{refused:?}");
    let options = Options { card_keys: keys, require_signature: true, ..Options::default() };
    let client = Client::discover(&agent.url, options).await.expect("the card is signed");
    client.extended_card().await.expect("so is the extended one");
}

#[tokio::test]
async fn the_python_sdk_of_10_is_spoken_to_in_every_way() {
    let agent = Agent::start("python-1.3").await;
    for version in [Version::V1_0, Version::V0_3] {
        for binding in [Binding::JsonRpc, Binding::Rest] {
            agent.drive(binding, version).await;
        }
    }
}

#[tokio::test]
async fn the_python_sdk_of_03_is_spoken_to_in_every_way() {
    let agent = Agent::start("python-0.3").await;
    for binding in [Binding::JsonRpc, Binding::Rest] {
        agent.drive(binding, Version::V0_3).await;
    }
}

#[tokio::test]
async fn the_javascript_sdk_of_10_is_spoken_to_in_every_way() {
    let agent = Agent::start("js-1.3").await;
    for version in [Version::V1_0, Version::V0_3] {
        for binding in [Binding::JsonRpc, Binding::Rest] {
            agent.drive(binding, version).await;
        }
    }
}

#[tokio::test]
async fn the_javascript_sdk_of_03_is_spoken_to_in_every_way() {
    let agent = Agent::start("js-0.3").await;
    for binding in [Binding::JsonRpc, Binding::Rest] {
        agent.drive(binding, Version::V0_3).await;
    }
}

#[tokio::test]
async fn cards_signed_by_the_python_sdks_are_verified() {
    verify_signatures(&Agent::start("python-1.3").await, Form::Sdk).await;
    verify_signatures(&Agent::start("python-0.3").await, Form::Escaped).await;
}

#[tokio::test]
async fn cards_signed_by_the_javascript_sdk_are_verified() {
    verify_signatures(&Agent::start("js-1.3").await, Form::Sdk).await;
}
