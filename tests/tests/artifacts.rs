//! Artifacts that are too large for the log, and the files that they become.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nuncio_tests::{PATIENCE, RequestBuilder, Server, Value, answer, client, follow_up, id, json, message, state};

const ANNA: &str = "aaaaaaaaaaaaaaaaaaaaaaaa";
const BEN: &str = "bbbbbbbbbbbbbbbbbbbbbbbb";
const TOKENS: &str =
    "tokens:\n  - {name: anna, token: aaaaaaaaaaaaaaaaaaaaaaaa}\n  - {name: ben, token: bbbbbbbbbbbbbbbbbbbbbbbb}\n";

/// What the demo agent writes into a file.
fn alphabet(size: usize) -> Vec<u8> {
    (b'a'..=b'z').cycle().take(size).collect()
}

struct Got {
    status: u16,
    headers: reqwest::header::HeaderMap,
    body: Vec<u8>,
}

impl Got {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

async fn fetch(request: RequestBuilder) -> Got {
    let all = async {
        let response = request.send().await.expect("an answer");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Got { status, headers, body: response.bytes().await.expect("the whole body").to_vec() }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("an answer within the time")
}

fn get(url: &str) -> RequestBuilder {
    client().get(url)
}

/// The only part of a task's only artifact.
fn part(task: &Value) -> &Value {
    &task["artifacts"][0]["parts"][0]
}

fn url(task: &Value) -> &str {
    part(task)["url"].as_str().expect("a URL")
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() { found.extend(files(&entry)) } else { found.push(entry) }
    }
    found
}

async fn send_as(server: &Server, token: &str, text: &str) -> Value {
    let request = server.rpc_request("SendMessage", &message(text)).bearer_auth(token);
    answer(request).await.1["result"]["task"].clone()
}

#[tokio::test]
async fn a_large_file_is_a_url_that_gives_its_bytes_also_after_a_restart() {
    let mut server = Server::start(&[]);
    let size = 3_000_000;
    let task = server.send(&format!("file big.bin {size}")).await;
    let artifact = task["artifacts"][0]["artifactId"].as_str().expect("an id");
    assert_eq!(url(&task), format!("{}/artifacts/{}/{artifact}", server.url, id(&task)));
    assert_eq!(
        (&part(&task)["filename"], &part(&task)["mediaType"]),
        (&json!("big.bin"), &json!("application/octet-stream"))
    );
    let about = &part(&task)["metadata"]["urn:nuncio:a2a:file:v1"];
    assert_eq!(about["size"], size);
    let log = server.log(id(&task)).await;
    assert!(log.iter().all(|event| event.body().to_string().len() < 2000), "the log holds no bytes");
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.restart();
        }
        let got = fetch(get(url(&task))).await;
        assert_eq!((got.status, got.header("content-length")), (200, "3000000"));
        assert_eq!(got.body, alphabet(size));
        assert_eq!(got.header("etag"), format!("\"{}\"", about["sha256"].as_str().expect("a hash")));
        assert_eq!(got.header("content-type"), "application/octet-stream");
        assert_eq!(got.header("content-disposition"), "attachment; filename=\"big.bin\"");
        assert_eq!(got.header("x-content-type-options"), "nosniff");
        assert_eq!(got.header("content-security-policy"), "sandbox");
        assert_eq!(got.header("accept-ranges"), "bytes");
    }
}

#[tokio::test]
async fn parts_of_a_file_can_be_asked_for() {
    let server = Server::start(&[]);
    let task = server.send("file big.bin 1000000").await;
    let all = alphabet(1_000_000);
    let range = |range: &str| get(url(&task)).header("Range", range);
    let got = fetch(range("bytes=600000-899999")).await;
    assert_eq!((got.status, got.header("content-range")), (206, "bytes 600000-899999/1000000"));
    assert!(got.body == all[600_000..900_000]);
    let got = fetch(range("bytes=-5")).await;
    assert_eq!((got.status, &*got.body), (206, &all[999_995..]));
    let got = fetch(range("bytes=1000000-")).await;
    assert_eq!((got.status, got.header("content-range"), got.body.len()), (416, "bytes */1000000", 0));
    let got = fetch(range("bytes=0-1,5-6")).await;
    assert_eq!((got.status, got.body.len()), (200, 1_000_000), "several ranges are not served");
    let etag = got.header("etag").to_owned();
    let got = fetch(range("bytes=0-1").header("If-Range", "\"other\"")).await;
    assert_eq!((got.status, got.body.len()), (200, 1_000_000));
    let got = fetch(range("bytes=0-1").header("If-Range", &etag)).await;
    assert_eq!((got.status, &*got.body), (206, &b"ab"[..]));
    let got = fetch(get(url(&task)).header("If-None-Match", &etag)).await;
    assert_eq!((got.status, got.body.len()), (304, 0));
    let got = fetch(client().head(url(&task))).await;
    assert_eq!((got.status, got.header("content-length"), got.body.len()), (200, "1000000", 0));
    let got = fetch(client().post(url(&task))).await;
    assert_eq!((got.status, got.header("allow")), (405, "GET, HEAD"));
}

#[tokio::test]
async fn small_files_and_text_stay_in_the_log_and_can_be_fetched_too() {
    let server = Server::start(&[]);
    let small = server.send("file small.bin 1000").await;
    assert!(part(&small)["raw"].is_string());
    let at = |task: &Value| {
        let artifact = task["artifacts"][0]["artifactId"].as_str().expect("an id").to_owned();
        format!("{}/artifacts/{}/{artifact}", server.url, id(task))
    };
    let got = fetch(get(&at(&small)).header("Range", "bytes=1-2")).await;
    assert_eq!((got.status, &*got.body, got.header("content-range")), (206, &b"bc"[..], "bytes 1-2/1000"));
    let text = server.send("stream 3").await;
    let got = fetch(get(&at(&text))).await;
    assert_eq!(String::from_utf8_lossy(&got.body), "chunk 0chunk 1chunk 2");
    assert_eq!(got.header("content-type"), "text/plain; charset=utf-8");
    let got = fetch(get(&format!("{}?part=1", at(&text)))).await;
    assert_eq!(&*got.body, b"chunk 1");
    assert!(files(&server.data_dir().join("artifacts")).is_empty(), "nothing was kept apart");
}

#[tokio::test]
async fn only_the_owner_gets_the_bytes_and_a_foreign_file_looks_like_none() {
    let server = Server::configured(TOKENS);
    let task = send_as(&server, ANNA, "file secret.bin 400000").await;
    let url = url(&task);
    assert_eq!(fetch(get(url).bearer_auth(ANNA)).await.body, alphabet(400_000));
    assert_eq!(fetch(get(url)).await.status, 401);
    assert_eq!(fetch(get(url).bearer_auth("wrong-token-wrong-token")).await.status, 401);
    let foreign = fetch(get(url).bearer_auth(BEN)).await;
    let missing = fetch(get(&format!("{}/artifacts/none/none", server.url)).bearer_auth(BEN)).await;
    let unknown = fetch(get(&format!("{}/artifacts/{}/none", server.url, id(&task))).bearer_auth(ANNA)).await;
    let tenant = fetch(get(&url.replace("/artifacts/", "/other/artifacts/")).bearer_auth(ANNA)).await;
    let plain = |got: &Got| {
        let headers: Vec<_> = got.headers.keys().map(ToString::to_string).collect();
        (got.status, headers, got.body.clone())
    };
    assert_eq!(foreign.status, 404);
    for other in [missing, unknown, tenant] {
        assert_eq!(plain(&foreign), plain(&other));
    }
}

#[tokio::test]
async fn a_tenant_finds_its_files_below_its_own_path() {
    let server = Server::start(&[]);
    let (_, sent) = answer(server.post("/red%20team/message:send", &message("file x.bin 300000"))).await;
    let task = &sent["task"];
    assert!(url(task).starts_with(&format!("{}/red%20team/artifacts/", server.url)), "{task}");
    assert_eq!(fetch(get(url(task))).await.body.len(), 300_000);
    assert_eq!(fetch(get(&url(task).replace("/red%20team", ""))).await.status, 404);
}

#[tokio::test]
async fn no_path_leads_out_of_the_folder() {
    let server = Server::start(&[]);
    let task = server.send("file x.bin 300000").await;
    let name = part(&task)["metadata"]["urn:nuncio:a2a:file:v1"]["sha256"].as_str().expect("a hash");
    let database = "..%2F..%2Fnuncio.db";
    for path in [
        format!("/artifacts/{database}/x"),
        format!("/artifacts/{}/{database}", id(&task)),
        format!("/artifacts/{}/{name}", id(&task)),
        format!("/artifacts/tmp/{name}"),
        format!("/artifacts/{}/{name}", &name[..2]),
        format!("/artifacts/{}/%00", id(&task)),
        format!("/artifacts/{}/..%252f..%252fnuncio.db", id(&task)),
        format!("/..%2F/artifacts/{}/x", id(&task)),
        format!("/artifacts/{}/{}?part=-1", id(&task), task["artifacts"][0]["artifactId"].as_str().expect("an id")),
        format!("/artifacts/{}/{}?part=1", id(&task), task["artifacts"][0]["artifactId"].as_str().expect("an id")),
    ] {
        assert_eq!(fetch(get(&format!("{}{path}", server.url))).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn equal_files_are_kept_once_and_go_with_the_last_task() {
    let mut server = Server::configured("retention: 5s\n");
    let shelf = server.data_dir().join("artifacts");
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(server.send("file same.bin 500000").await);
    }
    let open = server.send("ask colour?").await;
    assert_eq!(files(&shelf).len(), 4, "one by its hash, and a name of it for each task");
    assert_eq!(fetch(get(url(&tasks[2]))).await.body.len(), 500_000);
    server.terminate();
    server.restart();
    let until = Instant::now() + PATIENCE;
    while !files(&shelf).is_empty() {
        assert!(Instant::now() < until, "the files stay: {:?}", files(&shelf));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(fetch(get(url(&tasks[0]))).await.status, 404);
    let done = server.send_params(follow_up(&open, "file kept.bin 500000")).await;
    assert_eq!(state(&done), "COMPLETED");
}

#[tokio::test]
async fn tasks_in_memory_have_their_files_in_memory() {
    let server = Server::configured("store: memory\n");
    let task = server.send("file x.bin 300000").await;
    let got = fetch(get(url(&task)).header("Range", "bytes=299998-")).await;
    assert_eq!((got.status, &*got.body), (206, &alphabet(300_000)[299_998..]));
    assert!(!server.data_dir().join("artifacts").exists());
}

#[tokio::test]
async fn a_large_file_is_streamed_and_not_held_in_memory() {
    let server = Server::start(&[]);
    let task = server.send("file big.bin 16777216").await;
    let before = server.resident_kib();
    let mut readers = Vec::new();
    for _ in 0..8 {
        readers.push(get(url(&task)).send().await.expect("an answer"));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 64 << 10, "eight readers who do not read cost {grown} KiB");
    for reader in readers {
        assert_eq!(reader.bytes().await.expect("the whole body").len(), 16 << 20);
    }
}
