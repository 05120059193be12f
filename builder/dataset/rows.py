"""Read a mirror's rows back, in dataset order, and hold them against every digest and against the long table.

In: a mirror folder and the object of its `digests.json`. Out: findings. Files and card are checked elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bedside_bench import DatasetDigest, case_content_sha256, content_sha256
from builder.dataset.digests import DIGESTS_NAME, Finding, split_order
from builder.dataset.folder import parquet_path
from builder.dataset.tables import CASE_SCHEMA, RUBRIC_SCHEMA, batch_cases, rows_at_once, rubric_table
from builder.errors import BadInput

Progress = Callable[[str, int], None]
"""Told the step (`check`, `read back`) and how many cases are through it."""


def check_rows(
    folder: Path,
    digests: Mapping[str, Any],
    *,
    bad: set[str],
    brief: bool = False,
    on_progress: Progress | None = None,
) -> list[Finding]:
    """Return what a mirror's rows contradict: nulls, digests, counts, and the long table beside the panels.

    Args:
        bad: files not to read; without all of them the digests of the whole cannot be told.
        brief: compute `dataset_sha256` alone. Where it is right, the digests of panels and content are too.
    """
    return _Rows(folder, digests, bad=bad, brief=brief, on_progress=on_progress).check()


class _Rows:
    """One pass over the rows in dataset order."""

    def __init__(
        self,
        folder: Path,
        digests: Mapping[str, Any],
        *,
        bad: set[str],
        brief: bool,
        on_progress: Progress | None,
    ) -> None:
        self._folder = folder
        self._digests = digests
        self._files = {name for name in digests["files"] if name not in bad}
        self._whole = not any(name.endswith(".parquet") for name in bad)
        self._on_progress = on_progress
        self._digest = DatasetDigest(with_panels=not brief)
        self._brief = brief
        self._contents: list[str] = []
        self._long = self._long_tables() if self._whole else {}
        self._findings: list[Finding] = []

    def check(self) -> list[Finding]:
        """Return what the rows contradict."""
        for panel in self._digests["panels"]:
            for split, own in split_order(self._digests["splits"]):
                name = parquet_path(panel["id"], split)
                if name in self._files:
                    self._check_file(name, split, own)
        if self._whole:
            self._findings += filter(None, (long.check_end() for long in self._long.values()))
        self._check_panels()
        if self._whole:
            self._check_totals()
        return self._findings

    def _add(self, file: str, what: str, expected: object, found: object) -> None:
        self._findings.append(Finding(file, what, str(expected), str(found)))

    def _long_tables(self) -> dict[str, LongTable]:
        names = {split: parquet_path("rubric_items", split) for split in self._digests["splits"]}
        return {
            split: LongTable(self._folder, name, RUBRIC_SCHEMA) for split, name in names.items() if name in self._files
        }

    def _check_file(self, name: str, split: str, own: str) -> None:
        try:
            for batch in read_batches(self._folder / name, CASE_SCHEMA):
                if _has_null(batch):
                    raise BadInput("expected a value everywhere, found null")
                self._check_batch(batch, split, own)
        except (BadInput, pa.ArrowException, OSError) as error:
            self._add(name, "rows", "cases", str(error).split("\n")[0])
            self._whole = False

    def _check_batch(self, batch: pa.RecordBatch, split: str, own: str) -> None:
        if self._whole and split in self._long:
            expected = rubric_table(pa.Table.from_batches([batch]))
            self._findings += filter(None, [self._long[split].check(expected)])
        cases = batch_cases(batch, own)
        self._digest.update(cases)
        if not self._brief:
            self._contents.extend(map(case_content_sha256, cases))
        if self._on_progress:
            self._on_progress("read back", self._digest.n_cases)

    def _check_panels(self) -> None:
        found = {panel["id"]: panel for panel in self._digest.panels()}
        for panel in () if self._brief else self._digests["panels"]:
            mine = found.pop(panel["id"], None)
            name = next((file for file in sorted(self._files) if file.startswith(f"data/{panel['id']}/")), None)
            if name is not None and mine != panel:
                self._add(name, "rows of the panel", panel, mine)
        for left in found:
            self._add(DIGESTS_NAME, "panels", "every panel that has rows", f"rows of {left!r}")

    def _check_totals(self) -> None:
        found = {
            "dataset_sha256": self._digest.hexdigest(),
            "n_cases": self._digest.n_cases,
            "n_items": self._digest.n_items,
        }
        if not self._brief:
            found["content_sha256"] = content_sha256(self._contents)
        for what, value in found.items():
            if value != self._digests[what]:
                self._add(DIGESTS_NAME, what, f"{value}, as in the rows", self._digests[what])


class LongTable:
    """The rows of `rubric_items` of one split, taken in step with the cases they follow from."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema) -> None:
        """Begin before the first row of a file, whose columns must be those of the schema."""
        self._name = name
        self._batches = read_batches(folder / name, schema)
        self._held = schema.empty_table()
        self._row = 0
        self._over = False

    def check(self, expected: pa.Table) -> Finding | None:
        """Take the rows of the next cases; return the first difference. After one, all later rows may be off."""
        if self._over:
            return None
        try:
            found = self._take(expected.num_rows)
        except (BadInput, pa.ArrowException, OSError) as error:
            return self._found("rows", "rubric items", str(error).split("\n")[0])
        start, self._row = self._row, self._row + expected.num_rows
        if found.equals(expected):
            return None
        for index, (mine, theirs) in enumerate(zip(expected.to_pylist(), found.to_pylist(), strict=False)):
            for column in mine:
                if mine[column] != theirs[column]:
                    return self._found(f"row {start + index}: {column}", repr(mine[column]), repr(theirs[column]))
        return self._found("rows", f"at least {start + expected.num_rows}", start + found.num_rows)

    def check_end(self) -> Finding | None:
        """Return a finding if rows are left over."""
        if self._over:
            return None
        left = int(self._held.num_rows) + sum(int(batch.num_rows) for batch in self._batches)
        return self._found("rows", "no more than the panels' items", f"{left} more") if left else None

    def _found(self, what: str, expected: object, found: object) -> Finding:
        self._over = True
        return Finding(self._name, what, str(expected), str(found))

    def _take(self, n: int) -> pa.Table:
        while self._held.num_rows < n:
            batch = next(self._batches, None)
            if batch is None:
                break
            self._held = pa.concat_tables([self._held, pa.Table.from_batches([batch])])
        taken, self._held = self._held.slice(0, n), self._held.slice(n)
        return taken


def read_batches(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield a Parquet file's rows in batches of bounded size.

    Raises:
        BadInput: its columns are not those of the schema.
    """
    with pq.ParquetFile(path) as file:
        if not file.schema_arrow.equals(schema):
            found = ", ".join(f"{field.name} {field.type}" for field in file.schema_arrow)
            raise BadInput(f"expected the columns {', '.join(schema.names)} with their types, found {found}")
        size = sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
        yield from file.iter_batches(rows_at_once(size / max(file.metadata.num_rows, 1)))


def _has_null(batch: pa.RecordBatch) -> bool:
    items = pc.list_flatten(batch.column("rubric_items"))
    columns = [*batch.columns, items, *items.flatten()]
    return any(column.null_count for column in columns)
