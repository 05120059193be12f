"""Compare `check` with the floor, reading every file and `orjson.loads`: `python -m tests.bench.bench_check ROOT`.

All figures come from one run with a warm cache; make ROOT with `make_tree`. Expected: check without
near-duplicates at most 6 x the floor, near-duplicates at most 90 s for 100,000 prompts.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import orjson

from bedside_bench import PANEL_IDS
from builder.rules.validate import check_tree
from builder.tree.sources import open_source


def floor(root: Path) -> int:
    """Read and parse every case in manifest order; return the bytes read."""
    total = 0
    for panel in PANEL_IDS:
        folder = root / "data" / panel
        for case_id in json.loads((folder / "manifest.json").read_bytes())["case_ids"]:
            with open(f"{folder}/cases/{case_id}.json", "rb") as file:  # noqa: PTH123 - the fastest plain way
                data = file.read()
            orjson.loads(data)
            total += len(data)
    return total


def seconds(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def show(line: str) -> None:
    """Write one line of figures."""
    sys.stdout.write(f"{line}\n")


def peak_mb() -> float:
    """Return the most memory this process has held so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(root: Path) -> None:
    """Print the figures: the best of three rounds, each of which takes every measure once."""
    source = open_source(root)
    size = floor(root)  # warms the cache
    measures: dict[str, Callable[[], object]] = {
        "floor": partial(floor, root),
        "check, not similar": partial(check_tree, source, similar=False),
        "check": partial(check_tree, source),
    }
    taken = {name: seconds(work) for name, work in measures.items()}
    for _ in range(2):
        taken = {name: min(taken[name], seconds(work)) for name, work in measures.items()}
    for name, best in taken.items():
        show(f"{name:20}{best:7.2f} s {best / taken['floor']:6.2f} x floor")
    report = check_tree(source)
    show(f"{size / 1e6:.0f} MB, {report.n_cases:,} cases, {report.n_items:,} items, {len(report.problems):,} problems")
    show(f"peak memory {peak_mb():.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    main(parser.parse_args().root)
