"""HealthBench runs for tests: mirrors of a few examples, plans as the command makes them, journals and results.

mirror = example_mirror(tmp_path, map(make_example, range(3)))
run(grading_plan(mirror, url=server.url), tmp_path / "x.jsonl")
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from builder.healthbench.mirror import build_healthbench
from eval.calls.choices import Choices, make_plan
from eval.calls.endpoint import Endpoint
from eval.calls.plan import Judge, Limits, Model, Plan
from eval.healthbench.protocol import GRADER
from eval.judging.graded import GradedCase, RunData
from eval.numbers.readers import read_run
from eval.results.folder import current_summary, write_results
from tests.examples import write_jsonl
from tests.plans import OF_THE_JUDGE, VERBATIM
from tests.runs import run_of
from tests.tampering import HERE

POSITIVE = Model("builtin:positive-items")
SOFTWARE = {"bedside-bench": "0.1.0", **HERE}


def example_mirror(folder: Path, lines: Iterable[object], *, config: str = "healthbench") -> Path:
    """Write JSONL of one of HealthBench's shapes and build its mirror at `folder`/mirror."""
    source = write_jsonl(folder / f"{config}.jsonl", lines)
    built = build_healthbench(source, folder / "mirror", config=config, license_id="cc-by-4.0")
    if not built.report.ok:
        raise ValueError(built.report.problems[0])
    return built.folder


def grading_plan(mirror: Path, url: str | None = None, **choices: Any) -> Plan:
    """Return the plan of a run on a mirror: both models at `url`, else the builtin ones."""
    at = {role: Model(f"{role}-model", Endpoint(url, "sk-dummy-key")) for role in ("answer", "judge")} if url else {}
    of_judge = {new: choices.pop(old) for old, new in OF_THE_JUDGE.items() if old in choices}
    defaults = {
        "answer": None if "answers" in choices else at.get("answer", POSITIVE),
        "judges": (Judge(choices.pop("judge", at.get("judge", VERBATIM)), **of_judge),),
        "limits": Limits(max_attempts=2, timeout_s=5, deadline_s=10),
    }
    return make_plan(Choices(mirror, **{**defaults, **choices}))


def write_answers(path: Path, answers: Mapping[str, str]) -> Path:
    """Write a file of answers, by case id."""
    path.write_text(
        "".join(json.dumps({"case_id": case_id, "answer": text}) + "\n" for case_id, text in answers.items())
    )
    return path


def results_of(journal: Path, out: Path, *, with_texts: bool = False) -> Path:
    """Add a journal's run to a results folder, its summary written beside it, and return the run's own folder."""
    summary = current_summary(journal, software=SOFTWARE)
    journal.with_suffix(".summary.json").write_bytes(summary)
    return write_results(journal, out, summary_bytes=summary, with_texts=with_texts).path


def decisions_of(journal: Path) -> list[tuple[bool | None, ...] | None]:
    """Return the decisions on each answer, in dataset order; None of an ungraded one."""
    return [case.matched for case in read_run(journal).cases]


def graded_example(
    case_id: str, points: Sequence[int | float], matched: Sequence[int] | None, **changes: Any
) -> GradedCase:
    """Return a graded example with decisions given as 1 and 0, or a failed one where they are None."""
    values: dict[str, Any] = {
        "case_id": case_id,
        "benchmark": "healthbench",
        "grading_method": "healthbench",
        "answer_repeat": 0,
        "item_ids": tuple(f"{case_id}_{index}" for index in range(len(points))),
        "points": tuple(points),
        "matched": None if matched is None else tuple(map(bool, matched)),
        "state": "failed" if matched is None else "graded",
        "item_tags": ((),) * len(points),
        "n_chars": 0,
    }
    if matched is None:
        values |= {"failed_role": "judge", "failed_state": "timeout", "reason": "no reply"}
    return GradedCase(**(values | changes))


def graded_run(*cases: GradedCase, **changes: Any) -> RunData:
    """Return a HealthBench run of examples in dataset order."""
    about = {"suite": "healthbench", "config": "healthbench", "protocol_version": f"healthbench+{GRADER}"}
    return run_of(*cases, **{**about, **changes})
