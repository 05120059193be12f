"""A run's cases as corrections see them: by panel, with their answers, and the headline score of each.

In: a run. Out: its graded cases, those of several answers once. An item that the jury left unresolved counts at its
worst, as in the headline: earning items as not met, all others as met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from eval.judging.graded import GradedCase, RunData
from eval.numbers.panels import ScoredCase, known, registry_order, score_cases


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
        BadInput: a rubric does not fit its grading method, or an answer comes twice.
    """
    panels: dict[str, dict[str, list[ScoredCase]]] = {}
    for scored in score_cases(run):
        panels.setdefault(scored.case.benchmark, {}).setdefault(scored.case.case_id, []).append(scored)
    return [
        PanelCases(
            panel,
            len(panels[panel]),
            tuple(judged for answers in panels[panel].values() if (judged := _judged(answers)) is not None),
        )
        for panel in registry_order(panels)
    ]


def _judged(answers: Sequence[ScoredCase]) -> JudgedCase | None:
    scores = known(answer.value for answer in answers)
    if len(scores) < len(answers):
        return None
    return JudgedCase(answers[0].case.case_id, tuple(answer.case for answer in answers), fmean(scores))


def sign_of(points: float | None) -> str:
    """Return the sign of an item's points in a word; HealthBench's meta items have no points."""
    if points is None:
        return "no points"
    return "positive" if points > 0 else "negative" if points < 0 else "zero"
