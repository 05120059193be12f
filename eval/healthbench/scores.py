"""HealthBench's scores: an example's score, and the clipped means over examples and over tags, with bootstrap errors.

In: the signed points of an example's rubric items, one decision for each, and the tags of both. Out: the score of an
example (never clipped: below 0 where harm outweighs), and a `Metric` for all examples, for every example tag and for
every rubric tag. Not done here: the mean and its bootstrap (`metrics`), repeats (`repeats`), win rates (`wins`), the
grader against physicians (`meta`).

    s_i = sum(points of met items) / sum(points of items with points > 0)
    value = clip(mean_i s_i, 0, 1); the mean is clipped, never an example

An example with nothing to earn has no score: it is left out, as is its share of a tag whose items earn nothing.
Example tags and rubric tags are two name spaces: the same word in both stays two metrics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eval.healthbench.metrics import Floats, Indexes, Metric, metric, metrics
from eval.numbers.defaults import HEALTHBENCH_SAMPLES, SEED
from eval.numbers.scoring import Bounds

Points: TypeAlias = int | float

LENGTH_UNIT: Final = 500
"""The length penalty is given for so many code points."""


@dataclass(frozen=True, slots=True)
class Example:
    """One graded answer to one example: its items' points, decisions and tags in file order, and its own tags.

    `item_tags` holds the tags of each item, or nothing at all where the data has none; a tag given twice counts once.
    `n_chars` is the answer's length in code points.
    """

    case_id: str
    points: tuple[Points, ...]
    matched: tuple[bool, ...]
    item_tags: tuple[tuple[str, ...], ...] = ()
    tags: tuple[str, ...] = ()
    n_chars: int | None = None


@dataclass(frozen=True, slots=True)
class Scores:
    """All metrics of a set of graded answers, tags by name, and each answer's score in the order given."""

    overall: Metric
    example_tags: Mapping[str, Metric]
    rubric_tags: Mapping[str, Metric]
    by_example: tuple[float | None, ...]


class _Items(NamedTuple):
    """Items one after another: their points, decisions, and the number of the example or group each belongs to."""

    points: Floats
    matched: NDArray[np.bool_]
    owner: Indexes


class _Column(NamedTuple):
    """The values of one metric, and the index of the answer that each comes from."""

    indexes: list[int]
    values: list[float]


def example_score(points: Sequence[Points], matched: Sequence[bool]) -> float | None:
    """Return the points of met items over all points that can be earned, at most 1; None if none can be earned.

    Raises:
        ValueError: a decision is missing (never scored as false), or points are not a finite number.
    """
    _check(points, matched)
    earned, available = 0.0, 0.0
    for point, met in zip(points, matched, strict=True):
        earned += point if met else 0.0
        available += point if point > 0 else 0.0
    return _finite(earned / available) if available > 0 else None


def example_bounds(points: Sequence[Points], decided: Sequence[bool | None]) -> Bounds:
    """Return the lowest and highest score that any choice for the missing decisions (None) could give.

    The worst takes items that earn as not met and all others as met, the best the reverse. Both None if none earns.

    Raises:
        ValueError: as `example_score`.
    """
    if len(points) != len(decided):
        raise ValueError(f"decisions: expected {len(points)}, one an item, found {len(decided)}")
    _check(points, [met is not None and met for met in decided])
    earns = [point > 0 for point in points]
    worst = [not earn if met is None else met for earn, met in zip(earns, decided, strict=True)]
    best = [earn if met is None else met for earn, met in zip(earns, decided, strict=True)]
    return Bounds(worst=example_score(points, worst), best=example_score(points, best))


def scores(
    examples: Sequence[Example], *, pooled: bool = False, samples: int = HEALTHBENCH_SAMPLES, seed: int = SEED
) -> Scores:
    """Return the overall metric and that of every example tag and rubric tag, tags sorted by name.

    Several answers to one example (the same `case_id`) are nested: each metric takes their mean as the example's value,
    and n counts examples. `pooled` takes every answer for an example of its own, as the reference evaluator does: its
    deviations are too small. The order in which examples first come is part of the bootstrap's result, of nothing else.

    Raises:
        ValueError: a decision is missing, points are not a finite number, or lengths differ; it names the case.
    """
    for example in examples:
        _check_example(example)
    items = _flat(examples)
    by_example = _by_example(items, len(examples))
    of_examples = _by_example_tag(examples, by_example)
    of_items = _by_rubric_tag(examples, items)
    known = [index for index, value in enumerate(by_example) if value is not None]
    everything = _Column(known, [value for value in by_example if value is not None])
    columns = (everything, *of_examples.values(), *of_items.values())
    values = [column.values if pooled else _nested(column, examples) for column in columns]
    overall, *rest = metrics(values, samples=samples, seed=seed)
    of_items_at = len(of_examples)
    return Scores(
        overall=overall,
        example_tags=dict(zip(of_examples, rest[:of_items_at], strict=True)),
        rubric_tags=dict(zip(of_items, rest[of_items_at:], strict=True)),
        by_example=by_example,
    )


def adjusted_score(score: float, n_chars: int, *, center: float, penalty: float) -> float:
    """Return s - penalty x (length - center) / 500: an answer shorter than the centre gains, and can exceed 1."""
    return score - penalty * (n_chars - center) / LENGTH_UNIT


def length_adjusted(
    values: Sequence[float | None],
    n_chars: Sequence[int | None],
    *,
    center: float,
    penalty: float,
    samples: int = HEALTHBENCH_SAMPLES,
    seed: int = SEED,
) -> Metric:
    """Return the metric of the length-adjusted scores, clipped after averaging only; examples without a score left out.

    Args:
        values: The examples' unadjusted scores.
        n_chars: The answers' lengths in code points.
        center: The length that changes nothing, >= 0.
        penalty: What 500 code points above the centre cost, >= 0.

    Raises:
        ValueError: an answer with a score has no length, lengths differ, or a setting is out of range.
    """
    if not (math.isfinite(center) and math.isfinite(penalty) and center >= 0 and penalty >= 0):
        raise ValueError(f"length: expected a centre and a penalty >= 0, found {center} and {penalty}")
    if len(values) != len(n_chars):
        raise ValueError(f"lengths: expected {len(values)}, one an answer, found {len(n_chars)}")
    adjusted = []
    for index, (value, length) in enumerate(zip(values, n_chars, strict=True)):
        if value is None:
            continue
        if length is None:
            raise ValueError(f"lengths[{index}]: expected the length of a scored answer, found none")
        adjusted.append(adjusted_score(value, length, center=center, penalty=penalty))
    return metric(adjusted, samples=samples, seed=seed)


def _flat(examples: Sequence[Example]) -> _Items:
    return _Items(
        points=np.array([point for example in examples for point in example.points], dtype=np.float64),
        matched=np.array([met for example in examples for met in example.matched], dtype=np.bool_),
        owner=np.repeat(np.arange(len(examples)), [len(example.points) for example in examples]),
    )


def _by_example(items: _Items, n: int) -> tuple[float | None, ...]:
    return tuple(None if math.isnan(ratio) else ratio for ratio in _ratios(items, n).tolist())


def _nested(column: _Column, examples: Sequence[Example]) -> list[float]:
    """Return one value an example: the mean over its answers, in the order in which examples first come."""
    rows: dict[str, list[float]] = {}
    for index, value in zip(column.indexes, column.values, strict=True):
        rows.setdefault(examples[index].case_id, []).append(value)
    return column.values if len(rows) == len(column.values) else [fmean(row) for row in rows.values()]


def _by_example_tag(examples: Sequence[Example], values: Sequence[float | None]) -> dict[str, _Column]:
    """Return the scores under each example tag, tags sorted; a tag without a score is left out."""
    found: dict[str, _Column] = {}
    for index, (example, value) in enumerate(zip(examples, values, strict=True)):
        if value is not None:
            for tag in dict.fromkeys(example.tags):
                column = found.setdefault(tag, _Column([], []))
                column.indexes.append(index)
                column.values.append(value)
    return dict(sorted(found.items()))


def _by_rubric_tag(examples: Sequence[Example], items: _Items) -> dict[str, _Column]:
    """Return the examples' scores over the items of each tag, tags sorted; left out where those items earn nothing."""
    number: dict[str, int] = {}
    numbers_of: dict[tuple[str, ...], list[int]] = {}
    numbers: list[int] = []
    counts: list[int] = []
    for example in examples:
        for tags in example.item_tags or ((),) * len(example.points):
            if tags not in numbers_of:
                numbers_of[tags] = [number.setdefault(tag, len(number)) for tag in dict.fromkeys(tags)]
            numbers += numbers_of[tags]
            counts.append(len(numbers_of[tags]))
    if not number:
        return {}
    tagged = np.repeat(np.arange(len(counts)), counts)
    groups = np.array(numbers) * len(examples) + items.owner[tagged]  # a tag's groups lie together, in example order
    group, owner = np.unique(groups, return_inverse=True)
    ratios = _ratios(_Items(items.points[tagged], items.matched[tagged], owner), len(group))
    known = ~np.isnan(ratios)
    group, ratios = group[known], ratios[known]
    ends = np.searchsorted(group, np.arange(1, len(number)) * len(examples))
    indexes, values = np.split(group % len(examples), ends), np.split(ratios, ends)
    parts = sorted(zip(number, indexes, values, strict=True), key=lambda part: part[0])
    return {tag: _Column(index.tolist(), value.tolist()) for tag, index, value in parts if len(value)}


def _ratios(items: _Items, n: int) -> Floats:
    """Return each of n owners' earned / available points, NaN where nothing can be earned.

    `bincount` adds from left to right, as `example_score` does: the two agree to the last bit.
    """
    ratios: Floats = np.full(n, np.nan)
    gains = np.where(items.points > 0, items.points, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):  # refused below, with words
        earned = np.bincount(items.owner, weights=np.where(items.matched, items.points, 0.0), minlength=n)
        available = np.bincount(items.owner, weights=gains, minlength=n)
        np.divide(earned, available, out=ratios, where=available > 0)
    for ratio in ratios[(available > 0) & ~np.isfinite(ratios)].tolist():
        _finite(ratio)
    return ratios


def _finite(score: float) -> float:
    if not math.isfinite(score):
        raise ValueError("points: expected numbers whose sums are finite")
    return score


def _check_example(example: Example) -> None:
    try:
        _check(example.points, example.matched)
    except ValueError as error:
        raise ValueError(f"case {example.case_id}: {error}") from error
    if example.item_tags and len(example.item_tags) != len(example.points):
        found = len(example.item_tags)
        raise ValueError(f"case {example.case_id}: item tags: expected {len(example.points)}, found {found}")


def _check(points: Sequence[Points], matched: Sequence[bool]) -> None:
    if len(points) != len(matched):
        raise ValueError(f"decisions: expected {len(points)}, one an item, found {len(matched)}")
    for index, (point, met) in enumerate(zip(points, matched, strict=True)):
        if type(met) is not bool:
            raise ValueError(f"decisions[{index}]: expected true or false, found {met!r}: missing is never false")
        if isinstance(point, bool) or not isinstance(point, (int, float)) or not _in_range(point):
            raise ValueError(f"points[{index}]: expected a finite number, found {point!r}")


def _in_range(point: Points) -> bool:
    """Tell whether a number is finite as a float: an integer of 400 digits is not."""
    try:
        return math.isfinite(point)
    except OverflowError:
        return False
