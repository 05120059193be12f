"""Reading files: pipes, folders, devices and links out of the tree are refused, and nothing waits."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from builder.rules.problems import Fault
from builder.tree import reading
from builder.tree.reading import Boundary, folder_fault, read_bytes


def read(path: Path, root: Path) -> bytes | Fault:
    """Read a file as part of a tree."""
    return read_bytes(str(path), Boundary.around(root))


def fault_of(result: bytes | Fault | None) -> Fault:
    """Return the fault that a reading must have given."""
    assert isinstance(result, Fault)
    return result


def test_a_regular_file_is_read_whole(tmp_path: Path) -> None:
    """A file of 10 MB comes back byte for byte."""
    data = os.urandom(10_000_000)
    (tmp_path / "big").write_bytes(data)

    assert read(tmp_path / "big", tmp_path) == data


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    """A file that is not there is said to be missing."""
    assert fault_of(read(tmp_path / "none", tmp_path)).rule == "missing-file"


def test_a_named_pipe_is_refused_at_once(tmp_path: Path) -> None:
    """A pipe nobody writes to does not make the reader wait."""
    os.mkfifo(tmp_path / "pipe")

    assert fault_of(read(tmp_path / "pipe", tmp_path)).found == "a named pipe"


def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket is not read."""
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")

        assert fault_of(read(tmp_path / "socket", tmp_path)).rule == "unreadable"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """A folder named like a file is refused."""
    (tmp_path / "x.json").mkdir()

    assert fault_of(read(tmp_path / "x.json", tmp_path)).found == "a folder"


def test_a_link_out_of_the_tree_is_refused(tmp_path: Path) -> None:
    """A link to a file elsewhere is named with its target and not followed."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "secret").write_text("x")
    (tmp_path / "tree" / "link").symlink_to("../secret")

    fault = fault_of(read(tmp_path / "tree" / "link", tmp_path / "tree"))

    assert (fault.rule, fault.found) == ("link-leaves-tree", 'a link to "../secret"')


def test_a_link_to_a_device_is_refused(tmp_path: Path) -> None:
    """A link to an endless device does not hang the reader."""
    (tmp_path / "zero").symlink_to("/dev/zero")

    assert fault_of(read(tmp_path / "zero", tmp_path)).rule == "link-leaves-tree"


def test_a_link_within_the_tree_is_followed(tmp_path: Path) -> None:
    """A link to another file of the tree is read."""
    (tmp_path / "a").write_text("x")
    (tmp_path / "b").symlink_to("a")

    assert read(tmp_path / "b", tmp_path) == b"x"


def test_a_circle_of_links_is_a_fault(tmp_path: Path) -> None:
    """Two links that point at each other end in a message."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")

    assert fault_of(read(tmp_path / "a", tmp_path)).rule == "unreadable"


def test_a_broken_link_is_missing(tmp_path: Path) -> None:
    """A link to nothing is a missing file."""
    (tmp_path / "a").symlink_to("nothing")

    assert fault_of(read(tmp_path / "a", tmp_path)).rule == "missing-file"


def test_the_cache_of_the_hub_may_link_to_its_blobs(tmp_path: Path) -> None:
    """A snapshot's links into the blobs of the same repository are followed, those to another's are not."""
    for repo in ("datasets--o--a", "datasets--o--b"):
        (tmp_path / repo / "blobs").mkdir(parents=True)
        (tmp_path / repo / "blobs" / "f00").write_text(repo)
    snapshot = tmp_path / "datasets--o--a" / "snapshots" / "c0ffee"
    (snapshot / "data").mkdir(parents=True)
    (snapshot / "data" / "own").symlink_to("../../../blobs/f00")
    (snapshot / "data" / "other").symlink_to("../../../../datasets--o--b/blobs/f00")

    assert read(snapshot / "data" / "own", snapshot) == b"datasets--o--a"
    assert fault_of(read(snapshot / "data" / "other", snapshot / "data")).rule == "link-leaves-tree"


def test_a_file_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    """A file of more than 256 MiB (here one with nothing in it) is named and not read."""
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(reading.MAX_FILE_BYTES + 1)

    assert fault_of(read(tmp_path / "hole", tmp_path)).found == "268,435,457 bytes"


def test_folders_are_told_from_what_is_none(tmp_path: Path) -> None:
    """A folder is fine; a file, nothing, and a link out of the tree are not."""
    tree = tmp_path / "tree"
    (tree / "folder").mkdir(parents=True)
    (tree / "file").write_text("")
    (tree / "link").symlink_to("..")
    boundary = Boundary.around(tree)

    rules = [fault_of(folder_fault(str(tree / name), boundary)).rule for name in ("file", "none", "link")]

    assert folder_fault(str(tree / "folder"), boundary) is None
    assert rules == ["not-a-folder", "missing-folder", "link-leaves-tree"]
