"""Which licence a source tree states, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.tree.licence import legal_files, licence_of_text, licence_statements
from builder.tree.reading import Boundary


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        ("Creative Commons Attribution 4.0 International", "cc-by-4.0"),
        ("the Creative Commons Attribution-NonCommercial-ShareAlike 4.0\nInternational License", "cc-by-nc-sa-4.0"),
        ("licensed under CC BY-NC-SA 4.0", "cc-by-nc-sa-4.0"),
        ("CC-BY-SA 3.0", "cc-by-sa-3.0"),
        ("Creative Commons Attribution-ShareAlike 4.0", "cc-by-sa-4.0"),
        ("CC0 1.0 Universal", "cc0-1.0"),
        ("Apache License, Version 2.0", "apache-2.0"),
        ("Apache License\n                           Version 2.0, January 2004", "apache-2.0"),
        ("MIT License", "mit"),
        ("All rights reserved.", None),
    ],
)
def test_a_licence_text_is_recognised(text: str, licence: str | None) -> None:
    """The usual names of the usual licences give the Hub's ids."""
    assert licence_of_text(text) == licence


def test_statements_come_in_order_of_weight(tmp_path: Path) -> None:
    """Registry, citation, card and licence text are all read, the registry first."""
    (tmp_path / "CITATION.cff").write_text('cff-version: 1.2.0\nlicense: "CC-BY-NC-SA-4.0"  # data\n')
    (tmp_path / "README.md").write_text("---\nlanguage: en\nlicense: cc-by-4.0\n---\n\nlicense: mit\n")
    (tmp_path / "LICENSE").write_text("CC BY-SA 4.0")

    found = licence_statements(tmp_path, {"license": "CC0-1.0"}, Boundary.around(tmp_path))

    assert [(one.file, one.license) for one in found] == [
        ("registry.json", "cc0-1.0"),
        ("CITATION.cff", "cc-by-nc-sa-4.0"),
        ("README.md", "cc-by-4.0"),
        ("LICENSE", "cc-by-sa-4.0"),
    ]


def test_what_is_no_statement_is_left_alone(tmp_path: Path) -> None:
    """An empty folder, a registry with odd values, and a card without front matter state nothing."""
    (tmp_path / "README.md").write_text("license: mit\n")

    assert licence_statements(tmp_path, {"license": ["mit"]}, Boundary.around(tmp_path)) == ()
    assert licence_statements(tmp_path, None, Boundary.around(tmp_path)) == ()


def test_only_files_of_legal_weight_are_listed(tmp_path: Path) -> None:
    """Licence, notice, disclaimer and citation files are carried along, nothing else, no folder."""
    for name in ("README.md", "LICENSE-data.txt", "NOTICE", "DISCLAIMER.md", "CITATION.cff"):
        (tmp_path / name).write_text("")
    (tmp_path / "LICENSES").mkdir()

    names = [path.name for path in legal_files(tmp_path)]

    assert names == ["CITATION.cff", "DISCLAIMER.md", "LICENSE-data.txt", "NOTICE"]
