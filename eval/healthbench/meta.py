"""The grader against physicians: HealthBench's meta-evaluation, overall, by category and by theme.

In: for every record one criterion's label by the grader and by several physicians. Out: a `MetaEvaluation`. Not done
here: the measures themselves (`pairs`).

Every (grader's label, physician's label) on a record is one pair; the headline is the balanced F1 over all pairs. Each
physician is measured the same way against the other physicians of the same records: the spread of those with n > 50 is
the human distribution, in which the grader has a percentile (ties count half), and the n-weighted mean over all
physicians is the ceiling. Others are told by their id: a physician who labelled a record twice is not set against him-
or herself (the published evaluator goes by position; the same where nobody labels a record twice). A record without
the grader's label, or without any physician's, is left out everywhere, so that grader and physicians are compared on
the same records; both are counted.

Themes. A published category reads `cluster:<theme>_<situation>_<question>`, as in
`cluster:hedging_any-reducible-uncertainty_hedges`; the seven themes are those of the core data's `theme:` tags
(`THEMES`), and the published analysis assigns a category to the theme whose name it begins with. We rely on exactly
that, with the whole name and the `_` behind it; a category of no known theme is listed apart and belongs to none. A
theme's value is the mean of its categories' balanced F1, weighted by their balanced n, over the categories that have
one: for the grader, and likewise for each physician over the categories that he or she has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from eval.healthbench.metrics import Floats, Indexes, check_sampling
from eval.healthbench.pairs import (
    BALANCED,
    F1,
    Agreement,
    Ratios,
    Value,
    agreement,
    cells_of,
    ratios,
    weighted,
    with_interval,
)
from eval.healthbench.resamples import Drawn, raters, resampled
from eval.numbers.defaults import HEALTHBENCH_SAMPLES, SEED

THEMES: Final = (
    "communication",
    "complex_responses",
    "context_seeking",
    "emergency_referrals",
    "global_health",
    "health_data_tasks",
    "hedging",
)
"""The published themes; in results they carry their published prefix, as in `theme:hedging`."""

MIN_N: Final = 50
"""A physician counts in the distribution with more than so many: the balanced n, which counts pairs twice."""


@dataclass(frozen=True, slots=True)
class MetaExample:
    """One record: the grader's label (None while it is missing) and (physician, label) of every physician."""

    case_id: str
    category: str
    grader: bool | None
    labels: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over n records, the population deviation of its resamples and their interval; nothing is clipped."""

    value: float | None
    n: int
    bootstrap_std: float | None
    ci_low: float | None = None
    ci_high: float | None = None


@dataclass(frozen=True, slots=True)
class Rates:
    """Base rates: the grader's share of positive labels, the physicians' (mean of each record's), labels a record."""

    grader_positive: Mean
    physician_positive: Mean
    labels: Mean


@dataclass(frozen=True, slots=True)
class Standing:
    """The grader's balanced F1 among the physicians'.

    `distribution` holds the values of the physicians with n > 50, rising; `ceiling` is the n-weighted mean over all
    physicians that have a value, `n_physicians` of them; `percentile` in [0, 100], None without a distribution. A
    theme's ceiling has no interval: its physicians have few records a category, and resamples of few lie below it.
    """

    grader: Value
    distribution: tuple[float, ...]
    percentile: float | None
    ceiling: Value
    n_physicians: int


@dataclass(frozen=True, slots=True)
class Category:
    """One category: its records, the agreement of the grader with physicians, and the base rates."""

    n_records: int
    agreement: Agreement
    rates: Rates


@dataclass(frozen=True, slots=True)
class Physician:
    """One physician's balanced F1 against the others: over all pairs, and by theme where there is one."""

    physician: str
    overall: Value
    themes: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class MetaEvaluation:
    """Everything the meta-evaluation says; the headline is `agreement.f1.balanced`.

    `n_records` were used; `n_without_grader` and `n_without_labels` were left out. `no_theme` names the categories that
    belong to no known theme.
    """

    n_records: int
    n_without_grader: int
    n_without_labels: int
    agreement: Agreement
    rates: Rates
    standing: Standing
    categories: Mapping[str, Category]
    themes: Mapping[str, Standing]
    no_theme: tuple[str, ...]
    physicians: tuple[Physician, ...]


@dataclass(frozen=True, slots=True)
class _Table:
    """The usable records as arrays: the grader's pairs of each, its base rates, and the pairs of each label.

    A label's pairs are those with the other physicians' labels on its record; labels are in the order of the records.
    """

    categories: tuple[str, ...]
    category: Indexes  # into categories, a record
    cells: Floats  # records x 4
    rates: Floats  # records x 3, as in Rates
    physicians: tuple[str, ...]
    record: Indexes  # a label
    physician: Indexes  # into physicians, a label
    label_cells: Floats  # labels x 4

    def physician_cells(self) -> Floats:
        """Return the counts of each physician: physicians x categories x 4."""
        sums = np.zeros((len(self.physicians), len(self.categories), 4))
        np.add.at(sums, (self.physician, self.category[self.record]), self.label_cells)
        return sums


def theme_of(category: str) -> str | None:
    """Return the published theme a category belongs to, as `theme:<name>`; None where it names none."""
    for theme in THEMES:
        if category.startswith(f"cluster:{theme}_"):
            return f"theme:{theme}"
    return None


def meta_evaluation(
    examples: Sequence[MetaExample], *, samples: int = HEALTHBENCH_SAMPLES, seed: int = SEED
) -> MetaEvaluation:
    """Compare the grader with the physicians, and the physicians with each other.

    The examples' order is part of the intervals, of nothing else.

    Raises:
        ValueError: a label is not true or false, or a setting is out of range.
    """
    check_sampling(samples, seed)
    for example in examples:
        _check(example)
    graded = [example for example in examples if example.grader is not None]
    usable = [example for example in graded if example.labels]
    table = _table(usable)
    cells = table.physician_cells()
    by_physician, by_category = _balanced_f1(ratios(cells.sum(axis=1))), _balanced_f1(ratios(cells))
    by = raters(table.record, table.physician, table.label_cells)
    drawn = resampled(np.hstack([table.cells, table.rates]), by, samples=samples, seed=seed)
    overall = agreement(table.cells.sum(axis=0), _columns(drawn, slice(4)))
    themes = _themes(table.categories)
    columns = {theme: [table.categories.index(name) for name in names] for theme, names in themes.items()}
    of_theme = {theme: weighted(*(found[:, picked] for found in by_category)) for theme, picked in columns.items()}
    return MetaEvaluation(
        n_records=len(usable),
        n_without_grader=len(examples) - len(graded),
        n_without_labels=len(graded) - len(usable),
        agreement=overall,
        rates=_rates(table.rates, _columns(drawn, slice(4, None))),
        standing=_standing(overall.f1.balanced, *by_physician, None if drawn is None else drawn.means),
        categories={name: _category(table, index, samples, seed) for index, name in enumerate(table.categories)},
        themes={theme: _theme(table, picked, of_theme[theme], samples, seed) for theme, picked in columns.items()},
        no_theme=tuple(name for name in table.categories if theme_of(name) is None),
        physicians=_physicians(table.physicians, by_physician, of_theme),
    )


def percentile(value: float, distribution: Sequence[float]) -> float | None:
    """Return the share of a distribution below a value, in percent, ties counting half; None of nothing."""
    if not distribution:
        return None
    below = sum(other < value for other in distribution) + sum(other == value for other in distribution) / 2
    return 100 * below / len(distribution)


def _table(examples: Sequence[MetaExample]) -> _Table:
    categories = tuple(sorted({example.category for example in examples}))
    physicians = tuple(sorted({physician for example in examples for physician, _ in example.labels}))
    category_at = {name: index for index, name in enumerate(categories)}
    physician_at = {name: index for index, name in enumerate(physicians)}
    labels = [(row, *label) for row, example in enumerate(examples) for label in example.labels]
    others = [
        cells_of(label, [other for who, other in examples[row].labels if who != physician])
        for row, physician, label in labels
    ]
    return _Table(
        categories=categories,
        category=np.array([category_at[example.category] for example in examples], dtype=np.int64),
        cells=np.array([_grader_cells(example) for example in examples], dtype=np.float64).reshape(-1, 4),
        rates=np.array([_base_rates(example) for example in examples], dtype=np.float64).reshape(-1, 3),
        physicians=physicians,
        record=np.array([row for row, _, _ in labels], dtype=np.int64),
        physician=np.array([physician_at[physician] for _, physician, _ in labels], dtype=np.int64),
        label_cells=np.array(others, dtype=np.float64).reshape(-1, 4),
    )


def _grader_cells(example: MetaExample) -> tuple[int, int, int, int]:
    return cells_of(example.grader is True, [label for _, label in example.labels])


def _base_rates(example: MetaExample) -> tuple[float, float, float]:
    positive = sum(label for _, label in example.labels)
    return float(example.grader is True), positive / len(example.labels), float(len(example.labels))


def _themes(categories: Sequence[str]) -> dict[str, list[str]]:
    """Return the categories of every theme that has one, themes and categories sorted."""
    found: dict[str, list[str]] = {}
    for category in categories:
        theme = theme_of(category)
        if theme is not None:
            found.setdefault(theme, []).append(category)
    return dict(sorted(found.items()))


def _columns(drawn: Drawn | None, columns: slice) -> Floats | None:
    return None if drawn is None else drawn.sums[:, columns]


def _category(table: _Table, index: int, samples: int, seed: int) -> Category:
    rows = np.flatnonzero(table.category == index)
    cells, rates = table.cells[rows], table.rates[rows]
    drawn = resampled(np.hstack([cells, rates]), None, samples=samples, seed=seed)
    return Category(
        n_records=len(rows),
        agreement=agreement(cells.sum(axis=0), _columns(drawn, slice(4))),
        rates=_rates(rates, _columns(drawn, slice(4, None))),
    )


def _theme(
    table: _Table, columns: Sequence[int], of_physicians: tuple[Floats, Floats], samples: int, seed: int
) -> Standing:
    """Place the grader in a theme; the records of all its categories are resampled together."""
    rows = np.flatnonzero(np.isin(table.category, columns))
    spread = np.zeros((len(rows), len(columns), 4))
    spread[np.arange(len(rows)), np.searchsorted(columns, table.category[rows])] = table.cells[rows]
    value, n = weighted(*_balanced_f1(ratios(spread.sum(axis=0))))
    drawn = resampled(spread.reshape(len(rows), -1), None, samples=samples, seed=seed)
    resamples = None
    if drawn is not None:
        resamples = weighted(*_balanced_f1(ratios(drawn.sums.reshape(samples, len(columns), 4))))[0]
    return _standing(with_interval(float(value), int(n), resamples), *of_physicians, None)


def _balanced_f1(found: Ratios) -> tuple[Floats, Floats]:
    return found.values[..., F1, BALANCED], found.n[..., F1, BALANCED]


def _standing(grader: Value, values: Floats, n: Floats, ceilings: Floats | None) -> Standing:
    """Place the grader among physicians, given each one's value (NaN without) and n, and the ceiling's resamples."""
    kept = sorted(values[(n > MIN_N) & ~np.isnan(values)].tolist())
    mean, total = weighted(values, n)
    return Standing(
        grader=grader,
        distribution=tuple(kept),
        percentile=None if grader.value is None else percentile(grader.value, kept),
        ceiling=with_interval(float(mean), int(total), ceilings),
        n_physicians=int((~np.isnan(values)).sum()),
    )


def _physicians(
    names: Sequence[str], overall: tuple[Floats, Floats], of_theme: Mapping[str, tuple[Floats, Floats]]
) -> tuple[Physician, ...]:
    def value(values: Floats, n: Floats, row: int) -> Value:
        return with_interval(float(values[row]), int(n[row]), None)

    return tuple(
        Physician(
            physician=name,
            overall=value(*overall, row),
            themes={theme: value(*found, row) for theme, found in of_theme.items() if not np.isnan(found[0][row])},
        )
        for row, name in enumerate(names)
    )


def _rates(columns: Floats, sums: Floats | None) -> Rates:
    return Rates(*(_mean(columns[:, i], None if sums is None else sums[:, i]) for i in range(3)))


def _mean(column: Floats, sums: Floats | None) -> Mean:
    if not len(column):
        return Mean(None, 0, None)
    value = float(column.mean())
    if sums is None:
        return Mean(value, 1, 0.0)
    if column.min() == column.max():  # then so is every resample, to the last bit
        return Mean(value, len(column), 0.0, value, value)
    means = sums / len(column)
    low, high = np.percentile(means, [2.5, 97.5])
    return Mean(value, len(column), float(means.std()), float(low), float(high))


def _check(example: MetaExample) -> None:
    for label in (example.grader, *(label for _, label in example.labels)):
        if label is not None and type(label) is not bool:
            raise ValueError(f"case {example.case_id}: labels: expected true or false, found {label!r}")
    if any(label is None for _, label in example.labels):
        raise ValueError(f"case {example.case_id}: labels: expected true or false, found none")
