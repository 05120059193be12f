"""What is published reads the same in datasets 5, 4 and 3, polars, DuckDB and pandas, now and at a past tag."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from huggingface_hub import HfFileSystem, snapshot_download

from bedside_bench import case_to_row, rubric_rows
from eval.results.card import CONFIGS
from eval.results.folder import write_results
from tests.at_hub import MIRROR, RESULTS, TOKEN, client_at, make_hub, put
from tests.journals import write_journal, write_summary
from tests.load_hub import load_hub
from tests.local_hub import LocalHub
from tests.mirrors import build, source_cases
from tests.tampering import PANELS
from tests.test_builder_class import other_python  # noqa: F401  a fixture: environments with datasets 3 and 4
from tests.trees import case_path, edit_json, read_json, write_tree

CHOSEN = ("drug_safety", "safety_therapeutic")

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two states of a mirror (one point is changed in the second) and of results (a second run is added)."""
    folder = tmp_path_factory.mktemp("readers")
    build(write_tree(folder / "source-v1", 2, CHOSEN), folder / "mirror-v1", panels=CHOSEN)
    changed = Path(shutil.copytree(folder / "source-v1", folder / "source-v2"))
    first, *others = read_json(case_path(changed))["rubric_items"]
    edit_json(case_path(changed), rubric_items=[{**first, "points": 1}, *others])
    build(changed, folder / "mirror-v2", panels=CHOSEN)
    for number, fail in enumerate(({}, {0: ("answer", "timeout")}), start=1):
        journal = write_journal(folder / f"{number}.jsonl", panels=PANELS, fail=fail)
        write_results(journal, folder / "results-v2", summary_bytes=write_summary(journal))
        if number == 1:
            shutil.copytree(folder / "results-v2", folder / "results-v1")
    return folder


@pytest.fixture(scope="module")
def hub(made: Path) -> Iterator[LocalHub]:
    """A Hub with both, the states tagged v1 and v2."""
    with make_hub() as running, client_at(running, made / "cache"):
        for tag in ("v1", "v2"):
            put(running, made / f"mirror-{tag}", MIRROR, cache=made / "cache", tag=tag)
            put(running, made / f"results-{tag}", RESULTS, cache=made / "cache", tag=tag)
        yield running


def mirror_rows(made: Path, tag: str) -> dict[str, Rows]:
    """Return the rows that each config of the mirror must have, from the source's own files."""
    cases = source_cases(made / f"source-{tag}", CHOSEN)
    panels = {panel: [case_to_row(case) for case in cases if case["benchmark"] == panel] for panel in CHOSEN}
    items = [row for case in cases for row in rubric_rows(case)]
    return {"all": list(map(case_to_row, cases)), **panels, "rubric_items": items}


def result_rows(made: Path, tag: str) -> dict[str, Rows]:
    """Return the rows that each config of the results must have, from the local folder as pyarrow reads it."""
    runs = sorted((made / f"results-{tag}" / "runs").iterdir())
    return {
        config: [row for run in runs for row in pq.read_table(run / f"{table}.parquet", partitioning=None).to_pylist()]
        for config, table in CONFIGS.items()
    }


# -- datasets


def check_loaded(found: Mapping[str, Any], expected: Mapping[str, Rows], *, default: str) -> None:
    """Hold what an environment loads against what must be there: names, rows, streamed rows, and the default."""
    assert set(expected) == set(found["names"])
    for name, rows in expected.items():
        assert {"train": rows} == found["loaded"][name], name
        assert {"train": rows} == found["streamed"][name], name
    assert {"train": expected[default]} == found["unnamed"]


def check_everything(hub: LocalHub, made: Path, home: Path, version: str, **python: str) -> None:
    """Load both repositories, as they are and at the past tag, in one process, and hold all against the sources."""
    calls = [(repo, revision) for repo in (MIRROR, RESULTS) for revision in (None, "v1")]
    found = load_hub(hub, calls, home, **python)
    for (repo, revision), loaded in zip(calls, found, strict=True):
        tag = revision or "v2"
        rows, default = (mirror_rows(made, tag), "all") if repo == MIRROR else (result_rows(made, tag), "runs")
        assert loaded["datasets"].startswith(version)
        check_loaded(loaded, rows, default=default)


@pytest.mark.slow
def test_datasets_5(hub: LocalHub, made: Path, tmp_path: Path) -> None:
    """Every config of both, loaded and streamed, now and at a past tag; without a name it is `all`, or `runs`."""
    check_everything(hub, made, tmp_path / "home", "5.")


@pytest.mark.slow
def test_datasets_3_and_4(hub: LocalHub, made: Path, tmp_path: Path, other_python: str) -> None:  # noqa: F811
    """Older versions of `datasets` load and stream the same rows from the same repositories."""
    version = "3." if "datasets-3" in other_python else "4."

    check_everything(hub, made, tmp_path / "home", version, python=other_python)


def test_the_states_differ(made: Path) -> None:
    """What the tags are told apart by: one row of the mirror, and the second run."""
    before, after = mirror_rows(made, "v1"), mirror_rows(made, "v2")
    runs = [len(result_rows(made, tag)["runs"]) for tag in ("v1", "v2")]

    assert 1 == sum(old != new for old, new in zip(before["all"], after["all"], strict=True))
    assert [1, 2] == runs


# -- other readers, by what each has for files on a Hub


def file_system(hub: LocalHub) -> HfFileSystem:
    """Return the Hub as a file system."""
    return HfFileSystem(endpoint=hub.endpoint, token=TOKEN, skip_instance_cache=True)


def address(repo: str, tag: str, path: str) -> str:
    """Return where a file of a repository is for readers that know `hf://`."""
    return f"hf://datasets/{repo}@{tag}/{path}"


def downloaded(repo: str, tag: str) -> Path:
    """Return a local copy of a repository."""
    return Path(snapshot_download(repo, repo_type="dataset", revision=tag))


def polars_downloaded(hub: LocalHub, repo: str, tag: str, path: str) -> Rows:  # noqa: ARG001  the client knows it
    """Read a local copy, as polars scans a folder."""
    return pl.scan_parquet(downloaded(repo, tag) / path).collect().to_dicts()


def polars_opened(hub: LocalHub, repo: str, tag: str, path: str) -> Rows:
    """Read through the Hub's file system: polars' own `hf://` knows one Hub only."""
    files = sorted(file_system(hub).glob(address(repo, tag, path)))
    frames = []
    for name in files:
        with file_system(hub).open(name) as file:
            frames.append(pl.read_parquet(file))
    return pl.concat(frames).to_dicts()


def polars_by_http(hub: LocalHub, repo: str, tag: str, path: str) -> Rows:
    """Scan the files' web addresses, with ranged requests."""
    names = file_system(hub).glob(address(repo, tag, path))
    files = sorted(name.partition(f"@{tag}/")[2] for name in names)
    urls = [f"{hub.endpoint}/datasets/{repo}/resolve/{tag}/{name}" for name in files]
    return pl.scan_parquet(urls).collect().to_dicts()


def duckdb_by_file_system(hub: LocalHub, repo: str, tag: str, path: str) -> Rows:
    """Ask SQL of `hf://` paths, a glob over runs included."""
    connection = duckdb.connect()
    connection.register_filesystem(file_system(hub))
    result = connection.execute("select * from read_parquet(?)", [address(repo, tag, path)])
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def pandas_by_address(hub: LocalHub, repo: str, tag: str, path: str) -> Rows:
    """Read `hf://` paths, of several files one after another."""
    options = {"endpoint": hub.endpoint, "token": TOKEN}
    files = sorted(file_system(hub).glob(address(repo, tag, path)))
    frames = [pd.read_parquet(f"hf://{name}", storage_options=options, dtype_backend="pyarrow") for name in files]
    return [plain(row) for frame in frames for row in frame.to_dict("records")]


def plain(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a row of pandas with its missing values as None and its arrays as lists."""

    def value(cell: Any) -> Any:
        if cell is pd.NA:
            return None
        return list(cell) if hasattr(cell, "tolist") else cell

    return {str(name): value(cell) for name, cell in row.items()}


READERS: dict[str, Callable[[LocalHub, str, str, str], Rows]] = {
    "polars, a local copy": polars_downloaded,
    "polars, opened": polars_opened,
    "polars, by http": polars_by_http,
    "DuckDB": duckdb_by_file_system,
    "pandas": pandas_by_address,
}


@pytest.mark.parametrize("tag", ["v1", "v2"])
@pytest.mark.parametrize("reader", READERS)
def test_a_mirror_reads_the_same(hub: LocalHub, made: Path, reader: str, tag: str) -> None:
    """Each panel and the long table, at a tag, cell by cell."""
    expected = mirror_rows(made, tag)
    for config in (*CHOSEN, "rubric_items"):
        path = f"data/{config}/train-00000-of-00001.parquet"
        assert expected[config] == READERS[reader](hub, MIRROR, tag, path), config


@pytest.mark.parametrize("tag", ["v1", "v2"])
@pytest.mark.parametrize("reader", READERS)
def test_results_read_the_same(hub: LocalHub, made: Path, reader: str, tag: str) -> None:
    """Each table of all runs at once, at a tag, cell by cell: nulls, lists and nested panels too."""
    expected = result_rows(made, tag)
    for config, table in CONFIGS.items():
        assert expected[config] == READERS[reader](hub, RESULTS, tag, f"runs/*/{table}.parquet"), config


def test_the_index_gives_summaries_back(hub: LocalHub, made: Path) -> None:
    """A reader of `runs` alone has each run's whole summary, to the byte."""
    rows = duckdb_by_file_system(hub, RESULTS, "v2", "runs/*/run.parquet")
    written = sorted((made / f"{number}.summary.json").read_text(encoding="utf-8") for number in (1, 2))

    assert written == sorted(row["summary_json"] for row in rows)
    assert all(json.loads(row["summary_json"])["n_expected"] == row["n_expected"] for row in rows)
