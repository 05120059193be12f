"""Kill real builds at many moments: `python -m tests.killed_build OLD NEW OUT --points N [--aside]`.

OUT holds a mirror of the tree OLD. Again and again a forked process builds the tree NEW there and dies by SIGKILL, at a
chosen call to the system or after a chosen time. Prints, a JSON line each, what a reader finds afterwards; in the end
OUT is built once more and everything beside it is listed. With --aside the folders cannot be exchanged in one step.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from builder.dataset import folder
from builder.mirror import build_mirror
from builder.tree.sources import open_source

PANELS = ("drug_safety", "safety_diagnostic")
CALLS = frozenset({"open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.scandir", "os.listdir"})


def forked(work: Callable[[], object], *, kill_after_s: float | None = None) -> None:
    """Run work in a forked process, killed after a time. The parent never builds, so it has no thread to lose."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def killed_at(number: int, work: Callable[[], object]) -> Callable[[], object]:
    """Return work whose process kills itself at its n-th call to the system, counted from 0."""
    calls = iter(range(number))

    def count(event: str, _: object) -> None:
        if event in CALLS and next(calls, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    def run() -> None:
        sys.addaudithook(count)
        work()

    return run


def count_calls(work: Callable[[], object]) -> int:
    """Return how many calls to the system work makes."""
    reader, writer = os.pipe()

    def run() -> None:
        seen = [0]
        sys.addaudithook(lambda event, _: seen.__setitem__(0, seen[0] + (event in CALLS)))
        work()
        os.write(writer, str(seen[0]).encode())

    forked(run)
    return int(os.read(reader, 20))


def state(out: Path) -> dict[str, object]:
    """Return the folder digest that a reader finds, and whether the folder is whole: every file listed, no other."""
    folder.recover(out)
    data = (out / "digests.json").read_bytes()
    listed = {name: about["digest"] for name, about in json.loads(data)["files"].items()}
    found = {
        path.relative_to(out).as_posix(): f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in out.rglob("*")
        if path.is_file() and path.name != "digests.json"
    }
    return {"digest": hashlib.sha256(data).hexdigest(), "whole": listed == found}


def say(**facts: object) -> None:
    """Write one line of JSON."""
    sys.stdout.write(json.dumps(facts) + "\n")


def warm_up() -> None:
    """Import what a first table imports (pandas, where it is installed), once for all the forks."""
    pa.array([""])


def main(old: Path, new: Path, out: Path, *, points: int) -> None:
    """Kill and report."""

    def build(tree: Path) -> Callable[[], object]:
        return lambda: build_mirror(open_source(tree), out, panels=PANELS)

    warm_up()
    forked(build(old))
    old_digest = state(out)["digest"]
    say(old=old_digest)
    calls = count_calls(build(new))
    say(calls=calls, new=state(out)["digest"])
    forked(build(old))
    start = time.perf_counter()
    forked(build(new))
    lasts_s = time.perf_counter() - start
    forked(build(old))
    for point in range(points):
        forked(killed_at(calls * point // points, build(new)))
        say(at=f"call {calls * point // points}", **state(out))
        forked(build(new), kill_after_s=lasts_s * point / points)
        say(at=f"{1000 * lasts_s * point / points:.1f} ms", **state(out))
        if state(out)["digest"] != old_digest:
            forked(build(old))
    # The calls around the exchange come last: kill at each of them.
    for number in range(calls - points, calls):
        forked(killed_at(number, build(new)))
        say(at=f"call {number}", **state(out))
        if state(out)["digest"] != old_digest:
            forked(build(old))
    forked(build(new))
    say(beside=sorted(path.name for path in out.parent.iterdir()), **state(out))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--aside", action="store_true")
    arguments = parser.parse_args()
    if arguments.aside:
        folder._exchange = lambda *_: False
    main(arguments.old, arguments.new, arguments.out, points=arguments.points)
