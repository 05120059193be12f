"""Opening a source in every layout it comes in, and walking its cases in dataset order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bedside_bench import PANEL_IDS
from builder.errors import BadInput
from builder.tree.sources import installed_data, open_panel, open_source, walk
from tests.trees import case_id_of, case_path, edit_json, make_case, read_json, write_json, write_tree

DRUG = "drug_safety"


def test_a_root_with_a_registry_and_a_data_folder(tmp_path: Path) -> None:
    """The root of an upstream tree is opened; paths are told from the root."""
    source = open_source(write_tree(tmp_path))

    assert (source.root, source.data, source.kind) == (tmp_path, tmp_path / "data", "tree")
    assert source.registry is not None
    assert source.registry["panel_count"] == 10
    assert source.path(DRUG, "manifest.json") == "data/drug_safety/manifest.json"


def test_the_data_folder_of_a_root(tmp_path: Path) -> None:
    """Given the data folder, the registry beside it is found."""
    source = open_source(write_tree(tmp_path) / "data")

    assert (source.root, source.data, source.problems) == (tmp_path, tmp_path / "data", ())


@pytest.mark.parametrize("given", [".", "data"])
def test_a_data_folder_that_holds_its_registry(tmp_path: Path, given: str) -> None:
    """A data folder with registry.json inside is opened by itself or by the folder around it."""
    write_tree(tmp_path)
    (tmp_path / "registry.json").rename(tmp_path / "data" / "registry.json")

    source = open_source(tmp_path / given)

    assert (source.root, source.data) == (tmp_path / "data", tmp_path / "data")
    assert source.path(DRUG, "manifest.json") == "drug_safety/manifest.json"


def test_the_folder_one_stands_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dot means the current folder, also when that is the data folder."""
    monkeypatch.chdir(write_tree(tmp_path) / "data")

    assert open_source(".").root == tmp_path


def test_a_tree_without_a_registry_is_opened(tmp_path: Path) -> None:
    """A missing registry is one of the problems, not the end."""
    (write_tree(tmp_path) / "registry.json").unlink()

    source = open_source(tmp_path)

    assert source.registry is None
    assert [problem.rule for problem in source.problems] == ["missing-registry"]


def test_a_broken_registry_is_a_problem(tmp_path: Path) -> None:
    """A registry that is not JSON is named with its place."""
    (write_tree(tmp_path) / "registry.json").write_text("{]")

    assert open_source(tmp_path).problems[0].line() == (
        'registry.json: expected one JSON value, found "]" '
        "(expecting property name enclosed in double quotes) at line 1, column 2"
    )


def test_no_source_at_all(tmp_path: Path) -> None:
    """A folder of something else, a file, and a path that is none are told apart in one line each."""
    (tmp_path / "file").write_text("")
    for where, found in (
        (tmp_path, "found neither"),
        (tmp_path / "file", "found a file"),
        (tmp_path / "x", "found none"),
    ):
        with pytest.raises(BadInput, match=found):
            open_source(where)


def test_a_built_folder_is_no_source(tmp_path: Path) -> None:
    """Someone who gives a mirror is told what it is."""
    (tmp_path / "data" / DRUG).mkdir(parents=True)
    (tmp_path / "digests.json").write_text("{}")

    with pytest.raises(BadInput, match="a dataset folder that was built"):
        open_source(tmp_path)


def test_legal_files_are_found(tmp_path: Path) -> None:
    """The files beside the registry that a mirror must carry are listed by name."""
    root = write_tree(tmp_path)
    (root / "NOTICE.md").write_text("")
    (root / "README.md").write_text("")

    assert [path.name for path in open_source(root).legal] == ["CITATION.cff", "LICENSE", "NOTICE.md"]


def test_cases_come_in_dataset_order(tmp_path: Path) -> None:
    """Panels in registry order, then the manifest's order (which is not sorted), then unlisted files by name."""
    root = write_tree(tmp_path, 3, panels=reversed(PANEL_IDS))
    for number in (8, 9):
        extra = make_case(DRUG, number)
        write_json(case_path(root, DRUG, number), extra)

    found = [(file.panel, file.listed, Path(file.path).stem) for file in walk(open_source(root))]

    unlisted = sorted(case_id_of(DRUG, number) for number in (8, 9))
    assert found[:5] == [
        *((DRUG, True, case_id_of(DRUG, number)) for number in range(3)),
        *((DRUG, False, case_id) for case_id in unlisted),
    ]
    assert [panel for panel, _, _ in found[5:]] == [panel for panel in PANEL_IDS[1:] for _ in range(3)]


def test_a_case_file_carries_bytes_and_object(tmp_path: Path) -> None:
    """A file that reads well comes with its bytes, its case and no problem."""
    root = write_tree(tmp_path)

    file = next(walk(open_source(root)))

    assert (file.case, file.raw) == (make_case(DRUG), case_path(root).read_bytes())
    assert (file.path, file.problems) == (f"data/{DRUG}/cases/{case_id_of(DRUG, 0)}.json", ())


def test_only_selected_panels_are_walked(tmp_path: Path) -> None:
    """A selection leaves the other panels unread."""
    source = open_source(write_tree(tmp_path))

    assert {file.panel for file in walk(source, panels=["health_equity", DRUG])} == {"health_equity", DRUG}


def test_a_manifest_id_is_never_a_path(tmp_path: Path) -> None:
    """An id such as ../../x is not followed, even where it leads to a file."""
    root = write_tree(tmp_path)
    manifest = root / "data" / DRUG / "manifest.json"
    edit_json(manifest, case_ids=["../manifest", "/etc/hostname", *read_json(manifest)["case_ids"]])

    assert open_panel(open_source(root), DRUG).case_ids == (case_id_of(DRUG, 0), case_id_of(DRUG, 1))


def test_a_panel_behind_a_link_out_of_the_tree_is_not_read(tmp_path: Path) -> None:
    """A panel folder that is a link to elsewhere is a problem and yields no case."""
    outside = write_tree(tmp_path / "outside") / "data" / DRUG
    root = write_tree(tmp_path / "tree", panels=PANEL_IDS[1:])
    (root / "data" / DRUG).symlink_to(outside)

    folder = open_panel(open_source(root), DRUG)

    assert [problem.rule for problem in folder.problems] == ["link-leaves-tree"]
    assert (folder.case_ids, folder.unlisted) == ((), ())


def test_a_file_name_that_is_not_text_is_shown_escaped(tmp_path: Path) -> None:
    """A file name of odd bytes is reported and does not end the walk."""
    root = write_tree(tmp_path)
    Path(os.fsdecode(os.fsencode(root / "data" / DRUG / "cases") + b"/\xff.json")).write_text("{}")

    assert [file.path for file in walk(open_source(root)) if not file.listed] == [f"data/{DRUG}/cases/\\udcff.json"]


def test_the_shipped_cases_are_a_source() -> None:
    """The sample tree of this installation is found and opens."""
    assert open_source(installed_data()).root == installed_data()
