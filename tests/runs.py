"""Runs made by hand for tests of what is counted, averaged and said about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bedside_bench import F1_WEIGHTED_RUBRIC, PANEL_IDS, PANELS_BY_ID, POINTS_RUBRIC
from eval.judging.graded import GradedCase, RunData
from eval.judging.protocol import PROTOCOL


def graded_case(
    case_id: str, panel: str, points: Sequence[int | float], matched: Sequence[int] | None, **changes: Any
) -> GradedCase:
    """Return a case with decisions given as 1 and 0, or a failed one where they are None."""
    known = PANELS_BY_ID.get(panel)
    values: dict[str, Any] = {
        "case_id": case_id,
        "benchmark": panel,
        "grading_method": known.grading_method if known else POINTS_RUBRIC,
        "answer_repeat": 0,
        "item_ids": tuple(f"{case_id}_{index}" for index in range(len(points))),
        "points": tuple(points),
        "matched": None if matched is None else tuple(bool(m) for m in matched),
        "state": "failed" if matched is None else "graded",
    }
    if matched is None:
        values |= {"failed_role": "judge", "failed_state": "timeout", "reason": "no reply within 1800 s"}
    else:
        values |= {"answer_state": "ok"}
    return GradedCase(**(values | changes))


def run_of(*cases: GradedCase, **changes: Any) -> RunData:
    """Return a run of cases in dataset order, journalled in the same order."""
    order = tuple(index for index, case in enumerate(cases) if case.matched is not None)
    values: dict[str, Any] = {
        "protocol_version": PROTOCOL,
        "cases": cases,
        "file_order": order,
        "answer_model": "answer-model",
        "judge_model": "judge-model",
    }
    return RunData(**(values | changes))


def full_run(n: int) -> RunData:
    """Return a run over all ten panels with n cases each; every second case scores 1, the others 0."""
    cases = []
    for panel in PANEL_IDS:
        plan = PANELS_BY_ID[panel].grading_method == F1_WEIGHTED_RUBRIC
        points = (3, 1, -2) if plan else (1, -1)
        for number in range(n):
            hit = number % 2
            cases.append(graded_case(f"{panel}-{number}", panel, points, [hit] * (len(points) - 1) + [1 - hit]))
    return run_of(*cases)
