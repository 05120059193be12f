"""Example objects -> Arrow tables of one fixed schema a shape, and back, and the long table of their rubric items.

In: examples in the order of their file. Out: batches whose rows give exactly the same objects back. No file is
written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
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
    _check_rows(examples, schema, config)
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
    _check_rows(rows, batch.schema, config)
    for row in rows:
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


def _check_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema, config: str) -> None:
    """Stop at the first row with a value that is not exactly of its column's type; looked at a column at a time."""
    try:
        _check(rows, list(schema), "", config=config)
    except BadInput as error:
        if len(rows) > 1:
            for row in rows:  # the one at fault raises for itself, by its id
                _check_rows([row], schema, config)
        raise BadInput(f"{config}: {rows[0].get('case_id')}: {error}") from None


def _check(objects: Sequence[Mapping[str, Any]], fields: Sequence[pa.Field], at: str, *, config: str) -> None:
    """Stop unless objects have exactly these members, and each of them values of its type."""
    names = [field.name for field in fields]
    for one in objects:
        if not isinstance(one, dict) or list(one) != names:
            found = ", ".join(map(str, one)) if isinstance(one, dict) else type(one).__name__
            raise BadInput(f"{at or 'row'}: expected an object of {', '.join(names)}, found {found}")
    for field in fields:
        where = f"{at}.{field.name}" if at else field.name
        _check_values([one[field.name] for one in objects], field, where, config=config)


def _check_values(values: list[Any], field: pa.Field, where: str, *, config: str) -> None:
    kind = field.type
    present = [value for value in values if value is not None]
    if field.name == "points" and config == META and present:
        raise BadInput(f"{where}: expected null, as the shape has no points, found {present[0]!r}")
    if len(present) < len(values) and (field.name in NEVER_NULL or (field.name == "points" and config != META)):
        raise BadInput(f"{where}: expected a value, found null")
    allowed = _PYTHON.get(kind, (list,))
    if odd := set(map(type, present)) - set(allowed):
        raise BadInput(f"{where}: expected {kind}, found {', '.join(sorted(one.__name__ for one in odd))}")
    if kind == pa.float64() and any(abs(value) > LARGEST for value in present):
        raise BadInput(f"{where}: expected numbers of at most 2^53 in size, found a larger one")
    if pt.is_list(kind):
        _check_parts(list(chain.from_iterable(present)), kind, f"{where}[*]", config=config)


def _check_parts(values: list[Any], kind: pa.ListType, where: str, *, config: str) -> None:
    """Check the values of all lists of a column at once; none of them may be null."""
    if any(value is None for value in values):
        raise BadInput(f"{where}: expected a value, found null")
    if pt.is_struct(kind.value_type):
        _check(values, list(kind.value_type), where, config=config)
    else:
        _check_values(values, kind.value_field, where, config=config)


_PYTHON: Final = {pa.string(): (str,), pa.float64(): (int, float), pa.bool_(): (bool,)}
