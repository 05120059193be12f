"""A dataset folder appears all at once or not at all, and only where it may."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builder.dataset import folder as folder_module
from builder.dataset.folder import (
    check_replaceable,
    recover,
    replace_file,
    staging,
    swap_in,
    write_digests,
    write_files,
    write_parquet,
)
from builder.errors import BadInput
from tests.trees import write_tree

TABLE = pa.table({"a": pa.array(range(5000), pa.int64()), "b": pa.array([f"text {i}" for i in range(5000)])})


def put(target: Path, text: str, *, kind: str = "mirror") -> None:
    """Write a folder with one file and its digests, and swap it in."""
    with staging(target) as staged:
        write_files(staged, {"README.md": text.encode()})
        write_digests(staged, {"kind": kind})
        swap_in(staged, target)


def text_of(target: Path) -> str:
    """Return what the one file of a folder holds."""
    return (target / "README.md").read_text(encoding="utf-8")


def names(folder: Path) -> list[str]:
    """Return what lies in a folder, hidden things too."""
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=["in one step", "aside"])
def target(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a place for a folder, on a system that can exchange folders in one step and on one that cannot."""
    if request.param == "aside":
        monkeypatch.setattr(folder_module, "_exchange", lambda *_: False)
    return tmp_path / "mirror"


def test_parquet_is_one_row_group_with_nothing_but_arrows_schema(tmp_path: Path) -> None:
    """One row group, zstd, page index; no `pandas` or `huggingface` key, even if the table has one."""
    table = TABLE.replace_schema_metadata({"pandas": "{}", "huggingface": "{}"})
    write_parquet(table, tmp_path / "a.parquet")
    metadata = pq.read_metadata(tmp_path / "a.parquet")
    column = metadata.row_group(0).column(1)

    assert (1, 5000) == (metadata.num_row_groups, metadata.num_rows)
    assert ("ZSTD", True, True) == (column.compression, column.has_offset_index, column.has_column_index)
    assert pq.read_schema(tmp_path / "a.parquet").metadata is None
    assert TABLE.equals(pq.read_table(tmp_path / "a.parquet"))


def test_the_same_table_gives_the_same_bytes(tmp_path: Path) -> None:
    """Written twice, a table is the same file; a table of no rows is a file too."""
    for name in ("a", "b"):
        write_parquet(TABLE, tmp_path / name)
    write_parquet(TABLE.slice(0, 0), tmp_path / "empty")

    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert pq.read_metadata(tmp_path / "empty").num_rows == 0


def test_a_folder_is_put_where_none_was_and_replaced_whole(target: Path) -> None:
    """After a swap the folder holds the new files and none of the old, and nothing is left beside it."""
    put(target, "old")
    (target / "left-over.parquet").write_bytes(b"")
    put(target, "new")

    assert "new" == text_of(target)
    assert not (target / "left-over.parquet").exists()
    assert ["mirror"] == names(target.parent)


def test_an_empty_folder_is_a_free_place(target: Path) -> None:
    """A folder made beforehand is used."""
    target.mkdir()
    put(target, "new")

    assert "new" == text_of(target)


def test_a_link_to_a_folder_stays_a_link(target: Path) -> None:
    """The folder behind a link is replaced, not the link."""
    real = target.parent / "real"
    put(real, "old")
    target.symlink_to(real)
    put(target, "new")

    assert target.is_symlink()
    assert "new" == text_of(real)


def test_what_fails_while_staging_leaves_the_old_folder_and_nothing_else(target: Path) -> None:
    """An exception while writing changes nothing, and new parent folders go again."""
    put(target, "old")
    for place in (target, target.parent / "new" / "deep" / "mirror"):
        with pytest.raises(ZeroDivisionError), staging(place) as staged:
            write_files(staged, {"README.md": b"half"})
            raise ZeroDivisionError

    assert "old" == text_of(target)
    assert ["mirror"] == names(target.parent)


def foreign(target: Path) -> None:
    """Put a person's own file at the place."""
    target.mkdir()
    (target / "thesis.docx").write_bytes(b"years of work")


def torn(target: Path) -> None:
    """Put a folder of ours whose digests cannot be read at the place."""
    put(target, "old")
    (target / "digests.json").write_bytes(b"{")


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (foreign, "a folder that is not ours is never replaced: remove it or name another"),
        (torn, "a folder that is not ours is never replaced: remove it or name another"),
        (lambda target: target.write_bytes(b""), "expected a folder or nothing, found a file"),
        (lambda target: put(target, "a run", kind="run"), "expected a folder of kind 'mirror' to replace, found 'run'"),
    ],
    ids=["a person's files", "broken digests", "a file", "a run"],
)
def test_a_place_that_is_not_free_is_refused(tmp_path: Path, prepare: Any, message: str) -> None:
    """Whatever is there stays as it was."""
    target = tmp_path / "mirror"
    prepare(target)
    before = sorted(path.name for path in tmp_path.rglob("*"))

    with pytest.raises(BadInput, match=message):
        put(target, "new")
    assert before == sorted(path.name for path in tmp_path.rglob("*"))


def test_the_current_folder_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replacing the folder a shell stands in would leave it standing in a folder that is gone."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(BadInput, match="found the current one"):
        check_replaceable(Path())


def test_a_swap_killed_between_its_two_renames_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a one-step exchange there is a moment without the folder: the next command puts the old one back."""
    target = tmp_path / "mirror"
    put(target, "old")
    monkeypatch.setattr(folder_module, "_exchange", lambda *_: False)
    with staging(target) as staged:
        write_files(staged, {"README.md": b"new"})
        write_digests(staged, {"kind": "mirror"})
        target.rename(folder_module._aside(target))
        recover(target)  # a reader in this moment: the lock is held, so the writer is alive and finishes
        assert not target.exists()
    recover(target)

    assert "old" == text_of(target)
    assert ["mirror"] == names(tmp_path)


def test_staging_folders_of_dead_commands_go_and_those_of_live_ones_stay(tmp_path: Path) -> None:
    """A left-over names its process: only where that is over, on this machine, is it removed."""
    target = tmp_path / "mirror"
    put(target, "old")
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    stem, host = folder_module._stem(target), folder_module._host()
    for name in (f"{host}-{dead.pid}", f"{host}-1", f"0badcafe-{dead.pid}"):
        (tmp_path / f"{stem}.staging-{name}").mkdir()
    recover(target)

    assert {f"{stem}.staging-{host}-1", f"{stem}.staging-0badcafe-{dead.pid}", "mirror"} == set(names(tmp_path))


def test_a_second_writer_of_the_same_folder_is_told_to_wait(tmp_path: Path) -> None:
    """Two commands never write one folder at the same time; another folder beside it is free."""
    with staging(tmp_path / "mirror"):
        with (
            pytest.raises(BadInput, match="another command is writing this folder"),
            staging(tmp_path / "mirror", wait_s=0),
        ):
            pass
        with staging(tmp_path / "other", wait_s=0) as staged:
            assert staged.is_dir()


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    """The card of a results folder is exchanged alone."""
    (tmp_path / "README.md").write_bytes(b"old")
    (tmp_path / "staged").write_bytes(b"new")
    replace_file(tmp_path / "staged", tmp_path / "README.md")

    assert "new" == text_of(tmp_path)
    assert ["README.md"] == names(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
@pytest.mark.parametrize("how", [[], ["--aside"]], ids=["in one step", "aside"])
def test_a_build_killed_at_any_moment_leaves_the_old_folder_or_the_new_one(tmp_path: Path, how: list[str]) -> None:
    """Real builds die by SIGKILL at many moments; each time a reader finds one whole folder, and no left-over stays."""
    old, new, out = write_tree(tmp_path / "old"), write_tree(tmp_path / "new", 3), tmp_path / "place" / "mirror"
    command = [sys.executable, "-m", "tests.killed_build", *map(str, (old, new, out)), "--points", "6", *how]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent)
    first, second, *states, last = map(json.loads, done.stdout.splitlines())

    assert {first["old"], second["new"]} == {state["digest"] for state in states}
    assert {True} == {state["whole"] for state in [*states, last]}
    assert (["mirror"], second["new"]) == (last["beside"], last["digest"])
