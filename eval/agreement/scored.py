"""A run's cases as corrections see them: by panel, with their answers, and the headline score of each.

In: a run. Out: its graded cases, those of several answers once. An item that the jury left unresolved counts at its
worst, as in the headline: earning items as not met, all others as met.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from bedside_bench import PANEL_IDS
from builder.errors import BadInput
from builder.healthbench.names import SUITE as HEALTHBENCH
from eval.healthbench.examples import case_score as example_case_score
from eval.judging.graded import GradedCase, RunData
from eval.numbers.scoring import score_case


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A case with a score: the mean over its answers, every one of them graded."""

    case_id: str
    answers: tuple[GradedCase, ...]
    score: float


@dataclass(frozen=True, slots=True)
class PanelCases:
    """A panel's cases with a score, in dataset order, of `n_expected` that were selected."""

    panel: str
    n_expected: int
    cases: tuple[JudgedCase, ...]


def panel_cases(run: RunData) -> list[PanelCases]:
    """Return the cases of every selected panel, in registry order; a case with an ungraded answer is left out.

    Raises:
        BadInput: a rubric does not fit its grading method.
    """
    panels: dict[str, dict[str, list[GradedCase]]] = {}
    for case in run.cases:
        panels.setdefault(case.benchmark, {}).setdefault(case.case_id, []).append(case)
    return [
        PanelCases(
            panel,
            len(panels[panel]),
            tuple(judged for answers in panels[panel].values() if (judged := _judged(answers)) is not None),
        )
        for panel in registry_order(panels)
    ]


def registry_order(panels: Iterable[str]) -> list[str]:
    """Return panels once each: those of the registry in its order, then any others as they come."""
    found = dict.fromkeys(panels)
    return sorted(found, key=lambda panel: PANEL_IDS.index(panel) if panel in PANEL_IDS else len(PANEL_IDS))


def _judged(answers: Sequence[GradedCase]) -> JudgedCase | None:
    scores = [
        None if case.matched is None else score_with(case, conservative(case.matched, case.points)) for case in answers
    ]
    known = [score for score in scores if score is not None]
    if len(known) < len(answers):
        return None
    return JudgedCase(answers[0].case_id, tuple(answers), fmean(known))


def conservative(matched: Sequence[bool | None], points: Sequence[int | float | None]) -> tuple[bool, ...]:
    """Return verdicts with the unresolved ones at their worst."""
    return tuple(
        not (worth is not None and worth > 0) if met is None else met
        for met, worth in zip(matched, points, strict=True)
    )


def score_with(case: GradedCase, matched: Sequence[bool]) -> float | None:
    """Return the score of an answer with these decisions, whoever made them; None where its data define none.

    Raises:
        BadInput: the rubric does not fit its grading method.
    """
    try:
        if case.grading_method == HEALTHBENCH:
            return example_case_score(case.points, matched).score
        points = [worth for worth in case.points if worth is not None]
        return score_case(case.grading_method, points, matched).score
    except (ValueError, OverflowError) as error:
        raise BadInput(f"case {case.case_id} ({case.benchmark}): {error}; check the data it was judged on") from error


def sign_of(points: float | None) -> str:
    """Return the sign of an item's points in a word; HealthBench's meta items have no points."""
    if points is None:
        return "no points"
    return "positive" if points > 0 else "negative" if points < 0 else "zero"
