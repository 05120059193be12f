"""What `load_dataset` passes over in silence, or refuses only at a user's desk, is found in the card beforehand.

Every case is one mistake of the table in the notes on the Hub, made in a real mirror whose digests were made anew, so
that nothing but the comparison of card and Parquet files can find it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builder.dataset.footers import check_card
from builder.mirror import verify_mirror
from tests.mirrors import DRUG_SAFETY, build_small, change_card, remake_digests


def whats(mirror: Path) -> list[str]:
    """Return what is found in a mirror's card."""
    return [finding.line() for finding in verify_mirror(mirror).findings]


def test_a_card_as_it_was_written_has_no_findings(mirror: Path) -> None:
    """The card of a fresh build agrees with its files."""
    assert [] == whats(mirror)
    assert [] == check_card(mirror)


FILE = DRUG_SAFETY


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("  default: true\n", "", "configs: expected exactly one with default: true, found 0"),
        (
            "- config_name: rubric_items\n  data_files:",
            "- config_name: rubric_items\n  default: true\n  data_files:",
            "configs: expected exactly one with default: true, found 2",
        ),
        ("config_name: drug_safety", "config_name: default", "expected no config called default"),
        ("- config_name: drug_safety\n  data_files", "- data_files", "expected a config_name of letters"),
        ("config_name: drug_safety", "config_name: 1.0", "expected a config_name of letters, digits, _ . -, found 1.0"),
        ("config_name: drug_safety", "config_name: a/b", "expected a config_name of letters"),
        ("split: train", "split: held-out", "expected a split name of letters, digits, _ and dots"),
        (f"path: {FILE}", "path: data/drug_safety/dev-*.parquet", "found none: its paths match nothing"),
        (f"path: {FILE}", f"path: [{FILE}, data/drug_safety/*.parquet]", f"every file once, found {FILE} twice"),
        (f"path: {FILE}", "path: ../elsewhere/x.parquet", "expected paths inside this folder"),
        (f"path: {FILE}", "path: hf://datasets/a/b/x.parquet", "expected paths inside this folder"),
        (f"path: {FILE}", "path: LICENSE", "expected Parquet files, found LICENSE"),
        (f"path: {FILE}", "path: data/rubric_items/train-00000-of-00001.parquet", f"expected {FILE}, found data/"),
        ("  - name: prompt\n    dtype: string\n", "", "features: expected 5 columns, found 4"),
        (
            "    - name: points\n      dtype: int64\n",
            "    - name: points\n      dtype: string\n",
            "dataset_info of drug_safety: feature rubric_items: expected",
        ),
        ("    list:\n", "    sequence:\n", "dataset_info of drug_safety: feature rubric_items: expected"),
        ("num_examples: 2\n", "num_examples: 3\n", "num_examples: expected {'train': 2}, found {'train': 3}"),
        ("  download_size: ", "  download_size: 1", "dataset_info of drug_safety: download_size: expected"),
        ("  dataset_size: ", "  dataset_size: 1", "dataset_info of drug_safety: dataset_size: expected the sum"),
        ("info:\n- config_name: drug_safety\n", "info:\n- a: 1\n", "dataset_info of drug_safety: expected one"),
        ("info:\n- config_name: drug_safety", "info:\n- config_name: x", "dataset_info of x: expected a config"),
        ("configs:\n", "configs: []\nother:\n", "configs: expected a list of configs, found none"),
        ("dataset_info:\n", "configs: []\ndataset_info:\n", "the key 'configs' stands twice"),
        ("---\npretty", "\ufeff---\npretty", "expected no byte order mark, found one"),
        ("---\npretty", "\n---\npretty", "at the very beginning, found none"),
        ("license: cc-by-4.0", "license: mit", "license: expected 'cc-by-4.0', found 'mit'"),
        ("  data_files:\n", "  columns: [case_id]\n  data_files:\n", "config drug_safety: expected no other key than"),
    ],
    ids=[
        "no default",
        "two defaults",
        "a config named default",
        "no config name",
        "a number as name",
        "a slash in a name",
        "a dash in a split",
        "files that are not there",
        "a file twice",
        "a path that leaves",
        "a path elsewhere",
        "no Parquet",
        "another config's file",
        "a column missing",
        "points as text",
        "sequence for list",
        "rows",
        "download size",
        "dataset size",
        "no info",
        "info of no config",
        "no configs",
        "configs twice",
        "BOM",
        "blank line first",
        "licence",
        "a key that changes rows",
    ],
)  # fmt: skip
def test_a_mistake_in_the_card_is_named(mirror: Path, old: str, new: str, found: str) -> None:
    """One mistake gives a finding that says which."""
    change_card(mirror, lambda text: text.replace(old, new, 1))

    assert found in "\n".join(whats(mirror))


def test_another_order_of_the_files_of_all_is_named(tmp_path: Path) -> None:
    """The config `all` lists the panels in registry order; sorted by name it would have another digest."""
    panels = ["landmark_trials", "health_equity"]
    mirror = build_small(tmp_path, panels=panels).folder
    paths = [f"    - data/{panel}/train-00000-of-00001.parquet\n" for panel in panels]
    change_card(mirror, lambda text: text.replace("".join(paths), "".join(reversed(paths))))

    assert "config all, split train: files: expected data/landmark_trials/" in "\n".join(whats(mirror))


def test_a_script_of_any_name_is_named(mirror: Path) -> None:
    """A repository called like a script in it does not load."""
    (mirror / "bedside_bench.py").write_bytes(b"")
    remake_digests(mirror)

    assert ["bedside_bench.py: script: expected none: a repository of that name would not load, found one"] == whats(
        mirror
    )


def test_a_file_that_overrules_the_card_is_named(mirror: Path) -> None:
    """`.huggingface.yaml` would win over the card's configs."""
    (mirror / ".huggingface.yaml").write_bytes(b"configs: []\n")
    remake_digests(mirror)

    assert [".huggingface.yaml: overrules the card: expected no such file, found one"] == whats(mirror)


def test_a_left_over_shard_is_named(mirror: Path) -> None:
    """A Parquet file that no config reaches is a left-over, even with digests that list it."""
    shutil.copy(mirror / DRUG_SAFETY, mirror / "data/drug_safety/train-00001-of-00002.parquet")
    remake_digests(mirror)

    assert [
        "README.md: file data/drug_safety/train-00001-of-00002.parquet: expected in a config, found in none"
    ] == whats(mirror)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"row_group_size": 1}, "row groups: expected one, found 2"),
        ({"schema": {"pandas": "{}"}}, "schema metadata: expected none of another library's, found 'pandas'"),
        ({"large": True}, "column types that every reader knows, found no card type for Arrow's large_string"),
    ],
    ids=["two row groups", "pandas metadata", "large strings"],
)
def test_another_way_of_writing_parquet_is_named(mirror: Path, options: dict[str, object], found: str) -> None:
    """A file that another library wrote looks the same to a reader today, and is not the one that was built."""
    table = pq.read_table(mirror / DRUG_SAFETY)
    if options.get("large"):
        table = table.set_column(0, "case_id", table.column(0).cast(pa.large_string()))
    pq.write_table(
        table.replace_schema_metadata(options.get("schema")),
        mirror / DRUG_SAFETY,
        row_group_size=options.get("row_group_size"),
    )
    remake_digests(mirror)

    lines = whats(mirror)
    assert found in "\n".join(lines)
    assert len(set(lines)) == len(lines), "a file of two configs is named once"


def test_columns_that_differ_within_a_config_are_named(tmp_path: Path) -> None:
    """`all` is read from ten files: one with another type would fail, or be read wrongly, on the way."""
    mirror = build_small(tmp_path, panels=["drug_safety", "health_equity"]).folder
    table = pq.read_table(mirror / "data/health_equity/train-00000-of-00001.parquet")
    pq.write_table(table.drop_columns(["prompt"]), mirror / "data/health_equity/train-00000-of-00001.parquet")
    remake_digests(mirror)

    found = "\n".join(whats(mirror))
    assert (
        "data/health_equity/train-00000-of-00001.parquet: columns: expected case_id string, benchmark string" in found
    )
