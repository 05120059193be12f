"""Examples and rows are the same objects: every text, tag, null and number goes into Parquet and comes back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.dataset.digests import read_digests
from builder.errors import BadInput
from builder.healthbench.mirror import build_healthbench
from builder.healthbench.names import CONFIGS, CORE, META, PROFESSIONAL
from builder.healthbench.objects import META_SHAPE, Example, make_object, printed_points, shape_of_config
from builder.healthbench.reading import read_examples
from builder.healthbench.tables import batch_examples, example_batch, items_table, schema_of
from tests.examples import make_criterion, make_example, make_meta, make_professional, write_jsonl

MAKERS = {CORE: make_example, PROFESSIONAL: make_professional, META: make_meta}


def objects(config: str, n: int = 4) -> list[Example]:
    """Return the objects of valid examples of a config."""
    shape = shape_of_config(config)
    return [make_object(MAKERS[config](k), shape, case_id=f"case-{k}") for k in range(n)]


@pytest.mark.parametrize("config", MAKERS)
def test_rows_give_the_same_objects_back(config: str) -> None:
    """Also written twice: equal as JSON text, so integers stay integers and nulls stay nulls."""
    examples = objects(config)
    back = batch_examples(example_batch(examples, config), config)

    assert json.dumps(examples) == json.dumps(back)
    assert schema_of(config).names == list(back[0])


def test_every_config_begins_with_the_same_columns() -> None:
    """So that mirrors of all five can be put together; what a shape lacks is null."""
    first = schema_of(CORE)

    assert all(schema_of(config).names[: len(first)] == first.names for config in CONFIGS)
    assert [None] * 3 == [objects(META)[0][name] for name in first.names if name.startswith("ideal")]


@pytest.mark.parametrize(
    ("points", "text"), [(5.0, "5"), (-6, "-6"), (2.5, "2.5"), (0.1, "0.1"), (-0.0, "0"), (2.0**53, "9007199254740992")]
)
def test_points_print_as_the_grader_must_see_them(points: float, text: str) -> None:
    """An integral number has no ".0": the column is a float, the prompt's number is not."""
    assert text == str(printed_points(points))


@pytest.mark.parametrize("points", [float("nan"), float("inf")])
def test_points_that_are_no_number_stop(points: float) -> None:
    """They could only come from a Parquet file that was tampered with."""
    with pytest.raises(BadInput, match="expected a finite number"):
        printed_points(points)


def test_the_long_table_is_one_row_an_item() -> None:
    """With position, sign and tags; severity is of the other suite."""
    (example, *_) = objects(CORE)
    rows = items_table([example], CORE).to_pylist()

    assert ["positive", "positive", "positive", "negative"] == [row["polarity"] for row in rows]
    assert [0, 1, 2, 3] == [row["item_index"] for row in rows]
    assert {
        "case_id": "case-0",
        "benchmark": "healthbench",
        "item_index": 3,
        "item_id": "case-0_3",
        "criterion": "Says fact 0.3, with a dose ≥ 5 mg/m²",
        "points": -6.0,
        "tags": ["level:example", "axis:accuracy"],
        "polarity": "negative",
        "severity_class": None,
        "weight": None,
    } == rows[3]


def test_a_meta_item_has_no_points() -> None:
    """The shape has none, so there are none: null, also in the long table."""
    examples = objects(META)

    assert [(None, None)] * 4 == [(row["points"], row["polarity"]) for row in items_table(examples, META).to_pylist()]
    assert {None} == {item["points"] for one in examples for item in one["rubric_items"]}
    examples[0]["rubric_items"][0]["points"] = 1
    with pytest.raises(BadInput, match=r"expected null, as the shape has no points, found 1"):
        example_batch(examples, META)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("case_id",), 7, "7: case_id: expected string, found int"),
        (("case_id",), None, "case_id: expected a value, found null"),
        (("prompt", 0, "content"), b"x", "case-2: prompt[*].content: expected string, found bytes"),
        (("rubric_items", 1, "points"), True, "case-2: rubric_items[*].points: expected double, found bool"),
        (("rubric_items", 1, "points"), None, "rubric_items[*].points: expected a value, found null"),
        (("rubric_items", 1, "points"), 2**53 + 1, "expected numbers of at most 2^53 in size, found a larger one"),
        (("rubric_items", 0, "tags"), "axis", "rubric_items[*].tags: expected list<item: string>, found str"),
        (("rubric_items", 0), {"item_id": "x"}, "rubric_items[*]: expected an object of item_id, criterion, points"),
        (("example_tags", 0), None, "case-2: example_tags[*]: expected a value, found null"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_arrow_would_change_in_silence_stops(place: tuple[Any, ...], value: object, message: str) -> None:
    """True as 1.0, a missing member as null: Python's types are looked at before Arrow's."""
    examples = objects(CORE)
    holder: Any = examples[2]
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value

    with pytest.raises(BadInput) as stop:
        example_batch(examples, CORE)
    assert message in str(stop.value)


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
VISIBLE = TEXT.filter(lambda text: bool(text.strip()))
ID = st.text("ab0-_é中", min_size=1, max_size=8)
POINTS = st.one_of(
    st.integers(-(2**53), 2**53),
    st.floats(-1e6, 1e6, allow_nan=False).filter(lambda points: points == 0 or abs(points) >= 1e-6),
    st.sampled_from([5.0, -0.0, 0.1, 1e-6]),
)
TAGS = st.lists(VISIBLE, unique=True, max_size=3)
CRITERIA = st.lists(
    st.builds(
        lambda text, points, tags: make_criterion(criterion=text, points=points, tags=tags), VISIBLE, POINTS, TAGS
    ),
    min_size=1,
    max_size=4,
)
TURNS = st.lists(st.tuples(st.sampled_from(["system", "developer", "user", "assistant"]), TEXT), max_size=3)


IDEAL = ("ideal_completion", "ideal_completions_group", "ideal_completions_ref_completions")


def ideal(*values: object) -> dict[str, object]:
    """Return the object of ideal completions with these values."""
    return dict(zip(IDEAL, values, strict=True))


@st.composite
def examples_of_core(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw a file's examples with ids of their own."""
    ids = draw(st.lists(ID, min_size=1, max_size=4, unique=True))
    return [
        make_example(
            prompt_id=one,
            prompt=[{"role": role, "content": text} for role, text in [*draw(TURNS), ("user", draw(TEXT))]],
            rubrics=draw(CRITERIA),
            example_tags=draw(TAGS),
            canary=draw(st.none() | TEXT),
            ideal_completions_data=draw(
                st.none() | st.builds(ideal, st.none() | TEXT, st.none() | TEXT, st.none() | st.lists(TEXT, max_size=2))
            ),
        )
        for one in ids
    ]


@pytest.mark.slow
@given(examples_of_core(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_any_file_comes_back_from_its_mirror(
    tmp_path_factory: pytest.TempPathFactory, examples: list[dict[str, Any]], ascii_only: bool
) -> None:
    """JSONL, Parquet, objects: every text and number that went in comes out, 5.0 as 5, in the same order."""
    folder = tmp_path_factory.mktemp("any")
    lines = [json.dumps(example, ensure_ascii=ascii_only).encode() for example in examples]
    built = build_healthbench(write_jsonl(folder / "x.jsonl", lines), folder / "out", license_id="mit")
    back = read_examples(built.folder, read_digests(built.folder))

    assert [
        (
            one["prompt_id"],
            one["prompt"],
            [(item["criterion"], item["points"], item["tags"]) for item in one["rubrics"]],
            one["example_tags"],
            one["canary"],
            [(one["ideal_completions_data"] or {}).get(name) for name in IDEAL],
        )
        for one in examples
    ] == [
        (
            one["case_id"],
            one["prompt"],
            [(item["criterion"], item["points"], item["tags"]) for item in one["rubric_items"]],
            one["example_tags"],
            one["canary"],
            [one[name] for name in IDEAL],
        )
        for one in back
    ]
    points = [item["points"] for one in back for item in one["rubric_items"]]
    assert not any(type(value) is float and value.is_integer() for value in points)


def test_texts_of_a_megabyte_are_kept(tmp_path: Path) -> None:
    """Nothing is cut, in the conversation, a criterion or a completion."""
    big = "ü" * 1_000_000
    path = write_jsonl(
        tmp_path / "x.jsonl",
        [
            make_example(n, prompt=[{"role": "user", "content": big}], rubrics=[make_criterion(criterion=big)])
            for n in (0, 1)
        ],
    )
    built = build_healthbench(path, tmp_path / "out", license_id="mit")
    (first, _) = read_examples(built.folder, read_digests(built.folder))

    assert big == first["prompt"][0]["content"] == first["rubric_items"][0]["criterion"]


def test_tables_on_disk_have_the_fixed_schema(tmp_path: Path) -> None:
    """All-null columns too: a file without canaries still has a string column for them."""
    path = write_jsonl(tmp_path / "x.jsonl", [make_example(1, canary=...)])
    build_healthbench(path, tmp_path / "out", license_id="mit")
    schema = pq.read_schema(tmp_path / "out" / "data" / "healthbench" / "test-00000-of-00001.parquet")

    assert schema_of(CORE).equals(schema)
    assert pa.string() == schema.field("canary").type


def test_shapes_have_their_members() -> None:
    """A meta object holds the labels beside who gave them, ids as text."""
    record = make_meta(1, anonymized_physician_ids=[3, "b", "c"])
    made = make_object(record, META_SHAPE, case_id="m")

    assert [("3", True), ("b", True), ("c", False)] == list(
        zip(made["anonymized_physician_ids"], made["binary_labels"], strict=True)
    )
    assert ["cluster:communication_clear"] == made["example_tags"] == made["rubric_items"][0]["tags"]
