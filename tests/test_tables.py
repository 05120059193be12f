"""Cases become Arrow rows of one fixed schema, and come back exactly."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedside_bench import F1_WEIGHTED_RUBRIC, PANELS_BY_ID, Case, row_to_case, rubric_rows
from builder.dataset.tables import (
    CASE_SCHEMA,
    LONG_CASES,
    RUBRIC_SCHEMA,
    CaseTables,
    batch_cases,
    case_batch,
    count_items,
    rows_at_once,
    rubric_table,
)
from builder.errors import BadInput
from tests.trees import make_case

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a case of any panel whose texts are any Unicode and whose points are all its method allows."""
    panel = PANELS_BY_ID[draw(st.sampled_from(["health_equity", "safety_diagnostic"]))]
    top = 3 if panel.grading_method == F1_WEIGHTED_RUBRIC else 2**63 - 1
    items = st.fixed_dictionaries({"item_id": TEXT, "text": TEXT, "points": st.integers(-top, top)})
    return {
        "case_id": draw(TEXT),
        "benchmark": panel.id,
        "grading_method": panel.grading_method,
        "prompt": draw(TEXT),
        "rubric_items": draw(st.lists(items, max_size=4)),
        "split": "train",
    }


def with_points(points: Any) -> Case:
    """Return a case whose second item has these points."""
    case = make_case()
    case["rubric_items"][1]["points"] = points
    return case


@given(st.lists(cases(), min_size=1, max_size=5))
@settings(deadline=None)
def test_rows_give_the_cases_back_exactly(given_cases: list[Case]) -> None:
    """Any case survives the way into Arrow and back, with the same values of the same types."""
    batch = case_batch(given_cases)

    assert given_cases == batch_cases(batch, "train")
    assert given_cases == [row_to_case(row) for row in batch.to_pylist()]
    assert {int} >= {type(item["points"]) for case in batch_cases(batch, "train") for item in case["rubric_items"]}


@given(st.lists(cases(), min_size=1, max_size=5))
@settings(deadline=None)
def test_the_long_table_holds_the_rows_of_the_contract(given_cases: list[Case]) -> None:
    """The long table, computed in Arrow, has exactly the rows that `rubric_rows` gives one by one."""
    table = rubric_table(pa.Table.from_batches([case_batch(given_cases)]))

    assert [row for case in given_cases for row in rubric_rows(case)] == table.to_pylist()


def test_the_long_table_goes_on_past_one_slice() -> None:
    """Item positions begin at 0 for every case, however many cases come before it."""
    many = [make_case("safety_diagnostic", number) for number in range(3)] * (LONG_CASES // 3 + 2)
    table = rubric_table(pa.Table.from_batches([case_batch(many)]))

    assert [0, 1, 2, 3, 4, 5, 6] * len(many) == table.column("item_index").to_pylist()


def test_a_plan_item_has_its_severity_and_a_points_item_has_none() -> None:
    """Points +3 and -2 stand for class 9 and 2 and weight 72 and 24 on a plan panel (bedside.md section 5)."""
    plan, points = make_case("safety_diagnostic"), make_case("drug_safety")
    rows = rubric_table(pa.Table.from_batches([case_batch([plan, points])])).to_pylist()

    assert [(3, "positive", 9, 72), (2, "positive", 8, 24), (1, "positive", 7, 3), (0, "equivocal", 5, 1)] == [
        (row["points"], row["polarity"], row["severity_class"], row["weight"]) for row in rows[:4]
    ]
    assert [(2, "positive", None, None)] == [
        (row["points"], row["polarity"], row["severity_class"], row["weight"]) for row in rows[7:8]
    ]


@pytest.mark.parametrize("points", [1.5, 1.0, True, "2", None], ids=repr)
def test_points_that_arrow_would_coerce_are_refused(points: Any) -> None:
    """Arrow stores 1.5 and True as 1 without a word; here the case is named."""
    case = with_points(points)

    with pytest.raises(BadInput, match=f"drug_safety: case {case['case_id']}: points: expected integers only"):
        case_batch([make_case(number=1), case])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": 5}, "prompt: expected strings only, found int"),
        ({"prompt": "half a pair \ud835"}, "surrogates not allowed"),
        ({"case_id": None}, "case_id: expected strings only, found NoneType"),
    ],
    ids=["number", "lone surrogate", "null"],
)
def test_texts_that_cannot_be_stored_as_they_are_are_refused(change: dict[str, Any], message: str) -> None:
    """A text that is no string, or no whole Unicode, is not written in another form."""
    with pytest.raises(BadInput, match=message):
        case_batch([make_case(number=1), {**make_case(), **change}])


def test_points_beyond_64_bits_are_refused() -> None:
    """An integer that Parquet's int64 cannot hold is named, not wrapped around."""
    with pytest.raises(BadInput, match="drug_safety: case"):
        case_batch([with_points(2**63)])


def test_a_table_comes_for_every_panel_and_split_in_order() -> None:
    """Cases given in any portions leave as one table a panel and split, in the order in which they came."""
    tables: list[tuple[str, str, int]] = []
    making = CaseTables(lambda panel, split, table: tables.append((panel, split, table.num_rows)))
    public, held_out = [make_case(number=n) for n in range(3)], [make_case(number=9, split="test")]
    making.add(public[:2])
    making.add([*public[2:], *held_out, make_case("landmark_trials")])
    making.finish()

    assert [("drug_safety", "train", 3), ("drug_safety", "test", 1), ("landmark_trials", "train", 1)] == tables


def test_items_are_counted_by_the_sign_of_their_points() -> None:
    """A plan case of +3 +2 +1 0 -1 -2 -3 has three positive, one equivocal and three negative items."""
    table = pa.Table.from_batches([case_batch([make_case("safety_therapeutic", n) for n in range(2)])])

    assert {"cases": 2, "items": 14, "positive": 6, "negative": 6, "equivocal": 2} == count_items(table)


def test_the_schemas_are_those_of_the_format() -> None:
    """Column names and types are those of formats.md section 1."""
    items = "list<item: struct<item_id: string, text: string, points: int64>>"

    assert [("case_id", "string"), ("benchmark", "string"), ("grading_method", "string"), ("prompt", "string")] == [
        (field.name, str(field.type)) for field in CASE_SCHEMA
    ][:4]
    assert ("rubric_items", items) == (CASE_SCHEMA[4].name, str(CASE_SCHEMA[4].type).replace("element", "item"))
    long = "case_id benchmark item_index item_id text points polarity severity_class weight"
    assert long.split() == RUBRIC_SCHEMA.names


@pytest.mark.parametrize(("row_bytes", "rows"), [(0, 512), (2_800, 512), (80_000, 100), (10_000_000, 1)])
def test_long_rows_are_read_few_at_a_time(row_bytes: int, rows: int) -> None:
    """At most 512 rows and about 8 MB are read at once, and at least one row."""
    assert rows == rows_at_once(row_bytes)
