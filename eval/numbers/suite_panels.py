"""The panels and the overall result of a run of any suite."""

from __future__ import annotations

from eval.healthbench.panels import healthbench_panels
from eval.judging.graded import RunData
from eval.judging.suites import HEALTHBENCH_SUITE
from eval.numbers.defaults import SEED, SPEC
from eval.numbers.panels import Overall, PanelResult, score_panels


def panels_of(
    run: RunData, *, dialect: str = SPEC, samples: int, seed: int = SEED
) -> tuple[tuple[PanelResult, ...], Overall]:
    """Return a run's panels and its overall result, by the rules of its suite.

    Raises:
        BadInput: as `score_panels` and `healthbench_panels`.
    """
    if run.suite == HEALTHBENCH_SUITE.name:
        return healthbench_panels(run, samples=samples, seed=seed)
    return score_panels(run, dialect=dialect, samples=samples, seed=seed)
