//! Lines 212 to 252: the states of a task, and how a question is answered.

use nuncio_tests::{Server, Value, json};

use super::{call, message, printing, script, six_lines};

async fn sent(server: &Server) -> (String, String) {
    let task = call(server, "message/send", message("go")).await["result"].clone();
    let words = &task["status"]["message"]["parts"][0]["text"];
    (task["status"]["state"].as_str().unwrap().to_owned(), words.as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_program_that_is_done_completes_its_task() {
    assert_eq!(sent(&printing(&six_lines("fine"), "exit 0").server).await.0, "completed");
}

#[tokio::test]
async fn a_program_that_fails_fails_its_task() {
    let (state, words) = sent(&script("exit 3", "").server).await;
    assert_eq!((&*state, &*words), ("failed", "agent exited with code 3"));
    let missing =
        nuncio_tests::Stage::new("generic", &json!(["/nonexistent/x"]), "profile: coding-agent\nstore: memory");
    let (state, words) = sent(&missing.server).await;
    assert_eq!(state, "failed");
    assert!(words.starts_with("Failed to spawn \"x\": "), "{words}");
}

#[tokio::test]
async fn time_and_silence_fail_a_task_and_end_all_its_processes() {
    for limit in ["AGENT_TIMEOUT_MS", "AGENT_IDLE_EXIT_MS"] {
        let body = "trap '' TERM; (trap '' TERM; sleep 600) & sleep 600";
        let stage = nuncio_tests::Stage::new_in(
            "generic",
            &json!(["sh", "-c", body]),
            "profile: coding-agent\nstore: memory\ncancel-grace: 300ms",
            &[(limit, "800")],
        );
        assert_eq!(sent(&stage.server).await.0, "failed", "{limit}");
        stage.until_idle().await;
    }
}

#[tokio::test]
async fn a_question_is_answered_on_its_task_or_anywhere_in_its_conversation() {
    for key in ["taskId", "contextId"] {
        let stage = script("echo 'Proceed? [y/N]'; read a; echo got $a", "auto-approve-permissions: false");
        let asked = call(&stage.server, "message/send", message("go")).await["result"].clone();
        assert_eq!(asked["status"]["state"], "input-required", "{asked}");
        assert_eq!(asked["status"]["message"]["parts"][0]["text"], "Approve: Proceed? [y/N]?");
        let of = if key == "taskId" { &asked["id"] } else { &asked["contextId"] };
        let mut answer = json!({
            "message": {
                "kind": "message",
                "messageId": "msg-2",
                "role": "user",
                "parts": [{ "kind": "text", "text": "y" }],
            },
        });
        answer["message"][key] = of.clone();
        let done = call(&stage.server, "message/send", answer).await["result"].clone();
        assert_eq!((&done["id"], &done["status"]["state"]), (&asked["id"], &json!("completed")), "{done}");
        let said: String = done["artifacts"].as_array().unwrap().iter().map(text_of).collect();
        assert!(said.contains("got y"), "{said}");
    }
}

fn text_of(artifact: &Value) -> String {
    let parts = artifact["parts"].as_array().cloned().unwrap_or_default();
    parts.iter().filter_map(|part| part["text"].as_str()).collect()
}

#[tokio::test]
async fn a_conversation_without_a_question_gets_a_new_task() {
    let stage = printing(&six_lines("fine"), "exit 0");
    let first = call(&stage.server, "message/send", message("go")).await["result"].clone();
    let mut next = message("go on");
    next["message"]["contextId"] = first["contextId"].clone();
    let second = call(&stage.server, "message/send", next).await["result"].clone();
    assert_eq!(second["contextId"], first["contextId"]);
    assert_ne!(second["id"], first["id"]);
}

#[tokio::test]
async fn nobody_is_asked_unless_agent_force_is_off() {
    let stage = script("echo 'Proceed? [y/N]'; read a; echo got $a", "");
    assert_eq!(sent(&stage.server).await.0, "completed");
}
