"""A mirror reads the same in datasets, polars, DuckDB, pandas and pyarrow, and without any network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow.dataset as pds
import pyarrow.parquet as pq
import pytest

from bedside_bench import PANEL_IDS, Case, case_to_row, rubric_rows
from builder.cards.frontmatter import yaml_features
from builder.mirror import build_mirror
from builder.tree.sources import open_source
from tests.load_mirror import SCHEMAS
from tests.mirrors import DRUG_SAFETY, ITEMS, add_held_out, source_cases
from tests.trees import write_tree

ROOT = Path(__file__).parent.parent
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_UPDATE_DOWNLOAD_COUNTS": "0",
    "PYTHONWARNINGS": "ignore",
}


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror with a held-out split, under the name that a script of ours in it would make unloadable."""
    folder = tmp_path_factory.mktemp("loading")
    source = write_tree(folder / "source")
    add_held_out(source)
    return build_mirror(open_source(source), folder / "bedside_bench", held_out=True).folder


@pytest.fixture(scope="module")
def public(mirror: Path) -> list[Case]:
    """Return the public cases of the mirror's source, in dataset order."""
    return source_cases(mirror.parent / "source", PANEL_IDS)


@pytest.fixture(scope="module")
def loaded(mirror: Path) -> dict[str, Any]:
    """Return everything `datasets` loads, in a process of its own with a fresh cache."""
    out = mirror.parent / "loaded.json"
    subprocess.run(
        [sys.executable, "-m", "tests.load_mirror", str(mirror), str(mirror.parent / "cache"), str(out)],
        check=True,
        cwd=ROOT,
        env={**os.environ, **OFFLINE, "HF_HOME": str(mirror.parent / "home")},
    )
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def test_datasets_knows_every_config(loaded: dict[str, Any]) -> None:
    """Ten panels, `all` and `rubric_items`; without a name it is `all`."""
    assert {*PANEL_IDS, "all", "rubric_items"} == set(loaded["names"])
    assert loaded["loaded"]["all"] == loaded["unnamed"]


def test_datasets_loads_the_cases_of_a_panel(loaded: dict[str, Any], public: list[Case]) -> None:
    """load_dataset(folder, "drug_safety", split="train") gives the panel's rows, and each panel its own."""
    for panel in PANEL_IDS:
        rows = [case_to_row(case) for case in public if case["benchmark"] == panel]
        assert rows == loaded["loaded"][panel]["train"]
    assert loaded["loaded"]["drug_safety"]["train"] == loaded["one split"]


def test_datasets_loads_all_in_registry_order(loaded: dict[str, Any], public: list[Case]) -> None:
    """`all` is the panels one after another, not sorted by name; held-out cases are a split of their own."""
    assert list(map(case_to_row, public)) == loaded["loaded"]["all"]["train"]
    assert len(loaded["loaded"]["all"]["test"]) == 2
    assert {"train", "test"} == set(loaded["loaded"]["drug_safety"])
    assert {"train"} == set(loaded["loaded"]["health_equity"])


def test_datasets_loads_the_long_table(loaded: dict[str, Any], public: list[Case]) -> None:
    """`rubric_items` has a row an item, with nulls where a points panel has no weight."""
    assert [row for case in public for row in rubric_rows(case)] == loaded["loaded"]["rubric_items"]["train"]


def test_streaming_gives_the_same_rows(loaded: dict[str, Any]) -> None:
    """With streaming=True nothing differs."""
    for name in ("all", "rubric_items"):
        assert loaded["loaded"][name] == loaded["streamed"][name]


def test_the_cards_features_are_those_that_datasets_makes_of_the_schemas(loaded: dict[str, Any]) -> None:
    """Our small converter and `Features.from_arrow_schema` write the same YAML, also for nested types."""
    assert loaded["yaml"] == [yaml_features(schema) for schema in SCHEMAS]
    assert loaded["features"]["all"] == yaml_features(SCHEMAS[0])


def from_duckdb(path: Path) -> list[dict[str, Any]]:
    """Return the rows that DuckDB reads."""
    result = duckdb.connect().execute("select * from read_parquet(?)", [str(path)])
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def from_pandas(path: Path) -> list[dict[str, Any]]:
    """Return the rows that pandas reads, its missing values as None and its arrays as lists."""
    rows = pd.read_parquet(path, dtype_backend="pyarrow").to_dict("records")
    return [
        {
            str(name): None if value is pd.NA else list(value) if name == "rubric_items" else value
            for name, value in row.items()
        }
        for row in rows
    ]


READERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "polars": lambda path: pl.read_parquet(path).to_dicts(),
    "polars, lazily": lambda path: pl.scan_parquet(path).collect().to_dicts(),
    "DuckDB": from_duckdb,
    "pandas": from_pandas,
    "pyarrow": lambda path: [dict(row) for row in pq.read_table(path).to_pylist()],
    "pyarrow.dataset": lambda path: [dict(row) for row in pds.dataset(path).to_table().to_pylist()],
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", [DRUG_SAFETY, "data/safety_therapeutic/train-00000-of-00001.parquet", ITEMS])
def test_every_reader_gives_the_same_rows(mirror: Path, public: list[Case], reader: str, name: str) -> None:
    """Cell by cell, a panel's file and the long table are the source's cases in each of them."""
    panel = name.split("/")[1]
    expected = (
        [row for case in public for row in rubric_rows(case)]
        if name == ITEMS
        else [case_to_row(case) for case in public if case["benchmark"] == panel]
    )

    assert expected == READERS[reader](mirror / name)
