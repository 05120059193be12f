"""What a reader of a run's numbers must know, one sentence each: stored in the summary and printed with every table.

In: a run and its panel results. Out: sentences in a fixed order. None of them changes a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from bedside_bench import OFFICIAL_CASES_PER_PANEL, PANEL_IDS
from eval.healthbench.notices import healthbench_notices
from eval.judging.certified import BUILTIN
from eval.judging.graded import RunData
from eval.judging.protocol import PROTOCOL
from eval.judging.suites import HEALTHBENCH_SUITE
from eval.numbers.defaults import SPEC
from eval.numbers.jury_notices import certificate_notices, jury_notices
from eval.numbers.panels import Overall, PanelResult, ScoredCase
from eval.numbers.scoring import NO_POSITIVE_POINTS

WIDER: Final = "intervals are wider than official ones"
NOT_COMPARABLE: Final = "not comparable with official 50-case numbers"
SAMPLING_ONLY: Final = (
    "intervals cover the sampling of cases only: not the answers' randomness, the judge's variance or provider drift"
)


def run_notices(
    run: RunData,
    panels: Sequence[PanelResult],
    overall: Overall,
    *,
    jury: Mapping[str, Any] | None = None,
    dialect: str,
) -> Iterator[str]:
    """Yield a run's notices: what was run, what is missing, how to read the numbers, what its cases show.

    Args:
        jury: the summary's member of that name, of a run with several judges or repeats.
    """
    yield from _labels(run, dialect)
    yield from _incomplete(panels)
    if run.suite == HEALTHBENCH_SUITE.name:
        yield from healthbench_notices(run)
    else:
        yield from _scope(panels, overall, dialect)
    if overall.mean is not None:
        yield SAMPLING_ONLY
    yield from _repeats(run)
    yield from _intervals(panels, overall)
    yield from _cases([case for panel in panels for case in panel.cases if case.score is not None], dialect)
    yield from jury_notices(run, jury)
    yield from certificate_notices(run)
    yield from run.notices


def _labels(run: RunData, dialect: str) -> Iterator[str]:
    if dialect != SPEC:
        yield f"dialect {dialect}: scored as the published runner scores, not comparable with dialect {SPEC}"
    if run.suite != HEALTHBENCH_SUITE.name and run.protocol_version != PROTOCOL:
        yield f"non-standard protocol {run.protocol_version}: not comparable with runs of {PROTOCOL}"
    answer, judge = run.answer_model or "", run.judge_model or ""
    if answer.startswith(BUILTIN):
        yield f"answers come from the built-in policy {answer}, not from a model"
    if judge.startswith(BUILTIN):
        yield f"decisions come from the built-in judge {judge}, not from a model: they show the pipeline, not quality"


def _repeats(run: RunData) -> Iterator[str]:
    answers = len({case.answer_repeat for case in run.cases})
    if answers > 1:
        yield f"{answers} answers a case: a case counts once, with the mean of its answers"


def _incomplete(panels: Sequence[PanelResult]) -> Iterator[str]:
    cases = [case for panel in panels for case in panel.cases]
    failed, pending = sum(case.failed for case in cases), sum(case.pending for case in cases)
    if failed or pending:
        yield (
            f"incomplete: of {count(len(cases), 'selected case')} {failed} failed and {pending} pending; "
            "means are over graded cases, worst and best say what the others could change"
        )


def _scope(panels: Sequence[PanelResult], overall: Overall, dialect: str) -> Iterator[str]:
    sizes = sorted({len(panel.graded) for panel in panels})
    if sizes and sizes != [OFFICIAL_CASES_PER_PANEL]:
        n = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        yield f"n = {n} per panel (official: {OFFICIAL_CASES_PER_PANEL})"
        yield WIDER
        yield NOT_COMPARABLE
    if {panel.panel for panel in panels} != set(PANEL_IDS):
        yield f"overall is over the selected panels only ({len(panels)}): {_names(panels)}"
    empty = [panel for panel in panels if not panel.graded]
    if empty and dialect == SPEC:
        yield f"overall is null: {overall.reason}"
    elif empty:
        yield f"overall is over the panels present only; no graded case in: {_names(empty)}"


def _intervals(panels: Sequence[PanelResult], overall: Overall) -> Iterator[str]:
    single = [panel for panel in panels if len(panel.graded) == 1]
    flat = [panel for panel in panels if len(panel.graded) > 1 and panel.interval and panel.interval.degenerate]
    if single:
        yield f"n = 1 gives no interval: {_names(single)}"
    alike = [panel for panel in flat if min(panel.scores) == max(panel.scores)]
    clipped = [panel for panel in flat if panel not in alike]
    if alike:
        yield f"all scores are equal, the interval's zero width is not certainty: {_names(alike)}"
    if clipped:
        yield f"every resample is clipped to one value, the interval's zero width is not certainty: {_names(clipped)}"
    if overall.interval and overall.interval.degenerate and (single or flat):
        yield "the overall interval is flagged: the panels named above add nothing to its width"


def _cases(judged: Sequence[ScoredCase], dialect: str) -> Iterator[str]:
    truncated = sum(case.case.answer_state == "truncated" for case in judged)
    refused = sum(case.case.answer_state == "refused" for case in judged)
    if truncated:
        yield f"cut by the length limit, judged all the same: {count(truncated, 'answer')}"
    if refused:
        yield f"refused by the model, judged all the same: {count(refused, 'answer')}"
    hopeless = [case for case in judged if case.score and NO_POSITIVE_POINTS in case.score.flags]
    zero, unscored = sum(case.value is not None for case in hopeless), sum(case.value is None for case in hopeless)
    if zero:
        yield f"without positive items, 0.0 whatever the answer: {count(zero, 'case')}"
    if unscored:
        why = "so without a score" if dialect == SPEC else "ungraded in this dialect"
        yield f"without positive items, {why}: {count(unscored, 'case')}"


def count(n: int, noun: str) -> str:
    """Return a counted noun: 1 case, 2 cases."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _names(panels: Sequence[PanelResult]) -> str:
    return ", ".join(panel.panel for panel in panels)
