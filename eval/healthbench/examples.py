"""A HealthBench example among the cases of any suite: its score, its bounds, and what its scores by tag are made of.

In: graded cases. Out: the `CaseScore` and `Bounds` that the summary and the results tables read, and the `Example` that
`scores` reads. Nothing is clipped here: an example's score may be below 0, only means are clipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eval.healthbench.scores import Example, Points, example_bounds, example_score
from eval.judging.graded import GradedCase
from eval.numbers.scoring import NO_POSITIVE_POINTS, Bounds, CaseScore

NO_POINTS: Final = "no-points"
"""Flag of a meta example: its criterion carries no points, the grader's decision is compared with physicians'."""


def case_score(points: Sequence[Points | None], matched: Sequence[bool]) -> CaseScore:
    """Return the score of an example; None, with a flag, where nothing can be earned or its items have no points.

    Raises:
        ValueError: a decision is missing, or points are not a finite number.
    """
    worth = [value for value in points if value is not None]
    scored = len(worth) == len(points)
    score = example_score(worth, matched) if scored else None
    negative = [value is not None and value < 0 for value in points]
    return CaseScore(
        score=score,
        raw_score=score,
        n_matched=sum(matched),
        severe_matched=None,
        minus3_matched=None,
        negatives_judged=sum(negative),
        negatives_matched=sum(met for met, bad in zip(matched, negative, strict=True) if bad),
        matched_points=float(sum(value for value, met in zip(worth, matched, strict=True) if met)) if scored else None,
        positive_points=float(sum(value for value in worth if value > 0)) if scored else None,
        flags=() if score is not None else (NO_POSITIVE_POINTS if scored else NO_POINTS,),
    )


def case_bounds(points: Sequence[Points | None], decided: Sequence[bool | None]) -> Bounds:
    """Return the lowest and highest score that missing decisions leave open; None where there is no score at all."""
    worth = [value for value in points if value is not None]
    return example_bounds(worth, decided) if len(worth) == len(points) else Bounds(None, None)


def filled(points: Sequence[Points | None], decided: Sequence[bool | None], *, best: bool = False) -> list[bool]:
    """Return decisions with each missing one taken at its least favourable, or at its `best`: as `scoring.filled`."""
    pairs = zip(points, decided, strict=True)
    return [((point or 0) > 0) == best if met is None else met for point, met in pairs]


def graded_examples(cases: Sequence[GradedCase]) -> list[Example]:
    """Return the examples that are graded and whose every item has points, in the order of the cases.

    Items that a jury left unresolved are taken at their least favourable.
    """
    return [
        Example(
            case_id=case.case_id,
            points=tuple(value for value in case.points if value is not None),
            matched=tuple(filled(case.points, case.matched)),
            item_tags=case.item_tags,
            tags=case.tags,
            n_chars=case.n_chars,
        )
        for case in cases
        if case.matched is not None and None not in case.points
    ]
