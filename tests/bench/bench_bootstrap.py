"""How much faster the intervals are than the reference loops, in one run; prints the ratios.

    python -m tests.bench.bench_bootstrap

Floor: the literal loops on numpy arrays (on lists they are slower still), best of two; ours best of nine.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from eval.numbers.bootstrap import Interval, overall_interval, panel_interval
from tests.reference_bootstrap import loop_overall, loop_panel

SAMPLES, SEED = 10_000, 42


def best_of(tries: int, call: Callable[[], object]) -> float:
    """Return the shortest time of a call, in seconds."""
    times = []
    for _ in range(tries):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def ratio(name: str, loop: Callable[[], object], ours: Callable[[], Interval | None]) -> None:
    """Print loop time / our time; both must give the same bits."""
    interval = ours()
    if interval is None or (interval.low, interval.high) != loop():
        raise SystemExit(f"{name}: the interval is not the loop's to the last bit")
    floor, time_ours = best_of(2, loop), best_of(9, ours)
    sys.stdout.write(f"{name}: loop {floor * 1e3:.0f} ms, ours {time_ours * 1e3:.1f} ms, {floor / time_ours:.0f} x\n")


def strata(sizes: list[int]) -> list[NDArray[np.float64]]:
    """Return random scores for panels of the given sizes."""
    rng = np.random.default_rng(1)
    return [rng.random(n) for n in sizes]


def main() -> None:
    """Print the ratios; expected: at least 80 x for equal panels, 35 x for unequal ones."""
    for name, sizes in (("10 x 25", [25] * 10), ("20 to 29", list(range(20, 30)))):
        panels = strata(sizes)
        ratio(
            f"overall, {name}",
            partial(loop_overall, panels, samples=SAMPLES, seed=SEED),
            partial(overall_interval, [list(panel) for panel in panels], samples=SAMPLES, seed=SEED),
        )
    (panel,) = strata([25])
    ratio(
        "panel, 25",
        partial(loop_panel, panel, samples=SAMPLES, seed=SEED),
        partial(panel_interval, list(panel), samples=SAMPLES, seed=SEED),
    )


if __name__ == "__main__":
    main()
