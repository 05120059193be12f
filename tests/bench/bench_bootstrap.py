"""How much faster the intervals are than the reference loops, in one run; prints the ratios.

    python -m tests.bench.bench_bootstrap

Floor: the literal loops on numpy arrays (on lists they are slower still), best of two; ours best of nine.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import pytest
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


def ratio(name: str, loop: Callable[[], object], ours: Callable[[], Interval | None]) -> float:
    """Print and return loop time / our time; both must give the same bits."""
    interval = ours()
    assert interval is not None
    assert (interval.low, interval.high) == loop()
    floor, time_ours = best_of(2, loop), best_of(9, ours)
    sys.stdout.write(f"{name}: loop {floor * 1e3:.0f} ms, ours {time_ours * 1e3:.1f} ms, {floor / time_ours:.0f} x\n")
    return floor / time_ours


def strata(sizes: list[int]) -> list[NDArray[np.float64]]:
    """Return random scores for panels of the given sizes."""
    rng = np.random.default_rng(1)
    return [rng.random(n) for n in sizes]


@pytest.mark.bench
@pytest.mark.parametrize(
    ("name", "sizes", "least"), [("10 x 25", [25] * 10, 80), ("20 to 29", list(range(20, 30)), 35)], ids=["eq", "uneq"]
)
def test_overall_is_many_times_faster_than_the_loop(name: str, sizes: list[int], least: float) -> None:
    """Bit-identical, and at least 80 x (equal panels) or 35 x (unequal) faster."""
    panels = strata(sizes)
    found = ratio(
        f"overall, {name}",
        lambda: loop_overall(panels, samples=SAMPLES, seed=SEED),
        lambda: overall_interval([list(panel) for panel in panels], samples=SAMPLES, seed=SEED),
    )

    assert found >= least


@pytest.mark.bench
def test_panel_is_many_times_faster_than_the_loop() -> None:
    """A panel's own interval, 25 cases."""
    (panel,) = strata([25])
    found = ratio(
        "panel, 25",
        lambda: loop_panel(panel, samples=SAMPLES, seed=SEED),
        lambda: panel_interval(list(panel), samples=SAMPLES, seed=SEED),
    )

    assert found >= 80


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-m", "bench", "-q", "-s", "-p", "no:cacheprovider"]))
