//! Any command: where its prompt is, what it answers, and how it asks.

use nuncio_tests::{Sse, Stage, Value, answer, at_once, follow_up, id, json, message, state, texts, words};

use crate::lines::{Case, run, told};

fn case() -> Case {
    Case {
        kind: "generic",
        program: "ndjson",
        says_done: false,
        thinking: "",
        apart: "",
        tools: "",
        usage: json!({ "inputTokens": 1200, "outputTokens": 300, "model": "m-1" }),
    }
}

fn script(script: &str, more: &str) -> Stage {
    Stage::shell(script, &format!("store: memory\n{more}"))
}

/// Sends a prompt to a script that asks once, and answers with a word.
async fn asked(body: &str, more: &str, word: &str) -> (String, Value) {
    let stage = script(body, more);
    let task = stage.server.send("go").await;
    assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
    let question = words(&task).to_owned();
    let done = stage.server.send_params(follow_up(&task, word)).await;
    stage.until_idle().await;
    (question, done)
}

#[tokio::test]
async fn lines_of_json_are_read_with_the_prompt_on_stdin() {
    case().speaks_with("prompt-by: stdin").await;
}

#[tokio::test]
async fn lines_of_json_are_read_with_the_prompt_as_the_last_argument() {
    let stage = case().stage("store: memory");
    let told = run(&stage.server, "tools and \"more\"\nthan that").await;
    told.completed("Let me look.\n\nFound it.");
    assert_eq!((told.tools.len(), told.usage), (6, case().usage));
}

#[tokio::test]
async fn plain_text_is_the_answer_as_it_is() {
    let stage = script(r#"printf '\na  b\n\n{"x":1}\n\033[31mred\033[0m\r\n  grün'"#, "");
    run(&stage.server, "go").await.completed("\na  b\n\n{\"x\":1}\nred\n  grün\n");
    let stage = script("sleep 60 & printf 'last words'", "");
    run(&stage.server, "go").await.completed("last words\n");
    stage.until_idle().await;
    let stage = script("exit 0", "");
    run(&stage.server, "go").await.completed("");
    let stage = script("echo half; echo oops >&2; exit 3", "");
    let failed = run(&stage.server, "go").await;
    failed.ended("FAILED", "agent exited with code 3: oops");
    assert_eq!(failed.text, "half\n");
}

#[tokio::test]
async fn a_plain_line_that_asks_is_an_approval() {
    let body = "echo hello; echo 'Proceed? [y/N]'; read a; echo got $a";
    for (word, heard) in [("y", "y"), ("yes", "y"), ("no", "n")] {
        let (question, done) = asked(body, "", word).await;
        assert!(question.contains("Proceed? [y/N]"), "{question}");
        assert_eq!(state(&done), "COMPLETED");
        assert_eq!(texts(&done).concat(), format!("hello\ngot {heard}\n"));
    }
}

#[tokio::test]
async fn a_question_needs_no_end_of_line() {
    for before in ["", "echo hello;"] {
        let (question, done) = asked(&format!("{before} printf 'Proceed? [y/N] '; read a; echo got $a"), "", "y").await;
        assert!(question.contains("Proceed? [y/N]"), "{question}");
        assert!(texts(&done).concat().ends_with("got y\n"), "{done}");
    }
    // One that comes slowly, in the middle of a line.
    let (_, done) = asked("printf 'Pro'; sleep 0.4; printf 'ceed? [y/N] '; read a; echo got $a", "", "y").await;
    assert_eq!(texts(&done).concat(), "got y\n");
}

#[tokio::test]
async fn the_pattern_and_the_answer_can_be_others() {
    let more = "approval-pattern: '^ALLOW '\napproval-response: granted";
    let (question, done) = asked("echo 'Sure? [y/N]'; echo ALLOW net; read a; echo got $a", more, "y").await;
    assert!(question.contains("ALLOW net"), "{question}");
    assert_eq!(texts(&done).concat(), "Sure? [y/N]\ngot granted\n");
}

#[tokio::test]
async fn json_that_speaks_of_questions_asks_nothing() {
    let line = json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": "It asked [y/N]" }] } });
    let stage = script(&format!("echo '{line}'"), "");
    run(&stage.server, "go").await.completed("It asked [y/N]");
}

#[tokio::test]
async fn whoever_approves_everything_is_not_asked() {
    let stage = script("echo 'Proceed? [y/N]'; read a; echo got $a", "auto-approve-permissions: true");
    run(&stage.server, "go").await.completed("got y\n");
}

#[tokio::test]
async fn a_prompt_may_be_the_first_line_of_an_open_input() {
    let body = "read line; echo heard $line; echo 'Sure? (y/n)'; read a; echo got $a";
    let (_, done) = asked(body, "prompt-by: line", "y").await;
    assert_eq!(texts(&done).concat(), "heard go\ngot y\n");
}

#[tokio::test]
async fn a_prompt_is_never_an_option() {
    let stage = Stage::new("generic", &json!(["cat"]), "store: memory");
    // `cat --version` would succeed.
    let failed = run(&stage.server, "--version").await;
    failed.ended("FAILED", "--version");
    let stage = script(r#"printf %s "$0""#, "");
    run(&stage.server, "-n").await.completed(" -n\n");
}

#[tokio::test]
async fn a_prompt_that_no_argument_can_hold_fails_with_advice_or_goes_to_stdin() {
    let prompt = "a".repeat(300_000);
    let stage = script("echo hi", "");
    run(&stage.server, &prompt).await.ended("FAILED", "the prompt is too long for an argument");
    let stage = script("wc -c", "prompt-by: stdin");
    run(&stage.server, &prompt).await.completed("300000\n");
}

#[tokio::test]
async fn a_command_that_is_not_there_fails_without_its_path() {
    let stage = Stage::new("generic", &json!(["/nonexistent/place/agent"]), "store: memory");
    let failed = run(&stage.server, "go").await;
    failed.ended("FAILED", "Failed to spawn \"agent\": it is not installed");
    assert!(!failed.words.contains("place"), "{}", failed.words);
}

#[tokio::test]
async fn a_command_that_remembers_nothing_is_not_told_to() {
    let stage = case().stage("prompt-by: stdin");
    let first = stage.server.send("remember the number 5").await;
    let params = nuncio_tests::in_context(&first["contextId"], "recall");
    told(&stage.server, &stage.server.send_params(params).await).await.completed("I know no number.");
}

/// Asks, and works on until the file `done` is there. What it is asked next it repeats.
const WORKS_ON: &str = "case $0 in go) echo 'Proceed? [y/N]'; read a; echo got $a; \
                        for i in $(seq 600); do [ -e done ] && break; sleep 0.05; done;; \
                        *) echo \"asked: $0\";; esac";

#[tokio::test]
async fn what_is_said_after_an_approval_has_expired_is_not_its_answer() {
    let stage = script(WORKS_ON, "approval-timeout: 500ms");
    for word in ["what is next?", "y"] {
        let task = stage.server.send("go").await;
        stage.server.until(id(&task), "WORKING").await;
        stage.server.send_params(at_once(follow_up(&task, word))).await;
        let done = stage.workspace.path().join("done");
        std::fs::write(&done, "").unwrap();
        let over = stage.server.until(id(&task), "COMPLETED").await;
        assert_eq!(texts(&over).concat(), format!("got n\nasked: {word}\n"));
        std::fs::remove_file(done).unwrap();
    }
}

#[tokio::test]
async fn a_decision_counts_once_and_is_no_order_the_second_time() {
    let stage = script(WORKS_ON, "");
    let server = &stage.server;
    let task = server.send("go").await;
    let asked = &task["status"]["message"]["metadata"]["urn:nuncio:a2a:input:v1"]["id"];
    let mut decision = at_once(follow_up(&task, ""));
    decision["message"]["parts"] = json!([{ "data": { "id": asked, "decision": "approve" } }]);
    let send = || server.rpc_request("SendMessage", &decision);
    let (_, first) = answer(send().header("Idempotency-Key", "k")).await;
    assert_eq!(state(&first["result"]["task"]), "WORKING", "{first}");
    let (_, again) = answer(send().header("Idempotency-Key", "k")).await;
    assert_eq!(id(&again["result"]["task"]), id(&task), "the same send again: {again}");
    let (_, second) = answer(send()).await;
    assert_eq!(second["error"]["code"], -32004, "{second}");
    assert!(second["error"]["message"].as_str().unwrap().starts_with("This approval is not waited for"), "{second}");
    std::fs::write(stage.workspace.path().join("done"), "").unwrap();
    assert_eq!(texts(&server.until(id(&task), "COMPLETED").await).concat(), "got y\n");
}

#[tokio::test]
async fn a_command_that_was_interrupted_is_not_started_by_the_answer_to_its_question() {
    let mut stage = Stage::shell(WORKS_ON, "");
    let task = stage.server.send("go").await;
    stage.server.kill();
    stage.server.restart();
    let over = stage.server.send_params(follow_up(&task, "y")).await;
    assert_eq!((state(&over), words(&over)), ("FAILED", "The task was interrupted by a restart"));
    assert_eq!(texts(&over).concat(), "");
}

/// One line of a program is one text, and comes in events that every client reads.
#[tokio::test]
async fn a_long_line_comes_in_pieces() {
    let stage = Stage::shell("head -c 9000000 /dev/zero | sed 's/\\x00/é/g'", "store: memory");
    let mut stream = Sse::open(stage.server.post("/message:stream", &message("go"))).await;
    let (mut text, mut pieces) = (String::new(), 0);
    while let Some(event) = stream.next().await {
        let part = event.data["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str();
        let Some(part) = part else { continue };
        assert!(part.len() <= 8 << 20, "{}", part.len());
        text.push_str(part);
        pieces += 1;
    }
    assert!(pieces >= 3, "{pieces}");
    assert_eq!(text.trim_end(), "é".repeat(9_000_000));
}
