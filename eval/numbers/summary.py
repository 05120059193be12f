"""The summary of a run (formats.md 8): the published runner's keys first, then what it leaves out.

In: a `RunData`, whatever file it came from, a dialect, and the bootstrap's settings. Out: the summary as a JSON object,
and its exact bytes. Undefined is null, never NaN and never 0. Not done here: the scores themselves (`panels`), reading
files (`journal`, `upstream`), showing results (`report`), writing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from bedside_bench import F1_WEIGHTED_RUBRIC
from builder.errors import BadInput
from builder.healthbench.names import META
from eval.healthbench.meta_report import meta_member
from eval.healthbench.summary import LengthRule, healthbench_member
from eval.judging.certified import certificate_label
from eval.judging.graded import RunData
from eval.judging.suites import HEALTHBENCH_SUITE, suite_of
from eval.numbers.bootstrap import Interval
from eval.numbers.defaults import SEED, SPEC
from eval.numbers.jury import is_jury, jury_member
from eval.numbers.notices import run_notices
from eval.numbers.panels import Overall, PanelResult, ScoredCase, known, mean_of, wilson95
from eval.numbers.scoring import NO_POSITIVE_POINTS
from eval.numbers.suite_panels import panels_of

DEFINITIONS: Final = {
    "worst, best": "mean over all selected cases; missing decisions taken at their least and most favourable",
    "severe_rate": "mean over plan cases of matched -2 and -3 items / all matched items; no match, no value",
    "negative_hit_rate": "matched negative items / negative items judged",
    "wilson95": "Wilson interval of the share of cases at 1, where every case scored 1 or every case scored 0",
}
UPSTREAM_SEVERE_RATE: Final = "share of cases with a +3 item missed or a -3 item matched"


def summarise(
    run: RunData,
    *,
    dialect: str = SPEC,
    samples: int | None = None,
    seed: int = SEED,
    length: LengthRule | None = None,
    software: Mapping[str, str],
    semantics_sha256: str | None = None,
) -> dict[str, Any]:
    """Return the summary of a run, exactly as formats.md 8 lists it.

    Args:
        samples: resamples of an interval; the suite's own number where not given.
        length: of a HealthBench run, report the length-adjusted score too.
        software: name -> version of everything that the numbers depend on.
        semantics_sha256: of this dialect and these settings; the run's own where not given.

    Raises:
        BadInput: as `score_cases`.
    """
    samples = suite_of(run.suite).samples if samples is None else samples
    healthbench = run.suite == HEALTHBENCH_SUITE.name
    _check_settings(healthbench, dialect, length)
    panels, overall = panels_of(run, dialect=dialect, samples=samples, seed=seed)
    jury = jury_member(run, panels, overall, dialect=dialect, samples=samples, seed=seed) if is_jury(run) else None
    own = _of_suite(run, panels, samples=samples, seed=seed, length=length) if healthbench else {}
    upstream_keys = _upstream_keys(run, panels, overall, spec=dialect == SPEC)
    return {
        **upstream_keys,
        "bootstrap_samples": samples,
        "bootstrap_seed": seed,
        "identity_sha256": run.identity_sha256,
        "semantics_sha256": semantics_sha256 or run.semantics_sha256,
        "content_sha256": run.content_sha256,
        "dialect": dialect,
        "data": {name: run.data.get(name) for name in ("repo", "revision", "n_cases")},
        **_counts(panels),
        "states": {role: dict(run.states.get(role, {})) for role in ("answer", "judge")},
        "failed_cases": [_failed_case(case) for panel in panels for case in panel.cases if case.failed],
        "overall_worst": overall.bounds.worst,
        "overall_best": overall.bounds.best,
        "overall_reason": overall.reason,
        "overall_ci_degenerate": overall.interval.degenerate if overall.interval else None,
        "panels": {panel.panel: _panel_diagnostics(panel) for panel in panels},
        **own,
        **({"jury": jury} if jury else {}),
        "definitions": _definitions(run, dialect),
        "usage": {role: dict(run.usage.get(role, {})) for role in ("answer", "judge")},
        "certificate": certificate_label(run),
        "certified": run.certified,
        "notices": list(run_notices(run, panels, overall, jury=jury, dialect=dialect)),
        "software": dict(software),
    }


def _definitions(run: RunData, dialect: str) -> dict[str, str]:
    if run.suite == HEALTHBENCH_SUITE.name:
        return {name: DEFINITIONS[name] for name in ("worst, best", "negative_hit_rate")}
    return DEFINITIONS if dialect == SPEC else {**DEFINITIONS, "severe_rate": UPSTREAM_SEVERE_RATE}


def _check_settings(healthbench: bool, dialect: str, length: LengthRule | None) -> None:
    if healthbench and dialect != SPEC:
        raise BadInput(f"--dialect {dialect}: expected {SPEC}, the one rule that HealthBench has")
    if length is not None and not healthbench:
        raise BadInput("--length-center: expected a HealthBench run, found another; its scores have no length rule")


def _of_suite(
    run: RunData, panels: Sequence[PanelResult], *, samples: int, seed: int, length: LengthRule | None
) -> dict[str, Any]:
    """Return what only a HealthBench run's summary has: its scores, or of a meta run how the grader agrees."""
    if run.config == META:
        return {"meta": meta_member(run, samples=samples, seed=seed)}
    (panel,) = panels
    return {"healthbench": healthbench_member(run, panel.cases, samples=samples, seed=seed, length=length)}


def _upstream_keys(run: RunData, panels: Sequence[PanelResult], overall: Overall, *, spec: bool) -> dict[str, Any]:
    """Return upstream's keys in upstream's order, up to the bootstrap's settings."""
    counts = _counts(panels)
    shown = panels if spec else [panel for panel in panels if panel.graded]
    return {
        "protocol_version": run.protocol_version,
        "dataset_sha256": run.dataset_sha256,
        "answer_model": run.answer_model,
        "judge_model": run.judge_model,
        "answer_temperature": run.answer_temperature,
        "judge_temperature": run.judge_temperature,
        "judge_passes_per_answer": _judge_passes(run.identity or {}),
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "completed_cases": counts["n_graded"],
        # Upstream also counts a graded case whose last row is an error.
        "errors": counts["n_failed"] + (0 if spec else len(run.relapsed)),
        "overall_macro_mean": overall.mean,
        "overall_ci95": _ci(overall.interval),
        "benchmarks": {p.panel: {"n": len(p.graded), "mean": p.mean, "ci95": _ci(p.interval)} for p in shown},
    }


def _judge_passes(identity: Mapping[str, Any]) -> int:
    return len(identity.get("judges") or [None]) * int(identity.get("repeats") or 1)


def _counts(panels: Sequence[PanelResult]) -> dict[str, int]:
    cases = [case for panel in panels for case in panel.cases]
    return {
        "n_expected": len(cases),
        "n_graded": sum(len(panel.graded) for panel in panels),
        "n_failed": sum(case.failed for case in cases),
        "n_pending": sum(case.pending for case in cases),
    }


def _failed_case(scored: ScoredCase) -> dict[str, Any]:
    case = scored.case
    role, state, reason = case.failed_role, case.failed_state, case.reason
    if scored.score is not None and case.grading_method == HEALTHBENCH_SUITE.name:
        role, state, reason = "score", NO_POSITIVE_POINTS, "an example without positive points has no score"
    elif scored.score is not None:
        role, state, reason = "score", NO_POSITIVE_POINTS, "this dialect does not score a rubric without positive items"
    return {"case_id": case.case_id, "benchmark": case.benchmark, "role": role, "state": state, "reason": reason}


def _panel_diagnostics(panel: PanelResult) -> dict[str, Any]:
    """Return what a panel shows beside its score; a mean that skips nulls has its n beside it."""
    graded, bounds = panel.graded, panel.bounds
    plan = any(case.case.grading_method == F1_WEIGHTED_RUBRIC for case in panel.cases)
    recall, precision, severe = (
        known(getattr(score, name) for score in graded) for name in ("recall", "precision", "severe_rate")
    )
    judged = sum(score.negatives_judged for score in graded)
    return {
        "n_expected": len(panel.cases),
        "n_failed": sum(case.failed for case in panel.cases),
        "n_pending": sum(case.pending for case in panel.cases),
        "n_unresolved": panel.unresolved,
        "worst": bounds.worst,
        "best": bounds.best,
        "ci_degenerate": panel.interval.degenerate if panel.interval else None,
        "wilson95": _ci(wilson95(panel.scores)),
        "recall": mean_of(recall),
        "recall_n": len(recall) if plan else None,
        "precision": mean_of(precision),
        "precision_n": len(precision) if plan else None,
        "severe_matched": _sum(score.severe_matched for score in graded),
        "minus3_matched": _sum(score.minus3_matched for score in graded),
        "severe_rate": mean_of(severe),
        "severe_rate_n": len(severe) if plan else None,
        "negatives_judged": judged,
        "negative_hit_rate": sum(score.negatives_matched for score in graded) / judged if judged else None,
    }


def _sum(counts: Iterable[int | None]) -> int | None:
    found = [count for count in counts if count is not None]
    return sum(found) if found else None


def _ci(interval: Interval | None) -> list[float] | None:
    return [interval.low, interval.high] if interval else None


def dumps_summary(summary: Mapping[str, Any]) -> str:
    """Return the text of `X.summary.json`: ASCII JSON, indent 2, a newline at the end; the results keep these bytes."""
    return json.dumps(summary, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
