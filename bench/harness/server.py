"""A server that is measured: started on a free port and one core, ended by its process id."""

import json
import os
import resource
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

from . import contestants

CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE = os.environ.get("SERVER_CORE", str(CORES[0]))
CLIENT_CORE = os.environ.get("CLIENT_CORE", str(CORES[-1]))

# Thousands of streams need as many descriptors, on both sides.
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def command_line(contestant, port, data):
    """The words that start a contestant, and its environment."""
    words = [word.format(port=port, data=data) for word in contestant["command"]]
    return ["taskset", "-c", SERVER_CORE, *words], {**os.environ, "PORT": str(port), **contestant["env"]}


class Server:
    """`with Server(contestant) as server:` runs it with data of its own, unless `data` names a folder to use."""

    def __init__(self, contestant, prefix=(), data=None, env=None):
        self.contestant, self.port = contestant, free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self.scratch = None if data else tempfile.mkdtemp(prefix="a2abench-")
        words, environment = command_line(contestant, self.port, data or self.scratch)
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [*words[:3], *prefix, *words[3:]], env={**environment, **(env or {})},
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
        )
        try:
            self.wait_for_card()
        except BaseException:
            self.stop()
            raise

    def wait_for_card(self):
        end = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(self.url + ".well-known/agent-card.json", timeout=5).read()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise SystemExit(f"{self.contestant['name']} did not start:\n{self.output()}") from None
                time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def pid(self):
        return self.process.pid

    def output(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.scratch:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def load(self, words, binding="jsonrpc", timeout=400):
        """One run of the generator against this server; what it found, or why it failed."""
        before = stolen()
        found = generate([words[0], "--url", self.url, "--binding", binding, "--pid", str(self.pid), *words[1:]],
                         timeout)
        taken, passed = (after - was for after, was in zip(stolen(), before))
        return {**found, "srv_stolen_pct": 100 * taken / max(passed, 1)}


def stolen():
    """How long the host has kept the server's core for itself, and how long the core has been there, in ticks."""
    for line in open("/proc/stat"):
        name, *ticks = line.split()
        if name == f"cpu{SERVER_CORE}":
            # user nice system idle iowait irq softirq steal; what follows is part of user.
            ticks = [int(n) for n in ticks[:8]]
            return ticks[7], sum(ticks)
    return 0, 0


def generate(words, timeout=400, env=None):
    command = ["taskset", "-c", CLIENT_CORE, contestants.generator(), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env)
    if done.returncode != 0:
        return {"failed": done.stderr.strip()[:300]}
    return json.loads(done.stdout)
