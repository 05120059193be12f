"""`verify` names every change of a HealthBench mirror, as it does for case panels: bytes, rows, digests and card."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builder.errors import BadInput
from builder.healthbench.against import check_source_file
from builder.healthbench.mirror import build_healthbench
from builder.mirror import verify_mirror
from eval.results.anywhere import Depth, verify_place
from tests.examples import make_example, make_meta, write_examples, write_jsonl
from tests.mirrors import change_card, change_rows, lines, remake_digests

EXAMPLES = "data/healthbench/test-00000-of-00001.parquet"
ITEMS = "data/rubric_items/test-00000-of-00001.parquet"
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a JSONL file with a licence beside it."""
    return write_examples(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror of it, with a Croissant description, to be copied."""
    return build_healthbench(source, tmp_path_factory.mktemp("built") / "mirror", with_croissant=True).folder


def test_any_byte_changed_in_any_file_is_named(mirror: Path) -> None:
    """Flip a bit anywhere and `verify` names that file (or, in digests.json, the file whose line it is)."""
    draw = random.Random(3)
    for path in sorted(path for path in mirror.rglob("*") if path.is_file()):
        name, data = path.relative_to(mirror).as_posix(), path.read_bytes()
        for at in {0, len(data) - 1, *draw.choices(range(len(data)), k=40 if name == "digests.json" else 6)}:
            path.write_bytes(data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :])
            named = {finding.file for finding in verify_mirror(mirror).findings}
            assert named if name == "digests.json" else name in named, (name, at)
        path.write_bytes(data)
    assert [] == lines(mirror)


def points(rows: Rows) -> None:
    """Change the points of one item."""
    rows[1]["rubric_items"][2]["points"] = 9.5


def canary(rows: Rows) -> None:
    """Strip a canary."""
    rows[0]["canary"] = None


def tag(rows: Rows) -> None:
    """Add a tag to an item."""
    rows[2]["rubric_items"][0]["tags"].append("axis:other")


def order(rows: Rows) -> None:
    """Put the examples in another order."""
    rows.reverse()


def role(rows: Rows) -> None:
    """Give a turn to somebody else."""
    rows[1]["prompt"][1]["role"] = "system"


@pytest.mark.parametrize("change", [points, canary, tag, order, role])
def test_a_changed_row_is_found_behind_new_file_digests(mirror: Path, change: Callable[[Rows], None]) -> None:
    """The rows give another dataset_sha256 than the digests, and the card's block, say."""
    change_rows(mirror, EXAMPLES, change)
    remake_digests(mirror)

    assert any(line.startswith("digests.json: dataset_sha256: expected ") for line in lines(mirror))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda rows: rows[5].update(points=4.0), "row 5: points: expected 5.0, found 4.0"),
        (lambda rows: rows[3].update(polarity="positive"), "row 3: polarity: expected 'negative', found 'positive'"),
        (lambda rows: rows[0].update(tags=[]), "row 0: tags: expected ['level:example', 'axis:accuracy'], found []"),
        (lambda rows: rows.pop(), "rows: expected at least 12, found 11"),
        (lambda rows: rows.append(rows[0]), "rows: expected no more than the panels' items, found 1 more"),
    ],
    ids=["points", "polarity", "tags", "one less", "one more"],
)
def test_the_long_table_follows_from_the_examples(mirror: Path, change: Callable[[Rows], None], expected: str) -> None:
    """A row of it that says something else is named by its number and column."""
    change_rows(mirror, ITEMS, change)
    remake_digests(mirror)

    assert f"{ITEMS}: {expected}" in lines(mirror)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda rows: rows[0].update(case_id=None), "case_id: expected a value, found null"),
        (lambda rows: rows[0]["rubric_items"][0].update(points=None), "points: expected a value, found null"),
        (lambda rows: rows[0]["rubric_items"][0].update(points=float("nan")), "expected a finite number, found nan"),
    ],
    ids=["id", "points", "NaN"],
)
def test_a_value_that_no_build_writes_is_named(mirror: Path, change: Callable[[Rows], None], expected: str) -> None:
    """Null where there is always a value, or a number that is none."""
    change_rows(mirror, EXAMPLES, change)
    remake_digests(mirror)

    assert any(line.startswith(f"{EXAMPLES}: rows: ") and expected in line for line in lines(mirror))


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({"dataset_sha256": "0" * 64}, "digests.json: dataset_sha256: expected"),
        ({"content_sha256": "0" * 64}, "digests.json: content_sha256: expected"),
        ({"n_items": 7}, "digests.json: n_items: expected 12, as in the rows, found 7"),
        ({"n_cases": 2}, "digests.json: n_cases: expected 3, as in the rows, found 2"),
        ({"panels": [{"id": "healthbench", "n": 3, "sha256": "0" * 64}]}, f"{EXAMPLES}: rows of the panel: expected"),
        ({"panels": [{"id": "healthbench_hard", "n": 3, "sha256": "0" * 64}]}, "README.md: configs: expected"),
        ({"splits": {"test": "train"}}, "digests.json: splits: expected {'test': 'test'}"),
        ({"splits": {"train": "train"}}, "digests.json: splits: expected {'test': 'test'}"),
        (
            {"source": {"kind": "file", "repo": None, "revision": None, "license": "mit"}},
            "digests.json: source: expected an object of kind, repo, revision, license, sha256",
        ),
        (
            {"source": {"kind": "file", "repo": None, "revision": None, "license": "mit", "sha256": "0" * 64}},
            "expected as in the last block of README.md",
        ),
        ({"made_by": {"bedside-bench": "9", "pyarrow": "9"}}, "expected as in the last block of README.md"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_member_of_the_digests_that_does_not_fit_is_named(
    mirror: Path, members: dict[str, object], found: str
) -> None:
    """Whatever digests.json says is checked against the rows or against the card."""
    remake_digests(mirror, **members)

    assert found in "\n".join(lines(mirror))


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("num_examples: 3", "num_examples: 4", "README.md: dataset_info of healthbench: splits and num_examples"),
        ("license: mit", "license: apache-2.0", "README.md: license: expected 'mit', found 'apache-2.0'"),
        ("  - name: points\n    dtype: float64", "  - name: points\n    dtype: int64", "feature points"),
        ("- config_name: healthbench\n  default: true\n", "- config_name: healthbench\n", "exactly one with default"),
    ],
    ids=["rows", "licence", "type", "default"],
)
def test_a_card_that_says_something_else_is_named(mirror: Path, old: str, new: str, found: str) -> None:
    """What `load_dataset` would pass over in silence."""
    change_card(mirror, lambda text: text.replace(old, new))

    assert found in "\n".join(lines(mirror))


def test_a_changed_description_is_named(mirror: Path) -> None:
    """croissant.json follows from the other files."""
    path = mirror / "croissant.json"
    path.write_bytes(path.read_bytes().replace(b"cr:Float64", b"cr:Int64"))
    remake_digests(mirror)

    assert any(line.startswith("croissant.json: line ") for line in lines(mirror))


def test_a_file_of_another_config_is_a_stray(mirror: Path) -> None:
    """One mirror holds one file's examples."""
    other = mirror / "data" / "healthbench_hard" / "test-00000-of-00001.parquet"
    other.parent.mkdir()
    shutil.copy(mirror / EXAMPLES, other)
    remake_digests(mirror)

    found = "README.md: file data/healthbench_hard/test-00000-of-00001.parquet: expected in a config, found in none"
    assert found in lines(mirror)


def test_a_mirror_is_compared_with_its_file(mirror: Path, source: Path, tmp_path: Path) -> None:
    """The file it was built from gives it again; one with another example, or of another shape, does not."""
    changed = write_jsonl(tmp_path / "healthbench.jsonl", [make_example(0), make_example(1), make_example(5)])
    other = write_jsonl(tmp_path / "meta.jsonl", [make_meta()])

    assert [] == check_source_file(mirror, source)
    assert ["dataset_sha256", "content_sha256", "source.sha256"] == [
        finding.what for finding in check_source_file(mirror, changed)
    ]
    assert ["--config"] == [finding.what for finding in check_source_file(mirror, other)]


def test_verify_with_data_takes_the_file(mirror: Path, source: Path) -> None:
    """No digest leads to a JSONL file, so it must be given."""
    verified = verify_place(mirror, Depth(with_data=True, data=source))

    assert (True, str(source)) == (verified.ok, verified.facts["data"])
    for data in (None, source.parent):
        with pytest.raises(
            BadInput, match=r"expected the JSONL file that it was built from, found .*give it with --data"
        ):
            verify_place(mirror, Depth(with_data=True, data=data))
