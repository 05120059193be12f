"""A file of documents is read whole and strictly, and becomes cases with the documents as their answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builder.errors import BadInput
from eval.statements.documents import read_documents

LINE = {"id": "a", "source": "Patient: no fever.", "document": "No fever.\nAspirin."}


def _file(folder: Path, *lines: Any) -> Path:
    path = folder / "docs.jsonl"
    path.write_bytes(b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines))
    return path


def test_documents_become_cases_and_given_answers(tmp_path: Path) -> None:
    """The source is the prompt, the instruction a turn before it, the system the panel, the document the answer."""
    more = {**LINE, "id": "b", "instruction": "Write a letter.", "system": "scribe-1", "tags": ["zh"]}
    documents = read_documents(_file(tmp_path, LINE, b"\n", more))
    plain, full = documents.data.cases

    assert ("unsupported-statements", "documents") == (documents.data.suite, documents.data.config)
    assert ("a", "documents", "statements", ()) == (plain.case_id, plain.benchmark, plain.grading_method, plain.items)
    assert (("user", LINE["source"]),) == plain.conversation
    assert (("system", "Write a letter."), ("user", LINE["source"])) == full.conversation
    assert ("scribe-1", ("zh",), LINE["source"]) == (full.benchmark, full.tags, full.prompt)
    assert ["No fever.\nAspirin."] == [answer.text for answer in documents.given.by_case["b"]]
    assert ("documents", "scribe-1") == documents.data.panels
    assert documents.given.model is None


def test_texts_are_kept_to_the_byte(tmp_path: Path) -> None:
    """Blanks at the ends, carriage returns and line separators of a text stay as they are."""
    document = "  No fever.\r\n\u2028No cough. "
    documents = read_documents(_file(tmp_path, {**LINE, "document": document, "system": "scribe-1"}))

    assert document == documents.given.by_case["a"][0].text
    assert "scribe-1" == documents.given.model


def test_the_digests_say_what_differs(tmp_path: Path) -> None:
    """Another document is another file of answers to the same data; another source is other data."""
    first = read_documents(_file(tmp_path, LINE))
    document = read_documents(_file(tmp_path, {**LINE, "document": "No cough."}))
    source = read_documents(_file(tmp_path, {**LINE, "source": "Patient: no cough."}))

    assert first.data.dataset_sha256 == document.data.dataset_sha256 != source.data.dataset_sha256
    assert first.data.content_sha256 != source.data.content_sha256
    assert 3 == len({first.given.file_sha256, document.given.file_sha256, source.given.file_sha256})


BAD = {
    "no object": (["a"], "expected an object of id, source, document, instruction, system, tags, found"),
    "no source": ({"id": "a", "document": "x"}, "source: expected a text that is not blank, found none"),
    "blank document": ({**LINE, "document": " \n"}, 'document: expected a text that is not blank, found " \\n"'),
    "a number for an id": ({**LINE, "id": 7}, "id: expected a text that is not blank, found 7"),
    "null instruction": ({**LINE, "instruction": None}, "instruction: expected a text that is not blank, found null"),
    "an id of two lines": ({**LINE, "id": "a\nb"}, 'id: expected printable characters, found "a\\nb"'),
    "tags as a text": ({**LINE, "tags": "zh"}, 'tags: expected a list of texts, found "zh"'),
    "a member too much": ({**LINE, "documnet": "x"}, 'found "documnet"; take it out'),
    "half a character": ({**LINE, "document": "\ud83d"}, "document: expected whole characters, found half a surrogate"),
    "a key twice": (b'{"id":"a","id":"b","source":"s","document":"d"}\n', "id: expected a member once, found it more"),
    "no JSON": (b"{id: 1}\n", "expected one JSON value, found"),
    "other bytes": (b'{"id":"\xff"}\n', "expected UTF-8, found byte 0xff"),
}


@pytest.mark.parametrize(("line", "message"), BAD.values(), ids=list(BAD.keys()))
def test_a_bad_line_is_named(tmp_path: Path, line: Any, message: str) -> None:
    """The message says which line of which file, which member, what was expected and what was found."""
    with pytest.raises(BadInput) as stop:
        read_documents(_file(tmp_path, LINE, line))

    assert f"{tmp_path / 'docs.jsonl'}:2: " in str(stop.value)
    assert message in str(stop.value)


def test_every_problem_is_listed(tmp_path: Path) -> None:
    """One run names all bad lines, ids that come twice included."""
    bad = {**LINE, "source": "", "tags": [1]}
    with pytest.raises(BadInput) as stop:
        read_documents(_file(tmp_path, LINE, bad, b"no\n", LINE))

    lines = str(stop.value).split("\n")
    assert [2, 2, 3, 1, 4] == [int(line.removeprefix(f"{tmp_path / 'docs.jsonl'}:").split(":")[0]) for line in lines]
    assert lines[-1].endswith('id: expected each once, found "a" in 2 lines')


@pytest.mark.parametrize("content", [None, b"", b"\n\n"])
def test_a_file_without_documents_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """A missing or an empty file ends in one line."""
    path = tmp_path / "docs.jsonl"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(BadInput, match=r"docs\.jsonl: expected .*found no"):
        read_documents(path)
