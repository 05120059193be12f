"""A HealthBench run as one panel of the summary: its mean and its bounds are clipped, its examples are not.

In: a run's graded examples. Out: the panel and the overall result, in the shape that every summary is made of.
"""

from __future__ import annotations

from builder.healthbench.names import META
from eval.healthbench.metrics import metric
from eval.healthbench.notices import NO_SCORE
from eval.judging.graded import RunData
from eval.numbers.bootstrap import Interval
from eval.numbers.panels import Overall, PanelResult, known, nested, score_cases


def healthbench_panels(run: RunData, *, samples: int, seed: int) -> tuple[tuple[PanelResult, ...], Overall]:
    """Return the run's one panel, named after its config, and the overall result, which is the panel's.

    Raises:
        BadInput: points do not fit, or an answer comes twice.
    """
    cases = nested(score_cases(run))
    found = metric(known(case.value for case in cases), samples=samples, seed=seed)
    interval = None
    if found.ci_low is not None and found.ci_high is not None:
        interval = Interval(found.ci_low, found.ci_high, degenerate=found.ci_low == found.ci_high)
    panel = PanelResult(run.config, cases, interval, clipped=True)
    reason = None
    if panel.mean is None:
        reason = NO_SCORE if run.config == META else "no graded example"
    return (panel,), Overall(panel.mean, interval, panel.bounds, reason)
