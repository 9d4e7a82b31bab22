//! `kill -9` in the middle of everything: every receiver gets every event, in order.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nuncio_tests::{PATIENCE, Random, Server, Value, at_once, client, json, message};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::delivery::{ON, with_hook};
use crate::failures::first_arrivals;
use crate::receiver::{Post, Receiver, Reply, is_over};

pub(crate) const ROUNDS: u64 = 10;
pub(crate) const TASKS: u64 = 200;

/// A call that goes on until a server answers it. Its parameters know which attempt it is.
async fn call(url: &str, method: &str, params: impl Fn(u32) -> Value) -> Value {
    let until = Instant::now() + PATIENCE;
    for attempt in 0.. {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params(attempt) });
        let sent = client().post(url).header("A2A-Version", "1.0").json(&body).timeout(PATIENCE).send().await;
        if let Ok(sent) = sent
            && let Ok(answer) = sent.json::<Value>().await
        {
            assert!(answer["result"].is_object(), "{method}: {answer}");
            return answer["result"].clone();
        }
        assert!(Instant::now() < until, "nobody answers");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Value::Null
}

/// What a receiver has got, by task and webhook: one whose registration was made twice may be two.
fn by_webhook(posts: Vec<Post>) -> HashMap<(String, String), Vec<Post>> {
    let mut all: HashMap<_, Vec<Post>> = HashMap::new();
    for post in posts {
        all.entry((post.event().0, post.path.clone())).or_default().push(post);
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_receiver_gets_every_event_in_order_whenever_the_server_is_killed() {
    let mut random = Random::new();
    let mut server = Server::configured(&format!("{ON}push-events: all\npush-per-host: 64\n"));
    let (steady, shaky) = receivers().await;
    for round in 0..ROUNDS {
        let kill_after = Duration::from_millis(50 + random.below(900));
        let start = Instant::now();
        round_of(TASKS, &mut server, &steady, &shaky, kill_after).await;
        println!("round {round}: killed after {kill_after:?}, all done after {:?}", start.elapsed());
    }
    check(ROUNDS * TASKS, &steady, &shaky);
}

/// Two webhooks for each task, which fail never and now and then.
pub(crate) async fn receivers() -> (Receiver, Receiver) {
    let shaky = Receiver::with(|_, before| match before % 11 {
        3 => Reply::Status(503),
        7 => Reply::Reset,
        _ => Reply::Status(200),
    });
    (Receiver::start().await, shaky.await)
}

/// Both have everything of so many tasks, in order.
pub(crate) fn check(tasks: u64, steady: &Receiver, shaky: &Receiver) {
    let steady = by_webhook(steady.posts());
    let shaky = by_webhook(shaky.posts());
    let tasks = usize::try_from(tasks).expect("small");
    // A send whose answer was lost in the kill was made once more.
    assert!(steady.len() >= tasks && shaky.len() >= tasks, "{} and {} tasks", steady.len(), shaky.len());
    for (webhook, posts) in &steady {
        let seen = first_arrivals(posts);
        assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>(), "{webhook:?}: all, in order");
    }
    for (webhook, posts) in &shaky {
        let seen = first_arrivals(posts);
        let all: Vec<u64> = (seen[0]..seen[0] + seen.len() as u64).collect();
        assert_eq!(seen, all, "{webhook:?}: all since it was registered, in order");
    }
}

/// Starts tasks with two webhooks each, kills the server, starts it again, and waits until both have heard of every
/// end.
pub(crate) async fn round_of(
    tasks: u64,
    server: &mut Server,
    steady: &Receiver,
    shaky: &Receiver,
    kill_after: Duration,
) {
    let places = Arc::new(Semaphore::new(24));
    let mut clients = JoinSet::new();
    for _ in 0..tasks {
        let (url, places) = (server.url.clone(), places.clone());
        let (one, two) = (json!({ "url": steady.url("") }), shaky.url("attempt-"));
        clients.spawn(async move {
            let _place = places.acquire_owned().await.expect("places");
            let send = |_| with_hook(at_once(message("stream 3 30")), one.clone());
            let sent = call(&url, "SendMessage", send).await;
            let task = sent["task"]["id"].as_str().expect("an id").to_owned();
            let put = |attempt| json!({ "taskId": task, "url": format!("{two}{attempt}") });
            call(&url, "CreateTaskPushNotificationConfig", put).await;
            task
        });
    }
    tokio::time::sleep(kill_after).await;
    server.kill();
    server.restart();
    let tasks = clients.join_all().await;
    heard_all("the steady receiver", steady, &tasks).await;
    heard_all("the shaky receiver", shaky, &tasks).await;
}

async fn heard_all(who: &str, receiver: &Receiver, tasks: &[String]) {
    let until = Instant::now() + PATIENCE;
    loop {
        let ended: HashSet<String> =
            receiver.posts().iter().filter(|post| is_over(post)).map(|p| p.event().0).collect();
        let left = tasks.iter().filter(|task| !ended.contains(*task)).count();
        if left == 0 {
            return;
        }
        assert!(Instant::now() < until, "{who} has not heard of the end of {left} of {} tasks", tasks.len());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
