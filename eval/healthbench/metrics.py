"""A mean over examples as HealthBench reports it: clipped, with its raw value, bootstrap deviation and interval.

In: one value an example, in a fixed order; examples without a value are left out before. Out: a `Metric`. The mean is
clipped to [0, 1], and so is the mean of every resample; a value never is.

The stream is numpy's `default_rng(seed).integers(0, n, (samples, n))`, afresh for every metric: metrics over as many
examples share their draws, and a metric does not depend on which others stand beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eval.numbers.defaults import HEALTHBENCH_SAMPLES, SEED

Floats: TypeAlias = NDArray[np.float64]
Indexes: TypeAlias = NDArray[np.int64]

# Positions drawn at a time: the block stays in the processor's cache and memory does not grow with samples x examples.
BLOCK: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class Metric:
    """A mean over n values: `value` in [0, 1] after clipping, `raw` before it.

    `bootstrap_std` is the population standard deviation of the clipped means of the resamples, `ci_low` and `ci_high`
    their 2.5th and 97.5th percentiles. All None without a value; the interval None (and the deviation 0) with one.
    """

    value: float | None
    raw: float | None
    n: int
    bootstrap_std: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None


def metric(values: Sequence[float], *, samples: int = HEALTHBENCH_SAMPLES, seed: int = SEED) -> Metric:
    """Return the clipped mean of the values with its raw mean, bootstrap deviation and percentile interval.

    Raises:
        ValueError: a value is not finite, or a setting is out of range.
    """
    return metrics([values], samples=samples, seed=seed)[0]


def metrics(
    columns: Sequence[Sequence[float]], *, samples: int = HEALTHBENCH_SAMPLES, seed: int = SEED
) -> list[Metric]:
    """Return the metric of every column, each as `metric` gives it; columns of equal length share their draws.

    Raises:
        ValueError: as `metric`.
    """
    check_sampling(samples, seed)
    by_length: dict[int, list[int]] = {}
    for position, column in enumerate(columns):
        if not all(map(math.isfinite, column)):
            raise ValueError("scores: expected finite numbers; an example without a score must be left out, not NaN")
        if column and min(column) != max(column):
            by_length.setdefault(len(column), []).append(position)
    means: dict[int, Floats] = {}
    for positions in by_length.values():
        drawn = resampled_means([columns[position] for position in positions], samples, seed)
        means.update(zip(positions, drawn, strict=True))
    return [_metric(column, means.get(position)) for position, column in enumerate(columns)]


def clip(mean: float) -> float:
    """Return a mean clipped to [0, 1]; for means only, an example is never clipped."""
    return min(1.0, max(0.0, mean))


def draws(n: int, samples: int, seed: int) -> Iterator[Indexes]:
    """Yield the rows of `default_rng(seed).integers(0, n, (samples, n))` in blocks; the stream is the same."""
    rng = np.random.default_rng(seed)
    rows = max(1, BLOCK // n)
    for start in range(0, samples, rows):
        yield rng.integers(0, n, size=(min(rows, samples - start), n))


def resampled_means(columns: Sequence[Sequence[float]], samples: int, seed: int) -> Floats:
    """Return the means of the resamples, not clipped: a row for each of some columns of equal length."""
    values = [np.asarray(column, dtype=np.float64) for column in columns]
    means = np.empty((len(values), samples))
    start = 0
    for block in draws(len(values[0]), samples, seed):
        stop = start + len(block)
        for row, column in zip(means, values, strict=True):
            row[start:stop] = column.take(block).mean(axis=1)
        start = stop
    return means


def check_sampling(samples: int, seed: int) -> None:
    """Refuse settings that no bootstrap has.

    Raises:
        ValueError: fewer than one resample, or a negative seed.
    """
    if samples < 1 or seed < 0:
        raise ValueError(f"bootstrap needs samples >= 1 and seed >= 0; found {samples} and {seed}")


def _metric(column: Sequence[float], means: Floats | None) -> Metric:
    if not column:
        return Metric(None, None, 0)
    raw = fmean(column)
    value = clip(raw)
    if means is None:  # all values alike: so is every resample, to the last bit
        ends = (None, None) if len(column) == 1 else (value, value)
        return Metric(value, raw, len(column), 0.0, *ends)
    clipped = np.clip(means, 0.0, 1.0)
    low, high = np.percentile(clipped, [2.5, 97.5])
    return Metric(value, raw, len(column), float(clipped.std()), float(low), float(high))
