//! What has to be true after a storm.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::chaos::{LEASE, is_last};
use crate::logbook::Run;
use crate::receiver::{Post, Receiver};
use crate::sharing::in_order;
use nuncio_tests::{Server, SseEvent, Value, answer, is_over, texts};

/// What one client has seen.
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) task: String,
    pub(crate) events: Vec<SseEvent>,
    /// How often its connection broke.
    pub(crate) breaks: u32,
    /// The text of the message that it added, if it was accepted.
    pub(crate) added: Option<String>,
    pub(crate) hooked: bool,
}

impl Seen {
    fn state(&self) -> &str {
        self.events.last().map_or("", SseEvent::state)
    }
}

/// For how long an agent of a machine that wakes up may run on before it is ended.
const WAKING: Duration = Duration::from_secs(5);

/// Each saw 1..n once, which is what the log of every replica says, with one end.
pub(crate) async fn logs(all: &[Seen], replicas: &[Server], runs: &[Run]) {
    let again: HashSet<&str> = runs.iter().filter(|run| run.attempt > 1).map(|run| run.name.as_str()).collect();
    for (n, seen) in all.iter().enumerate() {
        let numbers: Vec<u64> = seen.events.iter().filter_map(|event| event.id).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{}", seen.name);
        let ends = seen.events.iter().filter(|event| is_last(event)).count();
        assert_eq!(ends, 1, "{} ends once: {:?}", seen.name, seen.events);
        let replica = &replicas[n % replicas.len()];
        let log = replica.log(&seen.task).await;
        assert!(log == seen.events, "{} saw {:?}, the log says {log:?}", seen.name, seen.events);
        let task = replicas[(n + 1) % replicas.len()].task(&seen.task).await;
        assert_eq!(task["status"]["state"], seen.state(), "{}: {task}", seen.name);
        said_once(seen, &task);
        // An agent that goes on after a crash does not say again what it said while nobody could store it.
        if seen.state().ends_with("COMPLETED") && seen.added.is_none() && !again.contains(seen.name.as_str()) {
            whole(seen, &task);
        }
    }
}

/// The first message and the accepted one are in the history once each.
fn said_once(seen: &Seen, task: &Value) {
    let history = task["history"].as_array().expect("a history");
    for (id, wanted) in [(seen.name.clone(), 1), (format!("{}-more", seen.name), usize::from(seen.added.is_some()))] {
        let found = history.iter().filter(|message| message["messageId"] == id).count();
        assert_eq!(found, wanted, "{id} in {task}");
    }
}

/// All that was asked for was said.
fn whole(seen: &Seen, task: &Value) {
    let asked = task["history"][0]["parts"][0]["text"].as_str().expect("a text");
    let words: Vec<&str> = asked.split(' ').collect();
    let said = texts(task).concat();
    let (chunks, piece): (u64, Box<dyn Fn(u64) -> String>) = match words[..] {
        ["work", name, chunks, _] => (chunks.parse().unwrap(), Box::new(move |n| format!("{name}.{n} "))),
        ["stream", chunks, _] => (chunks.parse().unwrap(), Box::new(|n| format!("chunk {n}"))),
        _ => return,
    };
    for n in 0..chunks {
        assert!(said.contains(&piece(n)), "{}: {} is missing in {said}", seen.name, piece(n));
    }
}

/// The store holds the tasks of the clients and no others: no send made two.
pub(crate) async fn nothing_else(all: &[Seen], replica: &Server) {
    let (mut found, mut token) = (HashSet::new(), String::new());
    for _ in 0..1000 {
        let (status, page) = answer(replica.get(&format!("/tasks?pageSize=100&pageToken={token}"))).await;
        assert_eq!(status, 200, "{page}");
        for task in page["tasks"].as_array().expect("tasks") {
            assert!(is_over(task), "left behind: {task}");
            assert!(found.insert(task["id"].as_str().expect("an id").to_owned()), "listed twice: {task}");
        }
        page["nextPageToken"].as_str().expect("a token").clone_into(&mut token);
        if token.is_empty() {
            break;
        }
    }
    let known: HashSet<String> = all.iter().map(|seen| seen.task.clone()).collect();
    assert_eq!(known.len(), all.len(), "a task for each client");
    assert_eq!(found, known, "what is there beside: {:?}", found.difference(&known).collect::<Vec<_>>());
}

/// Whether the receiver takes the post with this number: it refuses some.
pub(crate) fn takes(before: usize) -> bool {
    before % 17 != 5 && before % 17 != 11
}

/// Every webhook got all events of its task, in order.
pub(crate) async fn webhooks(all: &[Seen], receiver: &Receiver) {
    let until = Instant::now() + Duration::from_secs(60);
    let hooked = || all.iter().filter(|seen| seen.hooked);
    loop {
        let mut by_path: HashMap<String, Vec<Post>> = HashMap::new();
        for (_, post) in receiver.posts().into_iter().enumerate().filter(|(n, _)| takes(*n)) {
            by_path.entry(post.path.clone()).or_default().push(post);
        }
        let last = |seen: &Seen| {
            let posts = by_path.get(&seen.name)?;
            posts.iter().map(|post| post.event().1).max()
        };
        let missing: Vec<&str> = hooked()
            .filter(|seen| last(seen) != Some(seen.events.len() as u64))
            .map(|seen| seen.name.as_str())
            .collect();
        if missing.is_empty() {
            for seen in hooked() {
                in_order(&by_path[&seen.name], seen.events.len() as u64);
                assert_eq!(by_path[&seen.name][0].event(), (seen.task.clone(), 1));
            }
            return;
        }
        assert!(Instant::now() < until, "webhooks without their end: {missing:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// No two processes worked on the same at the same time, and nothing was begun twice.
pub(crate) fn runs(all: &[Seen], runs: &[Run]) {
    let mut by_name: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    for run in runs {
        by_name.entry(&run.name).or_default().push(run);
    }
    for (name, mut runs) in by_name {
        runs.sort_by_key(|run| run.start());
        assert!(runs.iter().filter(|run| run.attempt == 1).count() <= 1, "{name} was begun twice: {runs:?}");
        for (n, run) in runs.iter().enumerate() {
            let Some(next) = runs.get(n + 1) else { break };
            // What a machine does when it wakes up, before it knows that it is late, is no second run.
            let (awake, woken) = run.split_at_pause(LEASE);
            assert!(awake <= next.start(), "{name} ran twice at a time: {runs:?}");
            assert!(woken <= WAKING, "{name} ran on for {woken:?} after it was taken over: {runs:?}");
        }
    }
    let asked: HashSet<&str> = all.iter().map(|seen| seen.name.as_str()).collect();
    for run in runs {
        assert!(asked.contains(run.name.trim_end_matches("-more")), "nobody asked for {}", run.name);
    }
}

/// How it went, for people.
pub(crate) fn summary(all: &[Seen], runs: &[Run]) -> String {
    let mut states: BTreeMap<&str, u32> = BTreeMap::new();
    for seen in all {
        *states.entry(seen.state().trim_start_matches("TASK_STATE_")).or_default() += 1;
    }
    let breaks: u32 = all.iter().map(|seen| seen.breaks).sum();
    let events: usize = all.iter().map(|seen| seen.events.len()).sum();
    let again = runs.iter().filter(|run| run.attempt > 1).count();
    format!("{states:?}, {events} events, {breaks} broken connections, {} runs of agents, {again} resumed", runs.len())
}
