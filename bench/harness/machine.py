"""Where and with what was measured."""

import json
import os
import platform
import subprocess
import time
import tomllib

from .contestants import HERE, ROOT


def said(*command, cwd=None):
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    return done.stdout.strip() if done.returncode == 0 else ""


def cpu():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def versions(contestant):
    """The released versions that a contestant is made of."""
    wanted = contestant.get("versions", {})
    found = []
    if "cargo" in wanted:
        lock = tomllib.loads((HERE / "Cargo.lock").read_text())["package"]
        found += [f"{p['name']} {p['version']}" for p in lock if p["name"] in wanted["cargo"]]
    if "pip" in wanted:
        pip = HERE / "peers/python/.venv/bin/pip"
        listed = json.loads(said(str(pip), "list", "--format", "json") or "[]") if pip.exists() else []
        found += [f"{p['name']} {p['version']}" for p in listed if p["name"] in wanted["pip"]]
    for name in wanted.get("npm", []):
        package = HERE / "peers/js/node_modules" / name / "package.json"
        if package.exists():
            found.append(f"{name} {json.loads(package.read_text())['version']}")
    return ", ".join(found)


def describe(chosen, settings):
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory),
        "kernel": ".".join(platform.release().split(".")[:2]),
        "rustc": said("rustc", "--version", cwd=ROOT),
        "commit": said("git", "rev-parse", "--short", "HEAD", cwd=ROOT) or "unknown",
        "reps": settings.reps,
        "secs": settings.secs,
        "warm": settings.warm,
        "contestants": [{"name": c["name"], "what": c["what"], "version": versions(c)} for c in chosen],
    }
