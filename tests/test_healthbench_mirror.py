"""A build from JSONL: the folder, its digests by the standard library alone, and what stops one."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from builder.builds import Built
from builder.dataset.digests import read_digests
from builder.errors import BadInput, DigestMismatch
from builder.healthbench.mirror import build_healthbench
from builder.healthbench.reading import read_examples
from builder.mirror import verify_mirror
from tests.examples import make_criterion, make_example, make_meta, make_professional, write_examples, write_jsonl
from tests.mirrors import build_tiny, change_rows, remake_digests, rows

MAKERS = {"oss": make_example, "hard": make_example, "pro": make_professional, "meta": make_meta}
CONFIGS = {
    "oss": "healthbench",
    "hard": "healthbench_hard",
    "pro": "healthbench_professional",
    "meta": "healthbench_meta",
}


def build(folder: Path, name: str = "oss", n: int = 4, **options: Any) -> Built:
    """Build a mirror of n examples at `folder`/<name>-mirror."""
    path = write_jsonl(folder / f"{name}.jsonl", map(MAKERS[name], range(n)))
    return build_healthbench(path, folder / f"{name}-mirror", **{"license_id": "mit", **options})


def sha(value: object) -> str:
    """Return the SHA-256 of canonical JSON, by the standard library alone."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("name", MAKERS)
def test_a_mirror_holds_the_files_and_digests_of_its_format(tmp_path: Path, name: str) -> None:
    """One config named after the file, the long table, the card; it verifies, and its digests are of the objects."""
    built = build(tmp_path, name)
    digests, config = read_digests(built.folder), CONFIGS[name]
    examples = read_examples(built.folder, digests)

    assert [
        "README.md",
        f"data/{config}/test-00000-of-00001.parquet",
        "data/rubric_items/test-00000-of-00001.parquet",
    ] == sorted(digests["files"])
    assert () == verify_mirror(built.folder, expect=built.folder_digest).findings
    assert sha(examples) == digests["dataset_sha256"] == built.dataset_sha256
    assert [{"id": config, "n": 4, "sha256": sha(examples)}] == digests["panels"]
    assert {"test": "test"} == digests["splits"]
    source = {"kind": "file", "license": "mit", "repo": None, "revision": None}
    content = (tmp_path / f"{name}.jsonl").read_bytes()
    assert {**source, "sha256": hashlib.sha256(content).hexdigest()} == digests["source"]


def test_the_content_digest_is_of_what_is_asked(tmp_path: Path) -> None:
    """Ids of items, their order, tags and completions are not in it; the config's name is."""
    built = build(tmp_path)
    contents = [
        sha(
            {
                "case_id": make_example(n)["prompt_id"],
                "benchmark": "healthbench",
                "grading_method": "healthbench",
                "prompt": make_example(n)["prompt"],
                "split": "test",
                "items": sorted([item["criterion"], item["points"]] for item in make_example(n)["rubrics"]),
            }
        )
        for n in range(4)
    ]

    assert hashlib.sha256("\n".join(sorted(contents)).encode()).hexdigest() == built.content_sha256


def test_points_come_back_in_the_form_in_which_they_print(tmp_path: Path) -> None:
    """5, -6 and 2.5; a 5.0 of the file is a 5, with a warning."""
    points = [5, -6, 2.5, 5.0]
    example = make_example(rubrics=[make_criterion(0, i, points=value) for i, value in enumerate(points)])
    path = write_jsonl(tmp_path / "x.jsonl", [example])
    built = build_healthbench(path, tmp_path / "out", license_id="mit")
    (back,) = read_examples(built.folder, read_digests(built.folder))

    assert ["5", "-6", "2.5", "5"] == [str(item["points"]) for item in back["rubric_items"]]
    assert ["points-form"] == [problem.rule for problem in built.report.problems]
    assert [5.0, -6.0, 2.5, 5.0] == [row["points"] for row in rows(built.folder, ITEMS)]


def test_the_same_file_gives_the_same_bytes(tmp_path: Path) -> None:
    """Elsewhere, with longer batches in between, and over an old mirror."""
    first = build(tmp_path / "a", n=300, with_croissant=True)
    second = build(tmp_path / "b", n=300, with_croissant=True)
    again = build(tmp_path / "b", n=300, with_croissant=True)

    assert first.folder_digest == second.folder_digest == again.folder_digest
    assert 300 == first.n_cases


def test_rows_keep_the_order_of_the_file(tmp_path: Path) -> None:
    """More examples than one batch holds, whose ids are not sorted."""
    built = build(tmp_path, n=300)
    ids = [make_example(n)["prompt_id"] for n in range(300)]

    assert ids != sorted(ids)
    assert ids == [row["case_id"] for row in rows(built.folder, "data/healthbench/test-00000-of-00001.parquet")]


def test_a_file_with_an_error_writes_nothing(tmp_path: Path) -> None:
    """The old mirror stays as it was, and the report says why."""
    old = build(tmp_path)
    path = write_jsonl(tmp_path / "oss.jsonl", [make_example(), b"torn"])
    built = build_healthbench(path, old.folder, license_id="mit")

    assert (None, 1) == (built.folder_digest, built.report.count("error"))
    assert old.folder_digest == verify_mirror(old.folder).folder_digest


def test_legal_files_are_carried(tmp_path: Path) -> None:
    """The licence beside the file lies in the mirror, byte for byte, and names its licence."""
    built = build_healthbench(write_examples(tmp_path / "source"), tmp_path / "out")

    assert "mit" == built.license == read_digests(built.folder)["source"]["license"]
    assert (tmp_path / "source" / "LICENSE").read_bytes() == (built.folder / "LICENSE").read_bytes()
    assert () == verify_mirror(built.folder).findings


def test_a_mirror_is_never_put_over_its_source(tmp_path: Path) -> None:
    """Nor over a folder that is not ours."""
    path = write_examples(tmp_path / "source")

    with pytest.raises(BadInput, match="expected a folder outside the source"):
        build_healthbench(path, tmp_path / "source")
    with pytest.raises(BadInput, match="a folder that is not ours is never replaced"):
        build_healthbench(path, write_examples(tmp_path / "other").parent)


def test_reading_stops_at_changed_bytes_and_rows(tmp_path: Path) -> None:
    """A changed file, a changed row behind new file digests, and a missing file are each a mismatch."""
    mirror = build(tmp_path).folder
    change_rows(mirror, EXAMPLES, lambda found: found[1]["rubric_items"][0].update(points=8.0))

    with pytest.raises(DigestMismatch, match="expected sha256:"):
        read_examples(mirror, read_digests(mirror))
    remake_digests(mirror)
    with pytest.raises(DigestMismatch, match="expected dataset_sha256"):
        read_examples(mirror, read_digests(mirror))
    (mirror / EXAMPLES).unlink()
    with pytest.raises(DigestMismatch, match="found none"):
        read_examples(mirror, read_digests(mirror))


def test_reading_stops_at_another_kind_of_folder(tmp_path: Path) -> None:
    """A mirror of case panels, and a table of other columns under the right name."""
    panels = build_tiny(tmp_path / "panels").folder
    mirror = build(tmp_path).folder
    (mirror / EXAMPLES).write_bytes((mirror / ITEMS).read_bytes())
    remake_digests(mirror)

    with pytest.raises(BadInput, match="expected a mirror of a HealthBench file"):
        read_examples(panels, read_digests(panels))
    with pytest.raises(DigestMismatch, match="expected the rows of healthbench"):
        read_examples(mirror, read_digests(mirror))


EXAMPLES = "data/healthbench/test-00000-of-00001.parquet"
ITEMS = "data/rubric_items/test-00000-of-00001.parquet"
