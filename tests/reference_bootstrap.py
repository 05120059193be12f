"""The reference streams, written out as the loops that define them; slow, and on purpose not clever."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Scores = Sequence[float] | NDArray[np.float64]


def loop_panel(scores: Scores, *, samples: int, seed: int, alpha: float = 0.05) -> tuple[float, float]:
    """Return a panel's interval: one `choice` and one `mean` a resample, a fresh generator a panel."""
    rng = np.random.default_rng(seed)
    means = [np.mean(rng.choice(scores, size=len(scores), replace=True)) for _ in range(samples)]
    low, high = np.percentile(means, [100 * alpha / 2, 100 * (1 - alpha / 2)])
    return float(low), float(high)


def loop_overall(panels: Sequence[Scores], *, samples: int, seed: int) -> tuple[float, float]:
    """Return the stratified interval: one generator, panel after panel within each resample."""
    rng = np.random.default_rng(seed)
    macro = []
    for _ in range(samples):
        means = [np.mean(rng.choice(scores, size=len(scores), replace=True)) for scores in panels]
        macro.append(np.mean(means))
    low, high = np.percentile(macro, [2.5, 97.5])
    return float(low), float(high)


def loop_upstream(
    panels: Mapping[str, Sequence[float]], *, samples: int, seed: int
) -> tuple[dict[str, tuple[float, float]], tuple[float, float]]:
    """Return the published runner's intervals: one `random.Random`, panels by name, then the macro-average."""
    rng = random.Random(seed)

    def draw(scores: Sequence[float]) -> float:
        total = 0.0
        for _ in scores:
            total += scores[rng.randrange(len(scores))]
        return total / len(scores)

    def ends(values: list[float]) -> tuple[float, float]:
        return percentile(sorted(values), 0.025), percentile(sorted(values), 0.975)

    by_panel = {name: ends([draw(panels[name]) for _ in range(samples)]) for name in sorted(panels)}
    macro = [statistics.fmean([draw(panels[name]) for name in sorted(panels)]) for _ in range(samples)]
    return by_panel, ends(macro)


def percentile(ordered: list[float], p: float) -> float:
    """Return the linear percentile of sorted values."""
    position = (len(ordered) - 1) * p
    low, high = math.floor(position), math.ceil(position)
    if low == high:
        return ordered[low]
    return ordered[low] * (1 - (position - low)) + ordered[high] * (position - low)
