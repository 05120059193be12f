"""Answers that were given before the run, from files of every kind."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builder.errors import BadInput
from eval.calls.answers import GivenAnswer, read_answers
from eval.calls.call import call_line
from eval.calls.journal import Journal, read_journal
from tests.llm_server import LlmServer
from tests.plans import POLICY, case_set, make_plan, run


def _file(path: Path, *lines: dict[str, Any], tail: str = "") -> Path:
    """Write lines as the published runner writes them: non-ASCII characters unescaped."""
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    path.write_text(text + tail, encoding="utf-8", newline="\n")
    return path


def test_lines_of_case_and_answer_are_read(tmp_path: Path) -> None:
    """Two fields a line are enough; the file's digest is that of its bytes, and no model is made up."""
    path = _file(tmp_path / "a.jsonl", {"case_id": "c1", "answer": "yes"}, {"case_id": "c2", "answer": "no"})
    given = read_answers(path)

    assert {"c1": [GivenAnswer("yes", "ok")], "c2": [GivenAnswer("no", "ok")]} == given.by_case
    assert (None, hashlib.sha256(path.read_bytes()).hexdigest()) == (given.model, given.file_sha256)


def test_rows_of_the_published_runner_are_read(tmp_path: Path) -> None:
    """A row's answer counts with whatever else the row holds; a failed row has none and is passed over."""
    row = {"case_id": "c1", "answer_model": "m", "answer": "yes", "decisions": [], "score": 0.5}
    failed = {"case_id": "c1", "answer_model": "m", "error": "APITimeoutError: Request timed out."}
    given = read_answers(_file(tmp_path / "a.jsonl", failed, row, {**failed, "case_id": "c2"}))

    assert ({"c1": [GivenAnswer("yes", "ok")]}, "m") == (given.by_case, given.model)


def test_a_journals_answers_are_read_with_their_states(tmp_path: Path) -> None:
    """Our own journal gives its answers as they are: a cut one stays cut, a failed one stays failed."""
    rules = [
        {"fault": "message", "content": "half", "finish_reason": "length", "numbers": [1]},
        {"fault": "message", "content": "", "numbers": [3]},
    ]
    data = case_set(3, ["drug_safety"])
    with LlmServer(*rules) as server:
        run(make_plan(data, url=server.url), tmp_path / "x.jsonl", concurrency=1)
    given = read_answers(tmp_path / "x.jsonl")

    assert ["truncated", "empty", "ok"] == [given.by_case[case.case_id][0].state for case in data.cases]
    assert GivenAnswer("half", "truncated") == given.by_case[data.cases[0].case_id][0]
    assert "answer-model" == given.model


def test_given_answers_keep_their_states_in_the_run(tmp_path: Path) -> None:
    """A truncated answer of a file is judged and stays flagged; a failed one is not judged, no line means missing."""
    data = case_set(3, ["drug_safety"])
    run(make_plan(data), tmp_path / "x.jsonl")
    calls = [call for call in read_journal(tmp_path / "x.jsonl").calls if call.role == "answer"]
    header = read_journal(tmp_path / "x.jsonl").header
    with Journal(tmp_path / "old.jsonl") as journal:
        journal.create({name: value for name, value in header.items() if name not in ("v", "kind")}, [])
        journal.append(call_line(replace(calls[0], state="truncated")))
        journal.append(call_line(replace(calls[1], state="timeout", text=None)))
    given = read_answers(tmp_path / "old.jsonl")
    run(make_plan(data, answer=POLICY, given=given), tmp_path / "y.jsonl", concurrency=1)
    found = read_journal(tmp_path / "y.jsonl").calls

    assert ["truncated", "timeout", "missing"] == [call.state for call in found if call.role == "answer"]
    assert [data.cases[0].case_id] == [call.case_id for call in found if call.role == "judge"]


def test_an_empty_answer_is_empty_and_not_missing(tmp_path: Path) -> None:
    """A line with no words is an answer of its own state: never judged, never the same as no line."""
    given = read_answers(_file(tmp_path / "a.jsonl", {"case_id": "c1", "answer": " \n"}))

    assert {"c1": [GivenAnswer(" \n", "empty")]} == given.by_case


def test_line_separators_inside_answers_are_text(tmp_path: Path) -> None:
    """U+2028, U+2029 and U+0085, which the published runner writes unescaped, do not end a line."""
    text = "a\u2028b\u2029c\x85d"
    given = read_answers(_file(tmp_path / "a.jsonl", {"case_id": "c1", "answer": text}))

    assert text == given.by_case["c1"][0].text


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    """A last line that a crash cut off gives no answer: its case is missing, the others are there."""
    path = _file(tmp_path / "a.jsonl", {"case_id": "c1", "answer": "yes"}, tail='{"case_id": "c2", "answer": "n')

    assert ["c1"] == list(read_answers(path).by_case)


REFUSED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "twice": (
        [{"case_id": "c1", "answer": "a"}, {"case_id": "c1", "answer": "a"}],
        "a.jsonl:2: case c1 has an answer above already; keep one line a case",
    ),
    "two models": (
        [{"case_id": "c1", "answer": "a", "answer_model": "m"}, {"case_id": "c2", "answer": "a", "answer_model": "n"}],
        "a.jsonl: expected the answers of one model, found m, n; split the file",
    ),
    "no case": ([{"answer": "a"}], 'a.jsonl:1: expected a string "case_id", found None'),
    "no answer": ([{"case_id": "c1"}], 'a.jsonl:1: expected a string "answer" for case c1, found None'),
    "number": ([{"case_id": "c1", "answer": 5}], 'a.jsonl:1: expected a string "answer" for case c1, found 5'),
}


@pytest.mark.parametrize(("lines", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_single_answer_a_case_is_refused(tmp_path: Path, lines: list[dict[str, Any]], message: str) -> None:
    """A case twice, two models in one file or a line without case or answer is one clear error."""
    with pytest.raises(BadInput) as refused:
        read_answers(_file(tmp_path / "a.jsonl", *lines))

    assert str(tmp_path / message) == str(refused.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """The path that was given stands in the error."""
    with pytest.raises(BadInput, match=r"none\.jsonl: expected a file of answers, found no such file"):
        read_answers(tmp_path / "none.jsonl")


def test_a_journal_with_two_answers_a_case_gives_both(tmp_path: Path) -> None:
    """Answers to one case stay apart, in the order of their repeats: the new run judges each, nested in its case."""
    path = tmp_path / "x.jsonl"
    run(make_plan(case_set(1, ["drug_safety"]), reading={"answer_repeats": 2}), path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    answer, second = (line for line in lines if line.get("role") == "answer")
    second["text"] = "another"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    given = read_answers(tmp_path / "x.jsonl")

    assert [answer["text"], "another"] == [one.text for one in given.by_case[answer["case_id"]]]


def test_a_journal_with_one_answer_of_two_keys_is_refused(tmp_path: Path) -> None:
    """Which of two texts under one answer repeat to judge is not guessed."""
    run(make_plan(case_set(1, ["drug_safety"])), tmp_path / "x.jsonl")
    (answer, _) = read_journal(tmp_path / "x.jsonl").calls
    with Journal(tmp_path / "x.jsonl") as journal:
        journal.resume()
        journal.append(call_line(replace(answer, key="other")))

    with pytest.raises(BadInput, match="has several answers; give a journal with one each"):
        read_answers(tmp_path / "x.jsonl")
