"""Whose answers a HealthBench run grades: a model's, several of them, a file's, a physician's; what does not fit."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from builder.errors import BadInput
from eval.calls.journal import read_journal
from eval.numbers.readers import read_run
from eval.numbers.summary import summarise
from tests.examples import example_id_of, make_criterion, make_example, make_ideal, make_meta
from tests.gradings import decisions_of, example_mirror, grading_plan, write_answers
from tests.llm_server import LlmServer
from tests.plans import run

FIRST = example_id_of(0)


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror of three examples with four items each; the first and the last hold completions."""
    return example_mirror(tmp_path_factory.mktemp("answers"), map(make_example, range(3)))


def roles(server: LlmServer) -> Counter[str]:
    """Return how often the server was asked, by role."""
    return Counter(seen["role"] for seen in server.requests)


def test_several_answers_to_an_example_are_nested_in_it(mirror: Path, tmp_path: Path) -> None:
    """--answer-repeats 3: 9 answers, 36 grades, and still three examples in the mean; runs and worst-at-k beside."""
    with LlmServer() as server:
        run(grading_plan(mirror, server.url, answer_repeats=3), tmp_path / "x.jsonl")
        asked = roles(server)
    summary = summarise(read_run(tmp_path / "x.jsonl"), software={})
    repeats = summary["healthbench"]["repeats"]

    assert {"answer": 9, "grader": 36} == dict(asked)
    assert (3, 3) == (summary["n_graded"], summary["healthbench"]["overall"]["n"])
    assert (3, ["1", "2", "3"]) == (len(repeats["runs"]), list(repeats["worst_at_k"]))
    assert 3 == read_journal(tmp_path / "x.jsonl").identity["answer_repeats"]


def test_a_physicians_completion_is_graded_in_a_models_place(mirror: Path, tmp_path: Path) -> None:
    """--answers physician: examples that have one, no answer call, and the run says whose answers they are."""
    with LlmServer() as server:
        run(grading_plan(mirror, server.url, answers="physician"), tmp_path / "x.jsonl")
        asked = roles(server)
    journal = read_journal(tmp_path / "x.jsonl")

    assert {"grader": 8} == dict(asked)
    assert [make_ideal(n)["ideal_completion"] for n in (0, 2)] == [
        call.text for call in journal.calls if call.role == "answer"
    ]
    assert ("data", "physician") == (journal.identity["answer"]["source"], journal.identity["selection"]["completions"])


def test_reference_completions_are_several_answers(mirror: Path, tmp_path: Path) -> None:
    """--answers reference: four an example, nested."""
    run(grading_plan(mirror, answers="reference"), tmp_path / "x.jsonl")
    summary = summarise(read_run(tmp_path / "x.jsonl"), software={})

    assert (2, 4) == (summary["n_graded"], len(summary["healthbench"]["repeats"]["runs"]))


def test_a_group_of_physicians_can_be_chosen(tmp_path: Path) -> None:
    """--group takes its examples alone; another group is refused with those that there are."""
    lines = [make_example(n, ideal_completions_data=make_ideal(n, f"Group {n % 2}")) for n in range(4)]
    mirror = example_mirror(tmp_path, lines)
    plan = grading_plan(mirror, answers="physician", groups=("Group 1",))

    assert [example_id_of(1), example_id_of(3)] == [case.case_id for case in plan.cases]
    assert ["Group 1"] == plan.identity()["selection"]["groups"]
    with pytest.raises(BadInput, match=r"--group Group 7: expected one of the groups of this dataset \(Group 0, Group"):
        grading_plan(mirror, answers="physician", groups=("Group 7",))


def test_a_file_of_answers_is_graded(mirror: Path, tmp_path: Path) -> None:
    """Every example keeps its place: one without an answer is ungraded, not left out."""
    texts = {FIRST: make_criterion(0, 0)["criterion"], example_id_of(2): "Nothing."}
    run(grading_plan(mirror, answers=write_answers(tmp_path / "a.jsonl", texts)), tmp_path / "x.jsonl")
    states = [(case.state, case.failed_state) for case in read_run(tmp_path / "x.jsonl").cases]

    assert [("graded", None), ("failed", "missing"), ("graded", None)] == states
    assert (True, False, False, False) == decisions_of(tmp_path / "x.jsonl")[0]


def uneven() -> list[dict[str, Any]]:
    """Return examples with four reference completions and with two."""
    few = make_ideal(0) | {"ideal_completions_ref_completions": ["A", "B"]}
    return [make_example(0, ideal_completions_data=few), make_example(2)]


REFUSED: dict[str, tuple[list[dict[str, Any]], str, dict[str, Any], str]] = {
    "uneven references": (uneven(), "healthbench", {"answers": "reference"}, "as many in every case, found 2 to 4"),
    "no completions": (
        [make_example(1)],
        "healthbench",
        {"answers": "physician"},
        "--answers physician: expected completions of that kind in the data, found none",
    ),
    "not given": ([make_example(0)], "healthbench", {"answers": "given"}, "found only physician and reference"),
    "another config": (
        [make_example(0)],
        "healthbench_hard",
        {"config": "healthbench"},
        "--config healthbench: expected healthbench_hard",
    ),
    "a model on meta data": ([make_meta()], "healthbench_meta", {}, "grade these: --answers given"),
    "names of items": ([make_example(0)], "healthbench", {"id_style": "short"}, "--id-style: expected BedsideBench"),
    "a panel": ([make_example(0)], "healthbench", {"panels": ("drug_safety",)}, "--panel drug_safety: expected one"),
    "repeats of given answers": (
        [make_example(0)],
        "healthbench",
        {"answers": "physician", "answer_repeats": 2},
        "--answer-repeats: expected an answer model",
    ),
}


@pytest.mark.parametrize(("lines", "config", "choices", "message"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_the_data_is_refused(
    tmp_path: Path, lines: list[dict[str, Any]], config: str, choices: dict[str, Any], message: str
) -> None:
    """Before anything is asked, with the option that is at fault."""
    mirror = example_mirror(tmp_path, lines, config=config)

    with pytest.raises(BadInput) as refused:
        grading_plan(mirror, **choices)
    assert message in str(refused.value)


def test_the_config_that_a_mirror_holds_is_accepted(tmp_path: Path) -> None:
    """--config names what MIRROR must be, and changes nothing where it is."""
    mirror = example_mirror(tmp_path, [make_example()], config="healthbench_consensus")

    assert grading_plan(mirror).identity() == grading_plan(mirror, config="healthbench_consensus").identity()


def test_a_meta_run_keeps_labels_and_no_points(tmp_path: Path) -> None:
    """--answers given: one grade a record; the line holds null for points and what the physicians said."""
    mirror = example_mirror(tmp_path, map(make_meta, range(2)), config="healthbench_meta")
    run(grading_plan(mirror, answers="given"), tmp_path / "x.jsonl")
    lines = map(json.loads, (tmp_path / "x.jsonl").read_text().splitlines())
    first, second = (line for line in lines if line["kind"] == "case")

    assert [[f"{first['case_id']}_0", None, ["cluster:hedging_hedges"]]] == first["items"]
    assert [["ph-1", False], ["ph-2", True]] == first["labels"]
    assert 3 == len(second["labels"])
    assert [(False,), (False,)] == decisions_of(tmp_path / "x.jsonl")
