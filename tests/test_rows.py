"""The rows of a mirror are held against every digest and against the long table, whatever the files' digests say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builder.dataset.folder import write_parquet
from builder.mirror import verify_mirror
from tests.mirrors import DRUG_SAFETY, ITEMS, change_rows, lines, remake_digests


def set_points(rows: list[dict[str, Any]]) -> None:
    """Change one number of one item."""
    rows[1]["rubric_items"][2]["points"] += 1


def swap(rows: list[dict[str, Any]]) -> None:
    """Let two cases change places."""
    rows.reverse()


def set_id(rows: list[dict[str, Any]]) -> None:
    """Change the id of an item, which the content digest ignores."""
    rows[0]["rubric_items"][0]["item_id"] = "item_0"


@pytest.mark.parametrize("change", [set_points, swap, set_id], ids=["a number", "the order", "an id"])
def test_rows_changed_behind_new_file_digests_are_named(mirror: Path, change: Callable[[Any], None]) -> None:
    """With the file's digest made anew, the panel's digest, the dataset's and the long table give it away."""
    change_rows(mirror, DRUG_SAFETY, change)
    remake_digests(mirror)
    found = "\n".join(lines(mirror))

    assert f"{DRUG_SAFETY}: rows of the panel: expected" in found
    assert "digests.json: dataset_sha256: expected" in found
    assert f"{ITEMS}: row" in found


def set_weight(rows: list[dict[str, Any]]) -> None:
    """Give a points item a weight."""
    rows[5]["weight"] = 3


def drop_last(rows: list[dict[str, Any]]) -> None:
    """Leave the last row out."""
    rows.pop()


def add_one(rows: list[dict[str, Any]]) -> None:
    """Repeat the last row."""
    rows.append(rows[-1])


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (set_weight, f"{ITEMS}: row 5: weight: expected None, found 3"),
        (drop_last, f"{ITEMS}: rows: expected at least 8, found 7"),
        (add_one, f"{ITEMS}: rows: expected no more than the panels' items, found 1 more"),
    ],
    ids=["a cell", "a row less", "a row more"],
)
def test_a_long_table_that_differs_from_the_panels_is_named(
    mirror: Path, change: Callable[[Any], None], found: str
) -> None:
    """Each row of `rubric_items` follows from the panels' rows; the first that does not is shown."""
    change_rows(mirror, ITEMS, change)
    remake_digests(mirror)

    assert found in lines(mirror)


def test_a_null_is_named(mirror: Path) -> None:
    """A missing value would pass through most readers as an empty text or a NaN."""
    change_rows(mirror, DRUG_SAFETY, lambda rows: rows[0].update(prompt=None))
    remake_digests(mirror)

    assert f"{DRUG_SAFETY}: rows: expected cases, found expected a value everywhere, found null" in lines(mirror)


def test_other_columns_behind_new_digests_are_named(mirror: Path) -> None:
    """A column more, with a card that knows nothing of it, is found."""
    table = pq.read_table(mirror / DRUG_SAFETY)
    write_parquet(table.append_column("x", pa.array([1, 2], pa.int64())), mirror / DRUG_SAFETY)
    remake_digests(mirror)

    assert f"{DRUG_SAFETY}: rows: expected cases, found expected the columns case_id, benchmark" in "\n".join(
        lines(mirror)
    )


def test_verifying_says_how_far_it_is(mirror: Path) -> None:
    """The callback hears the step and the cases read so far."""
    heard: list[tuple[str, int]] = []
    verify_mirror(mirror, on_progress=lambda step, n: heard.append((step, n)))

    assert [("read back", 2)] == heard
