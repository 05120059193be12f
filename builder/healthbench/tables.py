"""Example objects -> Arrow tables of one fixed schema a shape, and back, and the long table of their rubric items.

In: examples in the order of their file. Out: batches whose rows give exactly the same objects back. No file is
written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from bedside_bench import polarity
from builder.errors import BadInput
from builder.healthbench.names import META
from builder.healthbench.objects import (
    CORE_SHAPE,
    LARGEST,
    META_SHAPE,
    PROFESSIONAL_SHAPE,
    Example,
    printed_points,
    shape_of_config,
)

TURN_TYPE: Final = pa.struct([("role", pa.string()), ("content", pa.string())])
ITEM_TYPE: Final = pa.struct(
    [("item_id", pa.string()), ("criterion", pa.string()), ("points", pa.float64()), ("tags", pa.list_(pa.string()))]
)
_CORE: Final = (
    ("case_id", pa.string()),
    ("prompt", pa.list_(TURN_TYPE)),
    ("rubric_items", pa.list_(ITEM_TYPE)),
    ("example_tags", pa.list_(pa.string())),
    ("ideal_completion", pa.string()),
    ("ideal_completions_group", pa.string()),
    ("ideal_completions_ref_completions", pa.list_(pa.string())),
    ("canary", pa.string()),
)
_PROFESSIONAL: Final = tuple(
    (name, pa.string()) for name in ("use_case", "type", "difficulty", "specialty", "physician_response")
)
_META: Final = (
    *((name, pa.string()) for name in ("prompt_id", "completion", "completion_id", "category")),
    ("binary_labels", pa.list_(pa.bool_())),
    ("anonymized_physician_ids", pa.list_(pa.string())),
)
SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    CORE_SHAPE: pa.schema(_CORE),
    PROFESSIONAL_SHAPE: pa.schema((*_CORE, *_PROFESSIONAL)),
    META_SHAPE: pa.schema((*_CORE, *_META)),
}
ITEMS_SCHEMA: Final = pa.schema(
    [
        ("case_id", pa.string()),
        ("benchmark", pa.string()),
        ("item_index", pa.int64()),
        ("item_id", pa.string()),
        ("criterion", pa.string()),
        ("points", pa.float64()),
        ("tags", pa.list_(pa.string())),
        ("polarity", pa.string()),
        ("severity_class", pa.int64()),
        ("weight", pa.int64()),
    ]
)
NEVER_NULL: Final = frozenset(
    {"case_id", "prompt", "rubric_items", "example_tags", *(name for name, _ in _META), "role", "content"}
    | {"item_id", "criterion", "tags"}
)
"""Columns and members of a row that always have a value; points have one but in a meta file, where none has."""


def schema_of(config: str) -> pa.Schema:
    """Return the schema of a config's rows."""
    return SCHEMAS[shape_of_config(config)]


def example_batch(examples: Sequence[Example], config: str) -> pa.RecordBatch:
    """Return the rows of examples as one Arrow batch.

    Raises:
        BadInput: a value is not exactly of its column's type, or null where there must be one. Arrow alone would store
            True as 1.0.
    """
    schema = schema_of(config)
    for example in examples:
        _check_row(example, schema, config)
    try:
        return pa.RecordBatch.from_pylist(list(examples), schema=schema)
    except (UnicodeEncodeError, OverflowError, pa.ArrowException) as error:
        raise BadInput(f"{config}: {examples[0]['case_id']} and after: {error}") from None


def batch_examples(batch: pa.RecordBatch, config: str) -> list[Example]:
    """Return the example objects of a batch of rows, equal to those it was made from.

    Raises:
        BadInput: a value is missing or not finite.
    """
    rows: list[Example] = batch.to_pylist()
    for row in rows:
        _check_row(row, batch.schema, config)
        for item in row["rubric_items"]:
            item["points"] = printed_points(item["points"])
    return rows


def items_table(examples: Iterable[Example], config: str) -> pa.Table:
    """Return the long table: one row an item, in order; it has no severity classes, and of a meta file no polarity."""
    rows = [
        {
            "case_id": example["case_id"],
            "benchmark": config,
            "item_index": index,
            "item_id": item["item_id"],
            "criterion": item["criterion"],
            "points": item["points"],
            "tags": item["tags"],
            "polarity": None if item["points"] is None else polarity(item["points"]),
            "severity_class": None,
            "weight": None,
        }
        for example in examples
        for index, item in enumerate(example["rubric_items"])
    ]
    return pa.Table.from_pylist(rows, schema=ITEMS_SCHEMA)


def _check_row(row: Mapping[str, Any], schema: pa.Schema, config: str) -> None:
    if tuple(row) != tuple(schema.names):
        raise BadInput(f"{config}: expected the columns {', '.join(schema.names)}, found {', '.join(row)}")
    for field in schema:
        _check(row[field.name], field, f"{config}: {row['case_id']}: {field.name}", config=config)


def _check(value: Any, field: pa.Field, where: str, *, config: str) -> None:
    """Stop unless a value is exactly of a field's type, within lists and objects too."""
    if value is None:
        needed = field.name in NEVER_NULL or (field.name == "points" and config != META)
        if needed:
            raise BadInput(f"{where}: expected a value, found null")
        return
    if field.name == "points" and config == META:
        raise BadInput(f"{where}: expected null, as the shape has no points, found {value!r}")
    kind = field.type
    if pt.is_list(kind):
        _check_list(value, field, where, config=config)
    elif pt.is_struct(kind):
        names = [part.name for part in kind]
        if type(value) is not dict or list(value) != names:
            raise BadInput(f"{where}: expected an object of {', '.join(names)}, found {type(value).__name__}")
        for part in kind:
            _check(value[part.name], part, f"{where}.{part.name}", config=config)
    elif type(value) not in _PYTHON[kind] or (type(value) is int and abs(value) > LARGEST):
        raise BadInput(f"{where}: expected {kind}, found {value!r:.60}")


def _check_list(values: Any, field: pa.Field, where: str, *, config: str) -> None:
    if type(values) is not list:
        raise BadInput(f"{where}: expected a list, found {type(values).__name__}")
    inner = field.type.value_field
    for index, value in enumerate(values):
        if value is None:
            raise BadInput(f"{where}[{index}]: expected a value, found null")
        _check(value, inner, f"{where}[{index}]", config=config)


_PYTHON: Final = {pa.string(): (str,), pa.float64(): (int, float), pa.bool_(): (bool,)}
