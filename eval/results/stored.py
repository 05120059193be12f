"""A run's tables as they are stored, read strictly: the columns, the identity and the recorded summary.

In: a run's folder. Out: rows, and two JSON objects whose form can be relied on. Whether they are true `verify` says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bedside_bench import canonical_json, sha256_json
from builder.dataset.folder import Finding
from eval.judging.suites import GROUPINGS, SUITES
from eval.results.schemas import ALL_SCHEMAS, SCHEMAS, tables_of
from eval.results.structure import Tables
from eval.results.tables import Row


class UnreadableRunError(Exception):
    """A table or a cell that is not of the form it must have; `finding` says which."""

    def __init__(self, file: str, what: str, *, expected: str, found: str) -> None:
        """Keep the finding; its line is the message."""
        self.finding = Finding(file, what, expected, found)
        super().__init__(self.finding.line())


def read_tables(folder: Path) -> dict[str, list[Row]]:
    """Return the rows of a run's tables: the four that every run has, and those of its suite.

    Raises:
        UnreadableRunError: a file is missing or no Parquet, its columns are not its table's, or `run` has not one row.
    """
    tables = {table: _read_table(folder / f"{table}.parquet", schema) for table, schema in SCHEMAS.items()}
    if len(tables["run"]) != 1:
        raise UnreadableRunError("run.parquet", "rows", expected="one", found=str(len(tables["run"])))
    for table in tables_of(tables["run"][0]["suite"]):
        if table not in tables:
            tables[table] = _read_table(folder / f"{table}.parquet", ALL_SCHEMAS[table])
    return tables


def _read_table(path: Path, schema: pa.Schema) -> list[Row]:
    try:
        with pq.ParquetFile(path) as file:
            _check_columns(path.name, file.schema_arrow, schema)
            rows: list[Row] = file.read().to_pylist()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        message = str(error).splitlines()[0]
        raise UnreadableRunError(path.name, "file", expected="a Parquet table", found=message) from None
    return rows


def _check_columns(name: str, found: pa.Schema, expected: pa.Schema) -> None:
    for place, field in enumerate(expected):
        there = found.field(place) if place < len(found) else None
        if there is None or there.name != field.name or not there.type.equals(field.type):
            shown = "none" if there is None else f"{there.name} {there.type}"
            raise UnreadableRunError(name, f"column {place}", expected=f"{field.name} {field.type}", found=shown)
    if len(found) > len(expected):
        raise UnreadableRunError(name, "columns", expected=str(len(expected)), found=str(len(found)))


def read_identity(tables: Tables) -> dict[str, Any]:
    """Return the run's identity.

    Raises:
        UnreadableRunError: the cell holds no identity, not in canonical JSON, or not the one that its digest names.
    """
    row = tables["run"][0]
    identity, canonical = _json_object(row, "identity_json")
    found, expected = sha256_json(identity), row["identity_sha256"]
    if found != expected:
        how = "the identity whose digest identity_sha256 is"
        raise UnreadableRunError(
            "run.parquet", "run: identity_json", expected=f"{how} {expected}", found=f"one with {found}"
        )
    if canonical != row["identity_json"]:
        raise UnreadableRunError("run.parquet", "run: identity_json", expected="canonical JSON", found="another form")
    if not _is_identity(identity):
        needed = "suite, protocol, dataset_sha256, answer, judges, ... (formats.md 4)"
        raise UnreadableRunError("run.parquet", "run: identity_json", expected=needed, found="another object")
    return identity


def _json_object(row: Row, column: str) -> tuple[dict[str, Any], str]:
    """Return the JSON object in a cell, and its canonical form."""
    try:
        value = json.loads(row[column] or "", parse_constant=_no_constant)
        canonical = canonical_json(value).decode()
    except (ValueError, RecursionError) as error:
        found = " ".join(str(error).split())
        raise UnreadableRunError("run.parquet", f"run: {column}", expected="a JSON object", found=found) from None
    if not isinstance(value, dict):
        found = type(value).__name__
        raise UnreadableRunError("run.parquet", f"run: {column}", expected="a JSON object", found=found)
    return value, canonical


def _no_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")


def _is_identity(identity: Mapping[str, Any]) -> bool:
    """Whether an object has what recomputing needs, each of its type."""
    names = ("suite", "config", "protocol", "dataset_sha256", "grouping", "semantics_sha256")
    strings = all(isinstance(identity.get(name), str) for name in names)
    counts = all(type(identity.get(name)) is int and identity[name] > 0 for name in ("repeats", "n_cases"))
    answers = identity.get("answer_repeats", 1)
    judges = identity.get("judges")
    needed = {"model", "endpoint", "params", "vendor", "system_sha256", "template_sha256", "format", "id_style"}
    return (
        strings
        and counts
        and type(answers) is int
        and answers > 0
        and identity["suite"] in SUITES
        and identity["grouping"] in GROUPINGS
        and _is_model(identity.get("answer"), {"source", "model", "params", "system_sha256"})
        and isinstance(identity["answer"]["model"], str | None)
        and isinstance(judges, list)
        and bool(judges)
        and all(_is_model(judge, needed) and isinstance(judge["model"], str) for judge in judges)
    )


def _is_model(value: object, needed: set[str]) -> bool:
    return isinstance(value, dict) and needed <= value.keys() and isinstance(value["params"], dict)


def read_summary(tables: Tables) -> dict[str, Any]:
    """Return the recorded summary.

    Raises:
        UnreadableRunError: the cell holds no JSON object.
    """
    return _json_object(tables["run"][0], "summary_json")[0]
