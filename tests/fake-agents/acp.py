#!/usr/bin/env python3
"""An agent that speaks the Agent Client Protocol. Words of the prompt choose what it does.

Started with an argument it behaves oddly from the start: `mute` answers nothing, `v9` speaks another
version, `forgets` cannot go back to a conversation, `resumes` goes back by session/resume, `login` wants
to be signed in until the file `signed-in` is there, `late` begins no conversation before the file `ready`
is there, `deaf` ignores cancels and SIGTERM, `prose` is no agent.
"""

import json
import os
import pathlib
import queue
import random
import re
import signal
import sys
import threading
import time
import uuid

KIND = sys.argv[1] if len(sys.argv) > 1 else ""
# Conversations outlive the program, as with the real ones.
HOME = pathlib.Path(".fake-acp")
OUT = threading.Lock()
ANSWERS: dict[str, queue.Queue] = {}
CANCELLED: dict[str, threading.Event] = {}


def put(*messages):
    raw("".join(json.dumps(message) + "\n" for message in messages))


def raw(text):
    with OUT:
        sys.stdout.write(text)
        sys.stdout.flush()


def tell(session, kind, /, **fields):
    put({"jsonrpc": "2.0", "method": "session/update",
         "params": {"sessionId": session, "update": {"sessionUpdate": kind, **fields}}})


def say(session, text):
    tell(session, "agent_message_chunk", content={"type": "text", "text": text})


def request(method, **params):
    """A request, and its number."""
    number = str(uuid.uuid4())
    ANSWERS[number] = queue.Queue()
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}, number


def begin(method, **params):
    """Sends a request; returns its number."""
    message, number = request(method, **params)
    put(message)
    return number


def ask(method, **params):
    """Sends a request and waits; returns the result, or the error in words."""
    answer = ANSWERS[begin(method, **params)].get()
    if "error" in answer:
        error = answer["error"]
        return f"error {error['code']}: {error.get('data') or error['message']}"
    return answer["result"]


class Refused(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


OPTIONS = [
    {"optionId": "never", "name": "Never", "kind": "reject_always"},
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "no", "name": "Not now", "kind": "reject_once"},
    {"optionId": "yes", "name": "This time", "kind": "allow_once"},
    {"optionId": "odd", "name": "Odd", "kind": "maybe"},
]


def permit(session, call="call-p", options=OPTIONS, **more):
    request = {"toolCallId": call, "title": "Run make", "kind": "execute", "rawInput": {"command": "make"}, **more}
    answer = ask("session/request_permission", sessionId=session, toolCall=request, options=options)
    outcome = answer["outcome"] if isinstance(answer, dict) else {"outcome": answer}
    return outcome.get("optionId", outcome["outcome"])


def tools(session):
    tell(session, "agent_thought_chunk", content={"type": "text", "text": "Let me see"})
    tell(session, "plan", entries=[
        {"content": "look", "priority": "high", "status": "completed"},
        {"content": "edit", "priority": "low", "status": "in_progress"}])
    tell(session, "available_commands_update", availableCommands=[{"name": "web", "description": "Search"}])
    tell(session, "current_mode_update", currentModeId="code")
    tell(session, "config_option_update", configOptions=[])
    tell(session, "session_info_update", title="A title")
    tell(session, "mind_reading", content={"type": "text", "text": "never shown"})
    path = os.path.join(os.getcwd(), "a.txt")
    tell(session, "tool_call", toolCallId="call-1", title="Edit a.txt", kind="edit", status="pending",
         rawInput={"path": path}, locations=[{"path": path, "line": 3}])
    tell(session, "tool_call_update", toolCallId="call-1", status="in_progress",
         content=[{"type": "content", "content": {"type": "text", "text": "half"}}])
    tell(session, "tool_call_update", toolCallId="call-1", status="completed", content=[
        {"type": "content", "content": {"type": "text", "text": "half and whole"}},
        {"type": "diff", "path": path, "oldText": "old\n", "newText": "new\n"}])
    tell(session, "tool_call_update", toolCallId="call-1", status="completed")
    tell(session, "tool_call", toolCallId="call-2", title="Fetch", kind="fetch", status="in_progress")
    tell(session, "tool_call_update", toolCallId="call-2", status="failed",
         content=[{"type": "content", "content": {"type": "text", "text": "no network"}}])
    say(session, "All ")
    tell(session, "agent_message_chunk", content=[{"type": "text", "text": "do"}, {"type": "text", "text": "ne"}])
    tell("another-session", "agent_message_chunk", content={"type": "text", "text": "not ours"})
    tell(session, "agent_message_chunk", content={"type": "image", "data": "AQID", "mimeType": "image/png"})
    tell(session, "usage_update", used=100, size=1000, cost={"amount": 0.25, "currency": "USD"})


def files(session, path):
    """Writes, reads and tells what came of both."""
    wrote = ask("fs/write_text_file", sessionId=session, path=path, content="one\ntwo\n")
    read = ask("fs/read_text_file", sessionId=session, path=path, line=2, limit=1)
    say(session, f"write: {wrote if isinstance(wrote, str) else 'ok'}; "
                 f"read: {read if isinstance(read, str) else json.dumps(read['content'])}")


def terminal(session, script, *, kill=False):
    made = ask("terminal/create", sessionId=session, command="sh", args=["-c", script],
               env=[{"name": "EXTRA", "value": "e"}], outputByteLimit=64)
    if isinstance(made, str):
        return say(session, made)
    at = {"sessionId": session, "terminalId": made["terminalId"]}
    tell(session, "tool_call", toolCallId="call-t", title="Run", kind="execute", status="in_progress",
         content=[{"type": "terminal", "terminalId": made["terminalId"]}])
    if kill:
        while "up" not in ask("terminal/output", **at)["output"]:
            time.sleep(0.01)
        ask("terminal/kill", **at)
    exit_status = ask("terminal/wait_for_exit", **at)
    output = ask("terminal/output", **at)
    tell(session, "tool_call_update", toolCallId="call-t", status="completed")
    ask("terminal/release", **at)
    say(session, json.dumps({"exit": exit_status, **output, "after": ask("terminal/output", **at)}, sort_keys=True))


def keep(path, memory):
    """Stores what is remembered; whoever is killed in the middle has the old."""
    new = path.with_suffix(f".{threading.get_ident()}")
    new.write_text(json.dumps(memory))
    new.replace(path)


def form(session, properties, required=()):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    answer = ask("elicitation/create", sessionId=session, mode="form", message="Which port?", requestedSchema=schema)
    say(session, json.dumps(answer, sort_keys=True))


def garbage(session):
    raw("Starting up...\n\n[1,2]\nnull\n{\"half\": \n")
    raw("\x00\x01 binary \x7f\n")
    put({"jsonrpc": "2.0", "id": 999999, "result": {"stopReason": "refusal"}})
    put({"jsonrpc": "2.0", "id": None, "method": 7})
    for params in (None, [1], "x", 7, True, {}):
        put({"jsonrpc": "2.0", "method": "session/update", "params": params})
    put({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": []}})
    put({"jsonrpc": "2.0", "method": "_vendor/news", "params": {}})
    say(session, ask("_vendor/please"))
    say(session, " " + ask("session/request_permission", sessionId=session, toolCall=7, options="x"))


def noise(session, seed):
    """Frames that are almost right, none of them the same."""
    source = random.Random(seed)
    words = ["tool_call", "tool_call_update", "agent_message_chunk", "plan", "usage_update", "completed", "failed", "c"]
    keys = ["sessionUpdate", "toolCallId", "title", "status", "content", "type", "text", "entries", "cost", "terminalId"]

    def value(depth):
        kind = source.randrange(6 if depth else 4)
        if kind == 5:
            return {source.choice(keys): value(depth - 1) for _ in range(source.randrange(6))}
        return [None, source.randrange(-9, 9), source.choice(words), True, []][kind]

    methods = ["session/update", "session/update", "fs/read_text_file", "terminal/output", "terminal/kill", "_x", "$/y"]
    for number in range(2000):
        frame = {"jsonrpc": "2.0", "method": source.choice(methods), "params": {"sessionId": session, "update": value(4)}}
        if not frame["method"].startswith("session/"):
            frame["id"] = source.choice([number, str(number), None, {"odd": number}])
        text = bytearray(json.dumps(frame).encode())
        if source.randrange(5) == 0:
            text[source.randrange(len(text))] = source.randrange(256)
        if source.randrange(9) == 0:
            del text[source.randrange(len(text)):]
        with OUT:
            sys.stdout.flush()
            sys.stdout.buffer.write(bytes(text).replace(b"\n", b" ") + b"\n")
            sys.stdout.buffer.flush()
    say(session, "over")


def slow(session):
    event = CANCELLED[session]
    for number in range(600):
        if event.wait(0.05) and KIND != "deaf":
            return "cancelled"
        say(session, f"{number} ")
    return "end_turn"


def environment(session):
    names = [name for name in ("CARGO_MANIFEST_DIR", "NUNCIO_LOG", "GIVEN", "PATH") if name in os.environ]
    say(session, " ".join(names))
    terminal(session, 'echo "${CARGO_MANIFEST_DIR-none} ${GIVEN-none} ${EXTRA-none}"')


def work(session, prompt, memory):
    """Does what the prompt says; returns the reason for stopping."""
    text = "\n".join(block.get("text", "") for block in prompt)
    word, rest = (text.split(None, 1) + ["", ""])[:2]
    number = re.search(r"remember the number (\d+)", text)
    if number:
        memory["number"] = number[1]
        say(session, f"I will remember {number[1]}")
    elif "recall" in text:
        say(session, f"number {memory.get('number')} of {len(memory['said'])}")
    elif word == "tools":
        tools(session)
    elif word == "permission":
        choice = permit(session, options=[one for one in OPTIONS if not rest or one["kind"] in rest])
        say(session, f"chose {choice}")
        tell(session, "tool_call_update", toolCallId="call-p", status="completed")
    elif word == "twice":
        first = [begin("session/request_permission", sessionId=session, options=OPTIONS,
                       toolCall={"toolCallId": call, "title": f"Do {call}", "kind": "edit"}) for call in ("a", "b")]
        say(session, " ".join(ANSWERS[one].get()["result"]["outcome"]["optionId"] for one in first))
    elif word == "withdraw":
        # The second is taken back while the first waits for its answer; at once, so that no answer can be faster.
        (first, one), (second, two) = (
            request("session/request_permission", sessionId=session, options=OPTIONS,
                    toolCall={"toolCallId": call, "title": f"Do {call}", "kind": "edit"}) for call in ("a", "b"))
        put(first, second, {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": two}})
        say(session, f"{ANSWERS[one].get()['result']['outcome']['optionId']} {ANSWERS[two].get()['error']['code']}")
    elif word == "files":
        files(session, rest)
    elif word == "run":
        terminal(session, rest)
    elif word == "kill":
        terminal(session, "echo up; sleep 1000 & sleep 1000", kill=True)
    elif word == "outside":
        say(session, str(ask("terminal/create", sessionId=session, command="pwd", cwd=rest)))
    elif word == "leave":
        # Never released, and one that leaves its group.
        ask("terminal/create", sessionId=session, command="sh", args=["-c", "setsid sleep 1000 & sleep 1000"])
        say(session, "left")
    elif word == "environment":
        environment(session)
    elif word == "login":
        if not os.path.exists("signed-in"):
            raise Refused(-32000, "Authentication required", {"details": "the token has expired"})
        say(session, f"signed in; {text.count('login')} of {len(memory['said'])}")
    elif word == "form":
        form(session, {"port": {"type": "integer", "title": "Port"}}, ["port"])
    elif word == "fields":
        form(session, {"host": {"type": "string"}, "zone": {"type": "string", "enum": ["eu", "us"]}}, ["host"])
    elif word == "link":
        answer = ask("elicitation/create", sessionId=session, mode="url", message="Sign in",
                     url="https://example.org/in", elicitationId="e-1")
        say(session, json.dumps(answer))
    elif word == "error":
        raise Refused(-32603, "Internal error", {"details": "the quota is used up"})
    elif word == "usage":
        memory["cost"] = memory.get("cost", 0.0) + 0.5
        tell(session, "usage_update", used=1, size=9, cost={"amount": memory["cost"], "currency": "USD"})
    elif word == "half":
        # Cut in the middle of a character: half of its pair is left.
        say(session, "before \ud83d after")
        say(session, " and \ude00")
    elif word == "garbage":
        garbage(session)
    elif word == "noise":
        noise(session, rest)
    elif word == "huge":
        raw('{"jsonrpc":"2.0","method":"session/update","params":{"x":"' + "x" * (33 << 20) + '"}}\n')
    elif word == "long":
        say(session, "x" * (1 << 20))
    elif word == "flood":
        for count in range(5000):
            say(session, f"{count}\n")
    elif word == "unread":
        # Asks and asks, and never looks at the answers.
        for _ in range(20000):
            put({"jsonrpc": "2.0", "id": "x", "method": "_vendor/please", "params": {}})
        say(session, "asked")
    elif word == "die":
        say(session, "I am ")
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(3)
    elif word == "slow":
        return slow(session)
    elif word == "stop":
        return rest
    else:
        say(session, f"echo {text}")
    return "end_turn"


def run_prompt(number, params):
    session = params["sessionId"]
    CANCELLED[session] = threading.Event()
    path = HOME / f"{session}.json"
    memory = json.loads(path.read_text())
    memory["said"].append(params["prompt"])
    keep(path, memory)
    try:
        reason = work(session, params["prompt"], memory)
    except Exception as error:
        refused = error if isinstance(error, Refused) else Refused(-32603, "Internal error", repr(error))
        memory["said"].pop()
        keep(path, memory)
        put({"jsonrpc": "2.0", "id": number, "error": refused.error})
        return
    keep(path, memory)
    if CANCELLED[session].is_set() and KIND != "deaf":
        reason = "cancelled"
    usage = {"totalTokens": 12, "inputTokens": 7, "outputTokens": 5, "cachedReadTokens": 2}
    answer = {"jsonrpc": "2.0", "id": number, "result": {"stopReason": reason, "usage": usage}}
    put(answer)
    put(answer)  # An answer that comes twice counts once.


def opened(session, replay):
    path = HOME / f"{session}.json"
    if KIND == "forgets" or not path.exists():
        raise Refused(-32002, "Resource not found", {"uri": session})
    for prompt in json.loads(path.read_text())["said"] if replay else []:
        for block in prompt:
            tell(session, "user_message_chunk", content=block)
        say(session, "OLD NEWS")
    return {}


def handle(method, params):
    if method == "initialize":
        can = {"loadSession": KIND != "forgets", "promptCapabilities": {"image": True, "embeddedContext": True}}
        if KIND == "resumes":
            can["sessionCapabilities"] = {"resume": {}}
        return {"protocolVersion": 9 if KIND == "v9" else 1, "agentCapabilities": can,
                "authMethods": [{"id": "fake", "name": "Fake login", "description": "touch signed-in"}]}
    if method == "authenticate":
        pathlib.Path("signed-in").touch()
        return {}
    if method == "session/new":
        for _ in range(600 if KIND == "late" else 0):
            if os.path.exists("ready"):
                break
            time.sleep(0.05)
        if KIND == "login" and not os.path.exists("signed-in"):
            raise Refused(-32000, "Authentication required")
        session = f"fake-{uuid.uuid4()}"
        HOME.mkdir(exist_ok=True)
        keep(HOME / f"{session}.json", {"said": []})
        modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]}
        return {"sessionId": session, "modes": modes}
    if method == "session/load":
        return opened(params["sessionId"], replay=True)
    if method == "session/resume":
        return opened(params["sessionId"], replay=False)
    raise Refused(-32601, "Method not found")


def main():
    if KIND == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if KIND == "prose":
        print("Hello! How can I help you?", flush=True)
    if KIND in ("mute", "prose"):
        time.sleep(1000)
    for line in sys.stdin:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if method is None:
            if isinstance(number, (int, str)) and number in ANSWERS:
                ANSWERS[number].put(message)
        elif method == "session/cancel":
            CANCELLED.setdefault(message["params"]["sessionId"], threading.Event()).set()
        elif method == "session/prompt":
            threading.Thread(target=run_prompt, args=(number, message["params"]), daemon=True).start()
        elif number is not None:
            try:
                put({"jsonrpc": "2.0", "id": number, "result": handle(method, message.get("params") or {})})
            except Refused as refused:
                put({"jsonrpc": "2.0", "id": number, "error": refused.error})
    while KIND == "deaf":
        time.sleep(1)


main()
