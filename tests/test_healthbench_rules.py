"""Every rule of a line, each with one line that breaks it and the exact message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builder.healthbench.check import check_examples
from builder.healthbench.source import open_examples
from builder.rules.problems import Report
from tests.examples import make_criterion, make_example, make_ideal, make_meta, make_professional, write_jsonl

USER = {"role": "user", "content": "Well?"}
LONG = 2**53 + 1


def report_of(folder: Path, *lines: object, name: str = "oss_eval.jsonl") -> Report:
    """Return the report of a file of these lines."""
    return check_examples(open_examples(write_jsonl(folder / name, lines)), license_id="mit")


def messages(folder: Path, *lines: object, name: str = "oss_eval.jsonl") -> list[str]:
    """Return the problems of a file of these lines: errors with their place, warnings with a W before it."""
    report = report_of(folder, *lines, name=name)
    return [f"{'W ' if one.severity == 'warning' else ''}{one.line()}" for one in report.problems]


@pytest.mark.parametrize("make", [make_example, make_professional, make_meta])
def test_a_file_that_keeps_all_rules_has_no_problem(tmp_path: Path, make: Any) -> None:
    """Nothing is found in valid examples of any shape."""
    assert [] == messages(tmp_path, *map(make, range(6)))


def criteria(**changes: Any) -> dict[str, Any]:
    """Return an example whose third criterion has other members."""
    return make_example(rubrics=[*(make_criterion(0, i) for i in (0, 1)), make_criterion(0, 2, **changes)])


def ideal(**changes: Any) -> dict[str, Any]:
    """Return an example whose ideal completions have other members."""
    return make_example(ideal_completions_data={**make_ideal(), **changes})


CORE: list[tuple[dict[str, Any], str]] = [
    (make_example(prompt_id=...), "prompt_id: expected the member that it must have, found none"),
    (make_example(prompt_id=7), "prompt_id: expected text, found 7"),
    (make_example(prompt_id=" "), 'prompt_id: expected text that is not empty, found " "'),
    (make_example(prompt_id="a\u200eb"), 'prompt_id: expected an id of characters that print, found "a\\u200eb"'),
    (make_example(prompt="Hi"), 'prompt: expected an array of turns, found "Hi"'),
    (make_example(prompt=[]), "prompt: expected at least one turn, found an empty array"),
    (make_example(prompt=["Hi", USER]), 'prompt[0]: expected an object with role and content, found "Hi"'),
    (make_example(prompt=[{"role": "user"}]), "prompt[0].content: expected the member that it must have, found none"),
    (
        make_example(prompt=[{"role": "tool", "content": "x"}, USER]),
        'prompt[0].role: expected one of system, developer, user, assistant, found "tool"',
    ),
    (make_example(prompt=[{"role": "user", "content": None}]), "prompt[0].content: expected text, found null"),
    (
        make_example(prompt=[{"role": "user", "content": ""}]),
        'prompt[0].content: expected text that is not empty, found ""',
    ),
    (
        make_example(prompt=[USER, {"role": "assistant", "content": "Yes."}]),
        'prompt[1].role: expected "user", as last turn, found "assistant"',
    ),
    (make_example(rubrics={}), "rubrics: expected an array of rubric items, found an empty object"),
    (make_example(rubrics=[]), "rubrics: expected at least one rubric item, found an empty array"),
    (
        make_example(rubrics=[make_criterion(), 5]),
        "rubrics[1]: expected an object with criterion, points, tags, found 5",
    ),
    (criteria(points=...), "rubrics[2].points: expected the member that it must have, found none"),
    (criteria(points="3"), 'rubrics[2].points: expected a number, found "3"; write it without quotes'),
    (criteria(points=True), "rubrics[2].points: expected a number, found true"),
    (criteria(points=None), "rubrics[2].points: expected a number, found null"),
    (
        criteria(points=LONG),
        (
            "rubrics[2].points: expected a number of at most 2^53 in size: a mirror gives no larger one back, "
            "found 9007199254740993"
        ),
    ),
    (criteria(criterion=" "), 'rubrics[2].criterion: expected text that is not empty, found " "'),
    (criteria(criterion=["x"]), "rubrics[2].criterion: expected text, found an array of 1"),
    (criteria(tags=None), "rubrics[2].tags: expected an array of tags, found null"),
    (
        criteria(tags=["axis:accuracy", "level:example", "axis:accuracy"]),
        'rubrics[2].tags[2]: expected a tag once, found "axis:accuracy", as rubrics[2].tags[0]',
    ),
    (criteria(tags=["axis:accuracy", "level:example", 3]), "rubrics[2].tags[2]: expected text, found 3"),
    (make_example(example_tags="theme:x"), 'example_tags: expected an array of tags, found "theme:x"'),
    (
        make_example(example_tags=["theme:x", "a", "a"]),
        'example_tags[2]: expected a tag once, found "a", as example_tags[1]',
    ),
    (
        make_example(ideal_completions_data="x"),
        (
            "ideal_completions_data: expected null or an object of ideal_completion, ideal_completions_group, "
            'ideal_completions_ref_completions, found "x"'
        ),
    ),
    (ideal(ideal_completion=1), "ideal_completions_data.ideal_completion: expected text or null, found 1"),
    (
        ideal(ideal_completions_ref_completions=[None]),
        "ideal_completions_data.ideal_completions_ref_completions[0]: expected text, found null",
    ),
    (make_example(canary=1), "canary: expected text or null, found 1"),
    (
        make_example(canary_string="other"),
        'canary_string: expected the value of canary, or only one of them, found "other"',
    ),
]


@pytest.mark.parametrize(("example", "expected"), CORE, ids=[message[:60] for _, message in CORE])
def test_each_rule_of_a_core_example(tmp_path: Path, example: dict[str, Any], expected: str) -> None:
    """A broken example is one error, with its line and the place in it."""
    found = [line for line in messages(tmp_path, make_example(1), example) if not line.startswith("W ")]

    assert [f"oss_eval.jsonl:2: {expected}"] == found


COUNTED: list[tuple[dict[str, Any], str]] = [
    (
        criteria(points=0),
        "rubrics[*].points: expected points other than 0, found 0 (line 2); such an item never changes a score",
    ),
    (
        criteria(points=5.0),
        (
            "rubrics[*].points: expected points in the form in which they print, found 5.0 (line 2); the mirror gives "
            "back 5, and a grader is shown that"
        ),
    ),
    (
        criteria(tags=["level:example"]),
        "rubrics[*].tags: expected exactly one axis: tag, found none (line 2)",
    ),
    (
        criteria(tags=["axis:accuracy", "level:example", "level:cluster"]),
        "rubrics[*].tags: expected exactly one level: tag, found 2 of them (line 2)",
    ),
    (make_example(example_tags=[]), "example_tags: expected exactly one theme: tag, found none (line 2)"),
    (
        ideal(ideal_completions_group="Group 4"),
        (
            "ideal_completions_data.ideal_completions_group: expected one of Group 1, Group 2, Group 3, found "
            '"Group 4" (line 2)'
        ),
    ),
    (
        make_example(prompt=[{"role": "assistant", "content": " "}, USER]),
        'prompt[*].content: expected text that is not white space alone, found " " (line 2)',
    ),
    (make_example(source="x"), 'source: expected no such member, found "x" (line 2); a mirror leaves it out'),
    (criteria(weight=1), "rubrics[*].weight: expected no such member, found 1 (line 2); a mirror leaves it out"),
]


@pytest.mark.parametrize(("example", "expected"), COUNTED, ids=[message[:60] for _, message in COUNTED])
def test_each_counted_warning(tmp_path: Path, example: dict[str, Any], expected: str) -> None:
    """What a run can bear is a warning of the file, with the line where it was met."""
    assert [f"W oss_eval.jsonl: {expected}"] == messages(tmp_path, make_example(1), example)


def test_a_warning_met_often_is_one_with_its_count(tmp_path: Path) -> None:
    """Three examples with 5.0 points and an unknown member give two warnings, not six."""
    lines = [make_example(n, rubrics=[make_criterion(n, 0, points=5.0)], n=n) for n in range(3)]

    assert [
        "W oss_eval.jsonl: n: expected no such member, found 0 (3 such, the first in line 1); a mirror leaves it out",
        (
            "W oss_eval.jsonl: rubrics[*].points: expected points in the form in which they print, found 5.0 (3 such, "
            "the first in line 1); the mirror gives back 5, and a grader is shown that"
        ),
    ] == messages(tmp_path, *lines)


def with_points(literal: str) -> bytes:
    """Return the line of an example whose second criterion has points written so."""
    example = make_example(rubrics=[make_criterion(), make_criterion(0, 1, points="@")])
    return json.dumps(example).replace('"@"', literal).encode()


@pytest.mark.parametrize(
    ("literal", "printed"),
    [("5.0", "5"), ("1e1", "10"), ("2.50", "2.5"), ("-0", "0"), ("-0.0", "0"), ("1E-6", "1e-06"), ("0.10", "0.1")],
)
def test_points_whose_form_is_not_kept_are_named_as_written(tmp_path: Path, literal: str, printed: str) -> None:
    """The warning quotes the number as the file has it, and says what the mirror gives back."""
    found = "\n".join(messages(tmp_path, with_points(literal)))

    assert f"found {literal} (line 1); the mirror gives back {printed}," in found


@pytest.mark.parametrize("literal", ["5", "-7", "2.5", "0.1", "1e-06", "9007199254740992"])
def test_points_in_the_form_in_which_they_print_are_fine(tmp_path: Path, literal: str) -> None:
    """Integers and the shortest form of other numbers come back as they are."""
    assert [] == messages(tmp_path, with_points(literal))


def test_an_example_that_no_answer_can_score_is_a_warning(tmp_path: Path) -> None:
    """Without positive points there is nothing to divide by."""
    line = make_example(rubrics=[make_criterion(0, 3), make_criterion(0, 1, points=-2.5)])

    assert [
        (
            "W oss_eval.jsonl:1: rubrics: expected an item with positive points, found none; no answer to this example "
            "has a score: it is ungraded in every run"
        )
    ] == messages(tmp_path, line)


PROFESSIONAL: list[tuple[dict[str, Any], str]] = [
    (make_professional(id=""), 'x.jsonl:1: id: expected text that is not empty, found ""'),
    (
        make_professional(conversation={"turns": []}),
        "x.jsonl:1: conversation.messages: expected the member that it must have, found none",
    ),
    (
        make_professional(conversation=[{"role": "user", "content": 1}]),
        "x.jsonl:1: conversation[0].content: expected text, found 1",
    ),
    (
        make_professional(rubric_items=[{"criterion_text": "x"}]),
        "x.jsonl:1: rubric_items[0].points: expected the member that it must have, found none",
    ),
    (make_professional(specialty=["a"]), "x.jsonl:1: specialty: expected text or null, found an array of 1"),
]


@pytest.mark.parametrize(("example", "expected"), PROFESSIONAL, ids=[message[11:60] for _, message in PROFESSIONAL])
def test_each_rule_of_a_professional_example(tmp_path: Path, example: dict[str, Any], expected: str) -> None:
    """The same rules hold in the other shape, under its own names."""
    found = [line for line in messages(tmp_path, example, name="x.jsonl") if not line.startswith("W ")]

    assert [expected] == found


def test_a_bare_conversation_and_missing_facts_are_taken(tmp_path: Path) -> None:
    """A list of turns without the object around it is fine; a missing fact is a warning, a null one is none."""
    lines = [make_professional(0, conversation=[USER], specialty=None), make_professional(1, use_case=...)]

    assert [
        "W x.jsonl: use_case: expected text or null, found none (line 2); the mirror has null there, and no tag of it"
    ] == messages(tmp_path, *lines, name="x.jsonl")


META: list[tuple[dict[str, Any], str]] = [
    (make_meta(completion=1), "completion: expected text, found 1"),
    (make_meta(rubric=""), 'rubric: expected text that is not empty, found ""'),
    (make_meta(category=None), "category: expected text, found null"),
    (make_meta(completion_id=...), "completion_id: expected the member that it must have, found none"),
    (make_meta(binary_labels="yes"), 'binary_labels: expected an array, found "yes"'),
    (make_meta(binary_labels=[True, 1]), "binary_labels[1]: expected true or false, found 1"),
    (
        make_meta(binary_labels=[True]),
        "anonymized_physician_ids: expected 1 ids, one a label, found an array of 2",
    ),
    (
        make_meta(binary_labels=[], anonymized_physician_ids=[]),
        "binary_labels: expected at least one physician's label, found an empty array",
    ),
    (
        make_meta(anonymized_physician_ids=["a", True]),
        "anonymized_physician_ids[1]: expected text or an integer, found true",
    ),
]


@pytest.mark.parametrize(("record", "expected"), META, ids=[message[:60] for _, message in META])
def test_each_rule_of_a_meta_record(tmp_path: Path, record: dict[str, Any], expected: str) -> None:
    """Labels are true or false, as many as physicians, and at least one."""
    assert [f"x.jsonl:1: {expected}"] == messages(tmp_path, record, name="x.jsonl")


def test_a_physician_twice_and_a_record_twice_are_warnings(tmp_path: Path) -> None:
    """Both are kept, as the file says so, but not in silence; an integer id is the text it prints as."""
    lines = [make_meta(0), make_meta(2, anonymized_physician_ids=[7, "7"]), make_meta(0)]

    assert [
        'W x.jsonl: anonymized_physician_ids: expected a physician once a record, found "7" 2 times (line 2)',
        (
            "W x.jsonl: expected a record of its own, found the prompt, completion, category and rubric of line 1 "
            "(line 3); it is kept, with an id that ends with its number"
        ),
    ] == messages(tmp_path, *lines, name="x.jsonl")


def test_points_too_small_to_divide_by_are_refused(tmp_path: Path) -> None:
    """5,000 points lost over 1e-305 to earn is a number that no score can be."""
    line = make_example(0, rubrics=[make_criterion(0, 0, points=1e-305), make_criterion(0, 1, points=-5000)])
    report = check_examples(open_examples(write_jsonl(tmp_path / "oss_eval.jsonl", [line])))

    assert ["points-range"] == [problem.rule for problem in report.problems if problem.severity == "error"]
