"""Result files of the published runner, and minimal lines: read as written, refused where they could mislead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builder.errors import BadInput
from eval.numbers.summary import summarise
from eval.numbers.upstream import read_upstream
from eval.numbers.upstream_rows import KnownCase

DRUGS, PLAN = "drug_safety", "safety_diagnostic"
MIRROR = {
    "m2": KnownCase(DRUGS, "points_rubric", ("q_0", "q_1"), (2, -1)),
    "m1": KnownCase(DRUGS, "points_rubric", ("r_0",), (1,)),
    "m3": KnownCase(PLAN, "f1_weighted_rubric", ("s_0", "s_1"), (3, -3)),
}


def success(case_id: str, *matched: Any, points: tuple[Any, ...] = (2, -1), **changes: Any) -> dict[str, Any]:
    """Return a row of a graded case as the published runner writes it."""
    decisions = [
        {"item_id": f"q_{i}", "points": p, "matched": m} for i, (p, m) in enumerate(zip(points, matched, strict=True))
    ]
    row = {
        "protocol_version": "bedside-bench-grading-v1",
        "case_id": case_id,
        "benchmark": DRUGS,
        "grading_method": "points_rubric",
        "answer_model": "a-model",
        "judge_model": "j-model",
        "answer_temperature": 1,
        "judge_temperature": None,
        "started_at": "2026-10-01T10:00:00.000001+00:00",
        "finished_at": "2026-10-01T10:00:09.000001+00:00",
        "answer": "Give 140 mg.",
        "decisions": decisions,
    }
    return row | changes


def failure(case_id: str, error: str = "RuntimeError: HTTP 500: \n oops", /, **changes: Any) -> dict[str, Any]:
    """Return a row of a failed case."""
    row = success(case_id, True, True)
    del row["decisions"], row["answer"], row["started_at"]
    return row | {"finished_at": "2026-10-01T11:00:00.000001+00:00", "error": error} | changes


def minimal(case_id: str, matched: dict[str, Any]) -> dict[str, Any]:
    """Return a minimal line."""
    return {"case_id": case_id, "answer": "", "matched": matched}


def write(tmp_path: Path, *rows: Any, tail: bytes = b"") -> Path:
    """Write rows as upstream does, non-ASCII unescaped, and raw bytes after them."""
    file = tmp_path / "X.jsonl"
    file.write_bytes("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode() + tail)
    return file


def test_rows_become_graded_cases_in_panel_and_id_order(tmp_path: Path) -> None:
    """Without a mirror the order is fixed, whatever case finished first; the file's own order is kept beside."""
    plan = success("0", True, True, benchmark=PLAN, grading_method="f1_weighted_rubric")
    run = read_upstream(write(tmp_path, plan, success("b", True, False), success("a", False, True)))

    assert [case.case_id for case in run.cases] == ["a", "b", "0"]
    assert [run.cases[index].case_id for index in run.file_order] == ["0", "b", "a"]
    assert (run.cases[0].points, run.cases[0].matched, run.cases[0].state) == ((2, -1), (False, True), "graded")
    assert (run.answer_model, run.judge_model) == ("a-model", "j-model")
    assert (run.answer_temperature, run.judge_temperature) == (1, None)


def test_answers_may_hold_unicode_line_breaks(tmp_path: Path) -> None:
    """U+2028, U+2029 and U+0085 inside an answer brick the published runner, not us; CRLF and blank lines pass."""
    row = success("a", True, False, answer="one\u2028two\u2029three\u0085four")
    run = read_upstream(write(tmp_path, row, tail=b"\r\n\n" + json.dumps(success("b", True, True)).encode() + b"\r\n"))

    assert [case.case_id for case in run.cases] == ["a", "b"]


@pytest.mark.parametrize("tail", [b'{"case_id": "b', b'{"case_id": "\xe2\x82', b'{"case_id": "b\n'], ids=repr)
def test_torn_last_line_is_left_out_and_said(tmp_path: Path, tail: bytes) -> None:
    """A killed run leaves half a line, even half a character."""
    run = read_upstream(write(tmp_path, success("a", True, False), tail=tail))

    assert len(run.cases) == 1
    assert "line 2, the last, does not parse (cut off?) and was left out" in run.notices


def test_whole_last_line_without_newline_counts(tmp_path: Path) -> None:
    """Only the newline was lost."""
    run = read_upstream(write(tmp_path, tail=json.dumps(success("a", True, False)).encode()))

    assert run.cases[0].state == "graded"


BROKEN: list[tuple[Any, str]] = [
    ([1], r":1: expected a JSON object, found \[1\]"),
    ({"case_id": 7}, r":1: case_id: expected text, found 7"),
    (
        success("a", True, False, grading_method="f1"),
        r":1: grading_method: expected one of points_rubric, .*, found 'f1'",
    ),
    (success("a", True, False, decisions=[]), r":1: decisions: expected a list with one decision an item, found \[\]"),
    (success("a", True, False, decisions=["q_0"]), r":1: decisions\[0\]: expected an object"),
    (success("a", 1, False), r":1: decisions\[0\]: expected true or false, found 1"),
    (success("a", None, False), r":1: decisions\[0\]: expected true or false, found null"),
    (success("a", True, False, points=("2", 1)), r":1: decisions\[0\]: points: expected a number, found \"2\""),
    (success("a", True, False, points=(True, 1)), r":1: decisions\[0\]: points: expected a number, found true"),
    (success("a", True, False, points=(1e300, 1)), r":1: decisions\[0\]: points: expected a number, found 1e\+300"),
    ({"case_id": "a"}, r":1: grading_method: expected text, found null"),
    (success("a", True, False, answer_model=["a"]), r":1: answer_model: expected text or null"),
]


@pytest.mark.parametrize(("row", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_line_that_could_mislead_is_refused_by_number(tmp_path: Path, row: Any, message: str) -> None:
    """Nothing is guessed and nothing is scored as false."""
    with pytest.raises(BadInput, match=message):
        read_upstream(write(tmp_path, row, success("z", True, False)))


@pytest.mark.parametrize(
    "line", [b'{"case_id": "a"', b"{'a': 1}", b'{"a": NaN}', b'{"a": 1, "a": 2}', b"\xff", b"[" * 100_000], ids=repr
)
def test_line_that_is_no_json_elsewhere_is_refused_by_number(tmp_path: Path, line: bytes) -> None:
    """Only the last line can be torn."""
    after = json.dumps(success("z", True, False)).encode()
    with pytest.raises(BadInput, match=r"X\.jsonl:2: expected a JSON object on the line, found none"):
        read_upstream(write(tmp_path, success("a", True, False), tail=line + b"\n" + after))


def test_item_decided_twice_is_refused(tmp_path: Path) -> None:
    """Two decisions on one item cannot both count."""
    row = success("a", True, False)
    row["decisions"][1]["item_id"] = "q_0"
    with pytest.raises(BadInput, match=":1: decisions: expected each item once, found one twice"):
        read_upstream(write(tmp_path, row))


def test_score_without_decisions_is_refused(tmp_path: Path) -> None:
    """A score is recomputed, never taken over."""
    row = success("a", True, False, score=1.0)
    del row["decisions"]
    with pytest.raises(BadInput, match="a score alone cannot be checked"):
        read_upstream(write(tmp_path, row))


@pytest.mark.parametrize("name", ["protocol_version", "answer_model", "judge_model"])
def test_two_runs_in_one_file_are_refused_with_the_field(tmp_path: Path, name: str) -> None:
    """Even a failed row that names another model; a row that names none is fine."""
    first, second = success("a", True, False), failure("b", **{name: "another"})
    with pytest.raises(BadInput, match=rf':2: {name} is "another", line 1 has "{first[name]}"'):
        read_upstream(write(tmp_path, first, second))
    unnamed = success("b", True, True) | {name: None}
    assert len(read_upstream(write(tmp_path, first, unnamed)).cases) == 2


def test_later_success_takes_the_place_of_an_earlier_row(tmp_path: Path) -> None:
    """The value is the later one, the place in the file the first success's."""
    rows = [failure("b"), success("a", True, False), success("b", True, False), success("a", True, True)]
    run = read_upstream(write(tmp_path, *rows))

    assert [run.cases[index].case_id for index in run.file_order] == ["a", "b"]
    assert run.cases[0].matched == (True, True)
    assert run.relapsed == ()


def test_failure_never_undoes_a_success_but_is_counted_upstream(tmp_path: Path) -> None:
    """The published runner counts such a case as completed and as an error."""
    run = read_upstream(write(tmp_path, success("a", True, False), failure("a"), failure("b")))
    spec, upstream = (summarise(run, dialect=d, samples=5, software={}) for d in ("spec", "upstream"))

    assert [case.state for case in run.cases] == ["graded", "failed"]
    assert (spec["completed_cases"], spec["errors"]) == (1, 1)
    assert (upstream["completed_cases"], upstream["errors"]) == (1, 2)


def test_failed_rows_tell_what_they_know(tmp_path: Path) -> None:
    """A refused judge reply names its role; a transport error does not say which call it ended. One line each."""
    run = read_upstream(write(tmp_path, failure("a"), failure("b", "ValueError: judge item mismatch; missing=['q_0']")))

    assert [(c.failed_role, c.failed_state) for c in run.cases] == [(None, None), ("judge", "invalid_reply")]
    assert run.cases[0].reason == "RuntimeError: HTTP 500: oops"
    assert run.states == {"answer": {"ok": 1}, "judge": {"invalid_reply": 1}}


def test_times_span_all_rows(tmp_path: Path) -> None:
    """The first start and the last finish, failed rows included."""
    run = read_upstream(write(tmp_path, success("a", True, False), failure("b")))

    assert run.started_at == "2026-10-01T10:00:00.000001+00:00"
    assert run.finished_at == "2026-10-01T11:00:00.000001+00:00"


def test_models_and_temperatures_are_null_where_rows_differ(tmp_path: Path) -> None:
    """A common pair or nothing, as the published runner does."""
    run = read_upstream(write(tmp_path, success("a", True, False), success("b", True, False, answer_temperature=None)))

    assert (run.answer_temperature, run.judge_temperature) == (None, None)


def test_score_that_its_decisions_do_not_give_is_said(tmp_path: Path) -> None:
    """The recomputed score counts; (2 - 1) / 2 = 0.5 is not 0.9."""
    run = read_upstream(write(tmp_path, success("a", True, True, score=0.9), success("b", True, True, score=0.5)))
    summary = summarise(run, samples=5, software={})

    assert "line 1: its own score 0.9 is not the 0.5 of its decisions" in run.notices
    assert summary["overall_macro_mean"] == 0.5


def test_scores_of_the_older_revision_are_recognised(tmp_path: Path) -> None:
    """A -3 matched: F1 = 2 x 72 / (72 + 144) = 0.6667 without the veto, 0 with it."""
    plan = {"benchmark": PLAN, "grading_method": "f1_weighted_rubric"}
    run = read_upstream(write(tmp_path, success("a", True, True, points=(3, -3), score=0.0, **plan)))

    assert "1 row scored with the severe veto: dialect upstream-veto gives the file's own scores" in run.notices


def test_many_wrong_scores_are_listed_up_to_ten(tmp_path: Path) -> None:
    """Ten lines say enough; the rest is counted."""
    run = read_upstream(write(tmp_path, *(success(f"c{i}", True, True, score=0.1) for i in range(12))))

    assert sum(notice.startswith("line ") for notice in run.notices) == 10
    assert "2 more rows whose own score is not that of their decisions" in run.notices


def test_mirror_gives_order_selection_and_pending_cases(tmp_path: Path) -> None:
    """Cases in dataset order; rows of other cases left out and counted; cases without a row pending."""
    run = read_upstream(write(tmp_path, success("other", True, True), success("m2", True, False)), cases=MIRROR)

    assert [(case.case_id, case.state) for case in run.cases] == [
        ("m2", "graded"),
        ("m1", "pending"),
        ("m3", "pending"),
    ]
    assert "1 row of cases that are not selected: left out" in run.notices


def test_minimal_lines_take_points_and_order_from_the_mirror(tmp_path: Path) -> None:
    """{case_id, answer, matched} and nothing else; 2 of 2 points and -1 hit is 0.5."""
    file = write(tmp_path, minimal("m2", {"q_1": True, "q_0": True}), minimal("m3", {"s_0": True, "s_1": False}))
    run = read_upstream(file, cases=MIRROR, dataset_sha256="d", content_sha256="c", data={"n_cases": 3})
    summary = summarise(run, samples=5, software={})

    assert (run.cases[0].matched, run.cases[2].matched) == ((True, True), (True, False))
    assert summary["overall_macro_mean"] == 0.75
    assert (summary["n_pending"], summary["dataset_sha256"], summary["data"]["n_cases"]) == (1, "d", 3)
    assert "the file states no protocol: taken as bedside-bench-grading-v1" in run.notices


@pytest.mark.parametrize(
    ("matched", "message"),
    [
        ({"q_0": True}, r'missing \["q_1"\], not its own \[\]'),
        ({"q_0": True, "q_1": False, "x": True}, r'missing \[\], not its own \["x"\]'),
        ({"q_0": True, "q_1": None}, r"matched\['q_1'\]: expected true or false, found null"),
        ([True, False], r"matched: expected an object of item_id: true or false"),
    ],
    ids=["missing", "extra", "null", "list"],
)
def test_minimal_line_with_incomplete_decisions_is_refused(tmp_path: Path, matched: Any, message: str) -> None:
    """Exactly one boolean an item."""
    with pytest.raises(BadInput, match=message):
        read_upstream(write(tmp_path, minimal("m2", matched)), cases=MIRROR)


def test_minimal_lines_need_the_mirror(tmp_path: Path) -> None:
    """They hold no points."""
    with pytest.raises(BadInput, match=r":1: a line with matched holds no points: name the mirror .*--data"):
        read_upstream(write(tmp_path, minimal("m2", {"q_0": True, "q_1": True})))


def test_rows_are_checked_against_the_mirror(tmp_path: Path) -> None:
    """Another rubric is another case: its panel, its items, its points."""
    for row, message in [
        (success("m2", True, points=(2,)), r'missing \["q_1"\]'),
        (success("m2", True, True, points=(1, -1)), "its points differ from the mirror's"),
        (success("m2", True, True, benchmark=PLAN), "case m2: expected drug_safety, points_rubric, found safety_diagn"),
    ]:
        with pytest.raises(BadInput, match=message):
            read_upstream(write(tmp_path, row), cases=MIRROR)


def test_rows_with_local_item_ids_fit_the_mirror(tmp_path: Path) -> None:
    """The older revision numbers items within the case; decisions may come in any order."""
    row = success("m2", True, True)
    row["decisions"] = [
        {"item_id": "item_1", "points": -1, "matched": False},
        {"item_id": "item_0", "points": 2, "matched": True},
    ]
    case = read_upstream(write(tmp_path, row), cases=MIRROR).cases[0]

    assert (case.item_ids, case.matched) == (("q_0", "q_1"), (True, False))


def test_file_without_rows_or_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """One clear line; with a mirror an empty file is a run of which nothing is done."""
    with pytest.raises(BadInput, match="expected result rows, found none"):
        read_upstream(write(tmp_path))
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        read_upstream(tmp_path / "none.jsonl")
    assert [case.state for case in read_upstream(write(tmp_path), cases=MIRROR).cases] == ["pending"] * 3
