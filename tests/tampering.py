"""Results folders for tests to tamper with, cell by cell, with their digests made again as a forger would."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from builder.dataset.folder import read_digests, write_digests, write_parquet
from eval.results.folder import verify_run, write_results
from eval.results.schemas import ALL_SCHEMAS
from tests.journals import write_journal, write_summary

HERE = {"numpy": np.__version__, "machine": platform.machine()}
PANELS = ["drug_safety", "safety_diagnostic"]
FAILURES = {
    1: ("answer", "timeout"),
    2: ("judge", "invalid_reply"),
    4: ("answer", "truncated"),
    7: ("judge", "pending"),
}


def results_folder(folder: Path) -> Path:
    """Return a results folder with one run: graded, failed, cut and pending cases on a points and a plan panel."""
    journal = write_journal(folder / "x.jsonl", cases_per_panel=4, panels=PANELS, fail=FAILURES)
    write_results(journal, folder / "out", summary_bytes=write_summary(journal, **HERE))
    return folder / "out"


def copy_of_run(results: Path, to: Path) -> Path:
    """Return a copy of the only run of a results folder."""
    (source,) = (results / "runs").iterdir()
    return Path(shutil.copytree(source, to / "runs" / source.name, dirs_exist_ok=True))


def remake_digests(run: Path) -> None:
    """Write digests.json again as if the files had always been so."""
    write_digests(run, {name: value for name, value in read_digests(run).items() if name not in ("format", "files")})


def tamper(run: Path, table: str, row: int, column: str, change: Callable[[Any], Any]) -> dict[str, Any]:
    """Change one cell and make the digests again; return the row as it was."""
    path = run / f"{table}.parquet"
    rows = pq.read_table(path, partitioning=None).to_pylist()
    before = dict(rows[row])
    rows[row][column] = change(rows[row][column])
    write_parquet(pa.Table.from_pylist(rows, schema=ALL_SCHEMAS[table]), path)
    remake_digests(run)
    return before


def another(value: Any) -> Any:
    """Return another value of the same type; of null, some value is made by the caller."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, list):
        return value[:-1] if value else ["x"]
    return f"x{value}"


def filled(kind: pa.DataType) -> Any:
    """Return a value for a null cell of a type."""
    return {pa.string(): "x", pa.int64(): 1, pa.float64(): 0.5, pa.bool_(): True}.get(kind, [])


def lines(folder: Path) -> str:
    """Return what verify finds, a line each."""
    return "\n".join(finding.line() for finding in verify_run(folder).findings)
