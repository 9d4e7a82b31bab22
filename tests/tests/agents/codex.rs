//! Codex, by its app server and by `codex exec`.

use nuncio_tests::{
    Sse, SseEvent, Stage, Value, Wire, at_once, follow_up, id, in_context, json, message, state, texts, words,
};

use crate::told::{INPUT, Told, answer_on_another_wire};

fn app(more: &str) -> Stage {
    Stage::fake("codex", "codex", &format!("store: memory\n{more}"))
}

fn exec(more: &str) -> Stage {
    Stage::fake("codex-exec", "codex", &format!("store: memory\n{more}"))
}

#[tokio::test]
async fn an_answer_is_told_once_however_it_comes() {
    let stage = app("");
    for (prompt, answer) in [
        ("hello", "You said: hello"),
        ("two", "First.\n\nSecond."),
        ("whole", "Said at once.\n\nAnd more."),
        ("twice", "Once.\n\nOnly once."),
        ("cut", "Grüße, 世界 😀!"),
        ("crlf", "With carriage returns."),
        ("noise", "Through the noise."),
        ("helper", "Mine."),
        ("empty", ""),
    ] {
        let told = Told::by(&stage, prompt).await;
        assert_eq!((told.state(), &*told.text()), ("COMPLETED", answer), "{prompt}: {}", told.task);
        assert_eq!(told.words(), Vec::<&str>::new(), "{prompt}");
    }
    for wire in [Wire::Rpc, Wire::Rest, Wire::OldRpc] {
        let events = Sse::open(wire.stream(&stage.server, "two")).await.all().await;
        let heard: String = events.iter().filter_map(SseEvent::chunk).collect();
        assert_eq!(heard, "First.\n\nSecond.", "{wire:?}");
    }
    let stage = exec("");
    for (prompt, answer) in [
        ("hello", "You said: hello"),
        ("noise", "Grüße, 世界 😀!"),
        ("twice", "Once.\n\nOnly once."),
        ("no end", "No more than this."),
        ("empty", ""),
    ] {
        let told = Told::by(&stage, prompt).await;
        assert_eq!((told.state(), &*told.text()), ("COMPLETED", answer), "{prompt}: {}", told.task);
    }
    assert_eq!(Told::by(&stage, "long").await.text().len(), 2 << 20);
}

#[tokio::test]
async fn a_turn_ends_as_the_program_says() {
    let stage = app("");
    for (prompt, end, why) in [
        ("fail", "FAILED", "stream disconnected before completion"),
        ("limit", "FAILED", "You've hit your usage limit. Try again later."),
        ("unauthorized", "AUTH_REQUIRED", "unexpected status 401: token expired"),
        ("exit 3", "FAILED", "the turn did not end: agent exited with code 3: boom: it broke"),
        ("exit 0", "FAILED", "the turn did not end: agent exited with code 0: boom: it broke"),
        ("crash", "FAILED", "the turn did not end: agent was ended by signal 9"),
    ] {
        let told = Told::by(&stage, prompt).await;
        assert_eq!((told.state(), words(&told.task)), (end, why), "{prompt}: {}", told.task);
    }
    assert_eq!(Told::by(&stage, "crash").await.text(), "Half a sent");
    let told = Told::by(&stage, "broken").await;
    assert!(words(&told.task).starts_with("agent printed a line that cannot be read"), "{}", told.task);
    let told = Told::by(&stage, "retry").await;
    assert_eq!((&*told.text(), told.words()), ("In the end.", vec!["Trying again: Reconnecting... 1/5"]));

    let stage = exec("");
    for (prompt, end, why) in [
        ("fail", "FAILED", "stream disconnected before completion"),
        (
            "unauthorized",
            "AUTH_REQUIRED",
            "unexpected status 401 Unauthorized: Missing bearer or basic authentication in header",
        ),
        ("silent", "FAILED", "agent ended without an answer"),
        ("exit 3", "FAILED", "agent exited with code 3: boom: it broke"),
        ("crash", "FAILED", "agent was ended by signal 9"),
    ] {
        let told = Told::by(&stage, prompt).await;
        assert_eq!((told.state(), words(&told.task)), (end, why), "{prompt}: {}", told.task);
    }
    assert_eq!(Told::by(&stage, "retry").await.text(), "In the end.");
}

#[tokio::test]
async fn whoever_is_not_logged_in_hears_it_at_once() {
    let stage = app("env: [FAKE_LOGGED_OUT=1]");
    let told = Told::by(&stage, "hello").await;
    let why = "Codex is not logged in: run `codex login` as the user of this server";
    assert_eq!((told.state(), words(&told.task)), ("AUTH_REQUIRED", why));
    let stage = app("env: [FAKE_OLD=1, FAKE_OVERLOADED=1]");
    let told = Told::by(&stage, "hello").await;
    assert_eq!(told.text(), "You said: hello", "older servers do not know the question, busy ones are asked again");
    assert_eq!(told.words(), ["Trying again: Server overloaded; retry later."]);
}

fn step(name: &str, known: Value) -> (String, Value) {
    (name.to_owned(), known)
}

#[tokio::test]
async fn tools_thinking_and_usage_are_told() {
    let stage = app("thinking-exposure: all");
    let told = Told::by(&stage, "tool").await;
    assert_eq!((&*told.text(), &*told.thinking()), ("Let me look.\n\nIt was in a.txt.", "Where could it be?"));
    assert_eq!(told.words(), ["[x] look\n[>] tell"]);
    let cwd = stage.workspace.path();
    assert_eq!(
        told.tools(),
        [
            step("item_4 shell started", Value::Null),
            step("item_4 shell input", json!({ "command": "cat a.txt", "cwd": cwd })),
            step("item_4 shell delta", json!("the content\n")),
            step("item_4 shell completed", json!({ "exitCode": 0, "output": "the content\n" })),
            step("item_5 shell started", Value::Null),
            step("item_5 shell input", json!({ "command": "cat b.txt", "cwd": cwd })),
            step("item_5 shell failed", json!("exit code 1: No such file")),
        ]
    );
    let usage = json!({ "inputTokens": 300, "outputTokens": 30, "cacheReadTokens": 190, "model": "fake-1" });
    assert_eq!(told.usage(), usage);
    let again = Told::after(&stage, in_context(&told.task["contextId"], "hello")).await;
    assert_eq!(again.usage()["inputTokens"], 100, "the tokens of this turn alone");

    let stage = exec("thinking-exposure: all\nmodel: fancy-2");
    let told = Told::by(&stage, "tool").await;
    assert_eq!((&*told.text(), &*told.thinking()), ("Let me look.\n\nIt was in a.txt.", "Where could it be?"));
    let usage = json!({ "inputTokens": 300, "outputTokens": 30, "cacheReadTokens": 190, "model": "fancy-2" });
    assert_eq!(told.usage(), usage);
    assert_eq!(
        told.tools(),
        [
            step("item_2 shell started", Value::Null),
            step("item_2 shell input", json!({ "command": "cat a.txt" })),
            step("item_2 shell completed", json!({ "exitCode": 0, "output": "the content\n" })),
            step("item_3 shell started", Value::Null),
            step("item_3 shell input", json!({ "command": "rm x" })),
            step("item_3 shell failed", json!("declined")),
            step("item_4 apply_patch started", Value::Null),
            step("item_4 apply_patch input", json!({ "changes": [{ "path": "a.txt", "kind": "add" }] })),
            step("item_4 apply_patch completed", json!({ "changes": [{ "path": "a.txt", "kind": "add" }] })),
            step("item_5 web.fetch started", Value::Null),
            step("item_5 web.fetch input", json!({ "url": "u" })),
            step("item_5 web.fetch failed", json!("no net")),
        ]
    );
    assert_eq!(told.words(), ["[x] look\n[ ] tell"]);
}

#[tokio::test]
async fn the_caller_decides_what_is_done() {
    let stage = app("");
    let server = &stage.server;
    for (reply, answer, end) in [
        ("y", "accept: make", "COMPLETED"),
        ("allow for this conversation", "acceptForSession: make", "COMPLETED"),
        ("n", "decline: make", "COMPLETED"),
        ("deny and stop", "cancel: make", "FAILED"),
    ] {
        let asked = server.send("approve make").await;
        assert_eq!(state(&asked), "INPUT_REQUIRED", "{asked}");
        let request = &asked["status"]["message"]["metadata"][INPUT];
        assert_eq!((&request["tool"], &request["input"]["command"]), (&json!("shell"), &json!("make")), "{request}");
        let options: Vec<&str> =
            request["options"].as_array().unwrap().iter().filter_map(|o| o["id"].as_str()).collect();
        assert_eq!(options, ["accept", "acceptForSession", "decline", "cancel"], "rules are left to their owner");
        answer_on_another_wire(server, &asked, reply).await;
        let told = Told::of(&stage, &asked).await;
        assert_eq!((told.state(), &*told.text()), (end, answer), "{reply}");
    }
    let did = std::fs::read_to_string(stage.workspace.path().join("did.txt")).unwrap();
    assert_eq!(did, "make\nmake\n", "what was denied was not done");

    let asked = server.send("rights").await;
    let done = server.send_params(follow_up(&asked, "y")).await;
    assert_eq!(texts(&done), ["turn: network"], "{done}");
    let asked = server.send("question").await;
    assert_eq!(words(&asked), "Which colour?\n1. Red: warm\n2. Blue");
    let done = server.send_params(follow_up(&asked, "blue")).await;
    assert_eq!(texts(&done), ["Blue it is."], "{done}");
    let asked = server.send("form").await;
    assert!(words(&asked).starts_with("calendar: When?\n- day\n- hours\n"), "{asked}");
    let done = server.send_params(follow_up(&asked, "day: Friday\nhours: 2")).await;
    assert_eq!(texts(&done), ["accept Friday 3"], "{done}");
    assert_eq!(Told::by(&stage, "unsupported").await.text(), "-32601: method not found");

    let asked = server.send("withdraw").await;
    assert_eq!(state(&asked), "INPUT_REQUIRED");
    std::fs::write(stage.workspace.path().join("go-on"), "").unwrap();
    server.until(id(&asked), "COMPLETED").await;
    assert_eq!(Told::of(&stage, &asked).await.text(), "Went on.");

    let free = app("auto-approve-permissions: true");
    assert_eq!(Told::by(&free, "approve anything").await.text(), "accept: anything");
}

#[tokio::test]
async fn what_a_turn_changes_is_an_artifact() {
    let stage = app("");
    let asked = stage.server.send("patch").await;
    assert!(words(&asked).starts_with("Approve? change a.txt: to greet\n"), "{asked}");
    let done = stage.server.send_params(follow_up(&asked, "y")).await;
    let named = |name: &str| {
        let all = done["artifacts"].as_array().unwrap().iter();
        all.filter(|artifact| artifact["name"] == name).cloned().collect::<Vec<_>>()
    };
    let changes = named("changes");
    assert_eq!(changes.len(), 1, "{done}");
    let part = &changes[0]["parts"][0];
    assert_eq!((&part["filename"], &part["mediaType"]), (&json!("changes.diff"), &json!("text/x-diff")));
    assert_eq!(part["text"], "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+hi\n");
    assert!(texts(&done).contains(&"Written.".to_owned()), "{done}");
    assert_eq!(std::fs::read_to_string(stage.workspace.path().join("a.txt")).unwrap(), "hi\n");
}

#[tokio::test]
async fn rules_look_at_the_files_of_a_patch() {
    let denied = app("auto-approve-permissions: true\ndeny-tools: ['apply_patch(a.*)']");
    assert_eq!(Told::by(&denied, "patch").await.text(), "Not written: decline.");
    assert!(!denied.workspace.path().join("a.txt").exists());
    let allowed = app("allow-tools: ['apply_patch(a.*)']");
    assert!(Told::by(&allowed, "patch").await.text().starts_with("Written."));
    let other = app("allow-tools: ['apply_patch(b.*)', 'apply_patch(change *)']");
    assert_eq!(state(&other.server.send("patch").await), "INPUT_REQUIRED");
}

#[tokio::test]
async fn conversations_go_on() {
    for kind in ["codex", "codex-exec"] {
        let mut stage = Stage::fake(kind, "codex", "");
        let first = Told::by(&stage, "remember the number 42").await;
        assert_eq!(first.text(), "I will remember the number 42.", "{kind}: {}", first.task);
        let context = first.task["contextId"].clone();
        stage.server.terminate();
        stage.server.restart();
        let again = Told::after(&stage, in_context(&context, "recall")).await;
        assert_eq!(again.text(), "You told me the number 42.", "{kind}");
        std::fs::remove_file(stage.workspace.path().join(".fake-sessions.json")).unwrap();
        let lost = Told::after(&stage, in_context(&context, "recall")).await;
        assert_eq!((lost.state(), &*lost.text()), ("COMPLETED", "I know of no number."), "{kind}");
        assert!(lost.words()[0].starts_with("The conversation could not be continued, a new one begins"), "{kind}");
        Told::after(&stage, in_context(&context, "remember the number 8")).await;
        let found = Told::after(&stage, in_context(&context, "recall")).await;
        assert_eq!((&*found.text(), found.words().len()), ("You told me the number 8.", 0), "{kind}");
    }
}

#[tokio::test]
async fn a_killed_server_lets_the_turn_go_on() {
    let mut stage = Stage::fake("codex", "codex", "");
    let slow = stage.server.send_params(at_once(message("slow"))).await;
    let mut events = stage.server.subscribe(id(&slow), Some(0)).await;
    while events.next().await.expect("a piece of text").chunk().is_none() {}
    stage.server.kill();
    stage.server.restart();
    let over = stage.server.until(id(&slow), "COMPLETED").await;
    assert!(texts(&over).concat().ends_with("Here is the rest."), "{over}");
    Told::of(&stage, &over).await;
}

#[tokio::test]
async fn a_cancelled_turn_is_interrupted() {
    let stage = app("");
    for prompt in ["slow", "approve make"] {
        let task = stage.server.send_params(at_once(message(prompt))).await;
        if prompt == "slow" {
            let mut events = stage.server.subscribe(id(&task), Some(0)).await;
            while events.next().await.expect("a piece of text").chunk().is_none() {}
        } else {
            stage.server.until(id(&task), "INPUT_REQUIRED").await;
        }
        stage.server.cancel(id(&task)).await;
        stage.server.until(id(&task), "CANCELED").await;
        Told::of(&stage, &task).await;
        let note = stage.workspace.path().join("interrupted.txt");
        assert!(note.exists(), "{prompt}: it was told");
        std::fs::remove_file(note).unwrap();
    }
}

#[tokio::test]
async fn pictures_reach_the_model() {
    let stage = app("");
    let mut params = message("look");
    params["message"]["parts"] =
        json!([{ "text": "look" }, { "raw": "aGk=", "mediaType": "image/png", "filename": "a.png" }]);
    assert_eq!(Told::after(&stage, params).await.text(), "I see: data:image/png");
}
