"""`codex app-server`: JSON-RPC without its version, over two pipes. The first words of the prompt pick what happens."""

import os
import signal
import sys
import time
import uuid

import sessions
from stream_json import Host, fail, pieces


class Server(Host):
    """The protocol as the real one checks it."""

    def __init__(self):
        super().__init__("codex", "")
        self.initialized = False
        self.turn = ""
        self.asked = 0
        self.items = 0
        self.before = {"inputTokens": 0, "cachedInputTokens": 0, "outputTokens": 0, "totalTokens": 0}

    def notify(self, method, **params):
        for _ in range(self.times):
            self.line({"method": method, "params": {"threadId": self.session, **params}})

    def reply(self, request, result):
        self.line({"id": request["id"], "result": result})

    def refuse(self, request, code, message):
        self.line({"error": {"code": code, "message": message}, "id": request["id"]})

    def ask(self, method, **params):
        """Asks the host and returns its answer."""
        self.asked += 1
        name = self.asked
        about = {"threadId": self.session, "turnId": self.turn, "startedAtMs": 1, **params}
        self.line({"id": name, "method": method, "params": about})
        return name

    def answer(self, name):
        while True:
            message = self.read()
            if message is None:
                sys.exit(0)
            if message.get("method") == "turn/interrupt":
                self.interrupted(message)
            if message.get("id") == name and "method" not in message:
                self.notify("serverRequest/resolved", requestId=name)
                return message.get("result", message.get("error"))

    def interrupted(self, request):
        if request["params"] != {"threadId": self.session, "turnId": self.turn}:
            fail("an interrupt for another turn")
        with open("interrupted.txt", "w", encoding="utf-8") as file:
            file.write(self.turn)
        self.reply(request, {})
        self.completed("interrupted")
        sys.exit(0)

    # -- the turn --------------------------------------------------------------------------------

    def item(self, kind, **members):
        self.items += 1
        return {"type": kind, "id": f"item_{self.items}", **members}

    def started(self, item):
        self.notify("item/started", item=item, turnId=self.turn)

    def done(self, item, **members):
        self.notify("item/completed", item={**item, **members}, turnId=self.turn)

    def say(self, text):
        item = self.item("agentMessage", text="")
        self.started(item)
        for delta in pieces(text):
            self.notify("item/agentMessage/delta", turnId=self.turn, itemId=item["id"], delta=delta)
        self.done(item, text=text)

    def command(self, command, **members):
        return self.item("commandExecution", command=command, cwd=os.getcwd(), status="inProgress", commandActions=[], **members)

    def usage(self, tokens, cached, written):
        last = {"inputTokens": tokens, "cachedInputTokens": cached, "outputTokens": written, "totalTokens": tokens + written}
        self.before = {key: self.before[key] + last[key] for key in last}
        self.notify("thread/tokenUsage/updated", turnId=self.turn, tokenUsage={"total": self.before, "last": last})

    def completed(self, status="completed", error=None):
        turn = {"id": self.turn, "items": [], "status": status, "error": error}
        self.notify("turn/completed", turn=turn)

    def failed(self, message, info=None):
        error = {"message": message, "codexErrorInfo": info, "additionalDetails": None}
        self.notify("error", error=error, willRetry=False, turnId=self.turn)
        self.completed("failed", error)


def serve():
    host = Server()
    overloaded = "FAKE_OVERLOADED" in os.environ
    while True:
        request = host.read()
        if request is None:
            return
        method, params = request.get("method"), request.get("params", {})
        if "jsonrpc" in request:
            fail("an unexpected member: jsonrpc")
        if method == "initialize":
            if not {"name", "version"} <= set(params["clientInfo"]):
                fail("clientInfo is incomplete")
            host.initialized = True
            host.reply(request, {"userAgent": "fake", "codexHome": "/", "platformFamily": "unix", "platformOs": "linux"})
            host.line({"method": "configWarning", "params": {"summary": "something to ignore", "details": None}})
        elif not host.initialized:
            host.refuse(request, -32600, "Not initialized")
        elif method == "initialized":
            pass
        elif method == "account/read":
            account = {"type": "apiKey"} if "FAKE_LOGGED_OUT" not in os.environ else None
            if "FAKE_OLD" in os.environ:
                host.refuse(request, -32600, "Invalid request: unknown variant `account/read`")
            else:
                host.reply(request, {"account": account, "requiresOpenaiAuth": True})
        elif method in ("thread/start", "thread/resume"):
            thread(host, request, method, params)
        elif method == "turn/start":
            if overloaded:
                overloaded = False
                host.refuse(request, -32001, "Server overloaded; retry later.")
                continue
            begin(host, request, params)
        elif method == "turn/interrupt":
            host.interrupted(request)
        else:
            host.refuse(request, -32600, f"Invalid request: unknown variant `{method}`")


def thread(host, request, method, params):
    unknown = set(params) - {"cwd", "model", "approvalPolicy", "sandbox", "threadId"}
    if unknown or params.get("cwd") != os.getcwd():
        return host.refuse(request, -32602, f"Invalid params: {unknown or params.get('cwd')}")
    host.force = params.get("approvalPolicy") == "never"
    if host.force and params.get("sandbox") != "danger-full-access":
        return host.refuse(request, -32602, "Invalid params: sandbox")
    if method == "thread/resume":
        if sessions.get(params["threadId"]) is None:
            return host.refuse(request, -32600, f"no rollout found for thread id {params['threadId']}")
        host.session = params["threadId"]
        # What was used before this turn counts on.
        host.before = {"inputTokens": 1000, "cachedInputTokens": 500, "outputTokens": 50, "totalTokens": 1050}
    else:
        host.session = sessions.create()
    host.reply(request, {"thread": {"id": host.session, "turns": []}, "model": params.get("model", "fake-1"), "cwd": os.getcwd()})
    return host.line({"method": "thread/started", "params": {"thread": {"id": host.session}}})


def begin(host, request, params):
    if params["threadId"] != host.session:
        return host.refuse(request, -32600, "thread not found")
    texts = [part["text"] for part in params["input"] if part["type"] == "text"]
    pictures = [part["url"].split(";")[0] for part in params["input"] if part["type"] == "image"]
    host.turn = str(uuid.uuid4())
    turn = {"id": host.turn, "items": [], "status": "inProgress", "error": None}
    host.reply(request, {"turn": turn})
    host.notify("turn/started", turn=turn)
    host.notify("thread/status/changed", status={"type": "active", "activeFlags": []})
    user = host.item("userMessage", content=params["input"])
    host.started(user)
    host.done(user)
    if pictures:
        host.say("I see: " + ", ".join(pictures))
        return host.completed()
    prompt = texts[0]
    said = sessions.talk(host.session, prompt)
    if said is None:
        for words, scene in SCENES.items():
            if prompt.startswith(words):
                return scene(host, prompt[len(words) :].strip())
        said = f"You said: {prompt}"
    host.say(said)
    host.usage(100, 40, 10)
    return host.completed()


# -- what happens ------------------------------------------------------------------------------------


def tool(host, _rest):
    thought = host.item("reasoning", summary=[], content=[])
    host.started(thought)
    host.notify("item/reasoning/summaryPartAdded", itemId=thought["id"], summaryIndex=0)
    for delta in pieces("Where could it be?"):
        host.notify("item/reasoning/summaryTextDelta", itemId=thought["id"], summaryIndex=0, delta=delta)
    host.done(thought, summary=["Where could it be?"])
    host.say("Let me look.")
    ran = host.command("cat a.txt")
    host.started(ran)
    host.notify("item/commandExecution/outputDelta", itemId=ran["id"], delta="the content\n")
    host.done(ran, status="completed", exitCode=0, aggregatedOutput="the content\n")
    broke = host.command("cat b.txt")
    host.started(broke)
    host.done(broke, status="failed", exitCode=1, aggregatedOutput="No such file\n")
    host.notify("turn/plan/updated", plan=[{"step": "look", "status": "completed"}, {"step": "tell", "status": "inProgress"}])
    host.usage(100, 40, 10)
    host.say("It was in a.txt.")
    host.usage(200, 150, 20)
    host.completed()


def patch(host, _rest):
    changes = [{"path": "a.txt", "kind": {"type": "add"}, "diff": "+hi\n"}]
    item = host.item("fileChange", changes=changes, status="inProgress")
    host.started(item)
    if not host.force:
        answer = host.answer(host.ask("item/fileChange/requestApproval", itemId=item["id"], reason="to greet"))
        if answer["decision"] not in ("accept", "acceptForSession"):
            host.done(item, status="declined")
            host.say(f"Not written: {answer['decision']}.")
            return host.completed("interrupted" if answer["decision"] == "cancel" else "completed")
    with open("a.txt", "w", encoding="utf-8") as file:
        file.write("hi\n")
    host.done(item, status="completed")
    host.notify("turn/diff/updated", turnId=host.turn, diff="--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+hi\n")
    host.say("Written.")
    return host.completed()


def approve(host, rest):
    item = host.command(rest)
    host.started(item)
    decision = "accept"
    if not host.force:
        asked = {"itemId": item["id"], "command": rest, "cwd": os.getcwd(), "reason": None}
        asked["availableDecisions"] = ["accept", "acceptForSession", {"acceptWithExecpolicyAmendment": {}}, "decline", "cancel"]
        decision = host.answer(host.ask("item/commandExecution/requestApproval", **asked))["decision"]
    if decision.startswith("accept"):
        with open("did.txt", "a", encoding="utf-8") as file:
            file.write(rest + "\n")
        host.done(item, status="completed", exitCode=0, aggregatedOutput="")
    else:
        host.done(item, status="declined")
    host.say(f"{decision}: {rest}")
    host.completed("interrupted" if decision == "cancel" else "completed")


def withdraw(host, _rest):
    item = host.command("ls")
    host.started(item)
    name = host.ask("item/commandExecution/requestApproval", itemId=item["id"], command="ls", cwd="/")
    while not os.path.exists("go-on"):
        time.sleep(0.01)
    host.notify("serverRequest/resolved", requestId=name)
    answered = host.read(wait=0.3) is not None
    host.done(item, status="completed", exitCode=0, aggregatedOutput="")
    host.say("Answered all the same." if answered else "Went on.")
    host.completed()


def rights(host, _rest):
    wanted = {"network": {"enabled": True}, "fileSystem": None}
    asked = {"itemId": "p1", "reason": "to fetch", "permissions": wanted, "cwd": os.getcwd()}
    answer = host.answer(host.ask("item/permissions/requestApproval", **asked))
    host.say(f"{answer['scope']}: {','.join(answer['permissions'])}")
    host.completed()


def question(host, _rest):
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": ""}]
    asked = [{"id": "colour", "header": "Colour", "question": "Which colour?", "options": options}]
    answer = host.answer(host.ask("item/tool/requestUserInput", itemId="q1", questions=asked, isBlocking=True))
    host.say(f"{answer['answers']['colour']['answers'][0]} it is.")
    host.completed()


def form(host, _rest):
    schema = {"type": "object", "properties": {"day": {"type": "string"}, "hours": {"type": "integer"}}}
    asked = {"serverName": "calendar", "mode": "form", "message": "When?", "requestedSchema": schema}
    answer = host.answer(host.ask("mcpServer/elicitation/request", **asked))
    host.say(f"{answer['action']} {answer['content']['day']} {answer['content']['hours'] + 1}")
    host.completed()


def unsupported(host, _rest):
    answer = host.answer(host.ask("attestation/generate"))
    host.say(f"{answer['code']}: {answer['message']}")
    host.completed()


def slow(host, _rest):
    sessions.put(host.session, {**sessions.get(host.session), "slow": True})
    item = host.item("agentMessage", text="")
    host.started(item)
    for n in range(120):
        host.notify("item/agentMessage/delta", turnId=host.turn, itemId=item["id"], delta=f"line {n}\n")
        message = host.read(wait=0.5)
        if message and message.get("method") == "turn/interrupt":
            host.interrupted(message)
    host.completed()


def two(host, _rest):
    host.say("First.")
    host.say("Second.")
    host.completed()


def whole(host, _rest):
    """Only the ends of items."""
    host.done(host.item("agentMessage", text="Said at once."))
    host.done(host.item("agentMessage", text="And more."))
    host.done(host.command("ls"), status="completed", exitCode=0, aggregatedOutput="x")
    host.completed()


def twice(host, _rest):
    host.times = 2
    host.done(host.item("agentMessage", text="Once."))
    host.done(host.item("agentMessage", text="Only once."))
    host.completed()


def cut(host, _rest):
    host.cut = True
    host.say("Grüße, 世界 😀!")
    host.completed()


def crlf(host, _rest):
    host.end = b"\r\n"
    host.say("With carriage returns.")
    host.completed()


def noise(host, _rest):
    os.write(1, b"\n\n   \nWARNING: something\n\xff\xfe\n")
    host.notify("sparkle/shone", turnId=host.turn)
    host.done(host.item("hologram", text="no text"))
    host.say("Through the noise.")
    host.completed()


def helper(host, _rest):
    """An agent that this one called has a thread of its own."""
    mine, host.session = host.session, "another"
    host.say("what the helper says")
    ran = host.command("ls")
    host.started(ran)
    host.done(ran, status="completed", exitCode=0, aggregatedOutput="x")
    host.completed()
    host.session = mine
    host.say("Mine.")
    host.completed()


def retry(host, _rest):
    error = {"message": "Reconnecting... 1/5", "codexErrorInfo": None}
    host.notify("error", error=error, willRetry=True, turnId=host.turn)
    host.say("In the end.")
    host.completed()


def broken(host, _rest):
    os.write(1, b'{"method":"item/started","params":\n')
    time.sleep(60)


def crash(host, _rest):
    host.notify("item/agentMessage/delta", turnId=host.turn, itemId="item_9", delta="Half a sent")
    os.kill(os.getpid(), signal.SIGKILL)


SCENES = {
    "tool": tool,
    "patch": patch,
    "approve ": approve,
    "withdraw": withdraw,
    "rights": rights,
    "question": question,
    "form": form,
    "unsupported": unsupported,
    "slow": slow,
    "two": two,
    "whole": whole,
    "twice": twice,
    "cut": cut,
    "crlf": crlf,
    "noise": noise,
    "helper": helper,
    "retry": retry,
    "broken": broken,
    "crash": crash,
    "empty": lambda host, rest: host.completed(),
    "fail": lambda host, rest: host.failed("stream disconnected before completion", {"responseStreamDisconnected": {}}),
    "limit": lambda host, rest: host.failed("You've hit your usage limit. Try again later.", "usageLimitExceeded"),
    "unauthorized": lambda host, rest: host.failed("unexpected status 401: token expired", "unauthorized"),
    "exit ": lambda host, rest: fail("\x1b[31mboom\x1b[0m: it broke", int(rest)),
}
