"""`croissant.json`: valid for its own reader, the same rows as the Parquet files, and verified with the folder."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from builder.cards.croissant import CROISSANT_NAME, croissant_json
from builder.dataset.digests import read_digests
from builder.dataset.folder import write_parquet
from builder.errors import BadInput
from tests.mirrors import CARD, DRUG_SAFETY, ITEMS, add_held_out, build, change_rows, lines, remake_digests, rows
from tests.trees import write_tree

ROOT = Path(__file__).parent.parent
CITATION = """cff-version: 1.2.0
title: Some cases
version: 1.2.0
date-released: 2026-09-14
license: CC-BY-4.0
authors:
- name: A clinic
"""


def read_croissant(folder: Path, *record_sets: str) -> dict[str, Any]:
    """Return errors, warnings and rows as `mlcroissant` gives them, in a process of its own."""
    out = folder.parent / "read.json"
    command = [sys.executable, "-m", "tests.read_croissant", str(folder / CROISSANT_NAME), str(out), *record_sets]
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "PYTHONWARNINGS": "ignore"}, capture_output=True)
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def cited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror, with a held-out split, of a source that says how it is cited."""
    folder = tmp_path_factory.mktemp("cited")
    source = write_tree(folder / "source")
    (source / "CITATION.cff").write_text(CITATION, encoding="utf-8")
    add_held_out(source)
    return build(source, folder / "mirror", held_out=True, with_croissant=True).folder


@pytest.fixture(scope="module")
def found(cited: Path) -> dict[str, Any]:
    """Return what `mlcroissant` reads from it."""
    return read_croissant(cited, "drug_safety", "safety_diagnostic", "rubric_items", "drug_safety@test")


@pytest.fixture
def described(tmp_path: Path) -> Path:
    """Return a small mirror with a Croissant file, to change."""
    return build(
        write_tree(tmp_path / "source"), tmp_path / "mirror", panels=["drug_safety"], with_croissant=True
    ).folder


def test_the_file_is_valid_croissant(found: dict[str, Any]) -> None:
    """mlcroissant has no error and not even a warning where the source says version, date and citation."""
    assert ([], []) == (found["errors"], found["warnings"])


def test_the_nested_rows_are_those_of_the_parquet_file(cited: Path, found: dict[str, Any]) -> None:
    """A panel's cases with their items stream as they are in Parquet, held-out ones from a record set of their own."""
    for name in ("drug_safety", "safety_diagnostic"):
        assert rows(cited, f"data/{name}/train-00000-of-00001.parquet") == found["rows"][name]
    assert rows(cited, "data/drug_safety/test-00000-of-00001.parquet") == found["rows"]["drug_safety@test"]


def test_the_long_table_streams_with_its_nulls(cited: Path, found: dict[str, Any]) -> None:
    """Where a points panel has no weight there is none in the stream either."""
    assert rows(cited, ITEMS) == found["rows"]["rubric_items"]


def test_what_the_source_does_not_say_is_left_out(described: Path) -> None:
    """No citation and no date are made up: they are what mlcroissant warns of, and there is no error."""
    found = read_croissant(described)

    assert [] == found["errors"]
    assert ["citeAs", "datePublished"] == [w.partition('" is rec')[0].rpartition("/")[2] for w in found["warnings"]]


def test_a_changed_parquet_file_fails_its_sha256(described: Path) -> None:
    """Reading rows that are not those of the description is refused."""
    change_rows(described, DRUG_SAFETY, lambda all_rows: all_rows[0].update(prompt="another"))
    found = read_croissant(described, "drug_safety")

    assert len(found["errors"]) == 1
    assert "is not identical with the reference" in found["errors"][0]


def test_the_whole_is_told_by_card_and_citation(cited: Path) -> None:
    """Name and text are the card's, the licence an address, the version the source's with the data's digest."""
    whole = json.loads((cited / CROISSANT_NAME).read_bytes())
    digests = read_digests(cited)

    assert "http://mlcommons.org/croissant/1.1" == whole["conformsTo"]
    assert ("test-tree", "https://creativecommons.org/licenses/by/4.0/") == (whole["name"], whole["license"])
    assert "22 cases in 10 panels" in whole["description"]
    assert ("A clinic. Some cases. Version 1.2.0, 2026-09-14.", "2026-09-14") == (
        whole["citeAs"],
        whole["datePublished"],
    )
    assert f"1.2.0+{digests['dataset_sha256'][:12]}" == whole["version"]


def test_every_parquet_file_is_named_with_its_digest(cited: Path) -> None:
    """Path, bytes and SHA-256 are those of the files, panels in registry order and the public split first."""
    listed = json.loads((cited / CROISSANT_NAME).read_bytes())["distribution"]

    assert {path.relative_to(cited).as_posix() for path in cited.rglob("*.parquet")} == {
        f["contentUrl"] for f in listed
    }
    assert [DRUG_SAFETY, DRUG_SAFETY.replace("train", "test")] == [f["@id"] for f in listed[:2]]
    for file in listed:
        data = (cited / file["contentUrl"]).read_bytes()
        assert (hashlib.sha256(data).hexdigest(), f"{len(data)} B") == (file["sha256"], file["contentSize"])


def test_the_same_source_gives_the_same_bytes(described: Path, tmp_path: Path) -> None:
    """There is no time and no path in it."""
    again = build(tmp_path / "source", tmp_path / "again", panels=["drug_safety"], with_croissant=True).folder

    assert (described / CROISSANT_NAME).read_bytes() == (again / CROISSANT_NAME).read_bytes()


def test_verify_names_the_line_that_differs(described: Path) -> None:
    """A description changed together with the digests is made anew from the folder and found out."""
    text = (described / CROISSANT_NAME).read_text(encoding="utf-8")
    assert [] == lines(described)
    (described / CROISSANT_NAME).write_text(text.replace("licenses/by/4.0", "licenses/by/3.0"), encoding="utf-8")
    remake_digests(described)

    assert len(lines(described)) == 1
    assert lines(described)[0].startswith("croissant.json: line ")
    assert 'found "\\"license\\": \\"https://creativecommons.org/licenses/by/3.0/' in lines(described)[0]


def test_a_description_of_other_files_is_found(described: Path) -> None:
    """After new rows and new digests the old description still has the old SHA-256."""
    change_rows(described, DRUG_SAFETY, lambda all_rows: all_rows[0].update(prompt="another"))
    remake_digests(described)

    assert any(line.startswith(f"{CROISSANT_NAME}: line ") for line in lines(described))


def test_a_broken_card_is_told_once_more_by_the_description(described: Path) -> None:
    """Without front matter there is nothing to make the description from: a finding, not a traceback."""
    (described / CARD).write_text("# no front matter\n", encoding="utf-8")
    remake_digests(described)

    assert any(line.startswith(f"{CROISSANT_NAME}: content: expected what the") for line in lines(described))


def test_a_column_that_croissant_has_no_type_for_is_refused(described: Path) -> None:
    """A duration has no counterpart there: one line names its type."""
    write_parquet(pa.table({"case_id": ["a"], "took": pa.array([1], pa.duration("s"))}), described / DRUG_SAFETY)

    with pytest.raises(BadInput, match=r"types that Croissant knows, found duration\[s\]"):
        croissant_json(described, read_digests(described))
