"""`codex exec --json`: one command per turn, whole items, nobody is asked."""

import os
import signal
import sys

import sessions
from stream_json import Host, fail


def arguments(args):
    """Takes the arguments like the real one: whatever is unknown or missing is an error."""
    flags = {"--json": False, "--skip-git-repo-check": False, "--dangerously-bypass-approvals-and-sandbox": False}
    resume = None
    rest = list(args)
    while rest and rest != ["-"]:
        arg = rest.pop(0)
        if arg in flags:
            flags[arg] = True
        elif arg == "resume" and len(rest) == 2:
            resume = rest.pop(0)
        elif not arg.startswith("--model="):
            fail(f"error: unexpected argument '{arg}' found", 2)
    if rest != ["-"] or not flags["--json"] or not flags["--skip-git-repo-check"]:
        fail("Not inside a trusted directory and --skip-git-repo-check was not specified.")
    return resume


class Run(Host):
    def event(self, kind, **members):
        for _ in range(self.times):
            self.line({"type": kind, **members})

    def item(self, number, kind, **members):
        self.event("item.completed", item={"id": f"item_{number}", "type": kind, **members})

    def completed(self):
        usage = {"input_tokens": 300, "cached_input_tokens": 190, "output_tokens": 30, "reasoning_output_tokens": 5}
        self.event("turn.completed", usage=usage)


def execute(args):
    resume = arguments(args)
    prompt = sys.stdin.read()
    if resume and sessions.get(resume) is None:
        fail(f"Error: thread/resume: thread/resume failed: no rollout found for thread id {resume} (code -32600)")
    host = Run("codex", resume or sessions.create())
    host.event("thread.started", thread_id=host.session)
    host.event("turn.started")
    said = sessions.talk(host.session, prompt)
    if said is None:
        for words, scene in SCENES.items():
            if prompt.startswith(words):
                return scene(host, prompt[len(words) :].strip())
        said = f"You said: {prompt}"
    host.item(0, "agent_message", text=said)
    return host.completed()


def tool(host, _rest):
    host.item(0, "reasoning", text="Where could it be?")
    host.item(1, "agent_message", text="Let me look.")
    ran = {"id": "item_2", "type": "command_execution", "command": "cat a.txt"}
    begun = {**ran, "aggregated_output": "", "exit_code": None, "status": "in_progress"}
    host.event("item.started", item=begun)
    host.event("item.updated", item={**begun, "aggregated_output": "the"})
    host.event("item.completed", item={**ran, "aggregated_output": "the content\n", "exit_code": 0, "status": "completed"})
    host.event("item.started", item={**begun, "id": "item_3", "command": "rm x"})
    declined = {"aggregated_output": "", "exit_code": None, "status": "declined"}
    host.event("item.completed", item={**ran, "id": "item_3", "command": "rm x", **declined})
    changes = [{"path": "a.txt", "kind": "add"}]
    host.item(4, "file_change", changes=changes, status="completed")
    call = {"server": "web", "tool": "fetch", "arguments": {"url": "u"}}
    host.item(5, "mcp_tool_call", **call, result=None, error={"message": "no net"}, status="failed")
    host.item(6, "todo_list", items=[{"text": "look", "completed": True}, {"text": "tell", "completed": False}])
    host.item(7, "agent_message", text="It was in a.txt.")
    host.completed()


def noise(host, _rest):
    os.write(1, b"\n\r\n[debug] {}\n")
    host.end = b"\r\n"
    host.cut = True
    host.event("sparkle", shine=1)
    host.item(0, "hologram", text="no text")
    host.item(1, "agent_message", text="Grüße, 世界 😀!")
    host.completed()


def twice(host, _rest):
    host.times = 2
    host.item(0, "agent_message", text="Once.")
    host.item(1, "agent_message", text="Only once.")
    host.completed()


def retry(host, _rest):
    host.event("error", message="Reconnecting... 1/5 (stream disconnected before completion)")
    host.item(0, "agent_message", text="In the end.")
    host.completed()


def failed(message):
    def scene(host, _rest):
        host.event("error", message=message)
        host.event("turn.failed", error={"message": message})
        sys.exit(1)

    return scene


def crash(host, _rest):
    host.item(0, "agent_message", text="Half an answer.")
    os.kill(os.getpid(), signal.SIGKILL)


SCENES = {
    "tool": tool,
    "noise": noise,
    "twice": twice,
    "retry": retry,
    "fail": failed("stream disconnected before completion"),
    "unauthorized": failed("unexpected status 401 Unauthorized: Missing bearer or basic authentication in header"),
    "crash": crash,
    "no end": lambda host, rest: host.item(0, "agent_message", text="No more than this."),
    "silent": lambda host, rest: None,
    "empty": lambda host, rest: host.completed(),
    "exit ": lambda host, rest: fail("\x1b[31mboom\x1b[0m: it broke", int(rest)),
    "long": lambda host, rest: (host.item(0, "agent_message", text="y" * (2 << 20)), host.completed()),
}
