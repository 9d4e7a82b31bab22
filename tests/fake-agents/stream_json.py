"""The lines of Claude Code and Qwen Code: what they print, what they read, and every way to go wrong.

The first words of the prompt pick what happens.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
import uuid

import sessions


class Host:
    """The two pipes."""

    def __init__(self, name, session, cuts=False):
        self.name = name
        self.session = session
        self.messages = 0
        self.buffer = b""
        self.end = b"\n"
        self.times = 1
        self.cut = cuts

    def raw(self, data):
        if not self.cut:
            os.write(1, data)
            return
        # In the middle of lines and of characters.
        for at in range(0, len(data), 7):
            os.write(1, data[at : at + 7])
            if at % 700 == 0:
                time.sleep(0.01)

    def line(self, value):
        data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + self.end
        while data:
            if self.cut:
                self.raw(data)
                break
            data = data[os.write(1, data) :]

    def emit(self, value):
        value = {**value, "session_id": self.session, "uuid": str(uuid.uuid4())}
        for _ in range(self.times):
            self.line(value)

    # -- reading ---------------------------------------------------------------------------------

    def read(self, wait=None):
        """The next line from the host; None at the end, and when the time is over."""
        while b"\n" not in self.buffer:
            if wait is not None and not select.select([0], [], [], wait)[0]:
                return None
            data = os.read(0, 65536)
            if not data:
                return None
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def begin(self):
        """The handshake and the prompt, read as strictly as the real ones do."""
        first = self.read()
        if not first or first.get("type") != "control_request" or first["request"]["subtype"] != "initialize":
            fail("the first line must be an initialize request")
        answer = {"subtype": "success", "request_id": first["request_id"], "response": {"commands": []}}
        self.line({"type": "control_response", "response": answer})
        prompt = self.read()
        if not prompt or prompt.get("type") != "user" or prompt["message"]["role"] != "user":
            fail("expected a user message")
        if "parent_tool_use_id" not in prompt or "session_id" not in prompt:
            fail("the user message is incomplete")
        return prompt["message"]["content"]

    # -- speaking --------------------------------------------------------------------------------

    def event(self, event, parent=None):
        self.emit({"type": "stream_event", "event": event, "parent_tool_use_id": parent})

    def message_id(self):
        self.messages += 1
        return f"msg_{self.messages}"

    def assistant(self, message, block, parent=None):
        body = {"id": message, "type": "message", "role": "assistant", "model": "fake-1", "content": [block]}
        self.emit({"type": "assistant", "message": body, "parent_tool_use_id": parent})

    def block(self, message, index, block, deltas):
        """One block, in pieces and as a whole."""
        empty = {**block, **{key: "" for key in ("text", "thinking") if key in block}}
        self.event({"type": "content_block_start", "index": index, "content_block": empty})
        for delta in deltas:
            self.event({"type": "content_block_delta", "index": index, "delta": delta})
        self.assistant(message, block)
        self.event({"type": "content_block_stop", "index": index})

    def message(self, *blocks):
        """A message of texts, thoughts and calls."""
        message = self.message_id()
        self.event({"type": "message_start", "message": {"id": message, "role": "assistant", "content": []}})
        for index, block in enumerate(blocks):
            kind = block["type"]
            if kind == "text":
                deltas = [{"type": "text_delta", "text": text} for text in pieces(block["text"])]
            elif kind == "thinking":
                deltas = [{"type": "thinking_delta", "thinking": text} for text in pieces(block["thinking"])]
            else:
                deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
            self.block(message, index, block, deltas)
        self.event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}})
        self.event({"type": "message_stop"})

    def say(self, text):
        self.message({"type": "text", "text": text})

    def found(self, call, content, error=False, parent=None):
        """What a tool found."""
        block = {"type": "tool_result", "tool_use_id": call, "content": content}
        if error:
            block["is_error"] = True
        self.emit({"type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": parent})

    def result(self, text, **more):
        self.emit(
            {
                "type": "result",
                "subtype": "success",
                "is_error": False,
                "duration_ms": 1200,
                "duration_api_ms": 1000,
                "num_turns": 1,
                "result": text,
                "stop_reason": "end_turn",
                "total_cost_usd": 0.04,
                "usage": {
                    "input_tokens": 4,
                    "cache_creation_input_tokens": 10,
                    "cache_read_input_tokens": 100,
                    "output_tokens": 20,
                },
                "modelUsage": {"fake-1": {"inputTokens": 4, "costUSD": 0.04}},
                "permission_denials": [],
                **more,
            }
        )

    def failed(self, text, **more):
        self.result(text, is_error=True, total_cost_usd=0, **more)

    def request(self, request, line=True):
        """Something that the host is to answer; returns its id."""
        name = str(uuid.uuid4())
        value = {"type": "control_request", "request_id": name, "request": request}
        if line:
            self.line(value)
        return name if line else (name, value)

    def answer(self, name):
        """The host's answer. What it says about other matters is kept apart."""
        while True:
            line = self.read()
            if line is None:
                sys.exit(0)
            if line.get("type") == "control_request" and line["request"]["subtype"] == "interrupt":
                self.interrupted()
            if line.get("type") == "control_response" and line["response"]["request_id"] == name:
                return line["response"]

    def interrupted(self):
        with open("interrupted.txt", "w", encoding="utf-8") as file:
            file.write(self.session)
        self.failed("", subtype="error_during_execution", terminal_reason="aborted_streaming")
        sys.exit(0)


def pieces(text):
    """A text in a few pieces."""
    size = max(1, len(text) // 3)
    return [text[at : at + size] for at in range(0, len(text), size)]


def fail(why, code=1):
    print(why, file=sys.stderr, flush=True)
    sys.exit(code)


def may(host, tool, call, tool_input):
    """The request that asks for leave."""
    return {
        "subtype": "can_use_tool",
        "tool_name": tool,
        "input": tool_input,
        "tool_use_id": call,
        "permission_suggestions": host.suggestions,
        "blocked_path": None,
    }


# -- what happens ------------------------------------------------------------------------------------


def approve(host, rest):
    """Asks, and does exactly what the answer allows."""
    call = {"type": "tool_use", "id": "toolu_1", "name": host.shell, "input": {"command": rest, "timeout": 5}}
    host.message({"type": "text", "text": "I need leave."}, call)
    if host.force:
        response = {"behavior": "allow", "updatedInput": call["input"]}
    else:
        answer = host.answer(host.request(may(host, host.shell, "toolu_1", call["input"])))
        response = answer["response"] if answer["subtype"] == "success" else {"behavior": "deny", "message": "error"}
    if response["behavior"] == "allow":
        done = response["updatedInput"]["command"]
        if response["updatedInput"].get("timeout") != 5:
            fail("the input lost a member")
        with open("did.txt", "a", encoding="utf-8") as file:
            file.write(done + "\n")
        host.found("toolu_1", f"ran {done}")
        rules = response.get("updatedPermissions")
        text = f"Did {done}." + (f" From now on: {rules[0]['behavior']}." if rules else "")
    else:
        host.found("toolu_1", response["message"], error=True)
        text = f"Did not: {response['message']}"
    host.say(text)
    host.result(text)


def withdraw(host, rest):
    """Asks, and then no longer wants to know. `at once`: in the same breath."""
    host.message({"type": "tool_use", "id": "toolu_1", "name": host.shell, "input": {"command": "ls"}})
    name, value = host.request(may(host, host.shell, "toolu_1", {"command": "ls"}), line=False)
    cancel = {"type": "control_cancel_request", "request_id": name}
    if rest.startswith("at once"):
        os.write(1, "".join(json.dumps(line) + "\n" for line in (value, cancel)).encode())
    else:
        host.line(value)
        while not os.path.exists("go-on"):
            time.sleep(0.01)
        host.line(cancel)
    answered = host.read(wait=0.3) is not None
    host.found("toolu_1", "a hook allowed it")
    host.say("Answered all the same." if answered else "Went on.")
    host.result("")


def settled(host, _rest):
    """Asks, waits no longer, and does not say so."""
    host.message({"type": "tool_use", "id": "toolu_1", "name": host.shell, "input": {"command": "ls"}})
    host.request(may(host, host.shell, "toolu_1", {"command": "ls"}))
    while not os.path.exists("go-on"):
        time.sleep(0.01)
    host.found("toolu_1", "Error: the request timed out", error=True)
    host.say("Nobody answered.")
    host.result("")


def two_approvals(host, _rest):
    """Two at once; each gets its own answer."""
    one, other = "toolu_1", "toolu_2"
    host.message(
        {"type": "tool_use", "id": one, "name": host.shell, "input": {"command": "one"}},
        {"type": "tool_use", "id": other, "name": host.shell, "input": {"command": "other"}},
    )
    first = host.request(may(host, host.shell, one, {"command": "one"}))
    second = host.request(may(host, host.shell, other, {"command": "other"}))
    answers = {}
    while len(answers) < 2:
        line = host.read()
        if line is None:
            sys.exit(0)
        if line.get("type") == "control_response":
            answers[line["response"]["request_id"]] = line["response"]["response"]["behavior"]
    host.found(one, "x", error=answers[first] == "deny")
    host.found(other, "x", error=answers[second] == "deny")
    host.say(f"{answers[first]} and {answers[second]}")
    host.result("")


def question(host, _rest):
    asked = {"questions": [{"question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]}]}
    host.message({"type": "tool_use", "id": "toolu_1", "name": host.asking, "input": asked})
    response = host.answer(host.request(may(host, host.asking, "toolu_1", asked)))["response"]
    chosen = response["updatedInput"]["answers"]["Which colour?"] if response["behavior"] == "allow" else "none"
    host.found("toolu_1", "answered")
    host.say(f"{chosen} it is.")
    host.result("")


def unsupported(host, _rest):
    answer = host.answer(host.request({"subtype": "hook_callback", "callback_id": "c", "input": {}}))
    host.say(f"{answer['subtype']}: {answer['error']}")
    host.result("")


def slow(host, _rest):
    sessions.put(host.session, {**sessions.get(host.session), "slow": True})
    message = host.message_id()
    host.event({"type": "message_start", "message": {"id": message, "role": "assistant", "content": []}})
    host.event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    for n in range(120):
        host.event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": f"line {n}\n"}})
        line = host.read(wait=0.5)
        if line and line.get("type") == "control_request" and line["request"]["subtype"] == "interrupt":
            host.interrupted()
    host.result("")


def tool(host, _rest):
    host.message(
        {"type": "thinking", "thinking": "Where could it be?", "signature": "s"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "a.txt"}},
    )
    host.found("toolu_1", [{"type": "text", "text": "the content"}])
    host.message({"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {"file_path": "b.txt"}})
    host.found("toolu_2", "File does not exist.", error=True)
    host.say("It was in a.txt.")
    host.result("It was in a.txt.")


def two_blocks(host, _rest):
    host.message({"type": "text", "text": "First."}, {"type": "text", "text": "Second."})
    host.result("Second.")


def whole(host, _rest):
    """No pieces: two lines of one message."""
    host.assistant("msg_1", {"type": "text", "text": "Said at once."})
    host.assistant("msg_1", {"type": "text", "text": "And more."})
    host.result("And more.")


def twice(host, _rest):
    """Whole lines come twice."""
    host.times = 2
    host.assistant("msg_1", {"type": "text", "text": "Once."})
    call = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "a.txt"}}
    host.assistant("msg_2", call)
    host.found("toolu_1", "x")
    host.assistant("msg_3", {"type": "text", "text": "Only once."})
    host.result("Only once.")


def cut(host, _rest):
    host.cut = True
    host.say("Grüße, 世界 😀!")
    host.result("")


def crlf(host, _rest):
    host.end = b"\r\n"
    host.say("With carriage returns.")
    host.result("")


def noise(host, _rest):
    os.write(1, b"\n\n   \n[SandboxDebug] {\"not\": \"an event\"}\nDebugger attached.\n")
    host.say("Through the noise.")
    os.write(1, b"\xff\xfe not text\n\n")
    host.result("")


def unknown(host, _rest):
    host.emit({"type": "sparkle", "shine": 1})
    host.emit({"type": "system", "subtype": "weather"})
    host.emit({"type": "system", "subtype": "status", "status": "requesting"})
    host.event({"type": "ping"})
    host.assistant("msg_9", {"type": "hologram", "text": "no text"})
    host.say("Known.")
    host.result("")


def long_line(host, _rest):
    host.message({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "big"}})
    host.found("toolu_1", "x" * (3 << 20))
    host.assistant("msg_7", {"type": "text", "text": "y" * (1 << 20)})
    host.result("")


def too_long(host, _rest):
    data = b"{" + b" " * ((32 << 20) + 100_000)
    while data:
        data = data[os.write(1, data) :]
    time.sleep(60)


def broken(host, _rest):
    os.write(1, b'{"type":"assistant","message":\n')
    time.sleep(60)


def background(host, _rest):
    """A result comes while a helper still works; its end brings another."""
    host.emit({"type": "system", "subtype": "task_started", "task_id": "t1", "task_type": "local_agent"})
    host.say("It works behind.")
    host.result("It works behind.")
    time.sleep(0.2)
    host.emit({"type": "system", "subtype": "task_notification", "task_id": "t1", "status": "completed"})
    host.say("Now it is done.")
    host.result("Now it is done.")


def subagent(host, _rest):
    host.message({"type": "tool_use", "id": "toolu_1", "name": "Task", "input": {"description": "look"}})
    host.assistant("msg_s", {"type": "text", "text": "what the helper says"}, parent="toolu_1")
    inner = {"type": "tool_use", "id": "toolu_s", "name": "Grep", "input": {"pattern": "x"}}
    host.assistant("msg_s", inner, parent="toolu_1")
    host.found("toolu_s", "found", parent="toolu_1")
    host.found("toolu_1", "the helper is done")
    host.say("Mine.")
    host.result("Mine.")


def environment(host, _rest):
    names = sorted(name for name in os.environ if not name.startswith("LC_"))
    host.say(" ".join(names))
    host.result("")


def linger(host, _rest):
    """Is done, and does not go: neither at the end of its input nor when it is told to."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 60"], start_new_session=True)
    host.say("Done.")
    host.result("Done.")
    time.sleep(60)


def crash(host, _rest):
    host.event({"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}})
    host.event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half a sent"}})
    os.kill(os.getpid(), signal.SIGKILL)


def rate_limit(host, _rest):
    info = {"status": "rejected", "resetsAt": 1893456000, "rateLimitType": "five_hour"}
    host.emit({"type": "rate_limit_event", "rate_limit_info": info})
    host.failed("You've hit your limit · resets 12am (UTC)", api_error_status=429)
    sys.exit(1)


def auth(host, _rest):
    body = {"id": "msg_1", "model": "<synthetic>", "role": "assistant"}
    body["content"] = [{"type": "text", "text": host.not_logged_in}]
    host.emit({"type": "assistant", "message": body, "parent_tool_use_id": None, "error": "authentication_failed"})
    host.failed(host.not_logged_in)
    sys.exit(1)


def exit_with(host, rest):
    fail("\x1b[31mboom\x1b[0m: it broke", int(rest.split()[0]))


def one_result(text="", code=0, **more):
    """A turn that is only its result."""

    def run(host, _rest):
        host.result(text, **more)
        sys.exit(code)

    return run


def one_text(host, _rest):
    host.say("No more than this.")


SCENES = {
    "approve ": approve,
    "withdraw ": withdraw,
    "settled": settled,
    "two approvals": two_approvals,
    "question": question,
    "unsupported": unsupported,
    "slow": slow,
    "tool": tool,
    "two blocks": two_blocks,
    "whole": whole,
    "twice": twice,
    "cut": cut,
    "crlf": crlf,
    "noise": noise,
    "unknown": unknown,
    "long line": long_line,
    "too long": too_long,
    "broken": broken,
    "background": background,
    "subagent": subagent,
    "environment": environment,
    "linger": linger,
    "crash": crash,
    "rate limit": rate_limit,
    "auth": auth,
    "exit ": exit_with,
    "no result": one_text,
    "silent": lambda host, rest: None,
    "empty": one_result(""),
    "result only": one_result("Only in the result."),
    "refuse": one_result("I will not.", stop_reason="refusal"),
    "error result": one_result("API Error: 500 overloaded", code=1, is_error=True, api_error_status=500),
    "failure with 0": one_result("API Error: 500 overloaded", is_error=True),
    "max turns": one_result("", code=1, subtype="error_max_turns", is_error=True, num_turns=9),
    "errors": one_result("", code=1, subtype="error_during_execution", is_error=True, errors=["one", "two"]),
}


def run(host, prompt):
    said = sessions.talk(host.session, prompt)
    if said is not None:
        host.message({"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": said})
        return host.result(said)
    for words, scene in SCENES.items():
        if prompt.startswith(words):
            return scene(host, prompt[len(words) :].strip())
    host.say(f"You said: {prompt}")
    return host.result(f"You said: {prompt}")
