"""Percentile bootstrap intervals over cases: for one panel, and stratified for the overall score.

In: case scores in a fixed order, the number of resamples and a seed. Out: an `Interval`, or None where there is none.
Not done here: the point estimates (`summary`); the variance of answers, judges or providers, which no resampling of
cases can show.

The random stream is that of the reference loops (appendix H of the seed; bedside.md 5): numpy's `default_rng(seed)`,
fresh for every panel; for the overall score one generator that draws panel after panel within each resample.
`upstream_intervals` is the published runner's own stream: one `random.Random(seed)` for everything.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eval.numbers.defaults import ALPHA, SAMPLES, SEED

# Positions drawn at a time: the block stays in the processor's cache and memory does not grow with samples x cases.
BLOCK: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class Interval:
    """A percentile interval; `degenerate` where it says less than its width: all scores equal, or a panel of one."""

    low: float
    high: float
    degenerate: bool = False


class UpstreamIntervals(NamedTuple):
    """The published runner's intervals, by panel in name order, and over the panels present."""

    panels: dict[str, Interval]
    overall: Interval | None


def panel_interval(
    scores: Sequence[float], *, samples: int = SAMPLES, seed: int = SEED, alpha: float = ALPHA
) -> Interval | None:
    """Return the interval of a panel's mean, cases resampled within the panel; None below two cases.

    Bit-identical to appendix H's `bootstrap_ci` under one numpy version and architecture.
    """
    _check([scores], samples, seed, alpha)
    if len(scores) < 2:
        return None
    draw = _Strata([scores], np.random.default_rng(seed)).draw
    return _interval(_means(draw, samples, len(scores)), alpha, degenerate=_all_equal(scores))


def overall_interval(
    scores_by_panel: Sequence[Sequence[float]], *, samples: int = SAMPLES, seed: int = SEED, alpha: float = ALPHA
) -> Interval | None:
    """Return the interval of the macro-average, every panel resampled within itself to its own size.

    The panels' order is part of the result. None while a panel is empty, or where every panel has a single case; with
    some panels of one case the interval stands and is flagged degenerate. Bit-identical to appendix H's
    `stratified_overall_ci`, for panels of equal and of unequal size.
    """
    _check(scores_by_panel, samples, seed, alpha)
    sizes = [len(scores) for scores in scores_by_panel]
    if not sizes or min(sizes) == 0 or max(sizes) == 1:
        return None
    draw = _Strata(scores_by_panel, np.random.default_rng(seed)).draw
    degenerate = min(sizes) == 1 or all(_all_equal(scores) for scores in scores_by_panel)
    return _interval(_means(draw, samples, sum(sizes)), alpha, degenerate=degenerate)


class _Strata:
    """All panels' scores in one row, and the way to draw resamples of them in the reference order."""

    def __init__(self, scores_by_panel: Sequence[Sequence[float]], rng: np.random.Generator) -> None:
        self._rng = rng
        self._flat = np.concatenate([np.asarray(scores, dtype=np.float64) for scores in scores_by_panel])
        self._sizes = [len(scores) for scores in scores_by_panel]
        self._ends = np.cumsum(self._sizes).tolist()
        self._starts = [end - size for end, size in zip(self._ends, self._sizes, strict=True)]
        self._offsets = np.repeat(self._starts, self._sizes)
        self._highs = np.repeat(self._sizes, self._sizes)

    def draw(self, rows: int) -> NDArray[np.float64]:
        """Return the macro-averages of the next `rows` resamples."""
        return np.asarray(self._panel_means(rows).mean(axis=1))

    def _panel_means(self, rows: int) -> NDArray[np.float64]:
        equal = len(set(self._sizes)) == 1  # one bound for all positions draws the same stream, three times faster
        highs = self._sizes[0] if equal else self._highs
        positions = self._rng.integers(0, highs, size=(rows, self._flat.size))
        positions += self._offsets
        drawn = self._flat.take(positions)
        if equal:
            return np.asarray(drawn.reshape(rows, len(self._sizes), -1).mean(axis=2))
        bounds = zip(self._starts, self._ends, strict=True)
        return np.stack([drawn[:, start:end].mean(axis=1) for start, end in bounds], axis=1)


def _means(draw: Callable[[int], NDArray[np.float64]], samples: int, width: int) -> NDArray[np.float64]:
    """Return `samples` resampled means, drawn in blocks of rows; the stream does not depend on the block size."""
    return np.concatenate([draw(rows) for rows in _blocks(samples, max(1, BLOCK // width))])


def _blocks(total: int, size: int) -> Iterator[int]:
    for start in range(0, total, size):
        yield min(size, total - start)


def _interval(means: NDArray[np.float64], alpha: float, *, degenerate: bool) -> Interval:
    low, high = np.percentile(means, [100 * alpha / 2, 100 * (1 - alpha / 2)])
    return Interval(float(low), float(high), degenerate)


def upstream_intervals(
    scores_by_panel: Mapping[str, Sequence[float]], *, samples: int = SAMPLES, seed: int = SEED
) -> UpstreamIntervals:
    """Return the published runner's 95% intervals to the last bit; scores in the order of its file, empty panels out.

    One `random.Random(seed)`: panels by name, each `samples` times its own size; then the overall score, panel after
    panel within each resample. Left in plain Python on purpose: this is the definition.
    """
    _check(list(scores_by_panel.values()), samples, seed, ALPHA)
    panels = {panel: list(scores_by_panel[panel]) for panel in sorted(scores_by_panel) if scores_by_panel[panel]}
    rng = random.Random(seed)
    intervals = {
        panel: _upstream_interval([_mean_of_draws(rng, scores) for _ in range(samples)], degenerate=_all_equal(scores))
        for panel, scores in panels.items()
    }
    if not panels:
        return UpstreamIntervals({}, None)
    overall = [fmean([_mean_of_draws(rng, scores) for scores in panels.values()]) for _ in range(samples)]
    degenerate = any(len(s) == 1 for s in panels.values()) or all(map(_all_equal, panels.values()))
    return UpstreamIntervals(intervals, _upstream_interval(overall, degenerate=degenerate))


def _mean_of_draws(rng: random.Random, scores: list[float]) -> float:
    """Return the mean of one resample; `randrange(n)` written out, and added from left to right on every Python."""
    n = len(scores)
    bits = n.bit_length()
    total = 0.0
    for _ in range(n):
        position = rng.getrandbits(bits)
        while position >= n:
            position = rng.getrandbits(bits)
        total += scores[position]
    return total / n


def _upstream_interval(means: list[float], *, degenerate: bool) -> Interval:
    ordered = sorted(means)
    return Interval(_upstream_percentile(ordered, 0.025), _upstream_percentile(ordered, 0.975), degenerate)


def _upstream_percentile(ordered: list[float], p: float) -> float:
    """Return the linear percentile as upstream rounds it; numpy's differs in the last bits."""
    position = (len(ordered) - 1) * p
    low, high = math.floor(position), math.ceil(position)
    if low == high:
        return ordered[low]
    fraction = position - low
    return ordered[low] * (1 - fraction) + ordered[high] * fraction


def _all_equal(scores: Sequence[float]) -> bool:
    return min(scores) == max(scores)


def _check(scores_by_panel: Sequence[Sequence[float]], samples: int, seed: int, alpha: float) -> None:
    if samples < 1 or seed < 0 or not 0 < alpha < 1:
        raise ValueError(f"bootstrap needs samples >= 1, seed >= 0, 0 < alpha < 1; found {samples}, {seed}, {alpha}")
    if not all(math.isfinite(score) for scores in scores_by_panel for score in scores):
        raise ValueError("bootstrap: expected finite scores; a case without a score must be left out, not NaN")
