"""Plans of small runs for tests: a mirror's cases in memory, models at a server on 127.0.0.1 or builtin."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bedside_bench import PANEL_IDS, case_content_sha256, content_sha256, dataset_sha256
from eval.calls.endpoint import Endpoint
from eval.calls.plan import Judge, Limits, Model, Plan, Reading
from eval.calls.run import Outcome, Progress
from eval.calls.start import run_plan
from eval.cases import Case, CaseSet, Item
from eval.judging.protocol import protocol_prompts
from tests.trees import make_case

OF_THE_JUDGE = {"judge_format": "reply_format", "id_style": "id_style", "judge_temperature": "temperature"}
POLICY = Model("builtin:all-items")
VERBATIM = Model("builtin:verbatim")


def case_set(cases_per_panel: int = 1, panels: Sequence[str] = PANEL_IDS) -> CaseSet:
    """Return the cases of `tests.trees` as a mirror would give them."""
    objects = [make_case(panel, number) for panel in panels for number in range(cases_per_panel)]
    cases = [
        Case(
            case_id=case["case_id"],
            benchmark=case["benchmark"],
            grading_method=case["grading_method"],
            conversation=(("user", case["prompt"]),),
            items=tuple(Item(**item) for item in case["rubric_items"]),
        )
        for case in objects
    ]
    content = content_sha256(map(case_content_sha256, objects))
    return CaseSet(tuple(cases), dataset_sha256(objects), content, None, None, "cc-by-4.0", {"train": "train"})


def make_plan(
    data: CaseSet | None = None,
    *,
    url: str | None = None,
    answer: Model | None = None,
    judge: Model | None = None,
    judges: Sequence[Judge] = (),
    **more: Any,
) -> Plan:
    """Return a plan over all cases; models are asked at `url` where none is given.

    Args:
        judge: the only judge's model; `judges` is the whole jury.
        more: of the plan; in `reading` also what the only judge has (`judge_format`, `id_style`, `judge_temperature`).
    """
    data = data or case_set()
    asked = answer or Model("answer-model", Endpoint(url, "sk-dummy-key")) if url else answer or POLICY
    temperature = None if asked.builtin else 1
    reading = dict(more.pop("reading", {}))
    of_judge = {name: reading.pop(old) for old, name in OF_THE_JUDGE.items() if old in reading}
    one = judge or (Model("judge-model", Endpoint(url, "sk-dummy-key")) if url else VERBATIM)
    return Plan(
        data=data,
        cases=data.cases,
        selection={"panels": None, "smoke": False, "limit": None},
        answer=asked,
        judges=tuple(judges) or (replace(Judge(one), **of_judge),),
        reading=replace(Reading(prompts=protocol_prompts(), answer_temperature=temperature), **reading),
        limits=replace(Limits(max_attempts=2, timeout_s=5, deadline_s=10), **more.pop("limits", {})),
        **more,
    )


def clock() -> Callable[[], str]:
    """Return a clock that ticks a microsecond at each look."""
    ticks = itertools.count(1)
    return lambda: f"2026-01-01T00:00:{next(ticks) / 1e6:09.6f}Z"


def ignore(*_: object) -> None:
    """Show nothing."""


def run(
    plan: Plan, output: Path, *, concurrency: int = 8, reuse: Sequence[Path] = ()
) -> tuple[Outcome, list[Progress]]:
    """Run a plan to its end and return how it ended and its steps."""
    steps: list[Progress] = []
    job = run_plan(
        plan,
        output,
        reuse=reuse,
        concurrency=concurrency,
        header={"software": {}},
        now=clock(),
        on_start=ignore,
        on_progress=steps.append,
    )
    return asyncio.run(job), steps
