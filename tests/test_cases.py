"""Cases read back from a mirror: equal to their source, in its order, and only if nothing was changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bedside_bench import PANEL_IDS, dataset_sha256
from builder.dataset.digests import file_sha256
from builder.errors import BadInput, BedsideError, DigestMismatch
from builder.mirror import build_mirror
from builder.tree.sources import open_source
from eval.cases import read_cases, select_cases
from tests.plans import case_set
from tests.trees import case_id_of, make_case, write_panel, write_tree

DRUGS = "data/drug_safety/train-00000-of-00001.parquet"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror of two cases a panel."""
    root = tmp_path_factory.mktemp("built")
    build_mirror(open_source(write_tree(root / "tree", 2)), root / "mirror")
    return root / "mirror"


@pytest.fixture
def mirror(built: Path, tmp_path: Path) -> Path:
    """Return a copy of the mirror to break."""
    return Path(shutil.copytree(built, tmp_path / "mirror"))


def test_a_mirror_gives_back_its_cases(built: Path) -> None:
    """Every case comes back equal, number types and odd characters included, in dataset order with both digests."""
    data = read_cases(built)
    source = case_set(2)

    assert source.cases == data.cases
    assert {int} == {type(item.points) for case in data.cases for item in case.items}
    assert (source.dataset_sha256, source.content_sha256) == (data.dataset_sha256, data.content_sha256)
    assert (PANEL_IDS, "cc-by-4.0") == (data.panels, data.license)


def test_a_mirror_from_the_hub_is_named_by_its_own_repository(built: Path) -> None:
    """Where it is said which repository and commit a mirror was read from, those are the data's name."""
    data = read_cases(built, repo="org/mirror", revision="c" * 40)

    assert ("org/mirror", "c" * 40) == (data.repo, data.revision)
    assert (None, None) == (read_cases(built).repo, read_cases(built).revision)
    assert read_cases(built).cases == data.cases


def test_the_commit_of_a_source_never_names_a_mirror(mirror: Path) -> None:
    """A mirror's repository without a commit does not take over the commit of the repository it was made from."""
    _edit(mirror, source={"kind": "hub", "repo": "org/source", "revision": "a" * 40, "license": "cc-by-4.0"})
    data, own = read_cases(mirror, repo="org/mirror"), read_cases(mirror)

    assert ("org/mirror", None) == (data.repo, data.revision)
    assert ("org/source", "a" * 40) == (own.repo, own.revision)


def test_renamed_and_held_out_splits_come_in_dataset_order(tmp_path: Path) -> None:
    """Public cases come before held-out ones in each panel whatever the Parquet splits are called."""
    tree = write_tree(tmp_path / "tree", 2)
    cases = [make_case(panel, n, split=split) for panel in PANEL_IDS for n, split in enumerate(["train", "aside"])]
    for panel in PANEL_IDS:
        write_panel(tree / "data" / panel, [case for case in cases if case["benchmark"] == panel])
    build_mirror(open_source(tree), tmp_path / "mirror", split_name="zz", held_out=True)
    data = read_cases(tmp_path / "mirror")

    assert [case["case_id"] for case in cases] == [case.case_id for case in data.cases]
    assert dataset_sha256(cases) == data.dataset_sha256
    assert {"zz": "train", "aside": "aside"} == data.splits


def _flip(mirror: Path) -> None:
    raw = bytearray((mirror / DRUGS).read_bytes())
    raw[len(raw) // 2] ^= 1
    (mirror / DRUGS).write_bytes(raw)


def _swap(mirror: Path) -> None:
    other = mirror.with_name("other")
    build_mirror(open_source(write_tree(mirror.with_name("tree"), 3)), other)
    shutil.copy(other / DRUGS, mirror / DRUGS)


def _lose(mirror: Path) -> None:
    (mirror / DRUGS).unlink()


def _edit(mirror: Path, **changes: Any) -> None:
    path = mirror / "digests.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **changes}))


def _record(mirror: Path) -> None:
    """Make digests.json agree with the Parquet file as it is now."""
    files = json.loads((mirror / "digests.json").read_bytes())["files"]
    _edit(mirror, files={**files, DRUGS: {**files[DRUGS], "digest": file_sha256(mirror / DRUGS)}})


def _swap_and_record(mirror: Path) -> None:
    _swap(mirror)
    _record(mirror)


@pytest.mark.parametrize("change", [_flip, _swap, _lose, _swap_and_record])
def test_a_changed_mirror_is_refused_in_one_line(mirror: Path, change: Any) -> None:
    """A flipped byte, another mirror's file or a lost one is named with what to do; nothing of it is evaluated."""
    change(mirror)

    with pytest.raises(DigestMismatch) as refused:
        read_cases(mirror)
    assert "\n" not in str(refused.value)
    assert "build" in str(refused.value)


def _no_parquet(mirror: Path) -> None:
    (mirror / DRUGS).write_bytes(b"PAR1 no PAR1")
    _record(mirror)


def _no_prompts(mirror: Path) -> None:
    pq.write_table(pq.read_table(mirror / DRUGS).drop_columns("prompt"), mirror / DRUGS)
    _record(mirror)


def _null_rubrics(mirror: Path) -> None:
    table = pq.read_table(mirror / DRUGS)
    index = table.schema.get_field_index("rubric_items")
    empty = pa.nulls(table.num_rows, table.schema.field(index).type)
    pq.write_table(table.set_column(index, "rubric_items", empty), mirror / DRUGS)
    _record(mirror)


def _no_panels(mirror: Path) -> None:
    _edit(mirror, panels=None)


def _no_splits(mirror: Path) -> None:
    _edit(mirror, splits=[])


def _no_source(mirror: Path) -> None:
    _edit(mirror, source=None)


@pytest.mark.parametrize("change", [_no_parquet, _no_prompts, _null_rubrics, _no_panels, _no_splits, _no_source])
def test_a_folder_made_by_hand_is_an_error_and_no_traceback(mirror: Path, change: Any) -> None:
    """Digests that agree with a broken file, or lack a member, end in one line that names the folder."""
    change(mirror)

    with pytest.raises(BedsideError) as refused:
        read_cases(mirror)
    assert str(mirror) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_is_no_mirror_is_refused(mirror: Path, tmp_path: Path) -> None:
    """A folder without digests, or one of results, is not evaluated."""
    with pytest.raises(BadInput, match=r"digests\.json: expected the digests of a dataset folder"):
        read_cases(tmp_path)
    _edit(mirror, kind="run")
    with pytest.raises(BadInput, match="expected a mirror, found kind 'run'"):
        read_cases(mirror)


def test_smoke_is_the_first_id_of_each_manifest(built: Path) -> None:
    """The smoke case of a panel is its manifest's first, which is not its lowest id."""
    data = read_cases(built)
    chosen = select_cases(data.cases, smoke=True)

    assert [case_id_of(panel, 0) for panel in PANEL_IDS] == [case.case_id for case in chosen]
    assert [min(case_id_of(panel, n) for n in (0, 1)) for panel in PANEL_IDS] != [case.case_id for case in chosen]


SELECTIONS: dict[str, tuple[dict[str, Any], list[tuple[str, int]]]] = {
    "panels in dataset order": (
        {"panels": ["health_equity", "drug_safety"]},
        [("drug_safety", 0), ("drug_safety", 1), ("health_equity", 0), ("health_equity", 1)],
    ),
    "limit": ({"limit": 3}, [("drug_safety", 0), ("drug_safety", 1), ("guideline_adherence", 0)]),
    "limit after smoke": ({"smoke": True, "limit": 2}, [("drug_safety", 0), ("guideline_adherence", 0)]),
    "all three": (
        {"panels": ["health_equity", "drug_safety", "landmark_trials"], "smoke": True, "limit": 2},
        [("drug_safety", 0), ("landmark_trials", 0)],
    ),
    "a limit beyond": ({"panels": ["drug_safety"], "limit": 9}, [("drug_safety", 0), ("drug_safety", 1)]),
}


@pytest.mark.parametrize(("choice", "expected"), SELECTIONS.values(), ids=SELECTIONS.keys())
def test_a_selection_is_panels_then_smoke_then_limit(choice: dict[str, Any], expected: list[tuple[str, int]]) -> None:
    """Cases keep dataset order whatever the order of --panel, and --limit counts what --smoke left."""
    chosen = select_cases(case_set(2).cases, **choice)

    assert [case_id_of(*place) for place in expected] == [case.case_id for case in chosen]


def test_a_panel_that_is_not_there_is_refused_by_name() -> None:
    """A panel that the dataset lacks is an error that lists those it has, never an empty run."""
    with pytest.raises(BadInput, match="--panel health_equity: expected one of drug_safety, the panels of this"):
        select_cases(case_set(1, ["drug_safety"]).cases, panels=["drug_safety", "health_equity"])
