"""Score one case from its decisions: pure functions, nothing read, nothing kept.

In: the signed points of a case's rubric items and one decision for each, in the same order.
Out: a `CaseScore`, or the worst and best score that missing decisions leave open.
Not done here: means over cases (`summary`), intervals (`bootstrap`), the check of a judge's reply (`judge`).

Dialects: `spec` is the rule of this project (bedside.md 5). `upstream` and `upstream-veto` give the numbers of two
revisions of the published runner to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from bedside_bench import F1_WEIGHTED_RUBRIC, POINTS_RUBRIC, SEVERITY_CLASS, SEVERITY_WEIGHT
from eval.numbers.defaults import DIALECTS, SPEC, UPSTREAM_VETO

Points: TypeAlias = int | float

NO_POSITIVE_POINTS: Final = "no-positive-points"
"""Flag of a case whose rubric has nothing to earn: 0.0 for every answer in `spec`."""

CRITICAL_CLASS: Final = 7
"""Severity classes from here up (+1, +2, +3) are the actions that a plan must contain."""

# What upstream gives to points that have no class of their own (+4, 0.5 after truncation ...).
UPSTREAM_OTHER_CLASS: Final = 5
UPSTREAM_OTHER_WEIGHT: Final = 1


@dataclass(frozen=True, slots=True)
class CaseScore:
    """The score of one case and what it is made of; None where a value is not defined.

    `score`, `recall` and `precision` lie in [0, 1]; a HealthBench example's `score` may be below 0. It is None where a
    dialect refuses the rubric. Where a jury left items `unresolved`, the score, `raw_score`, `recall` and `precision`
    take them at their least favourable, and every count is of the others. `raw_score` is the points ratio before
    clipping, `matched_points` and `positive_points` its two sums (points panels only). `severe_matched` counts matched
    items of -2 or -3 points, `minus3_matched` those of -3; None where points have no such meaning. `severe_rate` (plan
    panels only) is severe / all matched items in `spec`; in the upstream dialects 1.0 if a +3 item was missed or a -3
    item matched, else 0.0.
    """

    score: float | None
    n_matched: int
    severe_matched: int | None
    minus3_matched: int | None
    negatives_judged: int
    negatives_matched: int
    raw_score: float | None = None
    matched_points: float | None = None
    positive_points: float | None = None
    recall: float | None = None
    precision: float | None = None
    severe_rate: float | None = None
    unresolved: int = 0
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bounds:
    """The lowest and highest score a case can still get; both None where the dialect never scores it."""

    worst: float | None
    best: float | None


class _Action(NamedTuple):
    """A plan item as the weighted F1 sees it."""

    severity: int
    weight: int
    matched: bool


def points_score(points: Sequence[Points], matched: Sequence[bool], *, dialect: str = SPEC) -> CaseScore:
    """Score a points rubric: matched points / positive points, clipped to [0, 1].

    Without positive items the score is 0.0 and flagged in `spec`, and None in the upstream dialects.

    Raises:
        ValueError: a decision is missing, or a number is not finite.
    """
    _check(points, matched, dialect)
    earned = _total([p for p, m in zip(points, matched, strict=True) if m])
    available = _total([p for p in points if p > 0])
    scored = available > 0
    raw = earned / available if scored else None
    unscored = 0.0 if dialect == SPEC else None
    return CaseScore(
        score=unscored if raw is None else float(min(1.0, max(0.0, raw))),
        raw_score=raw,
        matched_points=float(earned),
        positive_points=float(available),
        flags=() if scored else (NO_POSITIVE_POINTS,),
        **_counts(points, matched),
    )


def f1_score(points: Sequence[Points], matched: Sequence[bool], *, dialect: str = SPEC) -> CaseScore:
    """Score a management plan: the F1 of severity-weighted recall and precision (bedside.md 5, after NOHARM).

    R = matched weight of class >= 7 / all weight of class >= 7; P = the same numerator / all matched weight; 0/0 is 0
    (P is None in the upstream dialects when nothing matched). The upstream dialects round each to 4 decimals.

    Raises:
        ValueError: a decision is missing, or (`spec`) points are not an integer from -3 to 3.
    """
    _check(points, matched, dialect)
    actions = _actions(points, matched, dialect)
    critical = sum(a.weight for a in actions if a.severity >= CRITICAL_CLASS)
    hit = sum(a.weight for a in actions if a.severity >= CRITICAL_CLASS and a.matched)
    all_matched = sum(a.weight for a in actions if a.matched)
    r = hit / critical if critical else 0.0
    p = hit / all_matched if all_matched else 0.0
    f1 = 2 * p * r / (p + r) if p + r > 0 else 0.0
    flags = () if critical else (NO_POSITIVE_POINTS,)
    counts = _counts(points, matched)
    if dialect == SPEC:
        share = counts["severe_matched"] / counts["n_matched"] if counts["n_matched"] else None
        return CaseScore(score=f1, recall=r, precision=p, severe_rate=share, flags=flags, **counts)
    severe = any((a.severity == 9 and not a.matched) or (a.severity == 1 and a.matched) for a in actions)
    return CaseScore(
        score=0.0 if severe and dialect == UPSTREAM_VETO else round(f1, 4),
        recall=round(r, 4),
        precision=round(p, 4) if all_matched else None,
        severe_rate=float(severe),
        flags=flags,
        **counts,
    )


SCORERS: Final[Mapping[str, Callable[..., CaseScore]]] = {POINTS_RUBRIC: points_score, F1_WEIGHTED_RUBRIC: f1_score}


def score_case(
    grading_method: str, points: Sequence[Points], matched: Sequence[bool], *, dialect: str = SPEC
) -> CaseScore:
    """Score one case by its grading method.

    Raises:
        ValueError: a decision is missing, the method is unknown, or the points do not fit it.
    """
    if grading_method not in SCORERS:
        raise ValueError(f"grading_method: expected one of {', '.join(SCORERS)}, found {grading_method!r}")
    return SCORERS[grading_method](points, matched, dialect=dialect)


def score_bounds(
    grading_method: str, points: Sequence[Points], matched: Sequence[bool | None], *, dialect: str = SPEC
) -> Bounds:
    """Return the lowest and highest score that any choice for the missing decisions (None) could give.

    Every score rises with an item that earns and falls (or stays) with any other, so two imputations suffice: the
    worst takes earning items as false and the rest as true, the best the reverse.
    """
    worst, best = (filled(grading_method, points, matched, best=best, dialect=dialect) for best in (False, True))
    return Bounds(
        worst=score_case(grading_method, points, worst, dialect=dialect).score,
        best=score_case(grading_method, points, best, dialect=dialect).score,
    )


def filled(
    grading_method: str,
    points: Sequence[Points],
    matched: Sequence[bool | None],
    *,
    best: bool = False,
    dialect: str = SPEC,
) -> list[bool]:
    """Return decisions with each missing one (None) taken at its least favourable: an earning item as false, any other
    as true; or at its `best`, the reverse.

    Raises:
        ValueError: there is not one decision an item.
    """
    earns = [_earns(grading_method, p, dialect) for p in points]
    if len(earns) != len(matched):
        raise ValueError(f"decisions: expected {len(earns)}, one an item, found {len(matched)}")
    return [(e == best) if m is None else m for e, m in zip(earns, matched, strict=True)]


def _earns(grading_method: str, point: Points, dialect: str) -> bool:
    """Tell whether matching an item can raise the score: by its sign, in a plan by its class (upstream: +0.5 is 5)."""
    if grading_method == F1_WEIGHTED_RUBRIC:
        return _action(point, matched=True, dialect=dialect).severity >= CRITICAL_CLASS
    return point > 0


def _actions(points: Sequence[Points], matched: Sequence[bool], dialect: str) -> list[_Action]:
    return [_action(p, matched=m, dialect=dialect) for p, m in zip(points, matched, strict=True)]


def _action(point: Points, *, matched: bool, dialect: str) -> _Action:
    if dialect == SPEC:
        if point not in SEVERITY_CLASS:
            raise ValueError(f"points: expected an integer from -3 to 3 on a plan panel, found {point!r}")
        return _Action(SEVERITY_CLASS[int(point)], SEVERITY_WEIGHT[int(point)], matched)
    key = int(point)  # upstream truncates toward zero
    severity = SEVERITY_CLASS.get(key, UPSTREAM_OTHER_CLASS)
    return _Action(severity, SEVERITY_WEIGHT.get(key, UPSTREAM_OTHER_WEIGHT), matched)


def _counts(points: Sequence[Points], matched: Sequence[bool]) -> dict[str, int]:
    hit = [int(p) for p, m in zip(points, matched, strict=True) if m]
    return {
        "n_matched": len(hit),
        "severe_matched": sum(p in (-2, -3) for p in hit),
        "minus3_matched": hit.count(-3),
        "negatives_judged": sum(p < 0 for p in points),
        "negatives_matched": sum(p < 0 for p, m in zip(points, matched, strict=True) if m),
    }


def _total(values: Sequence[Points]) -> Points:
    """Add from left to right: the built-in sum rounds floats differently from Python 3.12 on."""
    total: Points = 0
    for value in values:
        total += value
    return total


def _check(points: Sequence[Points], matched: Sequence[bool], dialect: str) -> None:
    if dialect not in DIALECTS:
        raise ValueError(f"dialect: expected one of {', '.join(DIALECTS)}, found {dialect!r}")
    if len(points) != len(matched):
        raise ValueError(f"decisions: expected {len(points)}, one an item, found {len(matched)}")
    for index, decision in enumerate(matched):
        if type(decision) is not bool:
            raise ValueError(f"decisions[{index}]: expected true or false, found {decision!r}: missing is never false")
    for index, point in enumerate(points):
        if isinstance(point, bool) or not math.isfinite(point):
            raise ValueError(f"points[{index}]: expected a finite number, found {point!r}")
