//! Lines 332 to 368: pages by cursor.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_tests::{Value, json};

use super::{call, message, sent, serve};

fn ids(page: &Value) -> Vec<String> {
    page["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn pages_follow_one_another_by_cursor() {
    let server = serve();
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(sent(&server, "hello").await["id"].as_str().unwrap().to_owned());
    }
    let (mut found, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let mut params = json!({ "limit": 2 });
        if cursor.is_string() {
            params["cursor"] = cursor.clone();
        }
        let page = call(&server, "ListTasks", params).await["result"].clone();
        pages += 1;
        found.extend(ids(&page));
        let Some(next) = page.get("nextCursor") else { break };
        let decoded = String::from_utf8(STANDARD.decode(next.as_str().unwrap()).unwrap()).unwrap();
        let fields: Vec<&str> = decoded.split(':').collect();
        assert!(fields[0].parse::<u64>().is_ok_and(|ms| ms > 1_700_000_000_000), "{decoded}");
        assert_eq!(fields[1], found.last().unwrap(), "the last task of the page");
        cursor = next.clone();
    }
    assert_eq!(pages, 3);
    made.sort();
    found.sort();
    assert_eq!(found, made);
}

#[tokio::test]
async fn tasks_are_chosen_by_conversation_and_by_states() {
    let server = serve();
    let mut named = message("hello");
    named["message"]["contextId"] = "ctx-1".into();
    let mine = call(&server, "SendMessage", named).await["result"]["id"].clone();
    for text in ["fail on purpose", "ask what?", "fail again", "hello"] {
        sent(&server, text).await;
    }
    let list = async |params: Value| call(&server, "ListTasks", params).await["result"].clone();
    assert_eq!(ids(&list(json!({ "contextId": "ctx-1" })).await), [mine.as_str().unwrap()]);
    assert_eq!(ids(&list(json!({ "state": ["failed"] })).await).len(), 2);
    assert_eq!(ids(&list(json!({ "state": ["completed", "failed"] })).await).len(), 4);
    assert_eq!(ids(&list(json!({ "state": ["cancelled"] })).await).len(), 0);
    let first = list(json!({ "state": ["completed", "failed"], "limit": 3 })).await;
    let rest = list(json!({ "state": ["completed", "failed"], "limit": 3, "cursor": first["nextCursor"] })).await;
    assert_eq!((ids(&first).len(), ids(&rest).len(), rest.get("nextCursor")), (3, 1, None));
    assert!(ids(&rest).iter().all(|id| !ids(&first).contains(id)));
}

#[tokio::test]
async fn a_page_holds_from_one_to_a_hundred_and_twenty_if_nothing_is_said() {
    let server = serve();
    for limit in [0, 101] {
        assert_eq!(call(&server, "ListTasks", json!({ "limit": limit })).await["error"]["code"], -32602, "{limit}");
    }
    for _ in 0..21 {
        sent(&server, "hello").await;
    }
    let page = call(&server, "ListTasks", json!({})).await["result"].clone();
    assert_eq!((ids(&page).len(), page["nextCursor"].is_string()), (20, true));
    let all = call(&server, "ListTasks", json!({ "limit": 100 })).await["result"].clone();
    assert_eq!((ids(&all).len(), all.get("nextCursor")), (21, None));
}
