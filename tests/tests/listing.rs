//! Pages of tasks.

use std::collections::HashSet;

use nuncio_tests::{Server, Value, answer, id, in_context, json, message, state};

async fn list(server: &Server, params: Value) -> Value {
    let answer = server.rpc("ListTasks", params).await;
    assert!(answer["result"].is_object(), "a page: {answer}");
    answer["result"].clone()
}

fn ids(page: &Value) -> Vec<String> {
    page["tasks"].as_array().expect("tasks").iter().map(|task| id(task).to_owned()).collect()
}

fn times(page: &Value) -> Vec<String> {
    let time = |task: &Value| task["status"]["timestamp"].as_str().expect("a time").to_owned();
    page["tasks"].as_array().expect("tasks").iter().map(time).collect()
}

#[tokio::test]
async fn an_empty_list_has_all_its_members() {
    let server = Server::start(&[]);
    let empty = json!({ "tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0 });
    assert_eq!(list(&server, json!({})).await, empty);
    assert_eq!(answer(server.get("/tasks")).await, (200, empty.clone()));
    server.send("hello").await;
    assert_eq!(list(&server, json!({ "contextId": "unknown" })).await, empty);
}

#[tokio::test]
async fn the_newest_status_comes_first() {
    let server = Server::start(&[]);
    let asked = server.send("ask colour?").await;
    for _ in 0..5 {
        server.send("hello").await;
    }
    let before = list(&server, json!({})).await;
    assert_eq!(ids(&before).last().map(String::as_str), Some(id(&asked)));
    server.send_params(nuncio_tests::follow_up(&asked, "red")).await;
    let after = list(&server, json!({})).await;
    assert_eq!(ids(&after)[0], id(&asked), "a new status brings a task to the front");
    for page in [before, after] {
        assert!(times(&page).windows(2).all(|pair| pair[0] >= pair[1]), "{:?}", times(&page));
        assert_eq!(
            (&page["totalSize"], &page["pageSize"], &page["nextPageToken"]),
            (&json!(6), &json!(50), &json!(""))
        );
    }
}

#[tokio::test]
async fn pages_have_no_gap_and_no_double_while_tasks_arrive() {
    let server = Server::start(&[]);
    let mut old = HashSet::new();
    for _ in 0..25 {
        old.insert(id(&server.send("hello").await).to_owned());
    }
    for rest in [false, true] {
        let (mut seen, mut token, mut sizes) = (Vec::new(), String::new(), Vec::new());
        let all = list(&server, json!({})).await["totalSize"].as_u64().expect("a number");
        for page_number in 0..10 {
            let page = if rest {
                answer(server.get(&format!("/tasks?pageSize=10&pageToken={token}"))).await.1
            } else {
                list(&server, json!({ "pageSize": 10, "pageToken": token })).await
            };
            assert_eq!(page["totalSize"], all + 3 * page_number, "the total counts what is there now");
            assert_eq!(page["pageSize"], 10);
            sizes.push(ids(&page).len());
            seen.extend(ids(&page));
            page["nextPageToken"].as_str().expect("a token").clone_into(&mut token);
            if token.is_empty() {
                break;
            }
            for _ in 0..3 {
                server.send("in between").await;
            }
        }
        let once: HashSet<String> = seen.iter().cloned().collect();
        assert_eq!(once.len(), seen.len(), "no double");
        assert_eq!(seen.len() as u64, all, "no gap, and nothing that came later");
        assert!(old.is_subset(&once));
        assert!(sizes.len() >= 3 && sizes[..sizes.len() - 1].iter().all(|size| *size == 10), "{sizes:?}");
    }
}

#[tokio::test]
async fn a_page_that_ends_with_the_last_task_is_the_last_page() {
    let server = Server::start(&[]);
    for _ in 0..4 {
        server.send("hello").await;
    }
    let first = list(&server, json!({ "pageSize": 2 })).await;
    assert_ne!(first["nextPageToken"], "");
    let second = list(&server, json!({ "pageSize": 2, "pageToken": first["nextPageToken"] })).await;
    assert_eq!((ids(&second).len(), &second["nextPageToken"]), (2, &json!("")));
    assert_eq!(list(&server, json!({ "pageSize": 4 })).await["nextPageToken"], "");
}

#[tokio::test]
async fn filters_hold_together() {
    let server = Server::start(&[]);
    let (here, there) = (json!("here"), json!("there"));
    for text in ["hello", "fail x", "hello", "ask colour?"] {
        server.send_params(in_context(&here, text)).await;
    }
    server.send_params(in_context(&there, "hello")).await;
    let running = server.send_async("hold").await;
    server.until(id(&running), "WORKING").await;
    let total = async |params: Value| {
        let page = list(&server, params).await;
        assert_eq!(page["totalSize"], json!(ids(&page).len()));
        ids(&page).len()
    };
    assert_eq!(total(json!({})).await, 6);
    assert_eq!(total(json!({ "contextId": "here" })).await, 4);
    assert_eq!(total(json!({ "status": "TASK_STATE_COMPLETED" })).await, 3);
    assert_eq!(total(json!({ "status": "TASK_STATE_WORKING" })).await, 1);
    assert_eq!(total(json!({ "status": "TASK_STATE_UNSPECIFIED" })).await, 6);
    assert_eq!(total(json!({ "contextId": "here", "status": "TASK_STATE_COMPLETED" })).await, 2);
    assert_eq!(total(json!({ "context_id": "here", "status": "TASK_STATE_FAILED" })).await, 1);
    assert_eq!(total(json!({ "contextId": "there", "status": "TASK_STATE_FAILED" })).await, 0);
    let (_, page) = answer(server.get("/tasks?contextId=here&status=TASK_STATE_INPUT_REQUIRED&historyLength=0")).await;
    assert_eq!((page["totalSize"].as_u64(), state(&page["tasks"][0])), (Some(1), "INPUT_REQUIRED"));
    assert_eq!(page["tasks"][0].get("history"), None);
    for wrong in [json!({ "status": "TASK_STATE_PENDING" }), json!({ "status": "working" })] {
        assert_eq!(server.rpc("ListTasks", wrong.clone()).await["error"]["code"], -32602, "{wrong}");
    }
    assert_eq!(answer(server.get("/tasks?status=working")).await.0, 400);
}

#[tokio::test]
async fn the_time_of_a_status_counts_as_after_itself() {
    let server = Server::start(&[]);
    for _ in 0..8 {
        server.send("hello").await;
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let all = list(&server, json!({})).await;
    for time in times(&all) {
        let wanted: Vec<String> =
            ids(&all).into_iter().zip(times(&all)).filter(|(_, of)| *of >= time).map(|(id, _)| id).collect();
        let page = list(&server, json!({ "statusTimestampAfter": time })).await;
        assert_eq!((ids(&page), &page["totalSize"]), (wanted.clone(), &json!(wanted.len())), "since {time}");
        let (_, page) = answer(server.get(&format!("/tasks?statusTimestampAfter={}", time.replace(':', "%3A")))).await;
        assert_eq!(ids(&page), wanted);
        let page = list(&server, json!({ "statusTimestampAfter": time, "status": "TASK_STATE_COMPLETED" })).await;
        assert_eq!(ids(&page), wanted);
        let mut paged = list(&server, json!({ "statusTimestampAfter": time, "pageSize": 1 })).await;
        let mut seen = ids(&paged);
        for _ in 0..20 {
            if paged["nextPageToken"] == "" {
                break;
            }
            let params = json!({ "statusTimestampAfter": time, "pageSize": 1, "pageToken": paged["nextPageToken"] });
            paged = list(&server, params).await;
            seen.extend(ids(&paged));
        }
        assert_eq!(seen, wanted);
        // A moment that is shorter than what is kept lies behind it all the same.
        let (short, later) =
            (time.trim_end_matches('Z'), wanted.len() - times(&all).iter().filter(|of| **of == time).count());
        let page = list(&server, json!({ "statusTimestampAfter": format!("{short}000001Z") })).await;
        assert_eq!(page["totalSize"], later, "after {time}");
    }
    for late in ["2999-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"] {
        assert_eq!(list(&server, json!({ "statusTimestampAfter": late })).await["totalSize"], 0, "{late}");
        let (status, page) =
            answer(server.get(&format!("/tasks?statusTimestampAfter={}", late.replace(':', "%3A")))).await;
        assert_eq!((status, &page["totalSize"]), (200, &json!(0)), "{late}");
    }
    let wrong = server.rpc("ListTasks", json!({ "statusTimestampAfter": "yesterday" })).await;
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    assert_eq!(answer(server.get("/tasks?statusTimestampAfter=yesterday")).await.0, 400);
}

#[tokio::test]
async fn artifacts_are_there_only_when_asked_for() {
    let server = Server::start(&[]);
    let without = server.send("fail x").await;
    let with = server.send("hello").await;
    for (params, query) in [(json!({}), ""), (json!({ "includeArtifacts": false }), "?includeArtifacts=false")] {
        for page in [list(&server, params).await, answer(server.get(&format!("/tasks{query}"))).await.1] {
            assert_eq!(ids(&page).len(), 2);
            assert!(
                page["tasks"].as_array().expect("tasks").iter().all(|task| task.get("artifacts").is_none()),
                "{page}"
            );
        }
    }
    let asked = list(&server, json!({ "includeArtifacts": true })).await;
    assert_eq!(asked, answer(server.get("/tasks?includeArtifacts=true")).await.1);
    assert_eq!(asked["tasks"][0], with, "the whole task");
    assert_eq!(asked["tasks"][1]["artifacts"], json!([]));
    let mut whole = without;
    whole["artifacts"] = json!([]);
    assert_eq!(asked["tasks"][1], whole);
    assert_eq!(answer(server.get("/tasks?includeArtifacts=perhaps")).await.0, 400);
}

#[tokio::test]
async fn a_wrong_page_is_refused() {
    let server = Server::start(&[]);
    server.send("hello").await;
    for size in [0, 101, 150, -1] {
        let wrong = server.rpc("ListTasks", json!({ "pageSize": size })).await;
        assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
        assert!(wrong["error"].to_string().contains("pageSize"), "{wrong}");
        assert_eq!(answer(server.get(&format!("/tasks?pageSize={size}"))).await.0, 400);
    }
    for size in [1, 100] {
        assert_eq!(list(&server, json!({ "pageSize": size })).await["pageSize"], size);
    }
    for token in ["x", "not.a.token", ".", "99999999999999999999.x"] {
        let wrong = server.rpc("ListTasks", json!({ "pageToken": token })).await;
        assert_eq!(wrong["error"]["code"], -32602, "{token}: {wrong}");
        assert_eq!(answer(server.get(&format!("/tasks?pageToken={token}"))).await.0, 400);
    }
}

#[tokio::test]
async fn everyone_sees_his_own_tasks_only() {
    let (alice, bob) = ("alice-0123456789abcdef", "bob-0123456789abcdef");
    let server =
        Server::configured(&format!("tokens:\n  - {{name: alice, token: {alice}}}\n  - {{name: bob, token: {bob}}}\n"));
    let here = in_context(&json!("shared"), "ask colour?");
    let (_, sent) = answer(server.rpc_request("SendMessage", &here).bearer_auth(alice)).await;
    let task = &sent["result"]["task"];
    let all = json!({ "contextId": "shared" });
    let (_, hers) = answer(server.rpc_request("ListTasks", &all).bearer_auth(alice)).await;
    assert_eq!(hers["result"]["totalSize"], 1);
    for params in [json!({}), all] {
        let (_, his) = answer(server.rpc_request("ListTasks", &params).bearer_auth(bob)).await;
        assert_eq!((&his["result"]["totalSize"], &his["result"]["tasks"]), (&json!(0), &json!([])));
    }
    let (status, his) = answer(server.get("/tasks").bearer_auth(bob)).await;
    assert_eq!((status, &his["totalSize"]), (200, &json!(0)));
    let (_, missing) = answer(server.rpc_request("GetTask", &json!({ "id": "no-such-task" })).bearer_auth(bob)).await;
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        let (_, refused) = answer(server.rpc_request(method, &json!({ "id": task["id"] })).bearer_auth(bob)).await;
        assert_eq!(refused["error"]["code"], -32001, "{method}: {refused}");
        assert_eq!(refused["error"]["message"], missing["error"]["message"], "as if it were not there");
    }
    let reply = nuncio_tests::follow_up(task, "red");
    let (status, _) = answer(server.post("/message:send", &reply).bearer_auth(bob)).await;
    assert_eq!(status, 404);
    let (_, joined) =
        answer(server.post("/message:send", &in_context(&json!("shared"), "hello")).bearer_auth(bob)).await;
    assert_eq!(state(&joined["task"]), "COMPLETED");
    let (_, hers) = answer(server.rpc_request("ListTasks", &json!({})).bearer_auth(alice)).await;
    assert_eq!(hers["result"]["totalSize"], 1, "the same name of a context is not the same context");
    for path in ["/tasks", "/metrics"] {
        assert_eq!(answer(server.get(path)).await.0, 401);
        assert_eq!(answer(server.get(path).bearer_auth("alice")).await.0, 401);
    }
    let (_, blue) = answer(server.get("/blue/tasks").bearer_auth(alice)).await;
    assert_eq!(blue["totalSize"], 0, "another tenant");
    assert_eq!(answer(server.post("/message:send", &message("hello"))).await.0, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_keeps_its_word_while_tasks_change() {
    let server = Server::start(&[]);
    for n in 0..40 {
        server.send_async(&format!("stream {} 15", 5 + n)).await;
    }
    let mut pages = 0;
    for _ in 0..1000 {
        let working = list(&server, json!({ "status": "TASK_STATE_WORKING" })).await;
        let states: HashSet<&str> = working["tasks"].as_array().expect("tasks").iter().map(state).collect();
        assert!(states.iter().all(|state| *state == "WORKING"), "asked for working, got {states:?}");
        let all = list(&server, json!({})).await;
        assert!(times(&all).windows(2).all(|pair| pair[0] >= pair[1]), "newest first: {:?}", times(&all));
        assert_eq!(ids(&all).len(), 40);
        pages += 1;
        if working["totalSize"] == 0 && server.count("SUBMITTED").await == 0 {
            break;
        }
    }
    assert!(pages > 3, "the list was read while tasks changed");
    assert_eq!(server.count("COMPLETED").await, 40);
}
