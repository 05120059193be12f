"""Compare `build` with the floor, reading every file and `orjson.loads`: `python -m tests.bench.bench_build ROOT`.

All figures come from one run with a warm cache; make ROOT with `make_tree`. Expected: build, with its check and its
read-back, at most 9 x the floor; at most 1.5 GB of memory for 100,000 cases.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from builder.mirror import build_mirror, verify_mirror
from builder.tree.sources import open_source
from tests.bench.bench_check import floor, peak_mb, seconds, show

RUNS = 2


def main(root: Path) -> None:
    """Print the figures."""
    size = floor(root)  # warms the cache
    base = min(seconds(lambda: floor(root)) for _ in range(3))
    show(f"floor   {base:7.2f} s  {size / 1e6:.0f} MB  peak {peak_mb():.0f} MB")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "mirror"
        taken = min(seconds(lambda: build_mirror(open_source(root), out)) for _ in range(RUNS))
        show(f"build   {taken:7.2f} s  {taken / base:.2f} x floor  peak {peak_mb():.0f} MB")
        taken = min(seconds(lambda: verify_mirror(out)) for _ in range(RUNS))
        show(f"verify  {taken:7.2f} s  {taken / base:.2f} x floor  peak {peak_mb():.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    main(parser.parse_args().root)
