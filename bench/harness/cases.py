"""What is measured. A case takes a contestant and settings, and yields pairs of a name and what was found."""

import atexit
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import contestants
from .server import Server, command_line, free_port, generate

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


def disturbed(result):
    """How much of the measured time both sides spent waiting for a core, in %."""
    return result.get("srv_wait_pct", 0) + result.get("gen_wait_pct", 0)


def calmest(settings, measure):
    """Measures again while disturbed, as often as allowed, and keeps the calmest result."""
    best = None
    for _ in range(1 + settings.retries):
        result = measure()
        if best is None or disturbed(result) < disturbed(best):
            best = result
        if "failed" in best or disturbed(best) < settings.quiet:
            break
    return best


def closed_loop(contestant, settings, case, binding="jsonrpc"):
    def once():
        with Server(contestant) as server:
            return server.load([*LOOPS[case], "--secs", settings.secs, "--warm", settings.warm], binding)

    return calmest(settings, once)


def loop(case):
    def measure(contestant, settings):
        yield case, closed_loop(contestant, settings, case)

    return measure


def bindings(contestant, settings):
    """The same over the other bindings, and for clients of A2A 0.3."""
    for binding in contestant.get("bindings", []):
        for case in ("send16", "get16", "stream16"):
            yield f"{case}.{binding}", closed_loop(contestant, settings, case, binding)


def fanout(contestant, settings):
    """A thousand subscribers of one task."""
    if not contestant.get("fanout"):
        return

    def once():
        with Server(contestant) as server:
            server.load(["send", "--conc", 16, "--secs", 1, "--warm", 0])
            return server.load(["fanout", "--count", 1000, "--chunks", 200, "--pause", 50])

    yield "fanout", calmest(settings, once)


def half(contestant, settings):
    """Latency when calls come at half of the rate that the server can take, whether answers come or not."""

    def once():
        with Server(contestant) as server:
            most = server.load(["send", "--conc", 16, "--secs", settings.secs / 2, "--warm", settings.warm])
            if "failed" in most or not most["rate"]:
                return {"failed": "no capacity measured"}
            words = ["open", "--conc", 64, "--rate", most["rate"] / 2, "--secs", settings.secs, "--warm", settings.warm]
            return {"capacity": most["rate"], **server.load(words)}

    yield "half", calmest(settings, once)


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


def million(contestant, settings):
    """A page of 50 out of 10,000 tasks and out of a million, and a start beside a million."""
    how = contestant.get("million")
    pages = ["list", "--secs", 3, "--count", 1000]
    if how == "fill":
        with Server(contestant) as server:
            have = 0
            for label, size in (("10k", 10_000), ("1m", 1_000_000)):
                fill = server.load(["fill", "--conc", 16, "--count", size - have, "--secs", 300])
                yield f"fill{label}", fill
                have += fill.get("stored", 0)
                if have < size:
                    return
                yield f"page{label}", server.load(pages)
    elif how == "seed":
        for label, size in (("10k", 10_000), ("1m", 1_000_000)):
            with Server(contestant, data=seeded(size)) as server:
                yield f"page{label}", server.load(pages)
        yield "cold1m", started(contestant, seeded(1_000_000))


FOLDERS = {}


def seeded(size):
    """A folder with a database of so many finished tasks, made once."""
    if size not in FOLDERS:
        folder = tempfile.mkdtemp(prefix="a2abench-seed-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        xtask = Path(os.environ.get("CARGO_TARGET_DIR", contestants.ROOT / "target")) / "release" / "xtask"
        subprocess.run([xtask, "seed", folder, str(size)], check=True, stdout=subprocess.DEVNULL)
        FOLDERS[size] = folder
    return FOLDERS[size]


def idle(contestant, _settings):
    for count in (1000, 5000):
        with Server(contestant) as server:
            # A first round, so that what is allocated once is not counted per stream.
            server.load(["send", "--conc", 16, "--secs", 1, "--warm", 0])
            yield f"idle{count}", server.load(["hold", "--conc", 16, "--count", count, "--secs", 2])


def cold(contestant, _settings):
    with tempfile.TemporaryDirectory(prefix="a2abench-") as folder:
        yield "cold", started(contestant, folder)


def started(contestant, folder):
    """From the start of the process to its first card."""
    port = free_port()
    words, env = command_line(contestant, port, folder)
    return generate(["cold", "--url", f"http://127.0.0.1:{port}/", "--count", 5, "--", *words], env=env)


def size(contestant, _settings):
    """What has to be there to run it: a stripped binary, or the packages of an interpreter."""
    total = 0
    for path in map(Path, contestant["size"]):
        if path.is_dir():
            total += sum(f.lstat().st_size for f in path.rglob("*") if not f.is_dir())
        elif path.exists():
            with tempfile.TemporaryDirectory() as scratch:
                copy = shutil.copy(path, scratch)
                subprocess.run(["strip", copy], check=False)
                total += Path(copy).stat().st_size
    yield "size", {"mib": total / 2**20}


# Instructions in user space: what a call costs, whatever else runs. name -> arguments, calls per unit.
INSTRUCTIONS = {
    "ir_send": (["send"], 1),
    "ir_get": (["get"], 1),
    "ir_stream": (["stream", "--chunks", 100], 20),
}


def instructions(contestant, settings):
    """Per call, as the slope between two numbers of calls, which leaves out what starting and stopping cost."""
    calls = contestant.get("instruction_calls", settings.instruction_calls)
    if calls is None:
        return
    for case, (words, scale) in INSTRUCTIONS.items():
        counted = [(n, count(contestant, words, n)) for n in (max(1, c // scale) for c in calls)]
        if any(found is None for _, found in counted):
            yield case, {"failed": "no count"}
            continue
        (n0, i0), (n1, i1) = counted
        yield case, {"per_call": (i1 - i0) / (n1 - n0), "calls": n1 - n0}


def count(contestant, words, calls, out="/dev/null"):
    """Instructions of a whole run with so many calls, or None."""
    callgrind = ["valgrind", "--tool=callgrind", "--trace-children=yes", f"--callgrind-out-file={out}"]
    with Server(contestant, callgrind) as server:
        result = server.load([*words, "--conc", 1, "--count", calls, "--warm", 0, "--secs", 240])
    found = re.search(r"Collected : (\d+)", server.output())
    if "failed" in result or result["errors"] or not found:
        return None
    return int(found[1])


CASES = {
    **{case: loop(case) for case in LOOPS},
    "bindings": bindings,
    "fanout": fanout,
    "half": half,
    "store": store,
    "million": million,
    "idle": idle,
    "cold": cold,
    "size": size,
    "ir": instructions,
}
