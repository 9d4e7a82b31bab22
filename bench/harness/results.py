"""What was measured, and the figures made of it."""

import json
import statistics

from .contestants import FLOOR

CPU = "srv_cpu_us_per_call"


def pick(row, path):
    for key in path.split("."):
        if not isinstance(row, dict) or key not in row:
            return None
        row = row[key]
    return row if isinstance(row, (int, float)) else None


class Results:
    """The lines of a results file. Medians are over the calmest repeats: those in which server and generator waited
    least for a core. Ratios are over all repeats, each with the floor of the same one."""

    def __init__(self, path, keep=3):
        lines = [json.loads(line) for line in open(path)]
        self.meta = {}
        self.every = {}
        for line in lines:
            if "meta" in line:
                # A run in pieces is headed by its first: the others may have fewer contestants.
                self.meta = {**line["meta"], **self.meta}
            else:
                self.every.setdefault((line["name"], line["case"]), []).append(line)
        waited = lambda row: row.get("srv_wait_pct", 0) + row.get("gen_wait_pct", 0)
        self.calm = {key: sorted(rows, key=waited)[:keep] for key, rows in self.every.items()}

    def median(self, name, case, path=CPU, scale=1.0):
        values = [v for v in (pick(r, path) for r in self.calm.get((name, case), [])) if v is not None]
        return statistics.median(values) * scale if values else None

    def ratio(self, name, case, path=CPU, base=FLOOR, base_case=None):
        """The median over repeats of this figure over another contestant's, or another case's, in that repeat."""
        other = {r["rep"]: pick(r, path) for r in self.every.get((base, base_case or case), [])}
        found = [
            pick(r, path) / other[r["rep"]]
            for r in self.every.get((name, case), [])
            if pick(r, path) and other.get(r["rep"])
        ]
        return statistics.median(found) if found else None

    def per_event(self, name, case):
        """CPU of the server per event of a stream, µs."""
        found = [pick(r, CPU) / pick(r, "events_per_stream") for r in self.calm.get((name, case), [])
                 if pick(r, CPU) and pick(r, "events_per_stream")]
        return statistics.median(found) if found else None

    def failed_pct(self, name, case):
        bad, total = self.median(name, case, "errors"), self.median(name, case, "total")
        return 100 * bad / total if total else None

    def spread(self, name, case, path=CPU):
        """Smallest and largest over all repeats, disturbed ones too."""
        found = [v for v in (pick(r, path) for r in self.every.get((name, case), [])) if v]
        return f"{short(min(found))}–{short(max(found))}" if found else None


def over(a, b):
    return a / b if a and b else None


def short(value):
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def times(value):
    return "–" if value is None else f"{value:.2f} times"
