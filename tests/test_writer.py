"""Splits, order and texts of the cases are in the files as the source has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bedside_bench import PANEL_IDS
from builder.dataset.digests import read_digests
from builder.errors import BadInput
from builder.mirror import verify_mirror
from tests.mirrors import DRUG_SAFETY, add_held_out, build, build_small, digest_of, rows, source_cases
from tests.trees import edit_json, make_case, write_panel, write_tree


def test_a_split_name_renames_the_parquet_split_only(tmp_path: Path) -> None:
    """The cases keep their own split, so the digest is the same; the card says which is which."""
    done = build_small(tmp_path, split_name="public.v1", panels=["drug_safety"])

    assert (done.folder / "data/drug_safety/public.v1-00000-of-00001.parquet").is_file()
    assert {"public.v1": "train"} == read_digests(done.folder)["splits"]
    assert digest_of(source_cases(tmp_path / "source", ("drug_safety",))) == done.dataset_sha256
    assert "The split `public.v1` holds the cases whose own `split` is `train`" in (
        done.folder / "README.md"
    ).read_text(encoding="utf-8")
    assert verify_mirror(done.folder).ok


@pytest.mark.parametrize("name", ["held-out", "", "a b", ".x", "x.", "a/b", "train\n", "all", "é"])
def test_a_split_name_that_datasets_would_refuse_is_refused(tmp_path: Path, name: str) -> None:
    """No dash, no slash, no space; and `all`, which means every split there."""
    with pytest.raises(BadInput, match="split name: expected letters, digits, _ and dots between them"):
        build_small(tmp_path, split_name=name)


def test_held_out_cases_become_a_split_of_their_own(tmp_path: Path) -> None:
    """They follow the public ones of their panel in the digest, in file-name order, and are only in the panels that
    have them."""
    source = write_tree(tmp_path / "source")
    held_out = add_held_out(source)
    done = build(source, tmp_path / "mirror", held_out=True)
    public = source_cases(source, PANEL_IDS)

    assert digest_of([*public[:2], *held_out, *public[2:]]) == done.dataset_sha256
    assert [case["case_id"] for case in held_out] == [
        row["case_id"] for row in rows(done.folder, "data/drug_safety/test-00000-of-00001.parquet")
    ]
    assert {"train": "train", "test": "test"} == read_digests(done.folder)["splits"]
    assert not (done.folder / "data/health_equity/test-00000-of-00001.parquet").exists()
    assert verify_mirror(done.folder, expect=done.folder_digest).ok
    assert "This folder holds held-out cases" in (done.folder / "README.md").read_text(encoding="utf-8")


def test_held_out_cases_are_an_error_unless_asked_for(tmp_path: Path) -> None:
    """Without --held-out a case whose split is not `train` stops the build."""
    source = write_tree(tmp_path / "source")
    add_held_out(source)

    assert build(source, tmp_path / "mirror").folder_digest is None
    assert not (tmp_path / "mirror").exists()


def test_a_split_name_that_held_out_cases_have_is_refused(tmp_path: Path) -> None:
    """Public and held-out cases never share a Parquet split."""
    source = write_tree(tmp_path / "source")
    add_held_out(source)

    with pytest.raises(BadInput, match="--split-name test: expected a name that no split of the cases has"):
        build(source, tmp_path / "mirror", held_out=True, split_name="test")


def test_public_cases_after_held_out_ones_are_refused(tmp_path: Path) -> None:
    """A mirror keeps the splits apart: an order it could not give back is named, not changed."""
    source = write_tree(tmp_path / "source", cases_per_panel=1, panels=["drug_safety"])
    write_panel(source / "data/drug_safety", [make_case(number=5, split="test"), make_case()])

    with pytest.raises(BadInput, match=r"expected the cases of split 'train' before those of 'test'"):
        build(source, tmp_path / "mirror", held_out=True, panels=["drug_safety"])


def test_texts_come_through_as_they_are(tmp_path: Path) -> None:
    """Bars, backticks, tabs, newlines of every kind and characters beyond 16 bits are the same in the rows."""
    source = write_tree(tmp_path / "source", panels=["drug_safety"])
    case = make_case()
    case["rubric_items"][0]["text"] = "a | b `c` <d> \u2028 e\u0301 \U0001f9ea +1"
    write_panel(source / "data/drug_safety", [case, make_case(number=1)])
    build(source, tmp_path / "mirror", panels=["drug_safety"])

    assert case["rubric_items"] == rows(tmp_path / "mirror", DRUG_SAFETY)[0]["rubric_items"]


@pytest.mark.parametrize(("name", "shown"), [("bedside-bench-samples", True), ("my-samples", False)])
def test_only_the_card_of_samples_shows_a_case(tmp_path: Path, name: str, shown: bool) -> None:
    """Cards are crawled as text, and what was crawled is trained on: a benchmark's card shows none of its cases."""
    source = write_tree(tmp_path / "source", panels=["drug_safety"])
    edit_json(source / "registry.json", name=name)
    done = build(source, tmp_path / "mirror", panels=["drug_safety"])

    assert shown == (make_case()["case_id"] in (done.folder / "README.md").read_text(encoding="utf-8"))
