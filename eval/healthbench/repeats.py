"""Several answers to the same examples, kept nested: the headline, the worst of k answers, the spread between runs.

In: one row an example with its scores in N runs, in run order; scores are not clipped. Out: metrics over examples.
Repeats are never pooled: N answers to one example are one example, or the bootstrap would call them N independent ones.
Not done here: the scores (`scores`), two systems compared (`wins`).

    W_i(k) = sum_j s_(j) C(N - j, k - 1) / C(N, k), j = 1 .. N over the example's scores in rising order
    W(k) = clip(mean_i W_i(k), 0, 1)

W_i(k) is the mean, over all subsets of k runs, of the subset's lowest score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

import numpy as np

from eval.healthbench.metrics import Metric, clip, metric, metrics
from eval.numbers.defaults import HEALTHBENCH_SAMPLES, SEED


@dataclass(frozen=True, slots=True)
class RunSpread:
    """The score of every run over n examples: `scores` in [0, 1] after clipping, `raw` before, in run order.

    `mean`, `low`, `high` and `sd` (population) are over the clipped scores; None without a run.
    """

    n: int
    scores: tuple[float, ...]
    raw: tuple[float, ...]
    mean: float | None
    low: float | None
    high: float | None
    sd: float | None


def nested_metric(
    rows: Sequence[Sequence[float | None]], *, samples: int = HEALTHBENCH_SAMPLES, seed: int = SEED
) -> Metric:
    """Return the clipped mean over examples of each example's mean over its runs; examples are what is resampled.

    A run without a score (None) is left out of its example, an example without any of the metric.

    Raises:
        ValueError: a score is not finite, or a setting is out of range.
    """
    known = [[score for score in row if score is not None] for row in rows]
    return metric([fmean(row) for row in known if row], samples=samples, seed=seed)


def worst_at_k(
    rows: Sequence[Sequence[float]], *, samples: int = HEALTHBENCH_SAMPLES, seed: int = SEED
) -> dict[int, Metric]:
    """Return W(k) for every k from 1 to N; W(1) is the headline, W(N) the mean of the examples' lowest scores.

    Raises:
        ValueError: examples differ in their number of runs, a score is not finite, or a setting is out of range.
    """
    n_runs = _runs(rows)
    if not n_runs:
        return {}
    ordered = np.sort(np.asarray(rows, dtype=np.float64), axis=1)
    columns = [(ordered * worst_weights(n_runs, k)).sum(axis=1).tolist() for k in range(1, n_runs + 1)]
    found = metrics(columns, samples=samples, seed=seed)
    return dict(zip(range(1, n_runs + 1), found, strict=True))


def worst_weights(n_runs: int, k: int) -> list[float]:
    """Return the weight of each score in rising order: the share of the k-subsets of N runs whose lowest it is."""
    return [math.comb(n_runs - j, k - 1) / math.comb(n_runs, k) for j in range(1, n_runs + 1)]


def run_spread(rows: Sequence[Sequence[float]]) -> RunSpread:
    """Return each run's clipped mean over examples, and the mean, range and deviation of those.

    Raises:
        ValueError: examples differ in their number of runs, or a score is not finite.
    """
    _runs(rows)
    raw = tuple(fmean(run) for run in zip(*rows, strict=True))
    scores = tuple(map(clip, raw))
    if not scores:
        return RunSpread(len(rows), (), (), None, None, None, None)
    return RunSpread(len(rows), scores, raw, fmean(scores), min(scores), max(scores), pstdev(scores))


def _runs(rows: Sequence[Sequence[float]]) -> int:
    """Return the number of runs that every example has."""
    n_runs = len(rows[0]) if rows else 0
    for index, row in enumerate(rows):
        if len(row) != n_runs:
            raise ValueError(f"examples[{index}]: expected {n_runs} runs as in the first example, found {len(row)}")
        if not all(isinstance(score, (int, float)) and math.isfinite(score) for score in row):
            raise ValueError(f"examples[{index}]: expected a finite score for every run; leave the example out if not")
    return n_runs
