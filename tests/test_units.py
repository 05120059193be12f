"""Paid replies of other journals: each answers one unit, and only the words it was paid for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from builder.errors import BadInput
from eval.calls.answers import read_answers
from eval.calls.call import Call
from eval.calls.journal import read_journal
from eval.calls.plan import Request
from eval.calls.start import reusable_calls
from eval.calls.units import Reusable
from eval.healthbench.protocol import GRADER_SHA256, own_prompts
from eval.numbers.readers import read_run
from tests.examples import make_criterion, make_example, make_ideal
from tests.gradings import decisions_of, example_mirror, grading_plan
from tests.llm_server import LlmServer
from tests.plans import POLICY, case_set, run

CASE = case_set(1, ["drug_safety"]).cases[0]


def _call(group: str = "i_0", repeat: int = 0, text: str = "yes") -> Call:
    return Call("k", "judge", CASE.case_id, repeat, "ok", text=text, group=group, judge=0, repeat=0, at=f"t{group}")


def _request(group: str = "i_0", repeat: int = 0) -> Request:
    return Request(key="k", role="judge", case=CASE, model=POLICY, answer_repeat=repeat, group=group)


def test_each_unit_gets_the_reply_that_was_paid_for_it() -> None:
    """Two answers of the same words were judged twice; each keeps its own decision, in whatever order it is asked."""
    paid = Reusable()
    paid.add(_call(repeat=0, text="first"))
    paid.add(_call(repeat=1, text="second"))

    found = [paid.take(_request(repeat=1)), paid.take(_request(repeat=0))]

    assert ["second", "first"] == [call.text for call in found if call]


def test_a_reply_is_taken_once() -> None:
    """A third answer of the same words is a new call: a repeat is never served from another repeat's record."""
    paid = Reusable()
    paid.add(_call())

    assert paid.take(_request(group="i_7"))
    assert paid.take(_request()) is None


def test_what_an_earlier_session_took_is_gone() -> None:
    """A run that goes on does not take the same reply a second time."""
    paid = Reusable()
    paid.add(_call())
    paid.drop_taken([replace(_call(), group="i_7", reused_from="0" * 64)])

    assert paid.take(_request()) is None


def test_a_policys_words_are_never_reused(tmp_path: Path) -> None:
    """Its key does not name the items its words are made of, and they cost nothing."""
    mirror = example_mirror(tmp_path, [make_example(0)])
    run(grading_plan(mirror), tmp_path / "x.jsonl")

    paid = reusable_calls([read_journal(tmp_path / "x.jsonl")])

    answers = [call for call in read_journal(tmp_path / "x.jsonl").calls if call.role == "answer"]
    assert [None] == [paid.take(replace(_request(), key=call.key, group=None)) for call in answers]


def test_a_changed_completion_is_not_answered_by_the_old_one(tmp_path: Path) -> None:
    """The data's own completion is named by its text: another text is judged, whatever a reused journal holds."""
    lines = [
        make_example(ideal_completions_data={**make_ideal(), "ideal_completion": f"Words {name}."})
        for name in ("before", "after")
    ]
    mirrors = [example_mirror(tmp_path / str(number), [line]) for number, line in enumerate(lines)]
    run(grading_plan(mirrors[0], answers="physician"), tmp_path / "old.jsonl")

    run(grading_plan(mirrors[1], answers="physician"), tmp_path / "new.jsonl", reuse=[tmp_path / "old.jsonl"])

    (answer,) = [call for call in read_journal(tmp_path / "new.jsonl").calls if call.role == "answer"]
    assert ("Words after.", None) == (answer.text, answer.reused_from)


def test_equal_items_keep_their_own_decisions_under_reuse(tmp_path: Path) -> None:
    """Two items of the same words decided differently stay so in a run that takes both over."""
    twice = [make_criterion(criterion="Says it", points=5) for _ in range(2)]
    mirror = example_mirror(tmp_path, [make_example(0, rubrics=twice)])
    with LlmServer() as server:
        run(grading_plan(mirror, server.url), tmp_path / "old.jsonl")
        _turn_last_decision(tmp_path / "old.jsonl")
        asked = server.hits
        run(grading_plan(mirror, server.url), tmp_path / "new.jsonl", reuse=[tmp_path / "old.jsonl"])

        assert asked == server.hits
    ((first, second),) = [case for case in decisions_of(tmp_path / "old.jsonl") if case]
    assert first != second
    assert [(first, second)] == decisions_of(tmp_path / "new.jsonl")


def _turn_last_decision(journal: Path) -> None:
    """Give the last judge reply of a journal the other decision."""
    *lines, last = journal.read_text().splitlines()
    line = json.loads(last)
    met = '"criteria_met": true'
    text = line["text"]
    line["text"] = text.replace("true", "false") if met in text else text.replace("false", "true")
    journal.write_text("\n".join([*lines, json.dumps(line)]) + "\n")


def test_a_cut_reply_is_asked_for_with_twice_the_room_in_the_next_session(tmp_path: Path) -> None:
    """What was cut at 2,048 and 4,096 tokens is not paid at 2,048 again."""
    mirror = example_mirror(tmp_path, [make_example(0)])
    with LlmServer({"fault": "cut", "role": "grader", "contains": "fact 0.2,", "times": 3}) as server:
        run(grading_plan(mirror, server.url), tmp_path / "x.jsonl")
        run(grading_plan(mirror, server.url), tmp_path / "x.jsonl")
        sent = [seen["body"]["max_completion_tokens"] for seen in server.requests if "fact 0.2," in str(seen["body"])]

    assert [2048, 4096, 4096, 4096] == sent
    assert None not in decisions_of(tmp_path / "x.jsonl")


def test_the_graders_wording_is_the_one_its_name_stands_for() -> None:
    """Another wording in grader.txt needs another name: numbers of two prompts are not comparable."""
    assert GRADER_SHA256 == own_prompts().template_sha256


def test_a_case_line_without_its_tags_is_refused(tmp_path: Path) -> None:
    """Scores by tag need the tags: a HealthBench line that lost them is named by its number."""
    mirror = example_mirror(tmp_path, [make_example(0)])
    run(grading_plan(mirror), tmp_path / "x.jsonl")
    first, case, *rest = (tmp_path / "x.jsonl").read_text().splitlines()
    line = json.loads(case)
    for broken in ({**line, "tags": None}, {k: v for k, v in line.items() if k != "tags"}):
        (tmp_path / "y.jsonl").write_text("\n".join([first, json.dumps(broken), *rest]) + "\n")
        with pytest.raises(BadInput, match=r"y\.jsonl:2: .*tags"):
            read_journal(tmp_path / "y.jsonl")


def test_damaged_lines_of_a_case_are_refused(tmp_path: Path) -> None:
    """An item that stands twice would count twice, and points that are null belong to meta examples alone."""
    mirror = example_mirror(tmp_path, [make_example(0)])
    run(grading_plan(mirror), tmp_path / "x.jsonl")
    first, case, *rest = (tmp_path / "x.jsonl").read_text().splitlines()
    line = json.loads(case)
    (item_id, _, tags), *others = line["items"]
    for items in ([*line["items"], line["items"][0]], [[item_id, None, tags], *others], [[item_id, 5], *others]):
        (tmp_path / "y.jsonl").write_text("\n".join([first, json.dumps({**line, "items": items}), *rest]) + "\n")
        with pytest.raises(BadInput, match=r"y\.jsonl:2: "):
            read_journal(tmp_path / "y.jsonl")


def test_calls_whose_case_line_is_gone_are_not_left_out(tmp_path: Path) -> None:
    """A run must not shrink by a lost line: the score is refused, and the run's own command puts the line back."""
    plan = grading_plan(example_mirror(tmp_path, map(make_example, range(2))))
    run(plan, tmp_path / "x.jsonl")
    first, _, *rest = (tmp_path / "x.jsonl").read_text().splitlines()
    (tmp_path / "x.jsonl").write_text("\n".join([first, *rest]) + "\n")

    with pytest.raises(BadInput, match="found none for case"):
        decisions_of(tmp_path / "x.jsonl")
    run(plan, tmp_path / "x.jsonl")
    assert 2 == len(decisions_of(tmp_path / "x.jsonl"))


def test_whatever_a_server_was_sent_as_temperature_ends_in_no_traceback(tmp_path: Path) -> None:
    """A damaged `sent` is no number, so the temperature is unknown: null."""
    run(grading_plan(example_mirror(tmp_path, [make_example(0)])), tmp_path / "x.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    changed = [{**line, "sent": {"temperature": [1]}} if line["kind"] == "call" else line for line in lines]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in changed))

    assert read_run(tmp_path / "x.jsonl").judge_temperature is None


def test_answers_for_no_case_are_named(tmp_path: Path) -> None:
    """A mistyped id shows as a missing answer only, so the ids that fit no case are given back."""
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps({"case_id": name, "answer": "a"}) + "\n" for name in (CASE.case_id, "typo")))

    assert ["typo"] == read_answers(path).unknown([CASE])
