"""Who can read a results folder: polars, DuckDB and load_dataset, all runs at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest

from eval.results.folder import write_results
from tests.journals import write_journal, write_summary
from tests.tampering import PANELS

CONFIGS = ["runs", "scores", "decisions", "answers"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A results folder with two runs over four cases, one of which has a failed case."""
    for number, fail in enumerate(({}, {0: ("answer", "timeout")})):
        journal = write_journal(tmp_path / f"{number}.jsonl", panels=PANELS, fail=fail)
        write_results(journal, tmp_path / "out", summary_bytes=write_summary(journal))
    return tmp_path / "out"


def test_polars_and_duckdb_read_all_runs_at_once(folder: Path) -> None:
    """Two runs of four cases are eight scores in either reader, with the same mean over those that are there."""
    where = f"{folder}/runs/*/scores.parquet"

    ducks = duckdb.connect().execute(f"select count(*), count(distinct run_id), avg(score) from '{where}'").fetchall()
    bears = pl.read_parquet(where)
    assert (8, 2) == (bears.height, bears["run_id"].n_unique())
    assert ducks == [(8, 2, pytest.approx(bears["score"].mean()))]


_LOAD = """
import json, sys
from datasets import load_dataset
print(json.dumps({name: load_dataset(sys.argv[1], name, split="train").num_rows for name in sys.argv[2:]}))
"""


def test_datasets_loads_the_four_configs(folder: Path, tmp_path: Path) -> None:
    """load_dataset reads each config of a folder with two runs, features taken from the card."""
    environment = os.environ | {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", _LOAD, str(folder), *CONFIGS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    # A points case has 4 items, a plan case 7: two of each in each run.
    assert {"runs": 2, "scores": 8, "decisions": 44, "answers": 8} == json.loads(done.stdout.splitlines()[-1])
