//! How connections and servers come and go.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use nuncio_tests::{PATIENCE, Server, binary, id, json, message, state};

use crate::kit::{ALL, By, House, Talk, close_code, until};

#[tokio::test]
async fn a_client_that_goes_ends_its_streams_and_not_its_tasks() {
    let house = House::open("");
    for by in [By::WebSocket, By::Unix] {
        let mut talk = Talk::open(&house, by).await;
        let stream = talk.ask("SendStreamingMessage", &message("stream 20 20")).await;
        let task = talk.next_of(stream).await.body["result"]["task"].clone();
        drop(talk);
        until("the stream ends", async || house.server.metric("nuncio_subscribers").await == 0.0).await;
        let mut next = Talk::open(&house, by).await;
        until("the task goes on", async || {
            let task = next.call("GetTask", json!({ "id": id(&task) })).await;
            state(&task["result"]) == "COMPLETED"
        })
        .await;
    }
    until("connections end", async || house.server.metric("nuncio_connections").await <= 1.0).await;
}

#[tokio::test]
async fn whoever_has_said_everything_still_gets_answers() {
    let house = House::open("");
    for by in [By::Unix, By::Stdio] {
        let mut talk = Talk::open(&house, by).await;
        let send = talk.ask("SendMessage", &message("sleep 0.3")).await;
        let stream = talk.ask("SendStreamingMessage", &message("stream 3 30")).await;
        talk.finish().await;
        let mut events = 0;
        loop {
            let frame = talk.next_of(stream).await;
            if frame.last {
                break;
            }
            events += 1;
        }
        assert_eq!(events, 6, "{by:?}");
        assert_eq!(state(&talk.next_of(send).await.body["result"]["task"]), "COMPLETED", "{by:?}");
        talk.until_closed().await;
        if by == By::Stdio {
            assert_eq!(talk.exit_code().await, Some(0));
        }
    }
}

#[tokio::test]
async fn what_does_not_end_is_cut_off_after_the_drain() {
    let mut talk = Talk::start(&["--store", "memory", "--config", config("drain-timeout: 300ms").to_str().unwrap()]);
    let stream = talk.ask("SendStreamingMessage", &message("hold")).await;
    talk.next_of(stream).await;
    let send = talk.ask("SendMessage", &message("hold")).await;
    talk.finish().await;
    let told = talk.next_of(send).await.body;
    assert_eq!(told["error"]["code"], -31503, "{told}");
    talk.until_closed().await;
    assert_eq!(talk.exit_code().await, Some(0));
}

fn config(yaml: &str) -> std::path::PathBuf {
    let file = tempfile::Builder::new().suffix(".yml").tempfile().expect("a file");
    std::fs::write(file.path(), yaml).expect("it can be written");
    file.into_temp_path().keep().expect("it stays")
}

#[tokio::test]
async fn a_server_that_ends_says_so_and_leaves_nothing() {
    let mut house = House::open("drain-timeout: 200ms");
    let (mut web, mut unix) = (Talk::open(&house, By::WebSocket).await, Talk::open(&house, By::Unix).await);
    for talk in [&mut web, &mut unix] {
        let stream = talk.ask("SendStreamingMessage", &message("hold")).await;
        talk.next_of(stream).await;
    }
    let code = tokio::spawn(async move { close_code(web.socket()).await });
    assert_eq!(house.server.terminate(), Some(0));
    assert_eq!(code.await.expect("it ends"), Some(1001));
    unix.until_closed().await;
    assert!(!house.socket().exists(), "the socket is removed");
}

#[tokio::test]
async fn stdio_carries_nothing_but_frames_and_opens_no_port() {
    let mut talk = Talk::start(&["--store", "memory", "--debug"]);
    talk.send("hello").await;
    let inodes: Vec<String> = std::fs::read_dir(format!("/proc/{}/fd", talk.pid()))
        .expect("its files")
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()?.to_str().map(str::to_owned))
        .filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let listed: String = ["tcp", "tcp6", "udp", "udp6"]
        .iter()
        .map(|table| std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default())
        .collect();
    let ports: Vec<_> = inodes.iter().filter(|inode| listed.contains(&format!(" {inode} "))).collect();
    assert!(ports.is_empty(), "{ports:?}");
    // Every line so far was a frame, or `send` would have failed on it.
    talk.finish().await;
    assert!(talk.next().await.is_none());
    assert_eq!(talk.exit_code().await, Some(0));
}

#[tokio::test]
async fn events_carry_files_that_nobody_could_download() {
    let part = |task: &nuncio_tests::Value| task["artifacts"][0]["parts"][0].clone();
    let size = |part: &nuncio_tests::Value| part["raw"].as_str().map_or(0, str::len) / 4 * 3;
    let mut alone = Talk::start(&["--store", "memory"]);
    let carried = part(&alone.send("file a.bin 600000").await);
    assert_eq!(size(&carried), 600_000, "no port is open: {}", carried["url"]);
    // Not more than a request may hold.
    let most = config("max-body: 400KiB");
    let mut small = Talk::start(&["--store", "memory", "--config", most.to_str().unwrap()]);
    assert_eq!(size(&part(&small.send("file a.bin 300000").await)), 300_000);
    assert!(part(&small.send("file a.bin 600000").await)["url"].is_string());
    // Where there is a port, files are downloaded, and the limit is that of the configuration, whatever the store.
    let house = House::open("");
    assert!(part(&Talk::open(&house, By::Unix).await.send("file a.bin 600000").await)["url"].is_string());
    let house = House::open("store: memory\nartifact-inline-max: 1MiB");
    assert_eq!(size(&part(&Talk::open(&house, By::Unix).await.send("file a.bin 600000").await)), 600_000);
}

#[tokio::test]
async fn a_signal_ends_a_server_whose_stdin_stays_open() {
    let mut talk = Talk::start(&["--store", "memory"]);
    talk.send("hello").await;
    let killed = Command::new("kill").args(["-TERM", &talk.pid().to_string()]).status();
    assert!(killed.expect("kill can be started").success());
    talk.until_closed().await;
    assert_eq!(talk.exit_code().await, Some(0));
}

#[tokio::test]
async fn a_socket_is_private_and_replaces_only_what_is_dead() {
    let mut house = House::open("");
    let mode = std::fs::metadata(house.socket()).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let refused = |path: &std::path::Path| {
        let data = tempfile::tempdir().expect("a folder");
        let yaml = config(&format!("transport: unix\nsocket-path: {}", path.display()));
        let mut command = Command::new(binary());
        command.arg("serve").arg("--config").arg(yaml).arg("--data-dir").arg(data.path());
        let done = command.stdin(Stdio::null()).output().expect("it runs");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, said) = refused(&house.socket());
    assert!(code == Some(1) && said.contains("another process listens on"), "{code:?} {said}");
    let file = config("not a socket");
    let (code, said) = refused(&file);
    assert!(code == Some(1) && said.contains("is not a socket"), "{code:?} {said}");
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), "not a socket");
    house.server.kill();
    assert!(house.socket().exists(), "nobody tidied up");
    house.server.restart();
    Talk::open(&house, By::Unix).await.send("hello").await;
}

#[tokio::test]
async fn all_three_end_the_same_way_under_a_dead_reader() {
    // A reader that closes without reading must not bring anything down.
    let house = House::open("");
    for by in ALL {
        let mut talk = Talk::open(&house, by).await;
        for _ in 0..20 {
            talk.ask("SendStreamingMessage", &message("burst 2000")).await;
        }
        drop(talk);
    }
    until("streams end", async || house.server.metric("nuncio_subscribers").await == 0.0).await;
    house.server.send("still here").await;
}

#[tokio::test]
async fn connections_have_a_limit() {
    let server = Server::configured("max-connections: 3");
    let address = server.url.strip_prefix("http://").expect("http");
    let open = async || {
        let stream = tokio::net::TcpStream::connect(address).await.expect("a connection");
        tokio_tungstenite::client_async(format!("ws://{address}/ws"), stream).await
    };
    let mut held = Vec::new();
    let refused = async {
        loop {
            match open().await {
                Ok(socket) => held.push(socket),
                Err(error) => return error.to_string(),
            }
            assert!(held.len() <= 3, "more than the limit");
        }
    };
    let error = tokio::time::timeout(PATIENCE, refused).await.expect("an end");
    assert!(error.contains("503"), "{error}");
    drop(held);
    until("places come back", async || open().await.is_ok()).await;
}
