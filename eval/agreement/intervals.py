"""Cluster bootstrap intervals of measures of agreement: whole clusters are drawn, since items of one case go together.

In: questions, each some ratings and the measures wanted of them. Out: the measures with 95% percentile intervals.
Every resample draws as many clusters as there are, from `default_rng(seed).integers(0, n, (samples, n))`; a measure's
value in it comes from the sums over the drawn clusters. All measures of a question, and all questions with as many
clusters, see the same draws. Clusters in which no unit has two ratings tell nothing of agreement and are not drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from eval.agreement.coded import Counts, Ratings, count
from eval.agreement.measures import FORMULAS, Floats, Measure, Shape, measure_counted, shape_of

SAMPLES: Final = 2_000
BLOCK: Final = 1 << 20
"""Drawn clusters held at a time; the stream does not depend on it."""
SPREADLESS: Final = 1e-12
"""A narrower interval is no spread, only rounding."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Ratings and the names of the measures wanted of them."""

    ratings: Ratings
    measures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """The measures by name, and how many clusters their intervals draw from."""

    measures: Mapping[str, Measure]
    n_clusters: int


@dataclass(frozen=True, slots=True)
class _Summed:
    """A question's sums: clusters x columns, and the columns of each measure."""

    table: Floats
    columns: Mapping[str, slice]
    counts: Counts
    shape: Shape

    def values(self, sums: Floats) -> dict[str, Floats]:
        """Return each measure of rows of sums, NaN where it is undefined."""
        return {name: FORMULAS[name].value(sums[:, where], self.shape) for name, where in self.columns.items()}


def measured(ratings: Ratings, measures: Sequence[str], *, samples: int, seed: int) -> dict[str, Measure]:
    """Return measures of some ratings, with intervals."""
    (found,) = measure_all([Asked(ratings, tuple(measures))], samples=samples, seed=seed)
    return dict(found.measures)


def measure_all(questions: Sequence[Asked], *, samples: int = SAMPLES, seed: int = 42) -> list[Answered]:
    """Return the measures of each question, with intervals; what is drawn does not depend on the other questions.

    Raises:
        ValueError: fewer than one resample, a negative seed, or Cohen's kappa of more than two raters.
    """
    if samples < 1 or seed < 0:
        raise ValueError(f"intervals need samples >= 1 and seed >= 0; found {samples} and {seed}")
    summed = [_summed(question) for question in questions]
    by_size: dict[int, list[int]] = {}
    for place, one in enumerate(summed):
        by_size.setdefault(len(one.table), []).append(place)
    drawn: dict[int, dict[str, Floats]] = {}
    for n, places in by_size.items():
        if n >= 2:
            values = _resampled([summed[place] for place in places], n, samples, seed)
            drawn.update(zip(places, values, strict=True))
    return [
        Answered(_with_intervals(question, summed[place].counts, drawn.get(place)), len(summed[place].table))
        for place, question in enumerate(questions)
    ]


def _summed(question: Asked) -> _Summed:
    ratings, counts = question.ratings, count(question.ratings)
    shape = shape_of(ratings, counts)
    names = question.measures if ratings.raters >= 2 else ()
    parts = {name: FORMULAS[name].sums(counts) for name in names}
    ends = np.cumsum([part.shape[1] for part in parts.values()], dtype=np.int64).tolist()
    columns = {name: slice(end - parts[name].shape[1], end) for name, end in zip(parts, ends, strict=True)}
    n = int(ratings.clusters.max()) + 1 if len(ratings.clusters) else 0
    telling = np.bincount(ratings.clusters, weights=counts.paired, minlength=n) > 0
    addends = [column for part in parts.values() for column in part.T]
    sums = [np.bincount(ratings.clusters, weights=column, minlength=n)[telling] for column in addends]
    return _Summed(np.column_stack(sums) if sums else np.zeros((0, 0)), columns, counts, shape)


def _resampled(group: Sequence[_Summed], n: int, samples: int, seed: int) -> list[dict[str, Floats]]:
    """Return for each question the values of its measures in every resample."""
    table = np.hstack([one.table for one in group])
    ends = np.cumsum([one.table.shape[1] for one in group]).tolist()
    found: list[dict[str, list[Floats]]] = [{name: [] for name in one.columns} for one in group]
    for weights in _draws(n, samples, seed):
        sums = weights @ table
        for one, end, values in zip(group, ends, found, strict=True):
            for name, value in one.values(sums[:, end - one.table.shape[1] : end]).items():
                values[name].append(value)
    return [{name: np.concatenate(blocks) for name, blocks in values.items()} for values in found]


def _draws(n: int, samples: int, seed: int) -> Iterator[Floats]:
    """Yield how often every cluster is drawn, a row a resample, in blocks."""
    rng = np.random.default_rng(seed)
    rows = max(1, BLOCK // n)
    for start in range(0, samples, rows):
        size = min(rows, samples - start)
        places = rng.integers(0, n, size=(size, n)) + n * np.arange(size)[:, np.newaxis]
        yield np.bincount(places.ravel(), minlength=n * size).reshape(size, n).astype(np.float64)


def _with_intervals(question: Asked, counts: Counts, drawn: Mapping[str, Floats] | None) -> dict[str, Measure]:
    found = {name: measure_counted(question.ratings, counts, name) for name in question.measures}
    return {name: _with_interval(one, None if drawn is None else drawn.get(name)) for name, one in found.items()}


def _with_interval(found: Measure, values: Floats | None) -> Measure:
    if found.value is None:
        return replace(found, ci_reason="no value")
    if values is None:
        return replace(found, ci_reason="fewer than 2 cases")
    defined = values[~np.isnan(values)]
    undefined = len(values) - len(defined)
    if 2 * len(defined) < len(values):
        return replace(found, ci_reason="undefined in more than half of the resamples", undefined=undefined)
    low, high = (float(end) for end in np.percentile(defined, [2.5, 97.5]))
    return replace(found, ci95=(low, high), ci_reason=None, undefined=undefined, degenerate=high - low < SPREADLESS)
