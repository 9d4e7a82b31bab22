"""What is measured. A case takes a contestant and settings, and yields (name, result) pairs."""

import re

from .server import CLIENT_CORE, SERVER_CORE, Server, command_line, free_port, generate  # noqa: F401

# Closed loops: name -> arguments of a2abench.
LOOPS = {
    "send1": ["send", "--conc", 1],
    "send16": ["send", "--conc", 16],
    "send64": ["send", "--conc", 64],
    "get16": ["get", "--conc", 16],
    "stream1": ["stream", "--conc", 1, "--chunks", 100],
    "stream16": ["stream", "--conc", 16, "--chunks", 100],
    "stream10k": ["stream", "--conc", 1, "--chunks", 10_000],
    "burst1": ["stream", "--conc", 1, "--chunks", 100, "--word", "burst"],
}


def loop(case):
    def measure(contestant, settings):
        best = None
        for _ in range(1 + settings.retries):
            with Server(contestant) as server:
                result = server.load([*LOOPS[case], "--secs", settings.secs, "--warm", settings.warm])
            if best is None or disturbed(result) < disturbed(best):
                best = result
            if "failed" in best or disturbed(best) < settings.quiet:
                break
        yield case, best

    return measure


def disturbed(result):
    """How much of the measured time both sides spent waiting for a core, in %."""
    return result.get("srv_wait_pct", 0) + result.get("gen_wait_pct", 0)


def store(contestant, settings):
    """Fills the store and lists from it; memory per task on the way."""
    with Server(contestant) as server:
        server.load(["send", "--conc", 16, "--secs", 1, "--warm", 0, "--count", 1000])
        have = 0
        for label, size in (("10k", 10_000), ("100k", 100_000)):
            fill = server.load(["fill", "--conc", 16, "--count", size - have, "--secs", settings.fill_secs])
            yield f"fill{label}", fill
            if "failed" in fill:
                return
            have += fill["stored"]
            for kind, extra in (("list", []), ("listctx", ["--context", "ctx-0007"])):
                yield kind + label, server.load(["list", "--secs", 3, "--count", 300, *extra])
            if have < size:
                return


def idle(contestant, _settings):
    for count in (1000, 5000):
        with Server(contestant) as server:
            # A first round, so that what is allocated once is not counted per stream.
            server.load(["send", "--conc", 16, "--secs", 1, "--warm", 0])
            yield f"idle{count}", server.load(["hold", "--conc", 16, "--count", count, "--secs", 2])


# User-space instructions: what a call costs whatever else runs. name -> arguments, calls per unit.
INSTRUCTIONS = {
    "ir_send": (["send"], 1),
    "ir_get": (["get"], 1),
    "ir_stream": (["stream", "--chunks", 100], 20),
}


def instructions(contestant, settings, only=None):
    """Per call, as the slope between two numbers of calls, which leaves out what starting and stopping cost."""
    calls = contestant.get("instruction_calls", settings.instruction_calls)
    if calls is None:
        return
    for case, (words, scale) in INSTRUCTIONS.items():
        if only and case not in only:
            continue
        counted = [(n, count(contestant, words, n)) for n in (max(1, c // scale) for c in calls)]
        if any(found is None for _, found in counted):
            yield case, {"failed": "no count"}
            continue
        (n0, i0), (n1, i1) = counted
        yield case, {"per_call": (i1 - i0) / (n1 - n0), "calls": n1 - n0}


def count(contestant, words, calls):
    callgrind = ["valgrind", "--tool=callgrind", "--trace-children=yes", "--callgrind-out-file=/dev/null"]
    with Server(contestant, callgrind) as server:
        out = server.load([*words, "--conc", 1, "--count", calls, "--warm", 0, "--secs", 240])
    found = re.search(r"Collected : (\d+)", server.output())
    if "failed" in out or out["errors"] or not found:
        return None
    return int(found[1])


CASES = {**{case: loop(case) for case in LOOPS}, "store": store, "idle": idle, "ir": instructions}
