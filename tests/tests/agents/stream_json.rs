//! What Claude Code and Qwen Code have in common: the same lines, read by the same reader.

use nuncio_tests::{
    Sse, SseEvent, Stage, Value, Wire, at_once, fake, follow_up, id, in_context, json, message, state, texts, words,
};

use crate::told::{INPUT, Told, answer_on_another_wire};

/// One of the two.
#[derive(Clone, Copy)]
pub(crate) struct Cli {
    /// Its kind in the configuration.
    pub(crate) kind: &'static str,
    /// Its program.
    pub(crate) program: &'static str,
    /// Its tool for commands.
    pub(crate) shell: &'static str,
    /// Whether it takes rules back.
    pub(crate) takes_rules: bool,
}

impl Cli {
    pub(crate) fn stage(self, more: &str) -> Stage {
        Stage::fake(self.kind, self.program, more)
    }

    /// However the lines come, the answer is told once and in order, on every wire.
    pub(crate) async fn says_everything_once(self) {
        let stage = self.stage("store: memory");
        for (prompt, answer) in [
            ("hello", "You said: hello"),
            ("two blocks", "First.\n\nSecond."),
            ("whole", "Said at once.\n\nAnd more."),
            ("twice", "Once.\n\nOnly once."),
            ("cut", "Grüße, 世界 😀!"),
            ("crlf", "With carriage returns."),
            ("noise", "Through the noise."),
            ("unknown", "Known."),
            ("result only", "Only in the result."),
            ("subagent", "Mine."),
            ("no result", "No more than this."),
            ("-v is no flag", "You said: -v is no flag"),
        ] {
            let told = Told::by(&stage, prompt).await;
            assert_eq!((told.state(), &*told.text()), ("COMPLETED", answer), "{prompt}: {}", told.task);
            assert_eq!(told.words(), Vec::<&str>::new(), "{prompt}");
            let artifacts = told.task["artifacts"].as_array().map(Vec::len);
            assert_eq!(artifacts, Some(1), "{prompt}: one answer, one artifact");
        }
        for wire in Wire::ALL {
            let events = Sse::open(wire.stream(&stage.server, "two blocks")).await.all().await;
            let heard: String = events.iter().filter_map(SseEvent::chunk).collect();
            // The REST wire of 0.3 names the parts of an artifact otherwise.
            if wire != Wire::OldRest {
                assert_eq!(heard, "First.\n\nSecond.", "{wire:?}: {events:#?}");
            }
            let is_over = |event: &&SseEvent| event.state().to_uppercase().ends_with("COMPLETED");
            assert_eq!(events.iter().filter(is_over).count(), 1, "{wire:?}");
        }
        stage.until_idle().await;
    }

    /// Every way to end, and what the caller hears.
    pub(crate) async fn ends_as_it_says(self, more: &[(&str, &str, &str)]) {
        let stage = self.stage("store: memory");
        let common = [
            ("empty", "COMPLETED", ""),
            ("refuse", "REJECTED", "I will not."),
            ("error result", "FAILED", "API Error: 500 overloaded"),
            ("failure with 0", "FAILED", "API Error: 500 overloaded"),
            ("max turns", "FAILED", "agent stopped: error_max_turns"),
            ("errors", "FAILED", "one; two"),
            ("silent", "FAILED", "agent ended without an answer"),
            ("exit 3", "FAILED", "agent exited with code 3: boom: it broke"),
            ("crash", "FAILED", "agent was ended by signal 9"),
            ("rate limit", "FAILED", "You've hit your limit · resets 12am (UTC)"),
            ("too long", "FAILED", "The agent printed a line that is too long"),
        ];
        for (prompt, end, why) in common.iter().chain(more) {
            let told = Told::by(&stage, prompt).await;
            assert_eq!((told.state(), words(&told.task)), (*end, *why), "{prompt}: {}", told.task);
        }
        let told = Told::by(&stage, "crash").await;
        assert_eq!(told.text(), "Half a sent", "what was said before the end stays");
        let told = Told::by(&stage, "broken").await;
        assert!(words(&told.task).starts_with("agent printed a line that cannot be read"), "{}", told.task);
        let told = Told::by(&stage, "rate limit").await;
        assert!(
            told.words()[0].starts_with("The limit of the model is reached until 2030-01-01"),
            "{:?}",
            told.words()
        );
    }

    /// Thinking, tool calls and usage are there for whoever wants to know.
    pub(crate) async fn tells_tools_thinking_and_usage(self, usage: Value) {
        let stage = self.stage("store: memory\nthinking-exposure: all");
        let told = Told::by(&stage, "tool").await;
        assert_eq!(told.text(), "Let me look.\n\nIt was in a.txt.");
        assert_eq!(told.thinking(), "Where could it be?");
        let step = |name: &str, known: Value| (name.to_owned(), known);
        assert_eq!(
            told.tools(),
            [
                step("toolu_1 Read started", Value::Null),
                step("toolu_1 Read input", json!({ "file_path": "a.txt" })),
                step("toolu_1 Read completed", json!([{ "type": "text", "text": "the content" }])),
                step("toolu_2 Read started", Value::Null),
                step("toolu_2 Read input", json!({ "file_path": "b.txt" })),
                step("toolu_2 Read failed", json!("File does not exist.")),
            ]
        );
        assert_eq!(told.usage(), usage);
        let told = Told::by(&stage, "subagent").await;
        let steps: Vec<String> = told.tools().into_iter().map(|(step, _)| step).collect();
        assert!(steps.contains(&"toolu_s Grep completed".to_owned()), "what helpers do is told: {steps:?}");
        let told = Told::by(&stage, "twice").await;
        assert_eq!(told.tools().len(), 3, "{:?}", told.tools());

        let silent = self.stage("store: memory\nthinking-exposure: none");
        let told = Told::by(&silent, "tool").await;
        assert_eq!((told.thinking(), told.tools()), (String::new(), Vec::new()));
    }

    /// Lines of megabytes are lines.
    pub(crate) async fn reads_long_lines(self) {
        let stage = self.stage("store: memory");
        let told = Told::by(&stage, "long line").await;
        assert_eq!(told.state(), "COMPLETED");
        assert_eq!(told.text().len(), 1 << 20);
        let (_, output) = told.tools().pop().unwrap();
        assert_eq!(output.as_str().map(str::len), Some(3 << 20));
    }

    /// A yes, a no, a yes for good, and what they make of the command.
    pub(crate) async fn asks_before_it_acts(self) {
        let stage = self.stage("store: memory");
        let server = &stage.server;
        let rules = if self.takes_rules { " From now on: allow." } else { "" };
        let always = if self.takes_rules { "always allow" } else { "allow" };
        for (reply, answer) in [
            ("y", "Did make -j2."),
            (always, &*format!("Did make -j2.{rules}")),
            ("n", "Did not: The user does not want this to be done."),
        ] {
            let asked = server.send("approve make -j2").await;
            assert_eq!(state(&asked), "INPUT_REQUIRED", "{asked}");
            let request = &asked["status"]["message"]["metadata"][INPUT];
            assert_eq!((&request["kind"], &request["tool"]), (&json!("approval"), &json!(self.shell)), "{request}");
            assert_eq!(request["input"], json!({ "command": "make -j2", "timeout": 5 }));
            assert_eq!(request["call"], "toolu_1");
            assert!(words(&asked).starts_with(&format!("Approve? {}: make -j2\n", self.shell)), "{asked}");
            answer_on_another_wire(server, &asked, reply).await;
            let told = Told::of(&stage, &asked).await;
            assert_eq!(told.text(), format!("I need leave.\n\n{answer}"), "{reply}");
            let last = told.tools().pop().unwrap().0;
            let phase = if reply == "n" { "failed" } else { "completed" };
            assert_eq!(last, format!("toolu_1 {} {phase}", self.shell));
        }
        let did = std::fs::read_to_string(stage.workspace.path().join("did.txt")).unwrap();
        assert_eq!(did, "make -j2\nmake -j2\n", "what was denied was not done");

        let asked = server.send("approve rm x").await;
        let request = asked["status"]["message"]["metadata"][INPUT].clone();
        let mut reply = follow_up(&asked, "");
        let data =
            json!({ "id": request["id"], "digest": request["digest"], "decision": "deny", "reason": "too bold" });
        reply["message"]["parts"] = json!([{ "data": data, "mediaType": "application/json" }]);
        let done = server.send_params(reply).await;
        assert!(texts(&done).concat().ends_with("Did not: too bold"), "the agent hears why: {done}");
        stage.until_idle().await;
    }

    /// Rules answer for people; whoever may do everything is not asked.
    pub(crate) async fn obeys_rules(self) {
        let rules = format!("store: memory\nallow-tools: ['{0}(ls *)']\ndeny-tools: ['{0}(rm *)']", self.shell);
        let stage = self.stage(&rules);
        let told = Told::by(&stage, "approve ls -l").await;
        assert!(told.text().ends_with("Did ls -l."), "{}", told.task);
        let told = Told::by(&stage, "approve rm -r x").await;
        assert!(told.text().ends_with("Did not: The configuration does not allow this."), "{}", told.task);
        let stage = self.stage("store: memory\nauto-approve-permissions: true");
        let told = Told::by(&stage, "approve anything").await;
        assert!(told.text().ends_with("Did anything."), "{}", told.task);
        assert!(!told.states().contains(&"TASK_STATE_INPUT_REQUIRED"), "{:?}", told.states());
    }

    /// An approval that nobody wants any more is not waited for.
    pub(crate) async fn takes_questions_back(self) {
        for (prompt, answer) in [("withdraw later", "Went on."), ("settled", "Nobody answered.")] {
            let stage = self.stage("store: memory");
            let asked = stage.server.send(prompt).await;
            assert_eq!(state(&asked), "INPUT_REQUIRED", "{asked}");
            std::fs::write(stage.workspace.path().join("go-on"), "").unwrap();
            stage.server.until(id(&asked), "COMPLETED").await;
            let told = Told::of(&stage, &asked).await;
            assert_eq!(told.text(), answer);
            let states = ["SUBMITTED", "WORKING", "INPUT_REQUIRED", "WORKING", "COMPLETED"];
            let seen: Vec<&str> = told.states().iter().map(|state| state.trim_start_matches("TASK_STATE_")).collect();
            assert!(states.ends_with(&seen) || seen.ends_with(&states[1..]), "{seen:?}");
        }
        let stage = self.stage("store: memory");
        let told = Told::by(&stage, "withdraw at once").await;
        assert_eq!((told.state(), &*told.text()), ("COMPLETED", "Went on."));
    }

    /// Two approvals at a time are asked one after the other, and each gets its own answer.
    pub(crate) async fn asks_twice(self) {
        let stage = self.stage("store: memory");
        let server = &stage.server;
        let asked = server.send("two approvals").await;
        assert!(words(&asked).contains("one"), "{asked}");
        let next = server.send_params(follow_up(&asked, "y")).await;
        assert_eq!(state(&next), "INPUT_REQUIRED");
        assert!(words(&next).contains("other"), "{next}");
        let mut last = follow_up(&asked, "n");
        last["message"]["messageId"] = json!("m-3");
        let done = server.send_params(last).await;
        assert_eq!(texts(&done), ["allow and deny"], "{done}");
        Told::of(&stage, &done).await;
    }

    /// A question has an answer in words; what nobody here knows is refused.
    pub(crate) async fn asks_for_words(self) {
        let stage = self.stage("store: memory");
        let asked = stage.server.send("question").await;
        assert_eq!((state(&asked), words(&asked)), ("INPUT_REQUIRED", "Which colour?\n1. Red\n2. Blue"));
        let done = answer_on_another_wire(&stage.server, &asked, "2").await;
        assert_eq!(texts(&done), ["Blue it is."], "{done}");
        let told = Told::by(&stage, "unsupported").await;
        assert_eq!(told.text(), "error: unsupported request: hook_callback");
    }

    /// A conversation goes on, also after a restart; one that is gone begins anew.
    pub(crate) async fn remembers(self) {
        let mut stage = self.stage("");
        let first = Told::by(&stage, "remember the number 42").await;
        assert_eq!(first.text(), "I will remember the number 42.");
        let context = first.task["contextId"].clone();
        assert_eq!(Told::by(&stage, "recall").await.text(), "I know of no number.", "another conversation");
        stage.server.terminate();
        stage.server.restart();
        let again = Told::after(&stage, in_context(&context, "recall")).await;
        assert_eq!(again.text(), "You told me the number 42.");

        std::fs::remove_file(stage.workspace.path().join(".fake-sessions.json")).unwrap();
        let lost = Told::after(&stage, in_context(&context, "recall")).await;
        assert_eq!((lost.state(), &*lost.text()), ("COMPLETED", "I know of no number."));
        assert_eq!(lost.words(), ["The conversation could not be continued, a new one begins"]);
        Told::after(&stage, in_context(&context, "remember the number 8")).await;
        let found = Told::after(&stage, in_context(&context, "recall")).await;
        assert_eq!((&*found.text(), found.words().len()), ("You told me the number 8.", 0), "the new one is kept");
    }

    /// An approval outlives the server: the answer reaches a new process of the same conversation.
    pub(crate) async fn hears_an_answer_after_a_restart(self) {
        let mut stage = self.stage("");
        let asked = stage.server.send("approve make").await;
        stage.server.kill();
        stage.server.restart();
        stage.until_idle().await;
        let done = stage.server.send_params(follow_up(&asked, "y")).await;
        let answer = "You said: What you asked permission for is approved. Go on.";
        assert!(texts(&done).concat().ends_with(answer), "{done}");
        assert_eq!(state(&done), "COMPLETED");

        let (refused, other) = (stage.server.send("approve make").await, stage.server.send("approve make").await);
        let lost = stage.server.send("approve make").await;
        stage.server.kill();
        stage.server.restart();
        let asked = &refused["status"]["message"]["metadata"]["urn:nuncio:a2a:input:v1"]["id"];
        let mut params = follow_up(&refused, "");
        params["message"]["parts"] = json!([{ "data": { "id": asked, "decision": "deny", "reason": "Too bold." } }]);
        let done = stage.server.send_params(params).await;
        assert!(texts(&done).concat().ends_with("is denied. Do not do it. The reason: Too bold."), "{done}");
        let done = stage.server.send_params(follow_up(&other, "use make -n")).await;
        assert!(texts(&done).concat().ends_with("You said: use make -n"), "{done}");
        // A new conversation begins with all that was asked for, and the program asks once more.
        std::fs::remove_file(stage.workspace.path().join(".fake-sessions.json")).unwrap();
        let again = stage.server.send_params(follow_up(&lost, "y")).await;
        assert_eq!(state(&again), "INPUT_REQUIRED", "{again}");
        assert!(words(&again).contains("make"), "{again}");
    }

    /// Whoever is cancelled is told so, and is gone.
    pub(crate) async fn stops(self) {
        let stage = self.stage("store: memory");
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
        let stage = self.stage("store: memory\nturn-timeout: 1s");
        let told = Told::by(&stage, "slow").await;
        assert_eq!(told.state(), "FAILED", "{}", told.task);
        let stage = self.stage("store: memory\nsilence-timeout: 1s");
        let told = Told::by(&stage, "broken").await;
        assert_eq!(told.state(), "FAILED", "{}", told.task);
    }

    /// One that does not go is ended, with what it started.
    pub(crate) async fn leaves_nothing(self) {
        let stage = self.stage("store: memory");
        let told = Told::by(&stage, "linger").await;
        assert_eq!((told.state(), &*told.text()), ("COMPLETED", "Done."));
    }

    /// It is started with our flags and no others, and sees what it needs and no more.
    pub(crate) async fn is_started_as_it_should(self, complaint: &str) {
        let command = json!([fake(self.program), "--frobnicate"]);
        let stage = Stage::new(self.kind, &command, "store: memory");
        let told = Told::by(&stage, "hello").await;
        assert_eq!((told.state(), words(&told.task)), ("FAILED", complaint), "{}", told.task);

        let stage = Stage::new(self.kind, &json!(["/nowhere/agent"]), "store: memory");
        let told = Told::by(&stage, "hello").await;
        let why = "Failed to spawn \"agent\": it is not installed, or not on the server's PATH";
        assert_eq!((told.state(), words(&told.task)), ("FAILED", why));

        let stage = self.stage("store: memory\nmodel: fancy-2\nenv: [FAKE_SETTING=1]");
        let told = Told::by(&stage, "environment").await;
        let text = told.text();
        let names: Vec<&str> = text.split(' ').collect();
        assert!(names.contains(&"FAKE_SETTING") && names.contains(&"PATH"), "{names:?}");
        let of_the_server =
            |name: &&&str| name.starts_with("CARGO") || **name == "NUNCIO_LOG" || **name == "NUNCIO_BIN";
        assert_eq!(names.iter().find(of_the_server), None, "{names:?}");
        assert_eq!(told.usage()["model"], "fancy-2");
    }
}
