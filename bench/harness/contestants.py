"""Who takes part: contestants.json, and how each is built."""

import json
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent
FLOOR = "floor-axum"
# The floors of other bindings.
FLOORS = {"grpc": "floor-grpc", "ws": "floor-ws"}
OURS = ("nuncio-memory", "nuncio-sqlite")


def target():
    return Path(os.environ.get("CARGO_TARGET_DIR", HERE / "target")) / "release"


def generator():
    """The load generator: A2ABENCH, or the release build."""
    return os.environ.get("A2ABENCH", str(target() / "a2abench"))


def nuncio():
    """The binary under test: NUNCIO, or the release build of this repository."""
    if "NUNCIO" in os.environ:
        return os.environ["NUNCIO"]
    return str(Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "nuncio")


def load(only=None, against=()):
    """The contestants with these names, or all. `against` are pairs of a name and another build of nuncio."""
    everyone = json.loads((HERE / "contestants.json").read_text())
    for name, binary in against:
        for ours in [c for c in everyone if c["name"] in OURS]:
            everyone.append({**ours, "name": f"{ours['name']}@{name}", "binary": binary})
    known = [c["name"] for c in everyone]
    unknown = set(only or ()) - set(known)
    if unknown:
        raise SystemExit(f"unknown contestant {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    chosen = [c for c in everyone if not only or c["name"] in only]
    for contestant in chosen:
        fill = {"here": HERE, "target": target(), "nuncio": contestant.get("binary", nuncio()),
                "port": "{port}", "data": "{data}"}
        for key in ("command", "size"):
            contestant[key] = [word.format(**fill) for word in contestant[key]]
        contestant["build"] = [[w.format(**fill) for w in c] for c in contestant.get("build", [])]
        contestant.setdefault("env", {})
    return chosen


def build(contestants, seeding=False):
    """Builds the generator and whoever takes part. Nothing is downloaded but packages of the registries."""
    # One package at a time: built together, they would share each other's
    # dependency features. a2a-rs asks for a newer compiler than it needs.
    packages = dict.fromkeys(["a2abench", *(c["package"] for c in contestants if "package" in c)])
    for package in packages:
        cargo("build", "--release", "--locked", "--ignore-rust-version", "--package", package, at=HERE)
    if "NUNCIO" not in os.environ and any(c["name"] in OURS for c in contestants):
        # With symbols, for profiles.
        cargo("build", "--release", "--locked", "--package", "nuncio", "--config", "profile.release.strip=false", at=ROOT)
    if seeding:
        cargo("build", "--release", "--locked", "--package", "xtask", at=ROOT)
    for contestant in contestants:
        for command in contestant["build"]:
            subprocess.run(command, check=True)


def cargo(*words, at):
    subprocess.run(["cargo", *words], cwd=at, check=True)
