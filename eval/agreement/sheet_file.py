"""A sheet of human labels as a file: CSV that spreadsheet programs open, or Parquet that changes nothing.

In: rows of cells. Out: the file, and its rows back. A CSV is UTF-8 with a byte order mark (without one Excel reads
another encoding), commas and CRLF. A cell that a spreadsheet would run as a formula gets an apostrophe before it, as
does a cell that begins with one; reading takes one away again, so that ids and names come back as they were. What the
cells mean, `labels` knows.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from builder.dataset.folder import replace_file
from builder.errors import BadInput

COLUMNS: Final = (
    "case_id",
    "answer_repeat",
    "item_id",
    "panel",
    "prompt",
    "answer",
    "item",
    "label",
    "rater",
    "answer_sha256",
    "dataset_sha256",
    "identity_sha256",
)
NEEDED: Final = ("case_id", "answer_repeat", "item_id", "label", "answer_sha256")
"""The columns without which a label cannot be given to the item of an answer."""

CELL_LIMIT: Final = 32_767
"""Excel cuts a cell after so many characters; other programs do not."""

_FORMULA: Final = frozenset("=+-@\t\r\n＝＋－＠")
_APOSTROPHE: Final = "'"
_DELIMITERS: Final = (",", ";", "\t")
_SEPARATOR_LINE: Final = re.compile(r'"?sep=(.)"?[^\S\r\n]*(?:\r\n|\r|\n)', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SheetRow:
    """One row with anything in it: its number as a spreadsheet counts, the header being row 1, and cells by column."""

    number: int
    cells: Mapping[str, str]


def check_suffix(path: Path) -> str:
    """Return the kind of a sheet by its name, csv or parquet.

    Raises:
        BadInput: it is neither.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("csv", "parquet"):
        raise BadInput(f"{path}: expected a name that ends in .csv or .parquet, found {path.suffix or 'no ending'!r}")
    return kind


def write_rows(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    """Write a sheet with all its columns as a whole: a kill leaves the old file or the new one."""
    kind = check_suffix(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f"{path.name}.new")
    listed = list(rows)
    if kind == "csv":
        with staged.open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows([guarded(row[name]) for name in COLUMNS] for row in listed)
    else:
        schema = pa.schema([(name, pa.string()) for name in COLUMNS])
        pq.write_table(pa.Table.from_pylist([dict(row) for row in listed], schema=schema), staged)
    replace_file(staged, path)


def guarded(cell: str) -> str:
    """Return a cell that no spreadsheet runs as a formula; `plain` undoes it, whatever the cell holds."""
    return _APOSTROPHE + cell if cell[:1] in _FORMULA or cell[:1] == _APOSTROPHE else cell


def plain(cell: str) -> str:
    """Return a cell without the apostrophe that `guarded` put before it."""
    return cell[1:] if cell[:1] == _APOSTROPHE and (cell[1:2] in _FORMULA or cell[1:2] == _APOSTROPHE) else cell


def read_rows(path: Path) -> list[SheetRow]:
    """Return the rows of a sheet that are not blank.

    A CSV may have gone through a spreadsheet: with or without a byte order mark, UTF-16, semicolons or tabs for commas,
    a `sep=` line, any line ends, empty rows. Bytes that are no UTF-8 are read as Windows-1252: ids are ASCII, and texts
    are not read back.

    Raises:
        BadInput: the file is missing, unreadable, or lacks a column.
    """
    kind = check_suffix(path)
    if not path.is_file():
        raise BadInput(f"{path}: expected a sheet of labels, found no such file")
    rows = list(_read_csv(path) if kind == "csv" else _read_parquet(path))
    return [row for row in rows if any(cell.strip() for cell in row.cells.values())]


def _read_csv(path: Path) -> Iterator[SheetRow]:
    text = _decoded(path.read_bytes())
    delimiter = None
    if line := _SEPARATOR_LINE.match(text):
        delimiter, text = line.group(1), text[line.end() :]
    header_line = re.split(r"[\r\n]", text, maxsplit=1)[0]
    records = _records(path, text, delimiter or max(_DELIMITERS, key=header_line.count))
    header = [name.strip().lower() for name in next(records, [])]
    _check_header(path, header)
    for number, record in enumerate(records, start=2):
        if any(cell.strip() for cell in record[len(header) :]):
            raise BadInput(f"{path}:{number}: expected {len(header)} cells, found {len(record)}; restore the row")
        cells = [*map(plain, record), *[""] * (len(header) - len(record))]
        yield SheetRow(number, dict(zip(header, cells, strict=False)))


def _records(path: Path, text: str, delimiter: str) -> Iterator[list[str]]:
    """Yield the records of a CSV with cells of any length; the module's limit is put back."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield from list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise BadInput(f"{path}: expected a CSV file, found: {error}") from None
    finally:
        csv.field_size_limit(limit)


def _decoded(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def _read_parquet(path: Path) -> Iterator[SheetRow]:
    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
    except (pa.ArrowException, OSError) as error:
        message = str(error).splitlines()[0]
        raise BadInput(f"{path}: expected a Parquet table, found: {message}") from None
    _check_header(path, table.column_names)
    for number, row in enumerate(table.to_pylist(), start=2):
        yield SheetRow(number, {name: "" if cell is None else str(cell) for name, cell in row.items()})


def _check_header(path: Path, header: Sequence[str]) -> None:
    lacking = [name for name in NEEDED if name not in header]
    if lacking:
        raise BadInput(f"{path}:1: expected the columns {', '.join(NEEDED)}, found none named {', '.join(lacking)}")
    named = [name for name in header if name]
    if twice := {name for name in named if named.count(name) > 1}:
        raise BadInput(f"{path}:1: expected each column once, found {', '.join(sorted(twice))} twice")
