"""A HealthBench run as one panel of the summary: its mean and its bounds are clipped, its examples are not.

In: a run's graded examples. Out: the panel and the overall result, in the shape that every summary is made of.
"""

from __future__ import annotations

from dataclasses import dataclass

from builder.healthbench.names import META
from eval.healthbench.metrics import clip, metric
from eval.healthbench.notices import NO_SCORE
from eval.judging.graded import RunData
from eval.numbers.bootstrap import Interval
from eval.numbers.panels import Overall, PanelResult, mean_of, nested, score_cases
from eval.numbers.scoring import Bounds


@dataclass(frozen=True, slots=True)
class ClippedPanel(PanelResult):
    """The one panel of a HealthBench run: a mean is clipped to [0, 1] after averaging."""

    @property
    def mean(self) -> float | None:
        """The clipped mean over graded examples; None without one."""
        return _clipped(mean_of(self.scores))

    @property
    def bounds(self) -> Bounds:
        """The clipped mean over all selected examples that can be scored, at the worst and at the best."""
        pairs = [case.bounds for case in self.cases if case.bounds.worst is not None and case.bounds.best is not None]
        worst = mean_of([pair.worst for pair in pairs if pair.worst is not None])
        return Bounds(_clipped(worst), _clipped(mean_of([pair.best for pair in pairs if pair.best is not None])))


def _clipped(mean: float | None) -> float | None:
    return None if mean is None else clip(mean)


def healthbench_panels(run: RunData, *, samples: int, seed: int) -> tuple[tuple[PanelResult, ...], Overall]:
    """Return the run's one panel, named after its config, and the overall result, which is the panel's.

    Raises:
        BadInput: points do not fit, or an answer comes twice.
    """
    panel = ClippedPanel(run.config, nested(score_cases(run)), None)
    found = metric(panel.scores, samples=samples, seed=seed)
    interval = None
    if found.ci_low is not None and found.ci_high is not None:
        interval = Interval(found.ci_low, found.ci_high, min(panel.scores) == max(panel.scores))
    reason = None
    if found.value is None:
        reason = NO_SCORE if run.config == META else "no graded example"
    panel = ClippedPanel(panel.panel, panel.cases, interval)
    return (panel,), Overall(panel.mean, interval, panel.bounds, reason)
