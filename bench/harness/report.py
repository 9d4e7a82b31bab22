"""docs/performance.md: tables and plots between two markers, everything else is written by hand."""

from . import plot
from .contestants import FLOOR, FLOORS, OURS, ROOT
from .results import CPU, over, short, times

PAGE = ROOT / "docs" / "performance.md"
PLOTS = ROOT / "docs" / "performance"
BEGIN, END = "<!-- bench/compare writes from here -->", "<!-- to here -->"
MEMORY, SQLITE = OURS
BINDINGS = {"rest": "REST", "grpc": "gRPC", "ws": "WebSocket", "jsonrpc03": "JSON-RPC of a 0.3 client"}


def table(head, rows):
    """A Markdown table without the rows that hold nothing."""
    kept = [row for row in rows if any(cell != "–" for cell in row[1:])]
    if not kept:
        return []
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in kept), ""]


def against_floor(results):
    """Our server beside the floor, case by case."""
    rows = []

    def cpu(label, case, unit="µs", scale=1.0):
        value = lambda name: results.median(name, case, CPU, scale)
        rows.append([label, f"{short(value(FLOOR))} {unit}",
                     f"{short(value(MEMORY))} {unit}", times(results.ratio(MEMORY, case)),
                     f"{short(value(SQLITE))} {unit}", times(results.ratio(SQLITE, case))])

    for n in (1, 16, 64):
        cpu(f"SendMessage, {n} at a time", f"send{n}")
    cpu("GetTask, 16 at a time", "get16")
    cpu("stream of 100 chunks, one at a time", "stream1")
    cpu("stream of 100 chunks, 16 at a time", "stream16")
    cpu("an event to one of 1,000 subscribers", "fanout")
    counted = lambda name, case: short(results.median(name, case, "per_call"))
    for label, case in (("SendMessage, instructions", "ir_send"), ("GetTask, instructions", "ir_get"),
                        ("stream of 100 chunks, instructions", "ir_stream")):
        rows.append([label, counted(FLOOR, case),
                     counted(MEMORY, case), times(results.ratio(MEMORY, case, "per_call")),
                     counted(SQLITE, case), times(results.ratio(SQLITE, case, "per_call"))])
    rows = [[cell.replace("– µs", "–") for cell in row] for row in rows]
    return table(["CPU time of the server", FLOOR, "in memory", "", "on SQLite", ""], rows)


def by_itself(results):
    """What is not a ratio to the floor."""
    m = results.median
    ms = lambda name, case: unit(m(name, case, "latency.p50_us", 1e-3), "ms")
    unit = lambda value, what: "–" if value is None else f"{short(value)} {what}"
    grows = lambda name: times(over(results.per_event(name, "stream10k"), results.per_event(name, "stream1")))
    tail = lambda name: times(over(m(name, "half", "latency.p99_us"), m(name, "half", "latency.p50_us")))
    rows = [
        ["an event of a stream of 100 chunks", *(unit(results.per_event(n, "stream1"), "µs") for n in THREE)],
        ["an event of a stream of 10,000 chunks", *(unit(results.per_event(n, "stream10k"), "µs") for n in THREE)],
        ["the second by the first", *(grows(n) for n in THREE)],
        ["page of 50 out of 10,000 tasks, p50", "–", *(ms(n, "page10k") for n in OURS)],
        ["page of 50 out of 1,000,000 tasks, p50", "–", *(ms(n, "page1m") for n in OURS)],
        ["the second by the first", "–",
         *(times(results.ratio(n, "page1m", "latency.p50_us", n, "page10k")) for n in OURS)],
        ["an idle stream, resident (1,000 open)", *(unit(m(n, "idle1000", "rss_per_stream_kib"), "KiB") for n in THREE)],
        ["an idle stream, resident (5,000 open)", *(unit(m(n, "idle5000", "rss_per_stream_kib"), "KiB") for n in THREE)],
        ["resident with 10,000 finished tasks", "–", *(unit(m(n, "fill10k", "rss_after_kib", 1 / 1024), "MiB") for n in OURS)],
        ["resident with 100,000 finished tasks", "–", *(unit(m(n, "fill100k", "rss_after_kib", 1 / 1024), "MiB") for n in OURS)],
        ["start to first card", *(ms(n, "cold") for n in THREE)],
        ["start to first card beside 1,000,000 tasks", "–", "–", ms(SQLITE, "cold1m")],
        ["binary, stripped", *(unit(m(n, "size", "mib"), "MiB") for n in THREE)],
        ["SendMessage at half load, p50", *(unit(m(n, "half", "latency.p50_us"), "µs") for n in THREE)],
        ["SendMessage at half load, p99", *(unit(m(n, "half", "latency.p99_us"), "µs") for n in THREE)],
        ["the second by the first", *(tail(n) for n in THREE)],
        ["the core was busy meanwhile", *(unit(m(n, "half", "srv_cpu_pct"), "%") for n in THREE)],
        ["the host took it away", *(unit(m(n, "half", "srv_stolen_pct"), "%") for n in THREE)],
        ["SendMessage a second on that core", *(short(m(n, "send64", "rate")) for n in THREE)],
    ]
    return table(["", FLOOR, "in memory", "on SQLite"], rows)


THREE = (FLOOR, *OURS)


def by_binding(what, ratio):
    """A row for each binding; `ratio` takes one of ours, a case and a binding."""
    rows = []
    for key, label in BINDINGS.items():
        row = [label]
        for case in ("send16", "get16", "stream16"):
            for name in OURS:
                row.append(short(ratio(name, case, key)))
        rows.append(row)
    head = [what]
    for call in ("SendMessage", "GetTask", "stream"):
        head += [f"{call}, memory", f"{call}, SQLite"]
    return table(head, rows)


def other_bindings(results):
    return by_binding("CPU time as a multiple of JSON-RPC 1.0",
                      lambda name, case, key: results.ratio(name, f"{case}.{key}", CPU, name, case))


def same_transport(results):
    """Our server beside the floor of each binding that has one of its own."""
    return by_binding("CPU time as a multiple of the bare server's",
                      lambda name, case, key: results.ratio(name, f"{case}.{key}", CPU, FLOORS.get(key)))


def everyone(results, names):
    """All contestants side by side."""
    m = results.median
    head = ["", "send 16: µs", "times the floor", "get 16: µs", "stream of 100: µs", "times the floor",
            "first event p50, µs", "burst of 100 failed", "send: thousand instructions"]
    rows = [
        [name, short(m(name, "send16")), short(results.ratio(name, "send16")), short(m(name, "get16")),
         short(m(name, "stream16")), short(results.ratio(name, "stream16")),
         short(m(name, "stream1", "first_event.p50_us")), percent(results.failed_pct(name, "burst1")),
         short(m(name, "ir_send", "per_call", 1e-3))]
        for name in names
    ]
    lines = table(head, rows)
    head = ["", "idle stream, KiB", "100,000 tasks, MiB", "page of 50 of 10,000: p50 ms", "of 100,000: p50 ms",
            "start, ms", "size, MiB"]
    rows = [
        [name, short(m(name, "idle1000", "rss_per_stream_kib")), short(m(name, "fill100k", "rss_after_kib", 1 / 1024)),
         short(m(name, "list10k", "latency.p50_us", 1e-3)), short(m(name, "list100k", "latency.p50_us", 1e-3)),
         short(m(name, "cold", "latency.p50_us", 1e-3)), short(m(name, "size", "mib"))]
        for name in names
    ]
    return lines + table(head, rows)


def percent(value):
    return "–" if value is None else f"{value:.0f} %"


def quality(results, names):
    rows = [[name, *(short(results.spread(name, case)) for case in ("send16", "get16", "stream16"))] for name in names]
    return table(["smallest–largest of all repeats, µs", "send 16", "get 16", "stream 16"], rows)


def plots(results, names):
    """Writes the charts and returns the lines that show them."""
    PLOTS.mkdir(exist_ok=True)
    charts = {
        "send": ("SendMessage, 16 callers", "CPU µs of the server per call",
                 [(n, results.median(n, "send16")) for n in names]),
        "get": ("GetTask, 16 callers", "CPU µs of the server per call", [(n, results.median(n, "get16")) for n in names]),
        "stream": ("Stream of 100 chunks, 16 callers", "CPU µs of the server per event",
                   [(n, results.per_event(n, "stream16")) for n in names]),
        "idle": ("Idle stream", "KiB of resident memory each, 1,000 open",
                 [(n, results.median(n, "idle1000", "rss_per_stream_kib")) for n in names]),
        "list": ("ListTasks, page of 50 out of 10,000 tasks", "ms, p50",
                 [(n, results.median(n, "list10k", "latency.p50_us", 1e-3)) for n in names]),
    }
    lines = []
    for key, (title, unit, rows) in charts.items():
        svg = plot.bars(title, unit, rows)
        if svg:
            (PLOTS / f"{key}.svg").write_text(svg)
            lines.append(f"![{title}: {unit}](performance/{key}.svg)")
    return [*lines, ""]


def machine(results):
    meta = results.meta
    who = [f"{c['name']} ({c['what']}{', ' + c['version'] if c.get('version') else ''})"
           for c in meta.get("contestants", [])]
    return [
        f"{meta.get('date')}, {meta.get('cpu')}, {meta.get('cores')} cores, {meta.get('memory_gib')} GiB, "
        f"Linux {meta.get('kernel')}, {meta.get('rustc')}, commit {meta.get('commit')}. "
        f"{meta.get('reps')} interleaved repeats of {meta.get('secs')} s after {meta.get('warm')} s of warm-up. "
        f"Contestants: {'; '.join(who)}.", "",
    ]


def render(results, write_plots=True):
    names = [c["name"] for c in results.meta.get("contestants", [])] or list(dict.fromkeys(n for n, _ in results.every))
    lines = machine(results)
    for title, part in (
        ("Beside the floor", against_floor(results)),
        ("By itself", by_itself(results)),
        ("Over other bindings", other_bindings(results)),
        ("Beside a bare server on the same transport", same_transport(results)),
        ("Everyone", everyone(results, names)),
        ("Spread", quality(results, names)),
    ):
        if part:
            lines += [f"### {title}", "", *part]
            if title == "Everyone" and write_plots:
                lines += plots(results, names)
    return "\n".join(lines)


def write(results):
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{render(results)}\n{END}{after}")
