"""`digests.json` names every file of a folder; any change that does not make it anew is found and named."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from builder.dataset.digests import (
    DIGESTS_NAME,
    Finding,
    file_digests,
    folder_digest,
    read_digests,
    split_order,
    verify_files,
    write_digests,
)
from builder.dataset.folder import write_files
from builder.errors import BadInput

TABLE = pa.table({"a": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a small folder with its digests."""
    write_files(tmp_path, {"README.md": b"# A card\n", "data/a.parquet": TABLE})
    write_digests(tmp_path, {"kind": "mirror"})
    return tmp_path


def test_every_file_is_named_with_digest_size_and_rows(folder: Path) -> None:
    """Bytes are hashed as they are; rows are counted for Parquet only; digests.json does not name itself."""
    digests = file_digests(folder)

    assert ["README.md", "data/a.parquet"] == sorted(digests)
    card = hashlib.sha256(b"# A card\n").hexdigest()
    assert {"digest": f"sha256:{card}", "bytes": 9, "rows": None} == digests["README.md"]
    assert digests["data/a.parquet"]["rows"] == 3


def test_the_file_is_laid_out_as_the_format_says(folder: Path) -> None:
    """Sorted keys, indent 1, one newline at the end, ASCII; the folder digest is the SHA-256 of these bytes."""
    data = (folder / DIGESTS_NAME).read_bytes()

    assert (json.dumps(json.loads(data), sort_keys=True, indent=1) + "\n").encode() == data
    assert hashlib.sha256(data).hexdigest() == folder_digest(folder)
    assert json.loads(data) == read_digests(folder)


def test_a_folder_as_it_was_written_has_no_findings(folder: Path) -> None:
    """Nothing is found in an untouched folder, also against its own digest in capitals."""
    assert [] == verify_files(folder)
    assert [] == verify_files(folder, expect=folder_digest(folder).upper())


def change(name: str, data: bytes) -> Callable[[Path], object]:
    """Return a change that writes other bytes to a file."""
    return lambda folder: (folder / name).write_bytes(data)


def as_link(folder: Path) -> None:
    """Make a stray link to a folder elsewhere."""
    (folder / "data" / "more").symlink_to("/")


def as_pipe(folder: Path) -> None:
    """Put a named pipe in a file's place; opening it would wait for ever."""
    (folder / "README.md").unlink()
    os.mkfifo(folder / "README.md")


@pytest.mark.parametrize(
    ("break_it", "file", "what"),
    [
        (change("README.md", b"# A cart\n"), "README.md", "digest"),
        (change("README.md", b"# A card\n\n"), "README.md", "size"),
        (lambda folder: (folder / "data/a.parquet").unlink(), "data/a.parquet", "missing"),
        (change("data/b.parquet", b""), "data/b.parquet", "stray file"),
        (change(".hidden", b""), ".hidden", "stray file"),
        (as_link, "data/more", "stray file"),
        (as_pipe, "README.md", "missing"),
    ],
    ids=["one byte", "one byte more", "gone", "one more", "a hidden one", "a link", "a pipe"],
)
def test_a_change_is_named(folder: Path, break_it: Callable[[Path], object], file: str, what: str) -> None:
    """The finding says which file it is and what is wrong with it."""
    break_it(folder)

    assert [(file, what)] == [(finding.file, finding.what) for finding in verify_files(folder)]


def test_what_the_hub_and_git_add_to_a_copy_is_no_stray(folder: Path) -> None:
    """A downloaded or cloned folder has files of its transport in it, which no config can reach."""
    for name in (".gitattributes", ".git/HEAD", ".cache/huggingface/download/x.metadata"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")

    assert [] == verify_files(folder)


def test_links_to_files_are_followed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The Hub's cache keeps a folder as links to blobs: what a link leads to decides."""
    blob = tmp_path_factory.mktemp("blobs") / "blob"
    (folder / "README.md").rename(blob)
    (folder / "README.md").symlink_to(blob)

    assert [] == verify_files(folder)


def test_a_folder_that_was_given_new_digests_fails_only_against_an_expected_one(folder: Path) -> None:
    """Whoever changes the files and digests.json alike is found by the digest that someone else kept."""
    kept = folder_digest(folder)
    (folder / "README.md").write_bytes(b"# Another card\n")
    found = write_digests(folder, {"kind": "mirror"})

    assert [] == verify_files(folder)
    assert [Finding(DIGESTS_NAME, "folder digest", kept, found)] == verify_files(folder, expect=kept)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected one JSON value"),
        ("[]", "expected format 'bedside-bench/digests/1', found 'list'"),
        ('{"format": "other"}', "found 'other'"),
        ('{"format": "bedside-bench/digests/1", "files": []}', "files: expected"),
        ('{"format": "bedside-bench/digests/1", "files": {"../x": {}}}', "found the path '../x'"),
        ('{"format": "bedside-bench/digests/1", "files": {"/etc/passwd": {}}}', "found the path '/etc/passwd'"),
        ('{"format": "bedside-bench/digests/1", "files": {"a//b": {}}}', "found the path 'a//b'"),
        ('{"format": "bedside-bench/digests/1", "files": {"a": {"digest": 1}}}', "'a' with other members"),
        (
            '{"format": "bedside-bench/digests/1", "files": {"a": {"digest": "x", "bytes": 1, "rows": null}}}',
            "'a' with a value of another form",
        ),
        ('{"format": 1, "format": 1}', "expected a member once"),
    ],
)
def test_a_digests_file_that_is_not_ours_is_refused(folder: Path, text: str, message: str) -> None:
    """Broken JSON, another format, or a path that leaves the folder is one clear line."""
    (folder / DIGESTS_NAME).write_text(text, encoding="utf-8")

    with pytest.raises(BadInput, match=message):
        read_digests(folder)
    assert [DIGESTS_NAME] == [finding.file for finding in verify_files(folder)]


def test_no_digests_at_all_is_one_clear_line(tmp_path: Path) -> None:
    """A folder that no command wrote is said to be just that."""
    with pytest.raises(
        BadInput, match=r"expected the digests of a dataset folder, found none; make one: bedside-bench"
    ):
        read_digests(tmp_path)


def test_another_layout_of_the_same_digests_is_found(folder: Path) -> None:
    """Only one way of writing digests.json has the folder digest, so another is named."""
    (folder / DIGESTS_NAME).write_text(json.dumps(read_digests(folder)), encoding="utf-8")

    assert ["layout"] == [finding.what for finding in verify_files(folder)]


def test_the_public_split_comes_first_whatever_its_name() -> None:
    """JSON sorts the splits by name; dataset order has the public cases first, then the others by theirs."""
    splits = {"a_test": "test", "b_other": "other", "z_public": "train"}

    assert [("z_public", "train"), ("b_other", "other"), ("a_test", "test")] == split_order(splits)


def test_a_finding_is_one_line() -> None:
    """File, what, expected and found stand in one line."""
    assert "a: rows: expected 1, found 2" == Finding("a", "rows", "1", "2").line()
