//! Entries that nobody should write.

use nuncio_tests::{Redis, json};

use crate::kit::{Caller, REQUESTS, RESPONSES, request, said, serve, until_done};

#[tokio::test]
async fn malformed_entries_stop_nothing() {
    let redis = Redis::start();
    let server = serve(&redis, "max-body: 100KB\n");
    let caller = Caller::new(&redis, "out:mine").await;
    let to = ("reply_stream", "out:mine");
    let good = request("SendMessage", &said("m", "hello")).to_string();
    let large = format!("\"{}\"", "x".repeat(200_000));
    for (id, payload, headers, code) in [
        ("rubbish", "rubbish", "", -32700),
        ("empty", "", "", -32700),
        ("number", "5", "", -32600),
        ("list", "[]", "", -32600),
        ("no-method", r#"{"jsonrpc":"2.0","id":1}"#, "", -32600),
        ("unknown", r#"{"jsonrpc":"2.0","id":1,"method":"Nonsense"}"#, "", -32601),
        ("no-params", r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage"}"#, "", -32602),
        ("large", &large, "", -31413),
        ("headers", &good, "rubbish", -32600),
        ("header", &good, r#"{"a b":"c"}"#, -32600),
    ] {
        caller.add(&[("correlation_id", id), to, ("payload", payload), ("headers", headers)]).await;
        let answer = caller.only(id).await;
        assert_eq!(answer["error"]["code"], code, "{id}: {answer}");
    }
    caller.add(&[("correlation_id", "nothing"), to]).await;
    assert_eq!(caller.only("nothing").await["error"]["code"], -32600);
    caller.add(&[to, ("payload", &good)]).await;
    assert_eq!(caller.only("").await["error"]["code"], -32600);
    caller.add(&[("foo", "bar")]).await;
    caller.add(&[("", "")]).await;
    caller.ask("good", request("SendMessage", &said("m", "hello"))).await;
    assert_eq!(caller.only("good").await["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    until_done(&redis);
    assert!(server.metric("nuncio_redis_malformed_total").await >= 11.0);
}

#[tokio::test]
async fn replies_are_written_to_streams_for_replies_and_nowhere_else() {
    let redis = Redis::start();
    let server = serve(&redis, "");
    redis.ask(&["SET", "out:taken", "text"]);
    redis.ask(&["XADD", "others", "*", "a", "b"]);
    let caller = Caller::new(&redis, RESPONSES).await;
    let payload = request("SendMessage", &said("m", "hello")).to_string();
    let stream = request("SendStreamingMessage", &said("m-2", "stream 3")).to_string();
    let long = format!("out:{}", "x".repeat(10_000));
    let bad = [REQUESTS, "others", "out:taken", "in:entry:1-1", "elsewhere", "out:", "out:a b", "out:\u{7f}", &long];
    for (name, payload) in bad.iter().flat_map(|name| [(name, &payload), (name, &stream)]) {
        caller.add(&[("correlation_id", "c"), ("reply_stream", name), ("payload", payload)]).await;
    }
    until_done(&redis);
    assert_eq!(redis.ask(&["GET", "out:taken"]), "text");
    assert_eq!(redis.ask(&["XLEN", "others"]), "1");
    assert_eq!(redis.ask(&["DBSIZE"]), "3", "the requests, and what was there before: {}", redis.ask(&["KEYS", "*"]));
    caller.ask("good", request("ListTasks", &json!({}))).await;
    // Only the request whose name looked right was carried out; its answer is kept with the task.
    assert_eq!(caller.only("good").await["result"]["totalSize"], 2);
    assert!(server.metric("nuncio_redis_malformed_total").await >= 18.0);
}
