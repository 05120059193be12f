"""Cases -> Arrow tables of one fixed schema, and back: a table per panel and split, and the long rubric table.

In: valid cases in dataset order. Out: tables whose rows give exactly the same cases back. The long table is computed
in Arrow from the cases' table; `bedside_bench.rubric_rows` says what its rows are. No file is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bedside_bench import (
    CASE_FIELDS,
    F1_WEIGHTED_RUBRIC,
    ITEM_FIELDS,
    SEVERITY_CLASS,
    SEVERITY_WEIGHT,
    Case,
)
from builder.errors import BadInput

ITEM_TYPE: Final = pa.struct([("item_id", pa.string()), ("text", pa.string()), ("points", pa.int64())])
CASE_SCHEMA: Final = pa.schema(
    [
        ("case_id", pa.string()),
        ("benchmark", pa.string()),
        ("grading_method", pa.string()),
        ("prompt", pa.string()),
        ("rubric_items", pa.list_(ITEM_TYPE)),
    ]
)
RUBRIC_SCHEMA: Final = pa.schema(
    [
        ("case_id", pa.string()),
        ("benchmark", pa.string()),
        ("item_index", pa.int64()),
        ("item_id", pa.string()),
        ("text", pa.string()),
        ("points", pa.int64()),
        ("polarity", pa.string()),
        ("severity_class", pa.int64()),
        ("weight", pa.int64()),
    ]
)

BATCH_CASES: Final = 128
BATCH_CHARS: Final = 8_000_000
"""A batch of cases ends at either: few enough to stay in the processor's cache, and no memory full of long prompts."""

LONG_CASES: Final = 4096
"""Cases whose long rows are computed at once: each computation has a fixed price."""

READ_ROWS: Final = 512
"""Rows read back at once, unless they are long."""

_TEXT_FIELDS: Final = CASE_FIELDS[:4]


class CaseTables:
    """Take cases in dataset order and hand on each table, one a panel and split, as soon as it is complete.

    Args:
        on_table: called with (panel, the cases' own split, table) in dataset order.
    """

    def __init__(self, on_table: Callable[[str, str, pa.Table], None]) -> None:
        """Begin with no case."""
        self._on_table = on_table
        self._at = ("", "")
        self._batches: list[pa.RecordBatch] = []

    def add(self, cases: Iterable[Case]) -> None:
        """Take the next cases: one batch in memory, so of bounded size."""
        for at, group in groupby(cases, key=itemgetter("benchmark", "split")):
            if at != self._at:
                self._end_table()
                self._at = at
            self._batches.append(case_batch(list(group)))

    def finish(self) -> None:
        """Hand on the last table."""
        self._end_table()

    def _end_table(self) -> None:
        if self._batches:
            self._on_table(*self._at, pa.Table.from_batches(self._batches, schema=CASE_SCHEMA))
            self._batches = []


class _WrongType(TypeError):
    """A Python value whose type the column does not store as it is."""


def case_batch(cases: Sequence[Case]) -> pa.RecordBatch:
    """Return the rows of cases as one Arrow batch.

    Raises:
        BadInput: a value is not exactly a string or a 64-bit integer. Arrow alone would store 1.5 or True as 1.
    """
    try:
        return _batch(cases)
    except (UnicodeEncodeError, OverflowError, pa.ArrowInvalid, _WrongType) as error:
        if len(cases) > 1:
            for case in cases:  # the one at fault raises for itself, by its name
                case_batch([case])
        raise BadInput(f"{cases[0]['benchmark']}: case {cases[0]['case_id']}: {error}") from None


def _batch(cases: Sequence[Case]) -> pa.RecordBatch:
    items = [item for case in cases for item in case["rubric_items"]]
    texts = [_strings(list(map(itemgetter(field), cases)), field) for field in _TEXT_FIELDS]
    fields = [_strings(list(map(itemgetter(field), items)), field) for field in ITEM_FIELDS[:2]]
    points = _integers(list(map(itemgetter("points"), items)), "points")
    offsets = pa.array(accumulate((len(case["rubric_items"]) for case in cases), initial=0), pa.int32())
    struct = pa.StructArray.from_arrays([*fields, points], fields=list(ITEM_TYPE))
    rubric = pa.ListArray.from_arrays(offsets, struct, type=CASE_SCHEMA.types[-1])
    return pa.RecordBatch.from_arrays([*texts, rubric], schema=CASE_SCHEMA)


def _strings(values: list[Any], field: str) -> pa.StringArray:
    if set(map(type, values)) - {str}:
        raise _WrongType(f"{field}: expected strings only, found {_odd_types(values, str)}")
    return pa.array(values, pa.string())


def _integers(values: list[Any], field: str) -> pa.Int64Array:
    if set(map(type, values)) - {int}:
        raise _WrongType(f"{field}: expected integers only, found {_odd_types(values, int)}")
    return pa.array(values, pa.int64())


def _odd_types(values: list[Any], wanted: type) -> str:
    return ", ".join(sorted({type(value).__name__ for value in values if type(value) is not wanted}))


def rubric_table(cases: pa.Table) -> pa.Table:
    """Return the long rubric table of a table of cases: one row an item, in order (`bedside_bench.rubric_rows`)."""
    slices = (cases.slice(start, LONG_CASES).combine_chunks() for start in range(0, cases.num_rows, LONG_CASES))
    batches = [_rubric_batch(batch) for part in slices for batch in part.to_batches()]
    return pa.Table.from_batches(batches, schema=RUBRIC_SCHEMA)


def _rubric_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    lists = batch.column("rubric_items")
    parent = pc.list_parent_indices(lists)
    items = pc.list_flatten(lists)
    item_id, text, points = (pc.struct_field(items, name) for name in ITEM_FIELDS)
    lengths = pc.list_value_length(lists)
    starts = pc.subtract(pc.cumulative_sum(lengths), lengths)
    index = pc.subtract(pa.array(np.arange(len(items))), pc.cast(pc.take(starts, parent), pa.int64()))
    weighted = pc.take(pc.equal(batch.column("grading_method"), F1_WEIGHTED_RUBRIC), parent)
    sign = pc.sign(points)
    polarity = pc.if_else(pc.equal(sign, 1), "positive", pc.if_else(pc.equal(sign, -1), "negative", "equivocal"))
    columns = [
        pc.take(batch.column("case_id"), parent),
        pc.take(batch.column("benchmark"), parent),
        index,
        item_id,
        text,
        points,
        polarity,
        _severity(points, weighted, SEVERITY_CLASS),
        _severity(points, weighted, SEVERITY_WEIGHT),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RUBRIC_SCHEMA)


def _severity(points: pa.Int64Array, weighted: pa.BooleanArray, table: dict[int, int]) -> pa.Int64Array:
    """Look points up in a severity table where the case is weighted; null elsewhere."""
    at = pc.index_in(points, pa.array(list(table), pa.int64()))
    found = pc.take(pa.array(list(table.values()), pa.int64()), at)
    return pc.if_else(weighted, found, pa.scalar(None, pa.int64()))


def count_items(table: pa.Table) -> dict[str, int]:
    """Return how many cases and items a panel's table has, the items also by the sign of their points."""
    points = pc.struct_field(pc.list_flatten(table.column("rubric_items")), "points")
    positive, negative = (int(pc.sum(sign).as_py() or 0) for sign in (pc.greater(points, 0), pc.less(points, 0)))
    return {
        "cases": table.num_rows,
        "items": len(points),
        "positive": positive,
        "negative": negative,
        "equivocal": len(points) - positive - negative,
    }


def batch_cases(batch: pa.RecordBatch, split: str) -> list[Case]:
    """Return the case objects of a batch of rows, equal to those it was made from.

    Args:
        split: the cases' own split, which `digests.json` maps the file's split to.
    """
    rows: list[dict[str, Any]] = batch.to_pylist()  # the schema's fields are those of `row_to_case`, in its order
    for row in rows:
        row["split"] = split
    return rows


def rows_at_once(row_bytes: float) -> int:
    """Return how many rows to read at once when one is this large on average."""
    return max(1, min(READ_ROWS, int(BATCH_CHARS / max(row_bytes, 1))))
