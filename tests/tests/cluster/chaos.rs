//! Three replicas, PostgreSQL and Redis, of which any may die or stand still at any moment, and two hundred clients
//! that notice nothing but broken connections.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nuncio_tests::{
    Balancer, Bus, Cluster, NoStream, PATIENCE, Postgres, Random, Server, Sse, SseEvent, Value, at_once, client,
    follow_up, json, message,
};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::judge::{self, Seen};
use crate::logbook::Logbook;
use crate::receiver::{Receiver, Reply};

const CLIENTS: u64 = 200;
/// In CI; `NUNCIO_CHAOS_ROUNDS` sets another number.
const ROUNDS: u64 = 3;
/// Faults of a round, about a second apart.
const STORM: u64 = 8;
/// How long everybody may take to come to an end afterwards.
const CALM: Duration = Duration::from_secs(120);
/// How long a client waits for a sign of life: `keep-alive` is a second.
const SILENCE: Duration = Duration::from_secs(4);
pub(crate) const LEASE: Duration = Duration::from_secs(3);

const CONFIG: &str = "lease-ttl: 3s\nkeep-alive: 1s\ndrain-timeout: 1s\ncancel-grace: 1s\nmax-running-turns: 100\n\
                      push-notifications: true\npush-events: all\npush-allowed-cidrs: 127.0.0.0/8\n\
                      push-per-host: 64\npush-retry-delay: 50ms\npush-retry-max-delay: 400ms\n";

/// What may happen to one of them.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The process is killed; its agents find their pipes broken.
    Kill,
    /// The machine is lost, with all that ran on it.
    Lose,
    /// The machine hangs for longer than its lease.
    Pause,
    /// It is asked to stop.
    Terminate,
    /// Redis is killed.
    Redis,
    /// PostgreSQL is restarted in good order.
    Restart,
    /// PostgreSQL is killed.
    Crash,
}

/// Often enough each that a few rounds meet all of them.
const FAULTS: [Fault; 10] = [
    Fault::Kill,
    Fault::Kill,
    Fault::Lose,
    Fault::Lose,
    Fault::Pause,
    Fault::Pause,
    Fault::Terminate,
    Fault::Redis,
    Fault::Restart,
    Fault::Crash,
];

/// What brings it back.
#[derive(Clone, Copy, Debug)]
enum Repair {
    Start(usize),
    GoOn(usize),
    Redis,
}

struct World {
    cluster: Cluster,
    postgres: Postgres,
    random: Random,
    due: Vec<(Instant, Repair)>,
    log: Vec<String>,
}

impl World {
    /// One fault after the other, then everything is brought back.
    fn storm(&mut self) {
        for _ in 0..STORM {
            std::thread::sleep(Duration::from_millis(200 + self.random.below(1000)));
            self.repair(Instant::now());
            self.fault();
        }
        while let Some(last) = self.due.iter().map(|(at, _)| *at).max() {
            std::thread::sleep(last.saturating_duration_since(Instant::now()));
            self.repair(last);
        }
    }

    fn fault(&mut self) {
        let fault = FAULTS[index(self.random.below(FAULTS.len() as u64))];
        let victim = index(self.random.below(self.cluster.replicas.len() as u64));
        let away = Duration::from_millis(100 + self.random.below(2500));
        let busy = |due: &[(Instant, Repair)]| {
            due.iter().any(|(_, repair)| matches!(repair, Repair::Start(n) | Repair::GoOn(n) if *n == victim))
        };
        self.log.push(format!("{fault:?} {victim}"));
        let repair = match fault {
            Fault::Redis => {
                self.cluster.redis.as_mut().expect("it is the bus").kill();
                self.due.retain(|(_, repair)| !matches!(repair, Repair::Redis));
                Repair::Redis
            }
            Fault::Restart => return self.postgres.restart(),
            Fault::Crash => {
                self.postgres.kill();
                return self.postgres.up();
            }
            _ if busy(&self.due) => return,
            Fault::Kill => {
                self.cluster.replicas[victim].kill();
                Repair::Start(victim)
            }
            Fault::Lose => {
                self.cluster.replicas[victim].lose();
                Repair::Start(victim)
            }
            Fault::Terminate => {
                let _ = self.cluster.replicas[victim].terminate();
                Repair::Start(victim)
            }
            Fault::Pause => {
                self.cluster.replicas[victim].pause();
                let longer_than_its_lease = LEASE + Duration::from_secs(1) + away / 2;
                self.due.push((Instant::now() + longer_than_its_lease, Repair::GoOn(victim)));
                return;
            }
        };
        self.due.push((Instant::now() + away, repair));
    }

    fn repair(&mut self, now: Instant) {
        let (due, later) = std::mem::take(&mut self.due).into_iter().partition(|(at, _)| *at <= now);
        self.due = later;
        for (_, repair) in due {
            match repair {
                Repair::Start(n) => self.cluster.replicas[n].restart(),
                Repair::GoOn(n) => self.cluster.replicas[n].go_on(),
                Repair::Redis => self.cluster.redis.as_mut().expect("it is the bus").up(),
            }
        }
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("small")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_dies_every_client_sees_every_event_once_and_nothing_runs_twice() {
    let mut random = Random::new();
    let rounds = std::env::var("NUNCIO_CHAOS_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(ROUNDS);
    let logbook = Arc::new(Logbook::new());
    let postgres = Postgres::start();
    let cluster = Cluster::start_on(&postgres, 3, Bus::Redis, &format!("{CONFIG}{}", logbook.config()));
    let balancer = cluster.balancer().await;
    let receiver = Receiver::with(|_, before| match before % 17 {
        _ if judge::takes(before) => Reply::Status(200),
        5 => Reply::Status(503),
        _ => Reply::Reset,
    });
    let receiver = receiver.await;
    let mut world = World { cluster, postgres, random: random.split(), due: Vec::new(), log: Vec::new() };
    let mut all: Vec<Seen> = Vec::new();
    for round in 0..rounds {
        let start = Instant::now();
        let mut clients = JoinSet::new();
        let under_way = UnderWay::default();
        for n in 0..CLIENTS {
            let caller = Caller::new(round, n, random.split(), &balancer, &receiver, &logbook);
            clients.spawn(Caller { under_way: under_way.clone(), ..caller }.run());
        }
        world = tokio::task::spawn_blocking(move || {
            world.storm();
            world
        })
        .await
        .expect("everything comes back");
        println!("round {round}: {} after {:?}", world.log.join(", "), start.elapsed());
        world.log.clear();
        let Ok(ended) = tokio::time::timeout(CALM, clients.join_all()).await else {
            let left = under_way.lock().clone();
            panic!("every client comes to an end: {}", stuck(&left, &world.cluster.replicas).await);
        };
        all.extend(ended);
        for replica in &mut world.cluster.replicas {
            assert!(replica.is_running(), "one fell over by itself:\n{}", replica.last_words());
        }
        judge::logs(&all[all.len() - index(CLIENTS)..], &world.cluster.replicas, &logbook.runs()).await;
        judge::nothing_else(&all, &world.cluster.replicas[0]).await;
        judge::webhooks(&all, &receiver).await;
        judge::runs(&all, &logbook.runs());
        println!("round {round}: {} in {:?}", judge::summary(&all, &logbook.runs()), start.elapsed());
    }
}

/// The clients that have not come to an end: their tasks, and what they wait for.
type UnderWay = Arc<Mutex<BTreeMap<String, (String, String)>>>;

/// What is known of clients that do not come to an end.
async fn stuck(left: &BTreeMap<String, (String, String)>, replicas: &[Server]) -> String {
    let mut known = String::new();
    for (name, (task, what)) in left {
        known += &format!("\n{name} of task {task:?}: {what}");
        for replica in replicas.iter().filter(|_| !task.is_empty()) {
            let request = client().get(format!("{}/tasks/{task}", replica.url)).header("A2A-Version", "1.0");
            let answer = request.timeout(SILENCE).send().await;
            let text = match answer {
                Ok(answer) => answer.text().await.unwrap_or_default(),
                Err(why) => why.to_string(),
            };
            known += &format!("\n  {}", text.chars().take(600).collect::<String>());
        }
    }
    for replica in replicas {
        known += &format!("\n{}:\n{}", replica.url, replica.last_words());
    }
    known
}

/// One client and what it wants.
struct Caller {
    name: String,
    url: String,
    params: Value,
    cancels: bool,
    follows_up: Option<Value>,
    random: Random,
    hooked: bool,
    under_way: UnderWay,
}

impl Caller {
    fn new(round: u64, n: u64, mut random: Random, at: &Balancer, receiver: &Receiver, logbook: &Logbook) -> Self {
        let name = format!("r{round}c{n}");
        let (chunks, pause) = (10 + random.below(30), 30 + random.below(100));
        let mut params = match n % 4 {
            0 | 1 => logbook.work(&name, chunks, pause),
            2 => message(&format!("stream {chunks} {pause}")),
            _ => message("hold"),
        };
        params["message"]["messageId"] = json!(name);
        let hooked = n.is_multiple_of(5);
        if hooked {
            params["configuration"]["taskPushNotificationConfig"] = json!({ "url": receiver.url(&name) });
        }
        let more = format!("{name}-more");
        let follows_up = match n % 8 {
            1 => Some(logbook.work(&more, 5, 50)),
            2 => Some(message("stream 5 50")),
            _ => None,
        };
        let (url, cancels, under_way) = (at.url.clone(), n % 4 == 3, UnderWay::default());
        Self { name, url, params, cancels, follows_up, random, hooked, under_way }
    }

    /// Says how far it is.
    fn is_at(&self, events: &[SseEvent], what: &str) {
        let task = events.first().map(task_of).unwrap_or_default();
        self.under_way.lock().insert(self.name.clone(), (task, format!("{} events, {what}", events.len())));
    }

    async fn run(mut self) -> Seen {
        self.is_at(&[], "nothing yet");
        tokio::time::sleep(Duration::from_millis(self.random.below(8000))).await;
        let mut events: Vec<SseEvent> = Vec::new();
        let (mut acting, mut breaks) = (None, 0);
        while !events.last().is_some_and(is_last) {
            if let Err(why) = self.read(&mut events, &mut acting).await {
                breaks += 1;
                self.is_at(&events, &why);
                assert!(!why.starts_with("wrong"), "{}: {why}", self.name);
                tokio::time::sleep(Duration::from_millis(50 + self.random.below(200))).await;
            }
        }
        self.is_at(&events, "and what it does beside reading goes on");
        let added = match acting {
            Some(acting) => acting.await.expect("it ends"),
            None => None,
        };
        self.under_way.lock().remove(&self.name);
        Seen { name: self.name, task: task_of(&events[0]), events, breaks, added, hooked: self.hooked }
    }

    /// One connection, for as long as it holds.
    async fn read(
        &mut self,
        events: &mut Vec<SseEvent>,
        acting: &mut Option<tokio::task::JoinHandle<Option<String>>>,
    ) -> Result<(), String> {
        let request = match events.last() {
            None => self.post("/message:stream", &self.params).header("Idempotency-Key", &self.name),
            Some(last) => {
                let path = format!("/tasks/{}:subscribe", task_of(&events[0]));
                self.post(&path, &json!({})).header("Last-Event-ID", last.id.expect("a number").to_string())
            }
        };
        let mut stream = match Sse::try_open(request, SILENCE).await {
            Ok(stream) => stream,
            Err(NoStream::Answer(400..=499, text)) => return Err(format!("wrong answer: {text}")),
            Err(other) => return Err(format!("{other:?}")),
        };
        while let Some(event) = stream.next_within(SILENCE).await.map_err(|_| "silent".to_owned())? {
            if event.event == "error" {
                return Err(format!("broken off: {event:?}"));
            }
            let expected = events.len() as u64 + 1;
            if event.id != Some(expected) {
                return Err(format!("wrong number: {expected} is next, not {event:?}"));
            }
            events.push(event);
            self.is_at(events, "and reads on");
            if events.len() == 2 {
                *acting = self.act(&task_of(&events[0]));
            }
        }
        if events.last().is_some_and(is_last) { Ok(()) } else { Err("it ended".into()) }
    }

    fn post(&self, path: &str, body: &Value) -> nuncio_tests::RequestBuilder {
        client().post(format!("{}{path}", self.url)).header("A2A-Version", "1.0").json(body)
    }

    /// What it does beside reading. Ends with the text of the message that was added, if one was.
    fn act(&mut self, task: &str) -> Option<tokio::task::JoinHandle<Option<String>>> {
        let wait = Duration::from_millis(self.random.below(1500));
        if self.cancels {
            let request = self.post(&format!("/tasks/{task}:cancel"), &json!({}));
            return Some(tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                insist(&request).await;
                None
            }));
        }
        let mut params = at_once(self.follows_up.take()?);
        params["message"]["taskId"] = follow_up(&json!({ "id": task }), "")["message"]["taskId"].clone();
        params["message"]["messageId"] = json!(format!("{}-more", self.name));
        let text = params["message"]["parts"][0]["text"].as_str().expect("a text").to_owned();
        let request = self.post("/message:send", &params).header("Idempotency-Key", format!("{}-more", self.name));
        Some(tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            // Refused when the task is over.
            (insist(&request).await == 200).then_some(text)
        }))
    }
}

/// Repeats a request until it is answered. Returns the status.
async fn insist(request: &nuncio_tests::RequestBuilder) -> u16 {
    let until = Instant::now() + CALM;
    while Instant::now() < until {
        let attempt = request.try_clone().expect("a plain body").timeout(SILENCE * 2);
        if let Ok(answer) = attempt.send().await
            && answer.status().as_u16() < 500
        {
            return answer.status().as_u16();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nobody answers for {CALM:?}, far above {PATIENCE:?}");
}

fn task_of(first: &SseEvent) -> String {
    first.body()["task"]["id"].as_str().expect("the first event is the task").to_owned()
}

pub(crate) fn is_last(event: &SseEvent) -> bool {
    let state = event.state().strip_prefix("TASK_STATE_").unwrap_or_default();
    matches!(state, "COMPLETED" | "FAILED" | "CANCELED" | "REJECTED")
}
