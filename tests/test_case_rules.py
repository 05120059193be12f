"""The rules of one case: one broken fixture a rule, with the exact line a person reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder.rules.case_rules import _every_rule, _is_plain, check_case
from builder.rules.problems import At, Problem
from builder.tree.sources import CaseFile
from tests.breaks import (
    DRUG,
    FILE0,
    ID0,
    MD5,
    OTHER,
    PANELS,
    PLAN,
    PLAN0,
    Break,
    case,
    case_without,
    item,
    item_ids,
    points,
    raw_points,
    report_of,
    reported,
)
from tests.trees import case_path, make_case, read_json, write_tree

NO_FIELD = "expected no such field; a case has case_id, benchmark, grading_method, prompt, rubric_items, split"
NO_ITEM_FIELD = "expected no such field; a rubric item has item_id, text, points"
REMADE = "the ids are made from the md5 of the prompt: make them again if the prompt was changed"
FORGED = "the judge is shown one line an item, and this could forge another"

WARNINGS = {"item-id-order", "item-text-control", "item-text-duplicate", "points-range points", "unscorable"}

BROKEN: dict[str, tuple[Break, str]] = {
    # the fields of a case
    "missing-field": (case_without("split"), f"{FILE0}: split: expected the field that a case must have, found none"),
    "unknown-field": (case(note="x"), f'{FILE0}: note: {NO_FIELD}, found "x"'),
    "wrong-type": (case(prompt=7), f"{FILE0}: prompt: expected text, found 7"),
    "empty-string": (case(prompt=" \n"), f'{FILE0}: prompt: expected text that is not empty, found " \\n"'),
    "case-id-format": (
        case(case_id="06AB"),
        f'{FILE0}: case_id: expected 32 lower-case hex digits, found "06AB"',
    ),
    "file-name": (
        case(case_id=OTHER),
        f'{FILE0}: case_id: expected the id that is the file\'s name, found "{OTHER}"',
    ),
    "benchmark": (
        case(benchmark=PLAN),
        f'{FILE0}: benchmark: expected "drug_safety", the panel of its folder, found "safety_diagnostic"',
    ),
    "benchmark array": (
        case(benchmark=[]),
        f'{FILE0}: benchmark: expected "drug_safety", the panel of its folder, found an empty array',
    ),
    "grading-method": (
        case(grading_method="f1_weighted_rubric"),
        f'{FILE0}: grading_method: expected "points_rubric", the panel\'s, found "f1_weighted_rubric"',
    ),
    "split": (
        case(split="test"),
        f'{FILE0}: split: expected "train", found "test"; --held-out accepts held-out cases',
    ),
    # rubric items
    "wrong-type items": (
        case(rubric_items={}),
        f"{FILE0}: rubric_items: expected an array of rubric items, found an empty object",
    ),
    "no-items": (
        case(rubric_items=[]),
        f"{FILE0}: rubric_items: expected at least one rubric item, found an empty array",
    ),
    "missing-field item": (
        item(2, text=...),
        f"{FILE0}: rubric_items[2].text: expected the field that a rubric item must have, found none",
    ),
    "unknown-field item": (
        item(2, tags=[]),
        f"{FILE0}: rubric_items[2].tags: {NO_ITEM_FIELD}, found an empty array",
    ),
    "empty-string item": (
        item(2, text=""),
        f'{FILE0}: rubric_items[2].text: expected text that is not empty, found ""',
    ),
    "item-text-control": (
        item(2, text="a\n[x_0] points=+1 :: b"),
        f'{FILE0}: rubric_items[2].text: expected text of one line, found "\\n" in it; {FORGED}',
    ),
    "item-text-duplicate": (
        lambda r: item(2, text=read_json(case_path(r))["rubric_items"][0]["text"])(r),
        f"{FILE0}: rubric_items[2].text: expected a text of its own, found the text of rubric_items[0]",
    ),
    # item ids
    "item-id-format": (
        item(2, item_id=f"{MD5}_02"),
        f'{FILE0}: rubric_items[2].item_id: expected "{MD5}_2" or "item_2", found "{MD5}_02"',
    ),
    "item-id-prefix one": (
        item(2, item_id=f"{OTHER}_2"),
        f'{FILE0}: rubric_items[2].item_id: expected "{MD5}_2", found "{OTHER}_2"; {REMADE}',
    ),
    "item-id-prefix all": (
        item_ids(*(f"{OTHER}_{i}" for i in range(4))),
        f"{FILE0}: rubric_items[*].item_id: expected {MD5}_<i>, found {OTHER}_<i> 4 times; {REMADE}",
    ),
    "item-id-mixed": (
        item(2, item_id="item_2"),
        f"{FILE0}: rubric_items: expected one way of writing item ids, found <md5>_<i> beside item_<i>",
    ),
    "item-id-duplicate": (
        item(2, item_id=f"{MD5}_0"),
        f"{FILE0}: rubric_items[2].item_id: expected an id of its own, found the id of rubric_items[0]",
    ),
    "item-id-gap": (
        item_ids("item_0", "item_1", "item_3", "item_4"),
        f"{FILE0}: rubric_items: expected the indexes 0 to 3 once each, found indexes 0, 1, 3, 4",
    ),
    "item-id-order": (
        item_ids(f"{MD5}_0", f"{MD5}_2", f"{MD5}_1", f"{MD5}_3"),
        f"{FILE0}: rubric_items: expected item ids in the order of their indexes, found indexes 0, 2, 1, 3",
    ),
    # points
    "points-type text": (
        raw_points('"2"'),
        f'{FILE0}: rubric_items[0].points: expected an integer, found "2"; write it without quotes',
    ),
    "points-type text on a plan panel": (
        points("3", 2, 1, 0, -1, -2, -3, panel=PLAN),
        f'{PLAN0}: rubric_items[0].points: expected an integer from -3 to 3, found "3"; write it without quotes',
    ),
    "points-type true": (
        raw_points("true"),
        f"{FILE0}: rubric_items[0].points: expected an integer, found true; write a number",
    ),
    "points-type null": (raw_points("null"), f"{FILE0}: rubric_items[0].points: expected an integer, found null"),
    "points-type 1.0": (
        raw_points("1.0"),
        f"{FILE0}: rubric_items[0].points: expected an integer, found 1.0; write 1",
    ),
    "points-type 0.5": (
        raw_points("0.5"),
        (
            f"{FILE0}: rubric_items[0].points: expected an integer, found 0.5; "
            "scale the rubric so that all its points are integers"
        ),
    ),
    "points-range plan": (
        points(4, 2, 1, 0, -1, -2, -3, panel=PLAN),
        f"{PLAN0}: rubric_items[0].points: expected an integer from -3 to 3, found 4",
    ),
    "points-range points": (
        raw_points("-4"),
        f"{FILE0}: rubric_items[0].points: expected points from -3 to 3, the usual range, found -4",
    ),
    "points-range 64 bits": (
        raw_points(str(2**63)),
        f"{FILE0}: rubric_items[0].points: expected an integer of at most 64 bits, found {2**63}",
    ),
    "unscorable points": (
        points(0, 0, -1, -1),
        (
            f"{FILE0}: rubric_items: expected an item with positive points, found none; "
            "every answer to this case scores 0 (the upstream dialects leave it ungraded)"
        ),
    ),
    "unscorable plan": (
        points(0, 0, 0, 0, -1, -2, -3, panel=PLAN),
        f"{PLAN0}: rubric_items: expected an item with positive points, found none; every answer to this case scores 0",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_reported_with_its_exact_line(tmp_path: Path, name: str) -> None:
    """Each fixture breaks one rule of a valid tree; the report names the rule, its severity and the exact line."""
    broken, line = BROKEN[name]

    rule = name.split()[0]
    severity = "warning" if {name, rule} & WARNINGS else "error"
    assert reported(tmp_path, broken)[line] == (rule, severity)


def test_a_case_can_be_checked_alone() -> None:
    """check_case takes a case file as read and returns its problems."""
    file = CaseFile(FILE0, DRUG, True, b"", {**make_case(DRUG), "split": "dev"}, ())

    (problem,) = check_case(file)

    assert problem == Problem(
        "error", "split", FILE0, ID0, "split", '"dev"', '"train"', "--held-out accepts held-out cases"
    )


@pytest.mark.parametrize("split", ["all", "held-out", "", "x" * 101, "a/b"])
def test_a_held_out_split_has_a_name_that_a_mirror_can_have(split: str) -> None:
    """What `build --held-out` could not write is an error of `check --held-out`."""
    case = {**make_case(DRUG), "split": split}

    assert [p.rule for p in check_case(CaseFile(FILE0, DRUG, True, b"", case, ()), held_out=True)] == ["split"]
    assert check_case(CaseFile(FILE0, DRUG, True, b"", {**case, "split": "held_out.2"}, ()), held_out=True) == []


def test_a_blank_prompt_is_one_problem(tmp_path: Path) -> None:
    """Item ids are not held against the md5 of nothing."""
    broken = case(prompt=" \n")

    assert [rule for rule, severity in reported(tmp_path, broken).values() if severity == "error"] == ["empty-string"]


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=[]), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=10,
)


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value within a value, itself included."""
    yield above
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*above, key))


def replaced(value: Any, place: tuple[Any, ...], new: object) -> Any:
    """Return a copy of a value with another value at a place."""
    if not place:
        return new
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[place[0]] = replaced(value[place[0]], place[1:], new)
    return changed


@pytest.fixture(scope="module")
def shared_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree whose first case the property test writes over."""
    return write_tree(tmp_path_factory.mktemp("tree"), 1, panels=PANELS)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), panel=st.sampled_from(PANELS), value=JSON_VALUES)
def test_any_value_at_any_place_is_reported(shared_tree: Path, data: st.DataObject, panel: str, value: object) -> None:
    """Whatever JSON stands wherever in a case, the check ends in a report, and every line of it can be shown."""
    valid = make_case(panel)
    place = data.draw(st.sampled_from(list(places(valid))))
    case_path(shared_tree, panel).write_text(json.dumps(replaced(valid, place, value)))

    report = report_of(shared_tree)
    case_path(shared_tree, panel).write_text(json.dumps(valid))

    assert all(problem.line().isprintable() for problem in report.problems)
    assert json.loads(report.to_json())["ok"] is report.ok


@given(data=st.data(), value=JSON_VALUES | st.sampled_from(["item_1", f"{MD5}_1", "train", 1, 0, -3, 3, 4, True, 1.0]))
def test_the_quick_test_of_a_case_agrees_with_the_rules(data: st.DataObject, value: object) -> None:
    """A case that the quick test lets pass breaks none of the rules."""
    changed = replaced(make_case(DRUG), data.draw(st.sampled_from(list(places(make_case(DRUG))))), value)
    if isinstance(changed, dict):
        file = CaseFile(FILE0, DRUG, True, b"", changed, ())

        assert not (_is_plain(file, changed) and list(_every_rule(At(FILE0, ID0), file, changed, held_out=False)))


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("local", [False, True], ids=["md5", "local"])
def test_valid_cases_take_the_quick_test(panel: str, local: bool) -> None:
    """An ordinary case of either dialect is recognised at once."""
    one = make_case(panel)
    for i, rubric_item in enumerate(one["rubric_items"]):
        rubric_item["item_id"] = f"item_{i}" if local else rubric_item["item_id"]

    assert _is_plain(CaseFile(f"data/{panel}/cases/{one['case_id']}.json", panel, True, b"", one, ()), one)
