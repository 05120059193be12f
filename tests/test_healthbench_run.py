"""A HealthBench run over a real mirror at a real server: a call an item, nothing asked twice, nothing guessed."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eval.calls.call import Call
from eval.calls.journal import read_journal
from eval.calls.units import Unit, Units
from eval.cases import Case, Item
from eval.numbers.readers import read_run
from eval.numbers.summary import summarise
from tests.examples import POINTS, example_id_of, make_criterion, make_example
from tests.gradings import decisions_of, example_mirror, grading_plan
from tests.llm_replies import _chance
from tests.llm_server import LlmServer
from tests.plans import run

N = 3
FIRST = example_id_of(0)
MET = '{"explanation": "why", "criteria_met": true}'


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror of three examples with four items each."""
    return example_mirror(tmp_path_factory.mktemp("run"), map(make_example, range(N)))


def calls_of(journal: Path, role: str = "judge") -> list[Call]:
    """Return a journal's calls of a role, in file order."""
    return [call for call in read_journal(journal).calls if call.role == role]


def lines_of(journal: Path, kind: str) -> list[dict[str, Any]]:
    """Return a journal's lines of a kind, as they stand in the file."""
    return [line for line in map(json.loads, journal.read_text().splitlines()) if line["kind"] == kind]


def roles(server: LlmServer) -> Counter[str]:
    """Return how often the server was asked, by role."""
    return Counter(seen["role"] for seen in server.requests)


# -- what is asked


def test_a_grader_call_an_item(mirror: Path, tmp_path: Path) -> None:
    """Three examples of four items: three answers, twelve graders, each about its item; the decisions are theirs."""
    with LlmServer() as server:
        outcome, _ = run(grading_plan(mirror, server.url), tmp_path / "x.jsonl")
        asked = roles(server)
    texts = [[make_criterion(number, index)["criterion"] for index in range(4)] for number in range(N)]

    assert (None, {"answer": 3, "grader": 12}) == (outcome.stopped, dict(asked))
    assert {f"{example_id_of(n)}_{i}" for n in range(N) for i in range(4)} == {
        call.group for call in calls_of(tmp_path / "x.jsonl")
    }
    assert [tuple(map(_chance, row)) for row in texts] == decisions_of(tmp_path / "x.jsonl")


def test_the_journal_holds_the_example(mirror: Path, tmp_path: Path) -> None:
    """Items are [item_id, points, tags]; the example's tags and group beside; points in their literal form."""
    run(grading_plan(mirror), tmp_path / "x.jsonl")
    line = lines_of(tmp_path / "x.jsonl", "case")[0]
    items = [[f"{FIRST}_{i}", POINTS[i], make_criterion(0, i)["tags"]] for i in range(4)]

    assert (items, ["theme:hedging"], "Group 1") == (line["items"], line["tags"], line["group"])
    assert ("healthbench", "healthbench", 0) == (line["benchmark"], line["grading_method"], line["index"])
    assert all(type(points) is int for _, points, _ in line["items"])


def test_a_judge_line_names_its_item(mirror: Path, tmp_path: Path) -> None:
    """group is the item's id, the key that of the request as asked for."""
    plan = grading_plan(mirror)
    run(plan, tmp_path / "x.jsonl")
    answers = {call.case_id: call.text or "" for call in calls_of(tmp_path / "x.jsonl", "answer")}
    expected = {
        (group, plan.judge_request(case, answers[case.case_id], group=group, items=items).key)
        for case in plan.cases
        for group, items in plan.judge_groups(case)
    }

    assert expected == {(call.group, call.key) for call in calls_of(tmp_path / "x.jsonl")}
    assert {(0, 0, 0)} == {(c.answer_repeat, c.judge, c.repeat) for c in calls_of(tmp_path / "x.jsonl")}


def test_items_of_one_example_are_graded_side_by_side(tmp_path: Path) -> None:
    """One example of thirty items fills eight places, and never more than eight."""
    lines = [make_example(rubrics=[make_criterion(0, index) for index in range(30)])]
    mirror = example_mirror(tmp_path, lines)
    with LlmServer(latency_ms=30) as server:
        run(grading_plan(mirror, server.url), tmp_path / "x.jsonl", concurrency=8)
        most = server.brain.max_in_flight

    assert (8, 30) == (most, len(calls_of(tmp_path / "x.jsonl")))


def test_no_more_answers_wait_than_calls_are_in_flight() -> None:
    """However many examples: what was answered is judged before the next is asked, so memory does not grow."""
    items = tuple(Item(f"c_{i}", "t", 1) for i in range(5))
    cases = [Case(f"c{n}", "healthbench", "healthbench", (("user", "?"),), items) for n in range(200)]
    held, most = 0, 0
    open_: dict[str, int] = {}

    async def work(units: Units, number: int) -> None:
        nonlocal held, most
        while (unit := await units.take()) is not None:
            await asyncio.sleep(0.0001 * (number % 3))
            follow: list[Unit] = []
            if unit.group == "*":
                held += 1
                follow = [Unit(unit.case, 0, None, item.item_id, (item,)) for item in items]
                open_[unit.case.case_id] = len(follow)
            else:
                open_[unit.case.case_id] -= 1
                held -= open_[unit.case.case_id] == 0
            most = max(most, held)
            units.give(follow)

    async def all_of_them() -> None:
        units = Units(Unit(case, 0) for case in cases)
        await asyncio.gather(*(work(units, number) for number in range(6)))

    asyncio.run(all_of_them())

    assert 0 < most <= 6
    assert (0, 200) == (held, len(open_))


# -- replies that cannot be used


def test_a_cut_grade_is_asked_for_once_more_with_twice_the_room(mirror: Path, tmp_path: Path) -> None:
    """2,048 tokens, then 4,096; both are in the journal under the same key, with what was really sent."""
    fault = {"fault": "cut", "role": "grader", "contains": "fact 0.2,", "times": 1}
    with LlmServer(fault) as server:
        run(grading_plan(mirror, server.url), tmp_path / "x.jsonl")
    about = [call for call in calls_of(tmp_path / "x.jsonl") if call.group == f"{FIRST}_2"]

    assert [("truncated", 2048), ("ok", 4096)] == [(c.state, (c.sent or {})["max_completion_tokens"]) for c in about]
    assert (1, [1, 2]) == (len({call.key for call in about}), [call.reply for call in about])
    assert None not in decisions_of(tmp_path / "x.jsonl")


def test_the_room_is_doubled_once(mirror: Path, tmp_path: Path) -> None:
    """A grader that never ends is not paid ever more: 2,048, 4,096, 4,096, then the item has failed."""
    with LlmServer({"fault": "cut", "role": "grader", "contains": "fact 0.2,"}) as server:
        run(grading_plan(mirror, server.url), tmp_path / "x.jsonl")
        sent = [s["body"]["max_completion_tokens"] for s in server.requests if "fact 0.2," in str(s["body"])]
    (failed,) = [case for case in read_run(tmp_path / "x.jsonl").cases if case.state == "failed"]

    assert [2048, 4096, 4096] == sent
    assert (FIRST, "judge", "truncated") == (failed.case_id, failed.failed_role, failed.failed_state)


def test_a_server_of_the_older_parameter_gets_the_room_by_that_name(mirror: Path, tmp_path: Path) -> None:
    """Where max_completion_tokens is refused, the cut grade is asked for again with max_tokens 4,096."""
    refuse = {"fault": "refuse", "param": "max_completion_tokens"}
    with LlmServer(refuse, {"fault": "cut", "role": "grader", "contains": "fact 0.2,", "times": 1}) as server:
        run(grading_plan(mirror, server.url), tmp_path / "x.jsonl", concurrency=1)
    about = [call for call in calls_of(tmp_path / "x.jsonl") if call.group == f"{FIRST}_2"]

    assert [("truncated", 2048), ("ok", 4096)] == [(c.state, (c.sent or {})["max_tokens"]) for c in about]


@pytest.mark.parametrize("fault", ["strbool", "nullbool", "missing", "malformed", "prose"])
def test_a_grade_that_cannot_be_read_is_never_false(mirror: Path, tmp_path: Path, fault: str) -> None:
    """Three replies, then the item has no decision and the example no score; the other items narrow its bounds."""
    with LlmServer({"fault": fault, "role": "grader", "contains": "fact 0.3,"}) as server:
        run(grading_plan(mirror, server.url), tmp_path / "x.jsonl")
    about = [call for call in calls_of(tmp_path / "x.jsonl") if call.group == f"{FIRST}_3"]
    case = read_run(tmp_path / "x.jsonl").cases[0]

    assert ["invalid_reply"] * 3 == [call.state for call in about]
    assert all(call.reason for call in about)
    assert (None, "failed", "invalid_reply") == (case.matched, case.state, case.failed_state)
    assert case.decided is not None
    assert [False, False, False, True] == [met is None for met in case.decided]


def test_an_ungraded_example_widens_the_bounds_by_its_open_item_only(tmp_path: Path) -> None:
    """7 + 5 + 10 met of 22, the -6 open: 16/22 at the worst, 22/22 at the best; no mean of one example without one."""
    mirror = example_mirror(tmp_path, [make_example()])
    met = {"fault": "message", "role": "grader", "content": MET}
    with LlmServer({"fault": "malformed", "role": "grader", "contains": "fact 0.3,"}, met) as server:
        run(grading_plan(mirror, server.url), tmp_path / "x.jsonl")
    summary = summarise(read_run(tmp_path / "x.jsonl"), software={})

    assert (None, 16 / 22, 1.0) == tuple(summary[f"overall_{n}"] for n in ("macro_mean", "worst", "best"))
    assert (0, 1) == (summary["n_graded"], summary["n_failed"])


def test_a_repaired_grade_counts(mirror: Path, tmp_path: Path) -> None:
    """The next start asks for the failed item alone, and the example is graded."""
    path = tmp_path / "x.jsonl"
    with LlmServer({"fault": "malformed", "role": "grader", "contains": "fact 0.3,", "times": 3}) as server:
        run(grading_plan(mirror, server.url), path)
        before = server.hits
        run(grading_plan(mirror, server.url), path)

        assert 1 == server.hits - before
    assert None not in decisions_of(path)


# -- going on


def twins() -> list[dict[str, Any]]:
    """Return two examples: one whose rubric asks the same twice, one that is like any other."""
    same = [make_criterion(0, index, criterion="Says it", points=5, tags=[]) for index in (0, 1)]
    return [make_example(0, rubrics=[*same, make_criterion(0, 2)]), make_example(1)]


@pytest.mark.parametrize("choices", [{}, {"answer_repeats": 2}], ids=["two equal items", "two equal answers"])
def test_a_run_cut_after_any_line_asks_nothing_twice(tmp_path: Path, choices: dict[str, Any]) -> None:
    """Kill a run after each of its lines: what stands in the file is not asked again, the rest is, once."""
    mirror, whole, cut = example_mirror(tmp_path, twins()), tmp_path / "x.jsonl", tmp_path / "cut.jsonl"
    with LlmServer({"fault": "message", "role": "answer", "content": "Always the same."}) as server:
        plan = grading_plan(mirror, server.url, **choices)
        run(plan, whole, concurrency=1)
        lines, n_calls = whole.read_bytes().splitlines(keepends=True), server.hits
        for n in range(3, len(lines)):
            cut.write_bytes(b"".join(lines[:n]))
            before = server.hits
            run(plan, cut, concurrency=4)

            assert (n_calls - (n - 3), n_calls) == (server.hits - before, len(read_journal(cut).calls)), n
        before = server.hits
        run(plan, whole)
        assert (before, decisions_of(whole)) == (server.hits, decisions_of(cut))


def test_equal_items_each_have_their_own_decision(tmp_path: Path) -> None:
    """Two items in the same words share a key, and are still two calls with two decisions."""
    mirror = example_mirror(tmp_path, twins())
    no = '{"criteria_met": false}'
    with LlmServer(
        {"fault": "message", "role": "grader", "contains": "Says it", "content": MET, "times": 1},
        {"fault": "message", "role": "grader", "content": no},
    ) as server:
        run(grading_plan(mirror, server.url), tmp_path / "x.jsonl", concurrency=1)
    about = [call for call in calls_of(tmp_path / "x.jsonl") if call.group in (f"{FIRST}_0", f"{FIRST}_1")]

    assert (1, 2) == (len({call.key for call in about}), len(about))
    assert (True, False, False) == decisions_of(tmp_path / "x.jsonl")[0]


def test_reuse_pays_for_the_changed_item_only(tmp_path: Path) -> None:
    """One criterion reworded: one grader call; all else is taken over and says so."""
    old = example_mirror(tmp_path / "old", map(make_example, range(N)))
    lines = [make_example(number) for number in range(N)]
    lines[1]["rubrics"][2]["criterion"] = "Says something else"
    new = example_mirror(tmp_path / "new", lines)
    with LlmServer() as server:
        run(grading_plan(old, server.url), tmp_path / "old.jsonl")
        before = server.hits
        run(grading_plan(new, server.url), tmp_path / "new.jsonl", reuse=[tmp_path / "old.jsonl"])
        asked = server.requests[before:]
    fresh = [call.group for call in read_journal(tmp_path / "new.jsonl").calls if call.reused_from is None]

    assert ["grader"] == [seen["role"] for seen in asked]
    assert [f"{example_id_of(1)}_2"] == fresh
    assert None not in decisions_of(tmp_path / "new.jsonl")
