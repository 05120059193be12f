"""One call a case against one call a rubric item: do the decisions agree, does place or company sway the one call.

In: two matched runs (`sides`). Out: for each panel, and overall, agreement, the effect of an item's place, the halo of
its neighbours and the difference of scores, each with an interval. What is added up, and the bootstrap: `paired`. The
recommendation: `recommendation`; costs: `grouping_report`.

Decisions are compared one by one: same answer, item, judge and repeat. All intervals come from resampling cases within
panels, so that a case's decisions stay together; only the halo's is the exact binomial one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np
from scipy.stats import binomtest

from eval.audits.paired import AT, COLUMNS, THIRDS, Floats, Pair, case_row, resampled_sums
from eval.audits.sides import Side, Sides
from eval.audits.variance import panel_of
from eval.numbers.bootstrap import Interval, overall_interval, panel_interval
from eval.numbers.defaults import ALPHA
from eval.numbers.panels import registry_order, score_cases
from eval.results.answers import AnswerKey

OVERALL: Final = "overall"
_ROUNDING: Final = 1e-12  # differences of sums below it are what rounding leaves of nothing


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value, its 95% interval and its n; the value None where it is not defined, with the `reason`.

    `sure` is the wider interval of an effect that is looked for many times: all of them hold at once in 95% of audits
    (Bonferroni: 1 - 0.05 / looks each).
    """

    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    sure: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Agreement:
    """How alike the decisions of both modes are.

    `one_call` and `atomic` are the shares of true decisions, `shift` is their difference; `only_one_call` and
    `only_atomic` count decisions that are true in that mode alone, `mcnemar_p` takes them as independent. The two
    `again` are how often two repeats of one judge agree within a mode: noise that is no effect of the mode.
    """

    equal: Estimate
    kappa: Estimate
    one_call: Estimate
    atomic: Estimate
    shift: Estimate
    only_one_call: int
    only_atomic: int
    mcnemar_p: float | None
    again_one_call: Estimate
    again_atomic: Estimate


@dataclass(frozen=True, slots=True)
class Order:
    """Mean d (`shift`) and |d| (`differ`) by third of the rubric, and the slope of d over the relative place.

    The place is 0 for the first item and 1 for the last.
    """

    shift: Mapping[str, Estimate]
    differ: Mapping[str, Estimate]
    slope: Estimate


@dataclass(frozen=True, slots=True)
class Halo:
    """The share of disagreements in which the one call sides with the majority of the case's other items.

    `expected` is that share if the direction of disagreements had nothing to do with the majority: 0.5 unless one mode
    says true more often. `ties` are left out. `spread` is the ratio of the between-case variances of the matched share,
    one call / atomic.
    """

    share: Estimate
    expected: float | None
    ties: int
    spread: Estimate


@dataclass(frozen=True, slots=True)
class PanelAudit:
    """One panel's audit, or all panels'.

    `n_cases` counts cases, `n_compared` those of two items and more with a decision in both modes; `undecided`
    decisions without a partner. `score` is one call - atomic, `scores` each mode's mean over the same cases.
    """

    panel: str
    n_cases: int
    n_compared: int
    n_answers: int
    undecided: int
    agreement: Agreement
    order: Order
    halo: Halo
    score: Estimate
    scores: tuple[float | None, float | None]


class _Panel(NamedTuple):
    name: str
    table: Floats
    scores: list[tuple[float, float]]
    n_cases: int
    n_answers: int


def audit(sides: Sides, *, samples: int, seed: int) -> tuple[list[PanelAudit], PanelAudit]:
    """Return the audit of every panel, in registry order, and of all together.

    Overall, decisions are pooled over panels and resampled within them; the score difference is the macro-average's.
    """
    panels = _panels(sides)
    alpha = ALPHA / looks(len(panels))
    each = [_audit(panel.name, [panel], alpha=alpha, samples=samples, seed=seed) for panel in panels]
    return each, _audit(OVERALL, panels, alpha=ALPHA / looks(1), samples=samples, seed=seed)


def looks(panels: int) -> int:
    """Return how many effects are looked for: in each panel one of place, one of neighbours, one on the score."""
    return 3 * panels


def _panels(sides: Sides) -> list[_Panel]:
    by_panel: dict[str, dict[str, list[Pair]]] = defaultdict(lambda: defaultdict(list))
    for pair in sides.pairs:
        by_panel[panel_of(sides.one_call.run, pair[0])][pair[0].case_id].append(pair)
    values = _scores(sides.one_call), _scores(sides.atomic)
    return [_panel(name, by_panel[name], *values) for name in registry_order(by_panel)]


def _scores(side: Side) -> dict[AnswerKey, float | None]:
    return {(one.case.case_id, one.case.answer_repeat): one.value for one in score_cases(side.run)}


def _panel(
    name: str,
    cases: Mapping[str, Sequence[Pair]],
    one: Mapping[AnswerKey, float | None],
    atomic: Mapping[AnswerKey, float | None],
) -> _Panel:
    rows = [case_row(pairs) for pairs in cases.values() if len(pairs[0][0].item_ids) > 1]
    scores = []
    for pairs in cases.values():
        names = [(pair[0].case_id, pair[0].answer_repeat) for pair in pairs]
        known = [(a, b) for a, b in ((one[key], atomic[key]) for key in names) if a is not None and b is not None]
        if known:
            scores.append((fmean(a for a, _ in known), fmean(b for _, b in known)))
    table = np.array(rows) if rows else np.zeros((0, len(COLUMNS)))
    return _Panel(name, table, scores, len(cases), sum(map(len, cases.values())))


Measure = Callable[[Floats], Floats]
"""Sums (panel, ..., column) -> the measure (...), NaN where it is not defined."""


class _Measured:
    """Sums of some panels and of their resamples, and what is computed from both alike."""

    def __init__(self, tables: Sequence[Floats], *, samples: int, seed: int) -> None:
        self._sums = np.stack([table.sum(axis=0) for table in tables])
        self._drawn = resampled_sums(tables, samples=samples, seed=seed)
        self._spread = any(len(table) > 1 for table in tables)

    def count(self, column: str) -> int:
        return int(self._sums[:, AT[column]].sum())

    def estimate(self, measure: Measure, *, n: int, reason: str, alpha: float | None = None) -> Estimate:
        """Return a measure with the percentile interval of its resamples, those in which it is undefined left out.

        Args:
            alpha: the level of the `sure` interval, where there is one.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            value, drawn = float(measure(self._sums)), measure(self._drawn)
        if not math.isfinite(value):
            return Estimate(None, n, reason=reason)
        drawn = drawn[np.isfinite(drawn)]
        if not self._spread or not len(drawn):
            return Estimate(value, n)
        low, high = np.percentile(drawn, [2.5, 97.5]).tolist()
        sure = None if alpha is None else np.percentile(drawn, [50 * alpha, 100 - 50 * alpha]).tolist()
        return Estimate(value, n, low, high, sure=None if sure is None else (sure[0], sure[1]))

    def share(self, top: str, bottom: str, *, reason: str, minus: str | None = None) -> Estimate:
        """Return the ratio of two sums over all panels, or of a difference of sums and a sum."""

        def measure(sums: Floats) -> Floats:
            above = _total(sums, top) if minus is None else _total(sums, top) - _total(sums, minus)
            return np.asarray(above / _total(sums, bottom))

        return self.estimate(measure, n=self.count(bottom), reason=reason)


def _total(sums: Floats, column: str) -> Floats:
    return np.asarray(sums[..., AT[column]].sum(axis=0))


def _audit(name: str, panels: Sequence[_Panel], *, alpha: float, samples: int, seed: int) -> PanelAudit:
    found = _Measured([panel.table for panel in panels], samples=samples, seed=seed)
    pairs = [pair for panel in panels for pair in panel.scores]
    return PanelAudit(
        panel=name,
        n_cases=sum(panel.n_cases for panel in panels),
        n_compared=found.count("cases"),
        n_answers=sum(panel.n_answers for panel in panels),
        undecided=found.count("undecided"),
        agreement=_agreement(found),
        order=_order(found, alpha),
        halo=_halo(found, alpha),
        score=_score(panels, alpha=alpha, samples=samples, seed=seed),
        scores=(_macro(panels, 0), _macro(panels, 1)) if pairs else (None, None),
    )


_NOTHING: Final = "no case of two items with a decision in both modes"


def _agreement(found: _Measured) -> Agreement:
    only_one, only_atomic = (found.count(mode) - found.count("both") for mode in ("one", "atomic"))
    discordant = only_one + only_atomic
    once = "one repeat: a judge's own noise is not known"
    return Agreement(
        equal=found.share("equal", "n", reason=_NOTHING),
        kappa=found.estimate(_kappa, n=found.count("n"), reason="all decisions of both modes are the same value"),
        one_call=found.share("one", "n", reason=_NOTHING),
        atomic=found.share("atomic", "n", reason=_NOTHING),
        shift=found.share("one", "n", minus="atomic", reason=_NOTHING),
        only_one_call=only_one,
        only_atomic=only_atomic,
        mcnemar_p=float(binomtest(only_one, discordant).pvalue) if discordant else None,
        again_one_call=found.share("again_one", "again_one_n", reason=once),
        again_atomic=found.share("again_atomic", "again_atomic_n", reason=once),
    )


def _kappa(sums: Floats) -> Floats:
    """Cohen 1960: (p_o - p_e) / (1 - p_e)."""
    n, one, atomic = _total(sums, "n"), _total(sums, "one"), _total(sums, "atomic")
    p_o = _total(sums, "equal") / n
    p_e = (one * atomic + (n - one) * (n - atomic)) / n**2
    return np.asarray((p_o - p_e) / (1 - p_e))


def _order(found: _Measured, alpha: float) -> Order:
    reason = "no case of three items with a decision in both modes"
    return Order(
        shift={third: found.share(f"{third}_shift", f"{third}_n", reason=reason) for third in THIRDS},
        differ={third: found.share(f"{third}_differ", f"{third}_n", reason=reason) for third in THIRDS},
        slope=found.estimate(
            _slope,
            n=sum(found.count(f"{third}_n") for third in THIRDS),
            reason="no case of three items and more with several of one sign",
            alpha=alpha,
        ),
    )


def _slope(sums: Floats) -> Floats:
    """Return the least-squares slope from centred sums; what rounding leaves of no slope is no slope."""
    slope = _total(sums, "slope_top") / _total(sums, "slope_bottom")
    return np.asarray(np.where(np.abs(slope) < _ROUNDING, 0.0, slope))


def _halo(found: _Measured, alpha: float) -> Halo:
    n, with_majority = found.count("halo_n"), found.count("halo_with")
    share, expected = Estimate(None, 0, reason="no disagreement with a majority beside it"), None
    if n:
        test = binomtest(with_majority, n)
        (low, high), sure = (test.proportion_ci(1 - level, method="exact") for level in (ALPHA, alpha))
        share = Estimate(with_majority / n, n, float(low), float(high), sure=(float(sure[0]), float(sure[1])))
        true, majority = found.count("halo_one") / n, found.count("halo_majority") / n
        expected = true * majority + (1 - true) * (1 - majority)
    reason = "the matched share does not vary between cases in the atomic mode"
    return Halo(
        share, expected, found.count("halo_ties"), found.estimate(_spread, n=found.count("cases"), reason=reason)
    )


def _spread(sums: Floats) -> Floats:
    """Return the ratio of the sums of squares within panels; the degrees of freedom are the same above and below."""
    n = sums[..., AT["cases"]]

    def squares(mode: str) -> Floats:
        of_panel = sums[..., AT[f"share_{mode}_2"]] - sums[..., AT[f"share_{mode}"]] ** 2 / np.where(n > 0, n, 1)
        return np.asarray(np.where(of_panel > _ROUNDING, of_panel, 0.0).sum(axis=0))

    return np.asarray(squares("one") / squares("atomic"))


def _score(panels: Sequence[_Panel], *, alpha: float, samples: int, seed: int) -> Estimate:
    differences = [[one - atomic for one, atomic in panel.scores] for panel in panels]
    n = sum(map(len, differences))
    if not all(differences):
        return Estimate(None, n, reason="no scored case in a panel")

    def interval(level: float) -> Interval | None:
        if len(differences) == 1:
            return panel_interval(differences[0], samples=samples, seed=seed, alpha=level)
        return overall_interval(differences, samples=samples, seed=seed, alpha=level)

    value, found, sure = fmean(map(fmean, differences)), interval(ALPHA), interval(alpha)
    if found is None or sure is None:
        return Estimate(value, n)
    return Estimate(value, n, found.low, found.high, sure=(sure.low, sure.high))


def _macro(panels: Sequence[_Panel], side: int) -> float | None:
    means = [fmean(pair[side] for pair in panel.scores) for panel in panels if panel.scores]
    return fmean(means) if len(means) == len(panels) else None
