//! What `kill -9` leaves behind: nothing that was shown is lost, doubled or changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nuncio_tests::{
    PATIENCE, Random, Server, Sse, SseEvent, Value, Wire, answer, id, is_over, json, message, state, words,
};
use tokio::task::JoinSet;

const ROUNDS: u64 = 25;
/// Rounds at the same time, each on a server of its own.
const LANES: u64 = 4;
const CLIENTS: u64 = 20;
const CHUNKS: u64 = 2000;

/// Where events of different clients can be compared byte by byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    New,
    Old,
    OldRest,
}

/// What one client has seen of the task.
struct Seen {
    wire: Wire,
    /// The task as it was when the client came; `None` for the one who started it.
    snapshot: Option<SseEvent>,
    events: Vec<SseEvent>,
}

impl Seen {
    fn last(&self) -> u64 {
        let last = self.events.last().or(self.snapshot.as_ref());
        last.and_then(|event| event.id).unwrap_or(0)
    }

    fn form(&self) -> Form {
        match self.wire {
            Wire::Rpc | Wire::Rest => Form::New,
            Wire::OldRpc => Form::Old,
            Wire::OldRest => Form::OldRest,
        }
    }

    async fn read(&mut self, mut stream: Sse, progress: &AtomicU64) {
        while let Some(event) = stream.next().await {
            assert_eq!(event.event, "", "an error in the stream: {event:?}");
            progress.fetch_max(event.id.expect("every event has a number"), Ordering::Relaxed);
            self.events.push(event);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_clients_of_a_killed_server_miss_nothing_and_see_nothing_twice() {
    let mut random = Random::new();
    let mut lanes = JoinSet::new();
    for lane in 0..LANES {
        let rounds: Vec<(u64, u64, u64)> = (lane..ROUNDS)
            .step_by(usize::try_from(LANES).expect("small"))
            .map(|round| (round, 3 + random.below(CHUNKS - 100), random.below(u64::MAX)))
            .collect();
        lanes.spawn(async move {
            for (round, kill_at, seed) in rounds {
                kill_round(round, kill_at, seed).await;
            }
        });
    }
    while let Some(done) = lanes.join_next().await {
        done.expect("every round holds");
    }
}

async fn kill_round(round: u64, kill_at: u64, seed: u64) {
    let server = Arc::new(tokio::sync::RwLock::new(Server::start(&[])));
    let pid = server.read().await.pid();
    let progress = Arc::new(AtomicU64::new(0));
    let first_wire = Wire::ALL[usize::try_from(seed % 4).expect("small")];
    let text = format!("stream {CHUNKS} 1");
    let mut stream = Sse::open(first_wire.stream(&*server.read().await, &text)).await;
    let first = stream.next().await.expect("the task");
    let task = first.body().get("task").unwrap_or(first.body())["id"].as_str().expect("an id").to_owned();
    let mut clients = JoinSet::new();
    {
        let (server, progress, task) = (server.clone(), progress.clone(), task.clone());
        clients.spawn(async move {
            let mut seen = Seen { wire: first_wire, snapshot: None, events: vec![first] };
            seen.read(stream, &progress).await;
            resume(seen, &server, &task, &progress).await
        });
    }
    for client in 1..CLIENTS {
        let (server, progress, task) = (server.clone(), progress.clone(), task.clone());
        let wire = Wire::ALL[usize::try_from(client % 4).expect("small")];
        // From the first event to the kill.
        let come_at = (seed >> (client % 32)) % kill_at;
        clients.spawn(async move {
            wait_for(&progress, come_at).await;
            let mut seen = Seen { wire, snapshot: None, events: Vec::new() };
            let before = server.read().await;
            // Whoever is too late for the first server reads everything from the second.
            if before.pid() == pid {
                let mut stream = Sse::open(wire.subscribe(&before, &task, None)).await;
                drop(before);
                seen.snapshot = stream.next().await;
                seen.read(stream, &progress).await;
            } else {
                drop(before);
            }
            resume(seen, &server, &task, &progress).await
        });
    }
    wait_for(&progress, kill_at).await;
    {
        // Whoever comes from here on waits for the new server.
        let mut server = server.write().await;
        server.kill();
        server.restart();
    }
    let mut all = Vec::new();
    while let Some(seen) = clients.join_next().await {
        all.push(seen.expect("no client fails"));
    }
    let whole = server.read().await.task(&task).await;
    let last = check(&all, &whole);
    let came: Vec<u64> = all.iter().filter_map(|seen| seen.snapshot.as_ref()?.id).collect();
    println!("round {round}: killed at {kill_at}, {last} events, {} clients came at {came:?}", all.len());
}

async fn wait_for(progress: &AtomicU64, number: u64) {
    let reached = async {
        while progress.load(Ordering::Relaxed) < number {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.expect("the stream goes on");
}

/// Goes on exactly after the last event that was seen.
async fn resume(mut seen: Seen, server: &tokio::sync::RwLock<Server>, task: &str, progress: &AtomicU64) -> Seen {
    let request = seen.wire.subscribe(&*server.read().await, task, Some(seen.last()));
    let stream = Sse::open(request).await;
    seen.read(stream, progress).await;
    seen
}

/// Checks what all clients have seen against each other and against the task. Returns its last number.
fn check(all: &[Seen], whole: &Value) -> u64 {
    assert_eq!(state(whole), "FAILED");
    assert_eq!(words(whole), "The task was interrupted by a restart");
    let chunks = whole["artifacts"][0]["parts"].as_array().map_or(0, Vec::len) as u64;
    // The task, working, the chunks, failed.
    let last = chunks + 3;
    let mut known: HashMap<(Form, u64), &Value> = HashMap::new();
    for seen in all {
        let mut next = 1;
        if let Some(snapshot) = &seen.snapshot {
            let number = snapshot.id.expect("a number");
            let task = snapshot.body().get("task").unwrap_or(snapshot.body());
            let parts = task["artifacts"][0]["parts"].as_array().map_or(0, Vec::len) as u64;
            assert_eq!(parts, number.saturating_sub(2), "the snapshot holds what came before {number}");
            next = number + 1;
        }
        for event in &seen.events {
            assert_eq!(event.id, Some(next), "{:?} sees every number once and in order", seen.wire);
            let same = *known.entry((seen.form(), next)).or_insert(event.body());
            assert_eq!(event.body(), same, "event {next} is the same for all");
            match next {
                1 | 2 => assert_eq!(event.chunk(), None),
                n if n < last => assert_eq!(event.chunk(), Some(&*format!("chunk {}", n - 3))),
                _ => assert!(event.state().to_lowercase().ends_with("failed"), "the end: {event:?}"),
            }
            next += 1;
        }
        assert_eq!(next, last + 1, "{:?} has seen all up to the end", seen.wire);
    }
    last
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_before_a_kill_is_the_same_after_it() {
    let mut random = Random::new();
    for round in 0..6 {
        let mut server = Server::start(&[]);
        let (answered, enough) = (Arc::new(AtomicU64::new(0)), 50 + random.below(100));
        // So much that the write-ahead log is moved into the file again and again, also while the server dies.
        let (enough, long) = if round < 3 { (enough, None) } else { (4 * enough, Some("word ".repeat(5000))) };
        let mut clients = JoinSet::new();
        for client in 0..50 {
            let short = if client % 2 == 0 { "hello".to_owned() } else { format!("stream {}", 1 + client % 7) };
            let text = long.clone().unwrap_or(short);
            let request = server.rpc_request("SendMessage", &message(&text));
            let answered = answered.clone();
            clients.spawn(async move {
                let mut tasks = Vec::new();
                for _ in 0..1000 {
                    let request = request.try_clone().expect("a plain body");
                    // Breaks off where the server is gone.
                    let Ok(response) = request.send().await else { break };
                    let Ok(response) = response.json::<Value>().await else { break };
                    tasks.push(response["result"]["task"].clone());
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                tasks
            });
        }
        wait_for(&answered, enough).await;
        server.kill();
        server.restart();
        let mut tasks = Vec::new();
        while let Some(some) = clients.join_next().await {
            tasks.extend(some.expect("no client fails"));
        }
        assert!(tasks.len() as u64 >= enough);
        for task in &tasks {
            assert_eq!(state(task), "COMPLETED", "{task}");
            assert_eq!(&server.task(id(task)).await, task, "the same as before");
        }
        let all = everything(&server).await;
        assert!(all.len() >= tasks.len());
        let open: Vec<&Value> = all.iter().filter(|task| !is_over(task)).collect();
        assert!(open.is_empty(), "left behind: {open:?}");
        assert_eq!((server.count("SUBMITTED").await, server.count("WORKING").await), (0, 0));
        println!("round {round}: {} answers of {} tasks", tasks.len(), all.len());
    }
}

async fn everything(server: &Server) -> Vec<Value> {
    let (mut all, mut token) = (Vec::new(), String::new());
    for _ in 0..1000 {
        let (status, page) = answer(server.get(&format!("/tasks?pageSize=100&pageToken={token}"))).await;
        assert_eq!(status, 200, "{page}");
        all.extend(page["tasks"].as_array().expect("tasks").iter().cloned());
        page["nextPageToken"].as_str().expect("a token").clone_into(&mut token);
        if token.is_empty() {
            assert_eq!(page["totalSize"], json!(all.len()));
            break;
        }
    }
    all
}
