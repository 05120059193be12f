"""Journals of finished runs for tests, written line by line without a model: answers that hit some items, a judge that
decides word for word, and calls that fail where a test wants them to.

    path = write_journal(tmp_path / "x.jsonl", fail={3: ("answer", "timeout"), 5: ("judge", "invalid_reply")})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bedside_bench import PANEL_IDS, sha256_json
from eval.calls.call import JUDGED_ANSWERS, Call, call_line
from eval.calls.endpoint import Endpoint
from eval.calls.journal import Journal
from eval.calls.plan import Model, Plan, Request
from eval.cases import Case
from eval.numbers.summary import dumps_summary
from tests.plans import case_set, make_plan

SOFTWARE = {"bedside-bench": "0.1.0", "python": "3.11.0"}
MODEL = Model("test/Model A", Endpoint("http://127.0.0.1:9/v1", None))
JUDGE = Model("test-judge", Endpoint("http://127.0.0.1:9/v1", None))

Failures = Mapping[int, tuple[str, str]]
"""Number of a case -> the role whose call fails (answer or judge) and its state; `pending` leaves the call out."""


def write_journal(
    path: Path,
    *,
    cases_per_panel: int = 2,
    panels: Sequence[str] = PANEL_IDS,
    fail: Failures | None = None,
    answer: Model = MODEL,
    judge: Model = JUDGE,
    shift: int = 0,
    license_id: str | None = "cc-by-4.0",
    day: str = "2026-03-05",
) -> Path:
    """Write the journal of a run over `tests.trees`' cases and return its path.

    Args:
        fail: calls that go wrong, by the case's number in dataset order.
        shift: another number gives answers that hit other items.
        day: the UTC date of the calls.
    """
    data = replace(case_set(cases_per_panel, panels), license=license_id)
    plan = make_plan(data, answer=answer, judge=judge)
    header = _header(plan, day)
    with Journal(path) as journal:
        journal.create(header, plan.heads())
        for number, case in enumerate(plan.cases):
            at = f"{day}T10:{number // 60:02}:{number % 60:02}"
            for call in _calls(plan, case, number + shift, (fail or {}).get(number), at=at):
                journal.append(call_line(call))
    return path


def _header(plan: Plan, day: str) -> dict[str, Any]:
    identity = plan.identity()
    about = {name: getattr(plan.data, name) for name in ("repo", "revision", "license", "content_sha256", "splits")}
    about["canaries"] = list(plan.data.canaries)
    started = f"{day}T09:59:59.000000Z"
    digest = sha256_json(identity)
    return {"identity": identity, "identity_sha256": digest, "started": started, "data": about, "software": SOFTWARE}


def _calls(plan: Plan, case: Case, number: int, failure: tuple[str, str] | None, *, at: str) -> list[Call]:
    role, state = failure or ("", "ok")
    if (role, state) == ("answer", "pending"):
        return []
    text = answer_text(case, number)
    answer = _call(plan.answer_request(case), state if role == "answer" else "ok", text, at=f"{at}.000001Z")
    if answer.state not in JUDGED_ANSWERS or answer.text is None or (role, state) == ("judge", "pending"):
        return [answer]
    request = plan.judge_request(case, answer.text)
    reply = plan.suite.verbatim(answer.text, items=request.items, ids=request.ids)
    if role == "judge":
        reply = "I would rather not say."
    return [answer, _call(request, state if role == "judge" else "ok", reply, at=f"{at}.000002Z")]


def answer_text(case: Case, number: int) -> str:
    """Return an answer that holds about two thirds of the items as whole lines, which ones depends on the number."""
    hit = [item.text for index, item in enumerate(case.items) if (index + number) % 3]
    return "\n".join([f"Answer {number}: ≥ 5 mg.", *hit])


def _call(request: Request, state: str, text: str, *, at: str) -> Call:
    with_text = state in JUDGED_ANSWERS or state == "invalid_reply"
    return Call(
        key=request.key,
        role=request.role,
        case_id=request.case.case_id,
        answer_repeat=0,
        state=state,
        text=text if with_text else None,
        reason=None if state == "ok" else f"the server said: {text[:40]}",
        group=request.group,
        judge=request.judge,
        repeat=request.repeat,
        finish_reason="stop" if with_text else None,
        usage={"input": 120, "cached": None, "output": 30, "reasoning": None},
        model=f"{request.model.name}-2026",
        sent=dict(request.params),
        attempts=1,
        latency_ms=12.5,
        at=at,
    )


def write_summary(journal: Path, **software: str) -> bytes:
    """Write `X.summary.json` beside a journal as `run` does, and return its bytes."""
    from eval.numbers.readers import read_run, summarise_run

    summary = summarise_run(read_run(journal), dialect="spec", samples=10_000, seed=42, software=SOFTWARE | software)
    text = dumps_summary(summary).encode()
    journal.with_suffix(".summary.json").write_bytes(text)
    return text
