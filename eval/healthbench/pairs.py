"""Pairs of labels on the same texts -> precision, recall and F1 of either class, their balance, and intervals.

In: four counts for every record that one rater and other raters labelled, `CELLS`. Out: an `Agreement`. Not done here:
who is compared with whom (`meta`).

For class c, g the rater's label and y another's, over all pairs (g, y):

    precision_c = #(g = c, y = c) / #(g = c)           n = #(g = c)
    recall_c    = #(g = c, y = c) / #(y = c)           n = #(y = c)
    F1_c        = 2 precision_c recall_c / (precision_c + recall_c), 0 where both are 0
                                                       n = #(g = c or y = c)
    balanced    = mean over the two classes            n = the sum of both classes'

A value is None where it is not defined: precision of a class the rater never gave, recall of one the others never gave,
F1 and balance where a part is None. The balanced n counts pairs twice; the published evaluator weights with it, so do
we. Records are what is resampled: the pairs of one record are not independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from eval.healthbench.metrics import Floats

CELLS: Final = ("both positive", "rater positive only", "others positive only", "both negative")
PRECISION, RECALL, F1 = range(3)
POSITIVE, NEGATIVE, BALANCED = range(3)


@dataclass(frozen=True, slots=True)
class Value:
    """A value in [0, 1] or None, its n, and the bootstrap over records where one was asked for and has a spread.

    `n_undefined` of the resamples have no value (a class does not occur in them); they are left out of the interval.
    """

    value: float | None
    n: int
    bootstrap_std: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    n_undefined: int = 0


@dataclass(frozen=True, slots=True)
class ByClass:
    """One measure for the positive class, for the negative class, and the mean of both."""

    positive: Value
    negative: Value
    balanced: Value


@dataclass(frozen=True, slots=True)
class Agreement:
    """How one rater's labels agree with others'; the headline is `f1.balanced`."""

    precision: ByClass
    recall: ByClass
    f1: ByClass


class Ratios(NamedTuple):
    """Values (NaN where undefined) and their n: the last two axes are the measure and the class."""

    values: Floats
    n: Floats


def cells_of(label: bool, others: Sequence[bool]) -> tuple[int, int, int, int]:
    """Return one record's pairs of a rater's label with every other's, in the order of `CELLS`."""
    positive = sum(others)
    negative = len(others) - positive
    return (positive, negative, 0, 0) if label else (0, 0, positive, negative)


def agreement(cells: Floats, resamples: Floats | None) -> Agreement:
    """Return every measure of the counts `cells`, with its interval where there are counts of resamples, a row each."""
    point = ratios(cells)
    drawn = None if resamples is None else ratios(resamples).values

    def value(measure: int, label: int) -> Value:
        values = None if drawn is None else drawn[:, measure, label]
        return with_interval(float(point.values[measure, label]), int(point.n[measure, label]), values)

    return Agreement(*(ByClass(*(value(m, c) for c in range(3))) for m in range(3)))


def ratios(counts: Floats) -> Ratios:
    """Return all measures of both classes and their balance, from counts whose last axis is `CELLS`."""
    both, rater, others, neither = np.moveaxis(counts, -1, 0)
    classes = [_of_class(both, rater, others), _of_class(neither, others, rater)]
    values, n = (np.stack(parts, axis=-1) for parts in zip(*classes, strict=True))
    balanced = (values[..., POSITIVE] + values[..., NEGATIVE]) / 2
    return Ratios(
        np.concatenate([values, balanced[..., None]], axis=-1), np.concatenate([n, n.sum(-1, keepdims=True)], axis=-1)
    )


def balanced_f1(both: Floats, rater: Floats, others: Floats, neither: Floats) -> tuple[Floats, Floats]:
    """Return the balanced F1 alone, as `ratios` gives it, with its n: the quick way for many raters and resamples.

    With precision and recall written out, F1_c = 2 agreed / (2 agreed + rater only + others only).
    """
    differ = rater + others
    known = (both + rater > 0) & (both + others > 0) & (neither + rater > 0) & (neither + others > 0)
    values: Floats = np.full(np.shape(both), np.nan)
    np.divide(both, 2 * both + differ, out=values, where=known)
    negative = np.divide(neither, 2 * neither + differ, out=np.zeros(np.shape(both)), where=known)
    return values + negative, both + neither + 2 * differ


def _of_class(agreed: Floats, rater: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Return precision, recall and F1 of one class, from the pairs where both, only the rater, only the other gave it.

    Precision and recall are 0 together, and only where no pair agrees.
    """
    given, taken = agreed + rater, agreed + others
    precision, recall = _divide(agreed, given), _divide(agreed, taken)
    f1 = np.where((agreed == 0) & (given > 0) & (taken > 0), 0.0, _divide(2 * precision * recall, precision + recall))
    return np.stack([precision, recall, f1], axis=-1), np.stack([given, taken, given + others], axis=-1)


def _divide(numerator: Floats, denominator: Floats) -> Floats:
    """Divide where there is something to divide by; NaN elsewhere."""
    quotient: Floats = np.full(np.shape(denominator), np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator > 0)
    return quotient


def weighted(values: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return the n-weighted mean along the last axis over the values that exist, and the n it rests on."""
    weights = np.where(np.isnan(values), 0.0, n)
    total = weights.sum(axis=-1)
    return _divide((weights * np.nan_to_num(values)).sum(axis=-1), total), total


def with_interval(point: float, n: int, resamples: Floats | None) -> Value:
    """Return a value with the deviation and the 95% percentile interval of its resamples."""
    if np.isnan(point):
        return Value(None, n)
    if resamples is None:
        return Value(point, n)
    known = resamples[~np.isnan(resamples)]  # never empty but for tiny data: the value itself exists
    undefined = len(resamples) - len(known)
    if not len(known):
        return Value(point, n, n_undefined=undefined)
    low, high = np.percentile(known, [2.5, 97.5])
    return Value(point, n, float(known.std()), float(low), float(high), undefined)
