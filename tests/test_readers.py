"""Result files of three kinds, each read as what it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builder.errors import BadInput, DigestMismatch
from builder.mirror import build_mirror
from builder.tree.sources import open_source
from eval.calls.plan import Model
from eval.cases import Case, read_cases
from eval.numbers.readers import is_journal, read_run, summarise_run
from tests.plans import make_plan, run
from tests.trees import write_tree


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror of one case a panel."""
    root = tmp_path_factory.mktemp("readers")
    build_mirror(open_source(write_tree(root / "tree", 1)), root / "mirror")
    return root / "mirror"


def _write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def _minimal(case: Case) -> dict[str, Any]:
    matched = {item.item_id: (item.points or 0) > 0 for item in case.items}
    return {"case_id": case.case_id, "answer": "a", "matched": matched}


def _upstream(case: Case) -> dict[str, Any]:
    decisions = [{"item_id": i.item_id, "points": i.points, "matched": (i.points or 0) > 0} for i in case.items]
    about = {"case_id": case.case_id, "benchmark": case.benchmark, "grading_method": case.grading_method}
    return {**about, "answer": "a", "answer_model": "m", "judge_model": "j", "decisions": decisions}


def test_three_kinds_of_file_give_the_same_decisions(mirror: Path, tmp_path: Path) -> None:
    """A journal, rows of the published runner and minimal lines of the same decisions score alike."""
    data = read_cases(mirror)

    run(make_plan(data, answer=Model("builtin:positive-items")), tmp_path / "ours.jsonl")
    rows = _write(tmp_path / "rows.jsonl", *map(_upstream, data.cases))
    lines = _write(tmp_path / "lines.jsonl", *map(_minimal, data.cases))
    ours, theirs, least = (read_run(path, mirror=mirror) for path in (tmp_path / "ours.jsonl", rows, lines))

    assert [True, False, False] == [is_journal(path) for path in (tmp_path / "ours.jsonl", rows, lines)]
    assert [case.matched for case in ours.cases] == [case.matched for case in theirs.cases]
    assert [case.matched for case in ours.cases] == [case.matched for case in least.cases]
    assert {data.dataset_sha256} == {found.dataset_sha256 for found in (ours, theirs, least)}


def test_a_journal_needs_no_mirror(mirror: Path, tmp_path: Path) -> None:
    """With the mirror or without it a journal gives the same run."""
    run(make_plan(read_cases(mirror)), tmp_path / "x.jsonl")

    assert read_run(tmp_path / "x.jsonl") == read_run(tmp_path / "x.jsonl", mirror=mirror)


def test_minimal_lines_need_one(mirror: Path, tmp_path: Path) -> None:
    """Lines without points are refused by number unless the mirror is named."""
    path = _write(tmp_path / "x.jsonl", _minimal(read_cases(mirror).cases[0]))

    with pytest.raises(BadInput, match=r"x\.jsonl:1: .*--data"):
        read_run(path)


def test_another_dataset_is_refused(mirror: Path, tmp_path: Path) -> None:
    """--data that is not the data of the run ends in one line with both digests."""
    run(make_plan(), tmp_path / "x.jsonl")
    other = tmp_path / "other"
    build_mirror(open_source(write_tree(tmp_path / "tree", 2)), other)

    with pytest.raises(DigestMismatch) as refused:
        read_run(tmp_path / "x.jsonl", mirror=other)
    digests = (read_cases(mirror).dataset_sha256, read_cases(other).dataset_sha256)
    assert all(digest in str(refused.value) for digest in digests)
    assert "\n" not in str(refused.value)


def test_cases_of_the_mirror_without_a_row_are_pending(mirror: Path, tmp_path: Path) -> None:
    """With --data the selection is the whole mirror: a file of one case leaves nine pending, never out of the count."""
    path = _write(tmp_path / "x.jsonl", _minimal(read_cases(mirror).cases[0]))
    summary = summarise_run(read_run(path, mirror=mirror), dialect="spec", samples=50, seed=42, software={})

    assert (10, 1, 9) == (summary["n_expected"], summary["n_graded"], summary["n_pending"])
    assert summary["overall_macro_mean"] is None


def test_the_semantics_are_those_of_the_asked_dialect(tmp_path: Path) -> None:
    """Another dialect or seed gives the summary another semantics digest and leaves the identity's alone."""
    run(make_plan(), tmp_path / "x.jsonl")
    data = read_run(tmp_path / "x.jsonl")
    own, other, seeded = (
        summarise_run(data, dialect=dialect, samples=10_000 if dialect == "spec" else 20, seed=seed, software={})
        for dialect, seed in (("spec", 42), ("upstream", 42), ("spec", 1))
    )

    assert data.identity is not None
    assert data.identity["semantics_sha256"] == own["semantics_sha256"]
    assert 3 == len({s["semantics_sha256"] for s in (own, other, seeded)})
    assert 1 == len({s["identity_sha256"] for s in (own, other, seeded)})


@pytest.mark.parametrize("content", [b"", b"\n\n", b'{"case_id": '], ids=["empty", "blank", "torn"])
def test_a_file_without_a_line_is_refused(tmp_path: Path, content: bytes) -> None:
    """A file that holds nothing, or only the beginning of a line, is no run of zero cases."""
    (tmp_path / "x.jsonl").write_bytes(content)

    with pytest.raises(BadInput, match="found none"):
        read_run(tmp_path / "x.jsonl")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """The path that was given stands in the error."""
    with pytest.raises(BadInput, match=r"none\.jsonl: expected a result file \(\.jsonl\), found no such file"):
        read_run(tmp_path / "none.jsonl")
