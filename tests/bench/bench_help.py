"""Measure `bedside-bench --help` against an empty typer program's, in processor time, turn by turn in one run.

Run: python -m tests.bench.bench_help [--turns 15]. Floor: a typer program with two commands that do nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys

EMPTY = """
import typer
app = typer.Typer()
app.command("one")(lambda: None)
app.command("two")(lambda: None)
app()
"""
OURS = "from eval.cli import main; main()"


def cpu_s(code: str) -> float:
    """Return the processor seconds of one `--help`."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code, "--help"], stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    """Print medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=15)
    turns = [(cpu_s(EMPTY), cpu_s(OURS)) for _ in range(parser.parse_args().turns)]
    empty, ours = (statistics.median(column) for column in zip(*turns, strict=True))
    print(f"empty typer {1000 * empty:.0f} ms, ours {1000 * ours:.0f} ms, ratio {ours / empty:.2f}")  # noqa: T201


if __name__ == "__main__":
    main()
