"""The grader against physicians: HealthBench's meta-evaluation, overall, by category and by theme.

In: for every record one criterion's label by the grader and by several physicians. Out: a `MetaEvaluation`. Not done
here: the measures themselves (`pairs`).

Every (grader's label, physician's label) on a record is one pair; the headline is the balanced F1 over all pairs. Each
physician is measured the same way against the other physicians of the same records: the spread of those with n > 50 is
the human distribution, in which the grader has a percentile (ties count half), and the n-weighted mean over all
physicians is the ceiling. A record without the grader's label, or without any physician's, is left out everywhere, so
that grader and physicians are compared on the same records; both are counted.

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

from eval.healthbench.metrics import Floats, Indexes, check_sampling, resampled_means, resampled_sums
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
    """A mean over n records and the population standard deviation of the means of the resamples; nothing is clipped."""

    value: float | None
    n: int
    bootstrap_std: float | None


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
    physicians that have a value, `n_physicians` of them; `percentile` in [0, 100], None without a distribution.
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
    """The usable records as arrays: the pairs of the grader, and of each physician by category."""

    examples: Sequence[MetaExample]
    categories: tuple[str, ...]
    category: Indexes  # into categories, a record
    cells: Floats  # records x 4
    physicians: tuple[str, ...]
    physician_cells: Floats  # physicians x categories x 4


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
    overall = agreement(table.cells, samples=samples, seed=seed)
    by_physician = ratios(table.physician_cells.sum(axis=1))
    themes = _themes(table.categories)
    columns = {theme: [table.categories.index(name) for name in names] for theme, names in themes.items()}
    by_category = ratios(table.physician_cells)
    of_theme = {theme: _weighted_f1(by_category, picked) for theme, picked in columns.items()}
    return MetaEvaluation(
        n_records=len(usable),
        n_without_grader=len(examples) - len(graded),
        n_without_labels=len(graded) - len(usable),
        agreement=overall,
        rates=_rates(usable, samples, seed),
        standing=_standing(overall.f1.balanced, *_balanced_f1(by_physician)),
        categories={name: _category(table, index, samples, seed) for index, name in enumerate(table.categories)},
        themes={
            theme: _standing(_theme_value(table, picked, samples, seed), *of_theme[theme])
            for theme, picked in columns.items()
        },
        no_theme=tuple(name for name in table.categories if theme_of(name) is None),
        physicians=_physicians(table.physicians, _balanced_f1(by_physician), of_theme),
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
    cells = np.zeros((len(examples), 4))
    of_physicians = np.zeros((len(physicians), len(categories), 4))
    for row, example in enumerate(examples):
        labels = [label for _, label in example.labels]
        cells[row] = cells_of(example.grader is True, labels)
        for position, (physician, label) in enumerate(example.labels):
            others = labels[:position] + labels[position + 1 :]
            of_physicians[physician_at[physician], category_at[example.category]] += cells_of(label, others)
    category = np.array([category_at[example.category] for example in examples], dtype=np.int64)
    return _Table(examples, categories, category, cells, physicians, of_physicians)


def _themes(categories: Sequence[str]) -> dict[str, list[str]]:
    """Return the categories of every theme that has one, themes and categories sorted."""
    found: dict[str, list[str]] = {}
    for category in categories:
        theme = theme_of(category)
        if theme is not None:
            found.setdefault(theme, []).append(category)
    return dict(sorted(found.items()))


def _category(table: _Table, index: int, samples: int, seed: int) -> Category:
    rows = np.flatnonzero(table.category == index)
    examples = [table.examples[row] for row in rows.tolist()]
    return Category(
        n_records=len(rows),
        agreement=agreement(table.cells[rows], samples=samples, seed=seed),
        rates=_rates(examples, samples, seed),
    )


def _theme_value(table: _Table, columns: Sequence[int], samples: int, seed: int) -> Value:
    """Return the grader's value of a theme; the records of all its categories are resampled together."""
    rows = np.flatnonzero(np.isin(table.category, columns))
    spread = np.zeros((len(rows), len(columns), 4))
    spread[np.arange(len(rows)), np.searchsorted(columns, table.category[rows])] = table.cells[rows]
    value, n = weighted(*_balanced_f1(ratios(spread.sum(axis=0))))
    resamples = None
    if len(rows) > 1:
        sums = resampled_sums(spread.reshape(len(rows), -1), samples, seed).reshape(samples, len(columns), 4)
        resamples = weighted(*_balanced_f1(ratios(sums)))[0]
    return with_interval(float(value), int(n), resamples)


def _balanced_f1(found: Ratios) -> tuple[Floats, Floats]:
    return found.values[..., F1, BALANCED], found.n[..., F1, BALANCED]


def _weighted_f1(by_category: Ratios, columns: Sequence[int]) -> tuple[Floats, Floats]:
    values, n = _balanced_f1(by_category)
    return weighted(values[:, columns], n[:, columns])


def _standing(grader: Value, values: Floats, n: Floats) -> Standing:
    """Place the grader among physicians, given each one's value (NaN without) and n."""
    kept = sorted(values[(n > MIN_N) & ~np.isnan(values)].tolist())
    mean, total = weighted(values, n)
    return Standing(
        grader=grader,
        distribution=tuple(kept),
        percentile=None if grader.value is None else percentile(grader.value, kept),
        ceiling=with_interval(float(mean), int(total), None),
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


def _rates(examples: Sequence[MetaExample], samples: int, seed: int) -> Rates:
    columns = [
        [float(example.grader is True) for example in examples],
        [sum(label for _, label in example.labels) / len(example.labels) for example in examples],
        [float(len(example.labels)) for example in examples],
    ]
    if not examples:
        nothing = Mean(None, 0, None)
        return Rates(nothing, nothing, nothing)
    means = resampled_means(columns, samples, seed)
    return Rates(*(_mean(column, drawn) for column, drawn in zip(columns, means, strict=True)))


def _mean(column: Sequence[float], drawn: Floats) -> Mean:
    spread = 0.0 if min(column) == max(column) else float(drawn.std())
    return Mean(float(np.mean(column)), len(column), spread)


def _check(example: MetaExample) -> None:
    for label in (example.grader, *(label for _, label in example.labels)):
        if label is not None and type(label) is not bool:
            raise ValueError(f"case {example.case_id}: labels: expected true or false, found {label!r}")
    if any(label is None for _, label in example.labels):
        raise ValueError(f"case {example.case_id}: labels: expected true or false, found none")
