//! Servers that come and go in good order.

use nuncio_tests::{Bus, Cluster, Postgres, Server, at_once, client, id, message, state, texts, words};

#[tokio::test]
async fn replicas_that_start_at_once_on_an_empty_database_agree_on_its_tables() {
    for _ in 0..3 {
        let database = Postgres::shared().database();
        let start = |_| {
            let database = database.clone();
            std::thread::spawn(move || Server::start(&["--store", &database]))
        };
        let starting: Vec<_> = (0..3).map(start).collect();
        let servers: Vec<Server> = starting.into_iter().map(|thread| thread.join().expect("it starts")).collect();
        let task = servers[0].send("stream 3").await;
        for server in &servers {
            assert_eq!(server.task(id(&task)).await, task);
        }
    }
}

#[tokio::test]
async fn a_server_that_is_asked_to_stop_leaves_its_waiting_work_to_others() {
    for bus in [Bus::Redis, Bus::Postgres, Bus::None] {
        let yaml = "max-running-turns: 1\ndrain-timeout: 500ms\nlease-ttl: 3s\n";
        let mut cluster = Cluster::start(1, bus, yaml);
        let hold = cluster.replicas[0].send_params(at_once(message("hold"))).await;
        cluster.replicas[0].until(id(&hold), "WORKING").await;
        let waiting = cluster.replicas[0].send_params(at_once(message("stream 3"))).await;
        assert_eq!(state(&waiting), "SUBMITTED");
        cluster.join("");
        assert_eq!(cluster.replicas[0].terminate(), Some(0));
        let there = &cluster.replicas[1];
        let over = there.until(id(&waiting), "COMPLETED").await;
        assert_eq!(texts(&over), ["chunk 0chunk 1chunk 2"]);
        let cut = there.until(id(&hold), "FAILED").await;
        assert!(!words(&cut).is_empty(), "it says why: {cut}");
    }
}

#[tokio::test]
async fn a_rolling_restart_loses_nothing() {
    let mut cluster = Cluster::start(2, Bus::Redis, "drain-timeout: 5s\n");
    for round in 0..4 {
        let [here, there] = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        let mut running = Vec::new();
        for _ in 0..10 {
            running.push(cluster.replicas[here].send_params(at_once(message("stream 20 20"))).await);
        }
        assert_eq!(cluster.replicas[here].terminate(), Some(0));
        for task in running {
            let over = cluster.replicas[there].until(id(&task), "COMPLETED").await;
            assert!(texts(&over)[0].ends_with("chunk 19"), "{over}");
        }
        cluster.replicas[here].restart();
    }
}

#[tokio::test]
async fn cards_and_public_keys_are_the_same_everywhere() {
    let yaml = "public-url: http://agents.example:8080\npush-notifications: true\nextended-card: on\n\
                signing-secret: a-secret-that-all-of-them-share-0123\n\
                tokens:\n- {name: alice, token: alice-0123456789abcdef}\n";
    let cluster = Cluster::start(3, Bus::Redis, yaml);
    for path in ["/.well-known/agent-card.json", "/.well-known/jwks.json", "/extendedAgentCard"] {
        let mut bodies = Vec::new();
        for replica in &cluster.replicas {
            let request = client().get(format!("{}{path}", replica.url)).header("A2A-Version", "1.0");
            let answer = request.bearer_auth("alice-0123456789abcdef").send().await.unwrap();
            assert_eq!(answer.status(), 200, "{path}");
            bodies.push((answer.headers().get("etag").cloned(), answer.text().await.unwrap()));
        }
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{path}: {bodies:?}");
    }
}
