"""A run's graded cases -> case scores -> panel results -> the overall result.

In: a `RunData` and a dialect. Out: every selected case with its score or the bounds of what it could still get, every
panel with mean, interval and bounds, and the macro-average. A case without decisions has no score: it leaves the mean,
is counted, and widens the bounds. Not done here: the summary's keys (`summary`), its sentences (`notices`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Final

from bedside_bench import PANEL_IDS
from builder.errors import BadInput
from builder.healthbench.names import SUITE as HEALTHBENCH
from eval.healthbench import examples
from eval.healthbench.examples import NO_POINTS
from eval.healthbench.metrics import clip
from eval.judging.graded import GradedCase, RunData
from eval.numbers.bootstrap import Interval, overall_interval, panel_interval, upstream_intervals
from eval.numbers.defaults import SAMPLES, SEED, SPEC
from eval.numbers.scoring import Bounds, CaseScore, filled, score_bounds, score_case

Z95: Final = 1.959963984540054
"""The standard normal's 97.5th percentile."""


@dataclass(frozen=True, slots=True)
class ScoredCase:
    """A selected case with its score, None while it is ungraded, and the bounds of what it is or could be."""

    case: GradedCase
    score: CaseScore | None
    bounds: Bounds

    @property
    def value(self) -> float | None:
        """The case score in [0, 1]; None if ungraded, or if the dialect does not score the rubric."""
        return None if self.score is None else self.score.score

    @property
    def graded(self) -> bool:
        """Whether every item is decided and the case counts: with a score, or where its data define none."""
        return self.score is not None and (self.value is not None or NO_POINTS in self.score.flags)

    @property
    def failed(self) -> bool:
        """Whether the case was attempted and has no score."""
        return self.case.state == "failed" or (self.score is not None and not self.graded)

    @property
    def pending(self) -> bool:
        """Whether the case was not finished yet."""
        return self.case.state == "pending"


@dataclass(frozen=True, slots=True)
class PanelResult:
    """One selected panel: its cases in dataset order, and the interval of its mean.

    `clipped` says that its means are clipped to [0, 1] after averaging: a HealthBench example's score is not.
    """

    panel: str
    cases: tuple[ScoredCase, ...]
    interval: Interval | None
    clipped: bool = False

    @property
    def graded(self) -> tuple[CaseScore, ...]:
        """The scores that count."""
        return tuple(case.score for case in self.cases if case.score is not None and case.graded)

    @property
    def scores(self) -> tuple[float, ...]:
        """The graded cases' scores in dataset order."""
        return known(case.value for case in self.cases)

    @property
    def unresolved(self) -> int:
        """How many items of the graded cases their jury left without a verdict."""
        return sum(score.unresolved for score in self.graded)

    @property
    def mean(self) -> float | None:
        """The mean over graded cases; None without one."""
        return self._mean(self.scores)

    @property
    def bounds(self) -> Bounds:
        """The mean over all selected cases, at the worst and at the best."""
        worst = self._mean(known(case.bounds.worst for case in self.cases))
        return Bounds(worst, self._mean(known(case.bounds.best for case in self.cases)))

    def _mean(self, values: Sequence[float]) -> float | None:
        mean = mean_of(values)
        return clip(mean) if self.clipped and mean is not None else mean


@dataclass(frozen=True, slots=True)
class Overall:
    """The macro-average of panel means, its interval and bounds; `reason` says why the mean is None."""

    mean: float | None
    interval: Interval | None
    bounds: Bounds
    reason: str | None


def score_cases(run: RunData, *, dialect: str = SPEC) -> tuple[ScoredCase, ...]:
    """Score every answer to every selected case of a run, in its order.

    Raises:
        BadInput: a rubric does not fit its grading method in this dialect, or an answer comes twice.
    """
    if len({(case.case_id, case.answer_repeat) for case in run.cases}) != len(run.cases):
        raise BadInput("summary: expected each answer to a case once, found one twice")
    return tuple(_score(case, dialect) for case in run.cases)


def _score(case: GradedCase, dialect: str) -> ScoredCase:
    # Upstream files do not say which items a failed case has: then nothing narrows the score.
    if case.matched is None and not case.points:
        return ScoredCase(case, None, Bounds(0.0, 1.0))
    try:
        if case.matched is None:
            decided = case.decided or (None,) * len(case.points)
            return ScoredCase(case, None, _bounds(case, decided, dialect))
        score = _graded_score(case, case.matched, dialect)
        bounds = _bounds(case, case.matched, dialect) if case.unresolved else Bounds(score.score, score.score)
    except (ValueError, OverflowError) as error:
        raise BadInput(f"case {case.case_id} ({case.benchmark}): {error}; check the data it was judged on") from error
    return ScoredCase(case, score, bounds)


def _graded_score(case: GradedCase, verdicts: Sequence[bool | None], dialect: str) -> CaseScore:
    """Return a graded case's score: items that its jury left unresolved at their least favourable, counted apart."""
    if not case.unresolved:
        return _case_score(case, case.points, verdicts, dialect)
    score = _case_score(case, case.points, worst_or_best(case, best=False, dialect=dialect), dialect)
    resolved = [(points, met) for points, met in zip(case.points, verdicts, strict=True) if met is not None]
    counted = _case_score(case, [points for points, _ in resolved], [met for _, met in resolved], dialect)
    counts: dict[str, Any] = {name: getattr(counted, name) for name in (*_COUNTS, "severe_rate")}
    return replace(score, **(counts | {"unresolved": case.unresolved}))


def worst_or_best(case: GradedCase, *, best: bool, dialect: str = SPEC) -> list[bool]:
    """Return the verdicts of a graded case with each unresolved one at its least favourable, or at its best."""
    verdicts = case.matched or ()
    if case.grading_method == HEALTHBENCH:
        return examples.filled(case.points, verdicts, best=best)
    return filled(case.grading_method, _points(case.points), verdicts, best=best, dialect=dialect)


def _case_score(
    case: GradedCase, points: Sequence[int | float | None], matched: Sequence[bool | None], dialect: str
) -> CaseScore:
    decided = [met for met in matched if met is not None]
    if case.grading_method == HEALTHBENCH:
        return examples.case_score(points, decided)
    return score_case(case.grading_method, _points(points), decided, dialect=dialect)


def score_decisions(case: GradedCase, decided: Sequence[bool | None]) -> float | None:
    """Return the score of an answer by one set of decisions on all its items, whoever made them.

    A HealthBench example's is not clipped, and None where its data define none.

    Raises:
        BadInput: a decision is missing, or the rubric does not fit its grading method.
    """
    try:
        return _case_score(case, case.points, decided, SPEC).score
    except (ValueError, OverflowError) as error:
        raise BadInput(f"case {case.case_id} ({case.benchmark}): {error}; check the data it was judged on") from error


def _bounds(case: GradedCase, decided: Sequence[bool | None], dialect: str) -> Bounds:
    if case.grading_method == HEALTHBENCH:
        return examples.case_bounds(case.points, decided)
    return score_bounds(case.grading_method, _points(case.points), decided, dialect=dialect)


def _points(points: Sequence[int | float | None]) -> tuple[int | float, ...]:
    known_ = tuple(value for value in points if value is not None)
    if len(known_) != len(points):
        raise ValueError("points: expected a number for every item, found null")
    return known_


def nested(scored: Sequence[ScoredCase]) -> tuple[ScoredCase, ...]:
    """Return one scored case for each case: with several answers their mean, or none while one of them has none.

    Answers to one case are no cases of their own: an interval over them would be too narrow.
    """
    answers: dict[str, list[ScoredCase]] = {}
    for case in scored:
        answers.setdefault(case.case.case_id, []).append(case)
    return tuple(found[0] if len(found) == 1 else _mean_case(found) for found in answers.values())


def _mean_case(answers: Sequence[ScoredCase]) -> ScoredCase:
    """Return the mean of a case's answers; the first that failed, or is pending, stands for a case without one."""
    worst = mean_of(known(answer.bounds.worst for answer in answers))
    bounds = Bounds(worst, mean_of(known(answer.bounds.best for answer in answers)))
    scores = [answer.score for answer in answers if answer.score is not None and answer.graded]
    if len(scores) < len(answers):
        ungraded = sorted((answer for answer in answers if not answer.graded), key=lambda answer: not answer.failed)
        return replace(ungraded[0], bounds=bounds)
    values = known(score.score for score in scores)
    counts: dict[str, Any] = {name: _sum(getattr(score, name) for score in scores) for name in _COUNTS}
    means: dict[str, Any] = {name: mean_of(known(getattr(score, name) for score in scores)) for name in _MEANS}
    flags = tuple(dict.fromkeys(flag for score in scores for flag in score.flags))
    return ScoredCase(answers[0].case, CaseScore(score=mean_of(values), flags=flags, **counts, **means), bounds)


_COUNTS: Final = (
    "n_matched",
    "severe_matched",
    "minus3_matched",
    "negatives_judged",
    "negatives_matched",
    "unresolved",
)
_MEANS: Final = ("raw_score", "recall", "precision", "severe_rate")


def _sum(values: Iterable[int | None]) -> int | None:
    found = [value for value in values if value is not None]
    return sum(found) if found else None


def score_panels(
    run: RunData, *, dialect: str = SPEC, samples: int = SAMPLES, seed: int = SEED
) -> tuple[tuple[PanelResult, ...], Overall]:
    """Return the selected panels (registry order; by name in the upstream dialects) and the overall result.

    Raises:
        BadInput: as `score_cases`; an upstream dialect does not know several answers to a case.
    """
    scored = score_cases(run, dialect=dialect)
    cases = nested(scored)
    if dialect != SPEC and len(cases) != len(scored):
        raise BadInput(f"--dialect {dialect}: expected one answer a case, as the published runner gives, found several")
    scored = cases
    panels: dict[str, list[ScoredCase]] = {}
    for case in scored:
        panels.setdefault(case.case.benchmark, []).append(case)
    if dialect == SPEC:
        results = tuple(_panel(name, panels[name], samples, seed) for name in registry_order(panels))
        return results, _overall(results, samples, seed)
    graded = {panel: list(scores) for panel, scores in _file_order_scores(run, scored).items()}
    intervals = upstream_intervals(graded, samples=samples, seed=seed)
    results = tuple(PanelResult(name, tuple(panels[name]), intervals.panels.get(name)) for name in sorted(panels))
    return results, _upstream_overall(results, intervals.overall)


def registry_order(panels: Iterable[str]) -> list[str]:
    """Return panels once each: those of the registry in its order, then any others as they come."""
    once = dict.fromkeys(panels)
    return sorted(once, key=lambda panel: PANEL_IDS.index(panel) if panel in PANEL_IDS else len(PANEL_IDS))


def _panel(name: str, cases: Sequence[ScoredCase], samples: int, seed: int) -> PanelResult:
    scores = known(case.value for case in cases)
    return PanelResult(name, tuple(cases), panel_interval(scores, samples=samples, seed=seed))


def _file_order_scores(run: RunData, scored: Sequence[ScoredCase]) -> dict[str, list[float]]:
    """Return each panel's scores in file order: upstream's intervals depend on it."""
    if sorted(run.file_order) != [index for index, case in enumerate(scored) if case.score is not None]:
        raise ValueError("file_order: expected the index of every graded case once")
    scores: dict[str, list[float]] = {}
    for index in run.file_order:
        value = scored[index].value
        if value is not None:
            scores.setdefault(scored[index].case.benchmark, []).append(value)
    return scores


def _overall(panels: Sequence[PanelResult], samples: int, seed: int) -> Overall:
    empty = [panel.panel for panel in panels if not panel.graded]
    if empty or not panels:
        reason = f"no graded case in: {', '.join(empty)}" if empty else "no case is selected"
        return Overall(None, None, _overall_bounds(panels), reason)
    interval = overall_interval([panel.scores for panel in panels], samples=samples, seed=seed)
    return Overall(mean_of(known(panel.mean for panel in panels)), interval, _overall_bounds(panels), None)


def _upstream_overall(panels: Sequence[PanelResult], interval: Interval | None) -> Overall:
    mean = mean_of(known(panel.mean for panel in panels))
    return Overall(mean, interval, _overall_bounds(panels), "no graded case" if mean is None else None)


def _overall_bounds(panels: Sequence[PanelResult]) -> Bounds:
    bounds = [panel.bounds for panel in panels]
    return Bounds(mean_of(known(b.worst for b in bounds)), mean_of(known(b.best for b in bounds)))


def wilson95(scores: Sequence[float]) -> Interval | None:
    """Return Wilson's 95% interval for a panel whose cases all scored 0 or all scored 1, else None.

    There the bootstrap has zero width and reads as certainty. With all n alike Wilson's interval is z^2/(n + z^2) wide.
    """
    if not scores or min(scores) != max(scores) or scores[0] not in (0.0, 1.0):
        return None
    share = Z95**2 / (len(scores) + Z95**2)
    return Interval(0.0, share) if scores[0] == 0.0 else Interval(1.0 - share, 1.0)


def known(values: Iterable[float | None]) -> tuple[float, ...]:
    """Return the values that are not None, in order: a mean over them shows its n."""
    return tuple(value for value in values if value is not None)


def mean_of(values: Sequence[float]) -> float | None:
    """Return the exactly rounded mean, whatever the order; None of nothing."""
    return fmean(values) if values else None
