"""What lies beside a JSONL file: its licence and legal texts where the folder is of such files, and not elsewhere."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from builder.errors import BadInput
from builder.healthbench.check import check_examples
from builder.healthbench.source import ExampleFile, license_of, open_examples
from builder.tree.sources import installed_data
from tests.examples import make_example, write_examples, write_jsonl


def opened(folder: Path) -> ExampleFile:
    """Return the file of `write_examples` in a folder."""
    return open_examples(folder / "healthbench.jsonl")


def test_a_folder_of_such_files_is_their_source(tmp_path: Path) -> None:
    """JSONL, README, licence, citation, a mirror built beside: LICENSE is of the examples, and is carried."""
    write_examples(tmp_path)
    write_jsonl(tmp_path / "hard.jsonl", [make_example()])
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n")
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nlicense: MIT\n")
    (tmp_path / "mirror").mkdir()
    file = opened(tmp_path)

    assert ("mit", ["CITATION.cff", "LICENSE"], ()) == (file.license, sorted(file.legal), file.beside)


@pytest.mark.parametrize("other", ["pyproject.toml", "holiday.jpg", "notes.docx"])
def test_a_licence_among_other_things_is_not_taken(tmp_path: Path, other: str) -> None:
    """At the top of a project or among downloads a LICENSE says nothing of the file, and a warning says so."""
    write_examples(tmp_path)
    (tmp_path / other).write_text("x")
    file = opened(tmp_path)

    assert (None, {}, ("LICENSE",)) == (file.license, file.legal, file.beside)
    assert [
        (
            "healthbench.jsonl: license: expected a folder of such files and texts alone, found LICENSE in a folder "
            "that holds other things too; name it with --license ID, such as --license mit"
        )
    ] == [problem.line() for problem in check_examples(file).problems]


def test_a_licence_can_be_named(tmp_path: Path) -> None:
    """--license fills in what is missing; it contradicts nothing, and has the form of an id."""
    file = open_examples(write_jsonl(tmp_path / "x.jsonl", [make_example()]))
    stated = opened(write_examples(tmp_path / "stated").parent)

    assert ("cc-by-4.0", None) == (license_of(file, "cc-by-4.0"), license_of(file, None))
    assert ("mit", "mit") == (license_of(stated, "mit"), license_of(stated, None))
    with pytest.raises(BadInput, match=r"expected the licence that lies beside the file, mit in LICENSE; leave it out"):
        license_of(stated, "apache-2.0")
    with pytest.raises(BadInput, match="expected the Hub's id of a licence"):
        license_of(file, "My Licence")


def test_an_unknown_licence_is_a_warning(tmp_path: Path) -> None:
    """Without a licence the file can be built, and is not published where everyone reads."""
    file = open_examples(write_jsonl(tmp_path / "x.jsonl", [make_example()]))

    assert ["license-unknown"] == [problem.rule for problem in check_examples(file).problems]
    assert () == check_examples(file, license_id="mit").problems


def test_a_link_is_followed_and_keeps_its_name(tmp_path: Path) -> None:
    """The Hub's cache is made of links: a file has the link's name, the content behind it, and the link's folder."""
    blob = write_examples(tmp_path / "blobs")
    (tmp_path / "hard.jsonl").symlink_to(blob)
    file = open_examples(tmp_path / "hard.jsonl")

    assert ("hard.jsonl", blob.read_bytes(), None) == (file.name, file.content, file.license)


def test_what_is_no_file_is_one_clear_line(tmp_path: Path) -> None:
    """A pipe is not waited for, and a missing file is named."""
    os.mkfifo(tmp_path / "pipe.jsonl")

    with pytest.raises(BadInput, match="expected a regular file, found a named pipe"):
        open_examples(tmp_path / "pipe.jsonl")
    with pytest.raises(BadInput, match="expected a file, found none"):
        open_examples(tmp_path / "none.jsonl")


def test_our_samples_are_known_wherever_they_lie(tmp_path: Path) -> None:
    """A copy of a shipped file is a sample with our licence; one with a line less is not."""
    shipped = installed_data() / "healthbench" / "healthbench.jsonl"
    copy = Path(shutil.copy(shipped, tmp_path / "copy.jsonl"))
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(shipped.read_bytes().split(b"\n")[0])

    assert [True, True, False] == [open_examples(path).samples for path in (shipped, copy, cut)]
    assert "cc-by-4.0" == open_examples(copy).license
    assert ["LICENSE", "NOTICE"] == sorted(open_examples(copy).legal)
