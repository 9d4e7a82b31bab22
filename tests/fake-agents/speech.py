"""What the fake programs share: strict options, conversations in a file, scenarios picked by words of the prompt.

A program describes its voice (a class with the methods of `Voice`) and hands it to `perform`.
"""

import json
import os
import signal
import subprocess
import sys
import time

SESSIONS = ".fake-sessions.json"
TEXT = "grün 😀 und blau"


def die(text, code=1):
    sys.stdout.flush()
    sys.stderr.write(text + "\n")
    sys.exit(code)


def options(argv, flags, values, code=1):
    """Reads `--flag`, `--key value`, `--key=value` and words; anything else ends the program."""
    seen, words, rest = {}, [], list(argv)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if not word.startswith("-") or word == "-":
            words.append(word)
        elif name in seen:
            die(f"error: the argument '{name}' cannot be used multiple times", code)
        elif word in flags:
            seen[word] = True
        elif name in values and equals:
            seen[name] = value
        elif word in values and rest:
            seen[word] = rest.pop(0)
        else:
            die(f"error: unexpected argument '{word}' found", code)
    return seen, words


def stdin():
    return sys.stdin.buffer.read().decode()


class Sessions:
    """Conversations, kept in the folder that the program works in."""

    def __init__(self):
        try:
            with open(SESSIONS) as file:
                self.all = json.load(file)
        except FileNotFoundError:
            self.all = {}

    def keep(self, name, value):
        self.all[name] = value
        with open(SESSIONS + ".new", "w") as file:
            json.dump(self.all, file)
        os.replace(SESSIONS + ".new", SESSIONS)


class Voice:
    """How a program speaks. Every method prints whole lines by `self.line`."""

    end = b"\n"
    pieces = False
    # Whether it may print anything before its first event.
    loud = True

    def line(self, value):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        data = text.encode() + self.end
        if self.pieces:
            # Cut in the middle of everything, also of characters.
            for at in range(0, len(data), 7):
                self.raw(data[at : at + 7])
        else:
            self.raw(data)

    def raw(self, data):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def begin(self, session, prompt):
        """What it prints first."""

    def text(self, *pieces):
        raise NotImplementedError

    def think(self, text):
        raise NotImplementedError

    def tool(self, name, given, output=None, error=None):
        raise NotImplementedError

    def strange(self):
        """Events that nobody knows."""
        self.line({"type": "brand_new_event", "payload": {"deep": [1, {"x": None}]}})
        self.line({"no": "type"})

    def done(self):
        """What it prints at the end; may exit with another code than 0."""

    def fail(self, reason):
        """An error that it reports in its own words, with the exit code that follows."""
        raise NotImplementedError

    def login(self):
        """What happens without credentials."""
        raise NotImplementedError


def noise(voice):
    for line in ["", "   ", "[debug] starting {up}", "{broken", '{"type":', "[1,2]", '"text"', "null", "💥 {}", '{"type":5}']:
        voice.line(line)
    voice.raw(b"\xff\xfe not UTF-8\n")


def perform(voice, prompt, session, known):
    """Plays the scenario that the prompt names. `known` is what was said to this conversation before."""
    sessions = Sessions()
    said = prompt.strip()
    if said.startswith("login"):
        voice.login()
    if said.startswith("refuse to start"):
        sys.stderr.write("\x1b[31mfatal:\x1b[0m cannot reach the model\x07\n")
        sys.stderr.write(f"key={os.environ.get('FAKE_API_KEY')} in {os.environ.get('HOME')}/.config\n")
        sys.exit(3)
    voice.end = b"\r\n" if said.startswith("crlf") else b"\n"
    voice.pieces = said.startswith("pieces")
    if said.startswith("noise") and voice.loud:
        noise(voice)
    sessions.keep(session, known + [said])
    voice.begin(session, prompt)
    if said.startswith("remember the number"):
        voice.text("I will ", "remember.")
    elif said.startswith("recall"):
        numbers = [old.split()[-1] for old in known if old.startswith("remember the number")]
        voice.text(f"The number {numbers[-1]}." if numbers else "I know no number.")
    elif said.startswith("tools"):
        voice.text("Let me ", "look.")
        voice.tool("read", {"path": "a.txt"}, output="content of a")
        voice.tool("shell", {"command": "false"}, error="exit code 1")
        voice.text("Found ", "it.")
    elif said.startswith("think"):
        voice.think("Hm, ")
        voice.think("let me see.")
        voice.text("Done thinking.")
    elif said.startswith(("pieces", "crlf")):
        voice.text(TEXT)
    elif said.startswith("noise"):
        noise(voice)
        voice.text("Heard ")
        noise(voice)
        voice.strange()
        voice.text("through.")
    elif said.startswith("long"):
        voice.text("x" * (2 << 20))
    elif said.startswith("nothing"):
        pass
    elif said.startswith("fail"):
        voice.text("I try.")
        voice.fail("the model is overloaded")
    elif said.startswith("no result"):
        voice.text("Half an answer")
        sys.exit(0)
    elif said.startswith("crash"):
        voice.text("Half an answer")
        voice.raw(b'{"type":"mess')
        os.kill(os.getpid(), signal.SIGKILL)
    elif said.startswith("exit 7"):
        voice.text("Half an answer")
        die("out of memory", 7)
    elif said.startswith("show env"):
        voice.text(json.dumps(dict(os.environ)))
    elif said.startswith("show args"):
        voice.text(json.dumps(sys.argv[1:]))
    elif said.startswith("slow"):
        voice.text("Working")
        time.sleep(60)
    elif said.startswith("stubborn"):
        stubborn(voice)
    elif said.startswith("linger"):
        # A child that left the group, and one that stays; both outlive the program.
        subprocess.Popen(["sleep", "60"], start_new_session=True, stdin=subprocess.DEVNULL)
        subprocess.Popen(["sleep", "60"])
        voice.text("Something runs on.")
    else:
        voice.text("You said: ", prompt)
    voice.done()
    sys.exit(0)


def stubborn(voice):
    """Ignores SIGTERM and the end of input, and so do its child and a grandchild that left the group."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sleep", "60"])
    subprocess.Popen(["sleep", "60"], start_new_session=True)
    voice.text("You cannot stop me.")
    time.sleep(60)
