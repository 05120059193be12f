"""Runs made by hand for tests of what is counted, averaged and said about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bedside_bench import F1_WEIGHTED_RUBRIC, PANEL_IDS, PANELS_BY_ID, POINTS_RUBRIC
from eval.judging.graded import Ballots, GradedCase, RunData
from eval.judging.jury import judged_by
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


def jury_case(case_id: str, panel: str, points: Sequence[int | float], ballots: Ballots, **changes: Any) -> GradedCase:
    """Return a case as a jury with these ballots (by judge, repeat, item) grades it."""
    case = graded_case(case_id, panel, points, [1] * len(points), ballots=ballots, **changes)
    return judged_by(case, range(len(ballots)))


def jury_identity(n_judges: int, repeats: int = 1, *, vendors: Sequence[str | None] = ()) -> dict[str, Any]:
    """Return as much of an identity as says who judged: judges `judge-0` ... and how often each was called."""
    named = [*vendors, *[None] * n_judges][:n_judges]
    judges = [
        {"model": f"judge-{n}", "endpoint": "http://127.0.0.1/v1", "vendor": vendor} for n, vendor in enumerate(named)
    ]
    return {"judges": judges, "repeats": repeats, "answer": {"source": "model", "model": "answer-model"}}


def jury_run(*cases: GradedCase, repeats: int = 1, vendors: Sequence[str | None] = (), **changes: Any) -> RunData:
    """Return a run of cases that `jury_case` made, all with the same number of judges."""
    (n_judges,) = {len(case.ballots) for case in cases}
    return run_of(*cases, identity=jury_identity(n_judges, repeats, vendors=vendors), **changes)


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
