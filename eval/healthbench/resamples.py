"""Records drawn with replacement, once for everything that is summed over them.

In: a table with a row a record, and where wanted the sparse table of what many raters say of these records. Out: for
every resample the sums of the first, and the raters' mean balanced F1. The draws are those of `metrics`; whole numbers
add up exactly. Not done here: what the sums mean (`meta`, `pairs`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eval.healthbench.metrics import Floats, Indexes, draws
from eval.healthbench.pairs import CELLS, balanced_f1, weighted


class Raters(NamedTuple):
    """The pairs of many raters with others: `weight` pairs of record `record` in one of the `CELLS` of one rater.

    Sorted by place, which is the cell's number x `n` + the rater's; `starts` says where each of `places` begins.
    """

    n: int
    record: Indexes
    weight: Floats
    places: Indexes
    starts: Indexes

    def cells(self, drawn: Floats) -> Floats:
        """Return every rater's counts when records are drawn so often: cells x draws x raters."""
        sums = np.zeros((len(drawn), len(CELLS) * self.n))
        if len(self.places):
            sums[:, self.places] = np.add.reduceat(drawn.take(self.record, axis=1) * self.weight, self.starts, axis=1)
        return np.moveaxis(sums.reshape(len(drawn), len(CELLS), self.n), 1, 0)


class Drawn(NamedTuple):
    """What every resample gives: the sums of the table's columns, and the raters' n-weighted mean balanced F1."""

    sums: Floats
    means: Floats | None


def raters(record: Indexes, rater: Indexes, cells: Floats) -> Raters:
    """Return labels as a sparse table: each label's record, who gave it, and its counts `CELLS`, a row a label."""
    kinds, rater = np.unique(rater, return_inverse=True)
    label, cell = np.nonzero(cells)
    place = cell * len(kinds) + rater[label]
    order = np.argsort(place, kind="stable")
    places, starts = np.unique(place[order], return_index=True)
    return Raters(len(kinds), record[label[order]], cells[label, cell][order], places, starts)


def resampled(table: Floats, by: Raters | None, *, samples: int, seed: int) -> Drawn | None:
    """Return what every resample of a table's rows gives; None of fewer than two rows, which have no spread.

    For tables of few different rows: how often each kind is drawn is counted, then summed once.
    """
    if len(table) < 2:
        return None
    kinds, kind = np.unique(table, axis=0, return_inverse=True)
    counts, means = [], []
    for block in draws(len(table), samples, seed):
        counts.append(_counts(kind.take(block), len(kinds)))
        if by is not None:
            drawn = _counts(block, len(table)).astype(np.float64)
            means.append(weighted(*balanced_f1(*by.cells(drawn)))[0])
    return Drawn(np.concatenate(counts) @ kinds, np.concatenate(means) if means else None)


def _counts(numbers: Indexes, n: int) -> Indexes:
    """Return how often each number below n stands in each row."""
    places = numbers + n * np.arange(len(numbers))[:, None]
    return np.bincount(places.ravel(), minlength=n * len(numbers)).reshape(len(numbers), n)
