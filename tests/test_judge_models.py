"""A certified judge whose server gives another model: nothing of it counts, however often the command is repeated."""

from __future__ import annotations

import asyncio
from pathlib import Path

from eval.calls.endpoint import Endpoint
from eval.calls.journal import read_journal
from eval.calls.plan import Judge, Model, Plan
from eval.calls.run import Outcome
from eval.calls.start import run_plan
from eval.judging.certified import certificate_label
from eval.numbers.readers import read_run
from tests.llm_server import LlmServer
from tests.plans import POLICY, VERBATIM, case_set, clock, ignore, make_plan, run

CERTIFIED = {0: frozenset({"judge-2025"})}


def plan_at(url: str) -> Plan:
    """Return a plan of one judge at a server that calls every model by its name and a date of its own."""
    judge = Judge(Model("judge-a", Endpoint(url, None)))
    return make_plan(case_set(2, ["drug_safety"]), answer=Model("builtin:positive-items"), judges=[judge])


def start(plan: Plan, output: Path, *reuse: Path) -> Outcome:
    """Run a plan whose judge was certified as another model than its server gives."""
    job = run_plan(
        plan,
        output,
        reuse=reuse,
        concurrency=1,
        header={"software": {}},
        now=clock(),
        on_start=ignore,
        on_progress=ignore,
        returned=CERTIFIED,
    )
    return asyncio.run(job)


def test_its_replies_are_kept_and_never_counted(tmp_path: Path) -> None:
    """The run stops at the first one; the same command stops again; no case is graded, and no reply is lost."""
    path = tmp_path / "x.jsonl"
    with LlmServer() as server:
        ends = [start(plan_at(server.url), path) for _ in range(3)]
        assert 3 == server.hits
    calls = [call for call in read_journal(path).calls if call.role == "judge"]

    for end in ends:
        assert end.stopped is not None
        assert "its server returned judge-a-2026-01-01, certified was judge-2025" in end.stopped
    assert [("rejected", True)] * 3 == [(call.state, call.text is not None) for call in calls]
    assert {"failed", "pending"} == {case.state for case in read_run(path).cases}


def test_replies_of_an_uncertified_run_are_no_shortcut(tmp_path: Path) -> None:
    """Neither `--reuse` of a run that took them, nor its own journal, brings them in once the judge is certified."""
    with LlmServer() as server:
        plan = plan_at(server.url)
        run(plan, tmp_path / "old.jsonl")
        paid = server.hits
        reused = start(plan, tmp_path / "new.jsonl", tmp_path / "old.jsonl")
        again = start(plan, tmp_path / "old.jsonl")

        assert paid + 2 == server.hits
    assert None not in (reused.stopped, again.stopped)
    assert {"rejected"} == {call.state for call in read_journal(tmp_path / "new.jsonl").calls if call.role == "judge"}


def record(state: str, *, uncertified: bool) -> dict[str, object]:
    """Return what certificates say at a start of one judge."""
    about = {"judge": 0, "model": "judge-a", "state": state, "reason": None, "certificate": None}
    return {"judges": [about], "uncertified": uncertified}


def test_a_run_that_was_started_uncertified_stays_so(tmp_path: Path) -> None:
    """Its judge was called under the override: a later start with a good certificate takes nothing back."""
    path = tmp_path / "x.jsonl"
    with LlmServer() as server:
        for certified in (record("none", uncertified=True), record("valid", uncertified=False)):
            job = run_plan(
                plan_at(server.url),
                path,
                concurrency=1,
                header={"software": {}},
                now=clock(),
                on_start=ignore,
                on_progress=ignore,
                certified=certified,
            )
            asyncio.run(job)

    assert "uncertified (none)" == certificate_label(read_run(path))


def test_a_jury_with_one_model_in_it_needs_certificates(tmp_path: Path) -> None:
    """Where nothing is recorded the label goes by the judges, whichever of them is named first."""
    with LlmServer() as server:
        model = Judge(Model("judge-a", Endpoint(server.url, None)))
        for name, judges in {"a": [Judge(VERBATIM), model], "b": [model, Judge(VERBATIM)]}.items():
            run(make_plan(case_set(1, ["drug_safety"]), answer=POLICY, judges=judges), tmp_path / f"{name}.jsonl")
    run(make_plan(case_set(1, ["drug_safety"])), tmp_path / "builtin.jsonl")

    assert ["none", "none", None] == [
        certificate_label(read_run(tmp_path / f"{name}.jsonl")) for name in ("a", "b", "builtin")
    ]
