"""A journal's replies, folded into graded, failed and pending cases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedside_bench import sha256_json
from eval.calls.call import Call, CaseHead, call_line
from eval.calls.journal import Journal, read_journal
from eval.judging.graded import GradedCase
from eval.judging.grading import JudgeReply, Replies, grade_case, grade_journal
from eval.judging.jury import item_votes, judged_by, missing, verdict
from eval.numbers.readers import read_run, summarise_run
from tests.llm_server import LlmServer
from tests.plans import case_set, make_plan, run

T, F, N = True, False, None
IDS = ("x_0", "x_1")
HEAD = CaseHead("c1", "drug_safety", "points_rubric", ((IDS[0], 1), (IDS[1], -1)), 0)


def _journal(path: Path, *calls: Call, judges: int = 1, repeats: int = 1) -> Path:
    """Write a journal of one case by hand, whose identity asks each judge so many times."""
    identity = make_plan(case_set(1, ["drug_safety"])).identity()
    identity |= {"judges": identity["judges"] * judges, "repeats": repeats}
    header = {"identity": identity, "identity_sha256": sha256_json(identity), "started": "2026-01-01T00:00:00.000000Z"}
    with Journal(path) as journal:
        journal.create(header, [HEAD])
        for number, call in enumerate(calls):
            journal.append(call_line(replace(call, at=f"2026-01-01T00:00:{number:02}.000000Z")))
    return path


def _answer(state: str = "ok", text: str | None = "a", key: str = "a") -> Call:
    return Call(key=key, role="answer", case_id="c1", answer_repeat=0, state=state, text=text)


def _judged(*matched: bool | None, judge: int = 0, repeat: int = 0, **changes: Any) -> Call:
    """Return a judge's reply with a decision on each item; None as the first one makes it a reply of another state."""
    decisions = [{"item_id": id_, "matched": value} for id_, value in zip(IDS, matched, strict=False)]
    call = Call(
        key=f"j{judge}.{repeat}",
        role="judge",
        case_id="c1",
        answer_repeat=0,
        group="*",
        judge=judge,
        repeat=repeat,
        state="ok",
        text=json.dumps({"decisions": decisions}),
    )
    return replace(call, **changes)


def _graded(path: Path, *calls: Call, **asked: int) -> GradedCase:
    (case,) = grade_journal(read_journal(_journal(path / "x.jsonl", *calls, **asked))).cases
    return case


def _jury(votes: Sequence[Sequence[bool | None]]) -> list[Call]:
    """Return 2 judges x 3 repeats that decide both items alike; None is a reply that timed out."""
    return [
        _judged(value, value, judge=judge, repeat=repeat)
        if value is not None
        else _judged(judge=judge, repeat=repeat, state="timeout", text=None)
        for judge, repeats in enumerate(votes)
        for repeat, value in enumerate(repeats)
    ]


JURIES: dict[str, tuple[Sequence[Sequence[bool | None]], bool | None, str | None]] = {
    "all agree": (((T, T, T), (T, T, T)), T, None),
    "majorities agree": (((T, T, F), (F, T, T)), T, None),
    "majorities of no": (((F, F, T), (F, F, F)), F, None),
    "two of three suffice": (((T, T, N), (T, T, T)), T, None),
    "judges disagree": (((T, T, T), (F, F, F)), None, None),
    "one of three is no vote": (((T, N, N), (T, T, T)), None, None),
    "a tie among the called": (((T, F, N), (T, T, T)), None, None),
    "no vote at all": (((T, N, N), (T, F, N)), None, "timeout"),
}


@pytest.mark.parametrize(("votes", "verdict", "state"), JURIES.values(), ids=JURIES.keys())
def test_repeats_fold_into_votes_and_votes_into_a_verdict(
    tmp_path: Path, votes: Sequence[Sequence[bool | None]], verdict: bool | None, state: str | None
) -> None:
    """Two judges, three repeats each: more than half of the called make a vote, two equal votes a verdict.

    A judge's vote without another's leaves an item unresolved; an item without any vote is missing, its case ungraded.
    """
    case = _graded(tmp_path, _answer(), *_jury(votes), judges=2, repeats=3)

    assert (None if state else (verdict, verdict)) == case.matched
    assert ("failed" if state else "graded", state) == (case.state, case.failed_state)


def test_a_jury_that_was_not_called_in_full_is_pending(tmp_path: Path) -> None:
    """While a call is to come the case has neither score nor failure."""
    case = _graded(tmp_path, _answer(), *_jury(((T, T, F), (F,))), judges=2, repeats=3)

    assert ("pending", None) == (case.state, case.matched)


def test_items_are_decided_one_by_one(tmp_path: Path) -> None:
    """A jury at odds over one item leaves that item unresolved, and the others as they are: no item is guessed."""
    agreed = _graded(tmp_path, _answer(), _judged(T, F), _judged(T, F, judge=1), judges=2)
    split = _graded(tmp_path, _answer(), _judged(T, F), _judged(T, T, judge=1), judges=2)

    assert (T, F) == agreed.matched
    assert ("graded", None, (T, None)) == (split.state, split.failed_state, split.matched)
    assert 1 == split.unresolved


STATES: dict[str, tuple[list[Call], str, str | None, str | None]] = {
    "nothing yet": ([], "pending", None, None),
    "answered": ([_answer()], "pending", None, None),
    "judged": ([_answer(), _judged(T, F)], "graded", None, None),
    "cut answer": ([_answer("truncated"), _judged(T, F)], "graded", None, None),
    "refused answer": ([_answer("refused"), _judged(F, F)], "graded", None, None),
    "empty answer": ([_answer("empty", "")], "failed", "answer", "empty"),
    "no answer": ([_answer("missing", None)], "failed", "answer", "missing"),
    "no reply": ([_answer("timeout", None)], "failed", "answer", "timeout"),
    "judge out of reach": ([_answer(), _judged(state="transport", text=None)], "failed", "judge", "transport"),
    "judge cut": ([_answer(), _judged(T, F, state="truncated")], "failed", "judge", "truncated"),
    "asked again": ([_answer("timeout", None), _answer(), _judged(state="empty"), _judged(T, F)], "graded", None, None),
    "failed later": ([_answer(), _judged(T, F), _judged(state="timeout", text=None)], "graded", None, None),
}


@pytest.mark.parametrize(("calls", "state", "role", "failed"), STATES.values(), ids=STATES.keys())
def test_a_case_is_graded_failed_or_pending(
    tmp_path: Path, calls: list[Call], state: str, role: str | None, failed: str | None
) -> None:
    """Only an accepted reply on a judged answer grades; a failed call is named by role and state."""
    case = _graded(tmp_path, *calls)

    assert (state, role, failed) == (case.state, case.failed_role, case.failed_state)
    assert (state == "graded") == (case.matched is not None)


def test_cut_and_refused_answers_are_flagged(tmp_path: Path) -> None:
    """They are judged as they stand; the case keeps the answer's state and the summary counts it."""
    _journal(tmp_path / "x.jsonl", _answer("truncated"), _judged(T, F))
    summary = summarise_run(read_run(tmp_path / "x.jsonl"), dialect="spec", samples=20, seed=42, software={})

    assert "cut by the length limit, judged all the same: 1 answer" in summary["notices"]
    assert {"answer": {"truncated": 1}, "judge": {"ok": 1}} == summary["states"]
    assert 1.0 == summary["overall_macro_mean"]


BROKEN = {
    "item gone": json.dumps({"decisions": [{"item_id": "x_0", "matched": True}]}),
    "string": json.dumps({"decisions": [{"item_id": "x_0", "matched": True}, {"item_id": "x_1", "matched": "false"}]}),
    "another item": json.dumps({"decisions": [{"item_id": i, "matched": True} for i in ("x_0", "y_1")]}),
    "prose": "Both are met.",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_a_reply_that_no_longer_parses_is_a_failed_case(tmp_path: Path, text: str) -> None:
    """An accepted reply whose text was edited afterwards gives no score: the text is read every time."""
    case = _graded(tmp_path, _answer(), _judged(text=text))

    assert ("failed", "judge", "invalid_reply", None) == (case.state, case.failed_role, case.failed_state, case.matched)
    assert "no reply held exactly one decision for every item" == case.reason


def test_an_edited_reply_is_asked_for_again(tmp_path: Path) -> None:
    """After a reply's text was broken by hand, the same command asks that unit again and the case is graded."""
    path = tmp_path / "x.jsonl"
    with LlmServer() as server:
        plan = make_plan(case_set(2, ["drug_safety"]), url=server.url)
        run(plan, path)
        lines = path.read_text().split("\n")
        last = json.loads(lines[-2])
        path.write_text("\n".join([*lines[:-2], json.dumps({**last, "text": "{}"}), ""]))
        states = [case.state for case in read_run(path).cases]
        hits = server.hits
        run(plan, path)

        assert ["judge"] == [seen["role"] for seen in server.requests[hits:]]
    assert ["failed", "graded"] == sorted(states)
    assert ["graded", "graded"] == [case.state for case in read_run(path).cases]


def test_reasons_hold_no_text_of_models_or_cases(tmp_path: Path) -> None:
    """What a summary says about a failure is in our words: a journal may quote, what is passed on may not."""
    quoted = _graded(tmp_path, replace(_answer("rejected", None), reason="HTTP 400: the patient's own words"))

    assert "the server refused the request" == quoted.reason


def test_usage_counts_calls_made_and_calls_reused_apart(tmp_path: Path) -> None:
    """Tokens are those this file paid for; a reply taken over counts as reused; what nobody reported is left out."""
    tokens: dict[str, int | None] = {"input": 7, "cached": None, "output": 2, "reasoning": None}
    calls = [replace(_answer(), usage=tokens), replace(_judged(T, F), usage=tokens, reused_from="0" * 64)]
    data = grade_journal(read_journal(_journal(tmp_path / "x.jsonl", *calls)))

    assert {"calls": 1, "reused": 0, "input": 7, "output": 2} == data.usage["answer"]
    assert {"calls": 0, "reused": 1} == data.usage["judge"]


@pytest.mark.parametrize(
    ("sent", "found"),
    [([{"temperature": 1}, {"temperature": 1}], 1), ([{"temperature": 1}, {}], None), ([None, None], None)],
)
def test_the_temperature_is_the_one_that_was_sent(tmp_path: Path, sent: list[Any], found: float | None) -> None:
    """The same on every finished call, or null: never the requested one where it was dropped."""
    answers = [replace(_answer(key=f"a{number}"), sent=value) for number, value in enumerate(sent)]
    data = grade_journal(read_journal(_journal(tmp_path / "x.jsonl", *answers)))

    assert found == data.answer_temperature


def test_short_ids_are_read_by_position(tmp_path: Path) -> None:
    """A journal whose judge saw item_0, item_1 maps them to the case's items in file order."""
    plan = make_plan(case_set(1, ["drug_safety"]), reading={"id_style": "short"})
    run(plan, tmp_path / "x.jsonl")
    (case,) = read_run(tmp_path / "x.jsonl").cases

    assert tuple(item.item_id for item in plan.cases[0].items) == case.item_ids
    assert (T, T, T, T) == case.matched


def test_a_judge_that_decided_as_another_model_is_no_longer_certified(tmp_path: Path) -> None:
    """Its certificate is of one model, its server gave another: the run is labelled stale, with both names."""
    path = _journal(tmp_path / "x.jsonl", _answer(), replace(_judged(T, F), model="judge-2026"))
    about = {"judge": 0, "model": "j", "state": "valid", "reason": None, "certificate": {"models_returned": ["j-2025"]}}
    with path.open("a") as journal:
        journal.write(json.dumps({"v": 1, "kind": "certified", "judges": [about], "uncertified": False}) + "\n")
    summary = summarise_run(read_run(path), dialect="spec", samples=20, seed=42, software={})

    assert "stale" == summary["certificate"]
    assert "certificate: stale (j: stale: certified as j-2025, it also decided as judge-2026)" in summary["notices"]


REPLIES = st.lists(
    st.lists(
        st.lists(st.sampled_from((T, F, N, "timeout", "pending")), min_size=3, max_size=3), min_size=1, max_size=3
    ),
    min_size=1,
    max_size=4,
).filter(lambda judges: len({len(repeats) for repeats in judges}) == 1)
"""By judge, repeat and item what a one-item reply decided; N is a reply that could not be read."""


@given(replies=REPLIES)
def test_any_replies_are_graded_failed_or_pending_by_one_rule(replies: list[list[list[bool | str | None]]]) -> None:
    """Whatever came of each call: an item lost for good fails the case, one to come makes it wait, else graded."""
    found = {
        (0, judge, repeat, f"x_{at}"): _reply_of(value)
        for judge, repeats in enumerate(replies)
        for repeat, items in enumerate(repeats)
        for at, value in enumerate(items)
        if value != "pending"
    }
    head = CaseHead("c1", "drug_safety", "points_rubric", (("x_0", 2), ("x_1", 1), ("x_2", -1)), 0)
    identity = {"judges": [{}] * len(replies), "repeats": len(replies[0]), "grouping": "item"}
    case = grade_case(head, Replies({0: _answer()}, found), identity)
    asked = [[repeat[at] for of_judge in replies for repeat in of_judge] for at in range(3)]
    votes = item_votes(case.ballots)
    lost = [missing(votes[at]) and "pending" not in asked[at] for at in range(3)]
    waits = any("pending" in of_item for of_item in asked)

    assert case.state == ("failed" if any(lost) else "pending" if waits else "graded")
    assert (case.matched or case.decided) == tuple(map(verdict, votes))
    assert (case.matched is not None) == (case.state == "graded")
    again = judged_by(case, range(len(replies)))
    assert (case.state, case.matched, case.decided) == (again.state, again.matched, again.decided)


def _reply_of(value: bool | str | None) -> JudgeReply:
    """Return a one-item reply that decided so, came to nothing, or could not be read."""
    if isinstance(value, bool):
        return JudgeReply(_judged(value, value), "ok", (value,), None)
    state = "timeout" if value == "timeout" else "invalid_reply"
    return JudgeReply(_judged(state=state, text=None), state, None, None)
