"""A HealthBench mirror reads the same in datasets, polars, DuckDB, pyarrow and mlcroissant, without any network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest

from builder.cards.frontmatter import read_front_matter, yaml_features
from builder.dataset.digests import read_digests
from builder.healthbench.mirror import build_healthbench
from builder.healthbench.names import CONFIGS
from builder.healthbench.reading import read_examples
from builder.healthbench.tables import items_table, schema_of
from tests.examples import make_example, make_meta, make_professional, write_jsonl
from tests.load_folder import load_folder

ROOT = Path(__file__).parent.parent
FILES = {
    "healthbench": ("oss_eval", make_example),
    "healthbench_professional": ("professional", make_professional),
    "healthbench_meta": ("oss_meta_eval", make_meta),
}


QUICK_AND_SLOW = [next(iter(FILES)), *(pytest.param(config, marks=pytest.mark.slow) for config in list(FILES)[1:])]
"""A process that loads `datasets` or mlcroissant takes seconds: one shape at every run, the others when asked for."""


@pytest.fixture(scope="module")
def mirrors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a mirror of each shape, by config."""
    folder = tmp_path_factory.mktemp("loading")
    built = {}
    for config, (name, make) in FILES.items():
        path = write_jsonl(folder / f"{name}.jsonl", map(make, range(5)))
        built[config] = build_healthbench(path, folder / config, license_id="mit", with_croissant=True).folder
    return built


def examples_of(mirror: Path) -> list[dict[str, Any]]:
    """Return the examples as our own reader gives them."""
    return read_examples(mirror, read_digests(mirror))


@pytest.mark.parametrize("config", QUICK_AND_SLOW)
def test_datasets_loads_both_configs(mirrors: dict[str, Path], config: str, tmp_path: Path) -> None:
    """load_dataset(folder, config, split="test"): loaded, streamed, and without a config name."""
    mirror = mirrors[config]
    found, examples = load_folder(mirror, tmp_path), examples_of(mirror)

    assert {config, "rubric_items"} == set(found["names"])
    assert {"test": examples} == found["loaded"][config] == found["streamed"][config] == found["unnamed"]
    assert {"test": items_table(examples, config).to_pylist()} == found["loaded"]["rubric_items"]


def from_duckdb(path: Path) -> list[dict[str, Any]]:
    """Return the rows that DuckDB reads."""
    result = duckdb.connect().execute("select * from read_parquet(?)", [str(path)])
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


READERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "polars": lambda path: pl.read_parquet(path).to_dicts(),
    "polars, lazily": lambda path: pl.scan_parquet(path).collect().to_dicts(),
    "DuckDB": from_duckdb,
    "pyarrow": lambda path: [dict(row) for row in pq.read_table(path).to_pylist()],
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("config", FILES)
def test_every_reader_gives_the_same_rows(mirrors: dict[str, Path], config: str, reader: str) -> None:
    """Cell by cell, nulls and nested lists too."""
    rows = READERS[reader](mirrors[config] / "data" / config / "test-00000-of-00001.parquet")

    assert examples_of(mirrors[config]) == rows


@pytest.mark.parametrize("config", QUICK_AND_SLOW)
def test_croissant_is_valid_and_gives_the_rows(mirrors: dict[str, Path], config: str, tmp_path: Path) -> None:
    """mlcroissant finds no error, and reads as many rows of each config as there are."""
    mirror, out = mirrors[config], tmp_path / "read.json"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.read_croissant",
            str(mirror / "croissant.json"),
            str(out),
            config,
            "rubric_items",
        ],
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
    )
    found = json.loads(out.read_text(encoding="utf-8"))

    assert [] == found["errors"]
    assert [one["case_id"] for one in examples_of(mirror)] == [row["case_id"] for row in found["rows"][config]]
    assert items_table(examples_of(mirror), config).num_rows == len(found["rows"]["rubric_items"])


def test_the_card_states_the_types_of_every_config() -> None:
    """The front matter's features can be written for each of the five."""
    for config in CONFIGS:
        names = [feature["name"] for feature in yaml_features(schema_of(config))]
        assert schema_of(config).names == names


def test_the_card_names_the_default_config(mirrors: dict[str, Path]) -> None:
    """Without a name `load_dataset` takes the examples."""
    for config, mirror in mirrors.items():
        front = read_front_matter((mirror / "README.md").read_bytes())
        assert [(config, True), ("rubric_items", None)] == [
            (one["config_name"], one.get("default")) for one in front["configs"]
        ]
