"""`verify` names every change of a mirror: of any byte that is digested, and of any row behind new digests."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from builder.dataset.verify import folder_kind
from builder.errors import BadInput
from builder.mirror import verify_mirror
from tests.mirrors import DRUG_SAFETY, build_small, change_rows, lines, remake_digests


def test_a_mirror_as_it_was_built_holds(tmp_path: Path) -> None:
    """Ten panels, card, long table: nothing is found, and the digests are those that the build printed."""
    done = build_small(tmp_path)
    verified = verify_mirror(done.folder, expect=done.folder_digest)

    assert () == verified.findings
    assert (done.folder_digest, done.dataset_sha256, "mirror", 20) == (
        verified.folder_digest,
        verified.dataset_sha256,
        verified.kind,
        verified.n_cases,
    )


def test_any_byte_changed_in_any_file_is_named(mirror: Path) -> None:
    """Flip a bit anywhere and `verify` names that file (or, in digests.json, the file whose line it is)."""
    draw = random.Random(2)
    for path in sorted(path for path in mirror.rglob("*") if path.is_file()):
        name, data = path.relative_to(mirror).as_posix(), path.read_bytes()
        for at in {0, len(data) - 1, *draw.choices(range(len(data)), k=60 if name == "digests.json" else 6)}:
            path.write_bytes(data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :])
            named = {finding.file for finding in verify_mirror(mirror).findings}
            assert named if name == "digests.json" else name in named, (name, at)
        path.write_bytes(data)
    assert [] == lines(mirror)


def set_points(rows: list[dict[str, Any]]) -> None:
    """Change one number of one item."""
    rows[1]["rubric_items"][2]["points"] += 1


def test_one_cell_changed_is_named_by_its_file(mirror: Path) -> None:
    """A Parquet file written anew with one other number has other bytes."""
    change_rows(mirror, DRUG_SAFETY, set_points)

    assert [DRUG_SAFETY] == sorted({line.partition(":")[0] for line in lines(mirror)})


def test_a_parquet_file_that_is_none_is_named(mirror: Path) -> None:
    """Bytes that are no Parquet end in findings, not in a traceback."""
    (mirror / DRUG_SAFETY).write_bytes(b"PAR1 but no more")

    assert [DRUG_SAFETY] == [line.partition(":")[0] for line in lines(mirror)]


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({"dataset_sha256": "0" * 64}, "digests.json: dataset_sha256: expected"),
        ({"content_sha256": "0" * 64}, "digests.json: content_sha256: expected"),
        ({"n_items": 7}, "digests.json: n_items: expected 8, as in the rows, found 7"),
        ({"n_cases": "2"}, "digests.json: n_cases: expected an integer, found '2'"),
        ({"panels": []}, "digests.json: panels: expected a list of {id, n, sha256}"),
        ({"splits": {"train": "test"}}, "digests.json: dataset_sha256: expected"),
        ({"splits": {"held-out": "train"}}, "digests.json: splits: expected"),
        ({"made_by": {"bedside-bench": "9", "pyarrow": "9"}}, "expected as in the last block of README.md"),
        (
            {"source": {"kind": "hub", "repo": "a/b", "revision": None, "license": "mit"}},
            "README.md: license: expected",
        ),
        ({"extra": 1}, "digests.json: members: expected"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_member_of_the_digests_that_does_not_fit_is_named(
    mirror: Path, members: dict[str, object], found: str
) -> None:
    """Whatever digests.json says is checked against the rows or against the card."""
    remake_digests(mirror, **members)

    assert found in "\n".join(lines(mirror))


def test_a_change_throughout_shows_only_against_the_expected_digest(mirror: Path, built: Path) -> None:
    """Files, card and digests changed alike hold among themselves; the digest that someone else kept does not match."""
    kept = verify_mirror(built).folder_digest
    text = (mirror / "README.md").read_text(encoding="utf-8")
    (mirror / "README.md").write_text(
        text.replace("not medical advice", "medical advice"), encoding="utf-8", newline="\n"
    )
    remake_digests(mirror)

    assert [] == lines(mirror)
    assert [f"digests.json: folder digest: expected {kept}, found {verify_mirror(mirror).folder_digest}"] == lines(
        mirror, expect=kept
    )


def test_a_folder_is_verified_as_what_it_is(mirror: Path, tmp_path: Path) -> None:
    """A mirror, a results folder, or one run of it are told apart; a place without a folder is an error."""
    (tmp_path / "results" / "runs").mkdir(parents=True)

    assert "mirror" == folder_kind(mirror)
    assert "run" == folder_kind(tmp_path / "results")
    remake_digests(mirror, kind="run")
    assert "run" == folder_kind(mirror)
    with pytest.raises(BadInput, match="expected a dataset folder, found none"):
        folder_kind(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["README.md", "digests.json", "LICENSE", "notes"])
def test_a_pipe_is_named_and_not_waited_for(mirror: Path, name: str) -> None:
    """Whatever the pipe stands in for, `verify` ends and says where it is."""
    (mirror / name).unlink(missing_ok=True)
    os.mkfifo(mirror / name)

    assert any(line.startswith(f"{name}: ") for line in lines(mirror))
