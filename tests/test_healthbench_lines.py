"""JSONL is read a line at a time: "\\n" alone ends one, each is strict JSON, and what cannot be read is named."""

from __future__ import annotations

import pytest

from builder.healthbench.lines import Line, literal_numbers, read_lines


def read(content: bytes) -> list[Line | int]:
    """Return the lines of a file called x.jsonl."""
    return list(read_lines(content, "x.jsonl"))


def problem(content: bytes) -> str:
    """Return the one problem of a file with one line."""
    (line,) = read(content)
    assert isinstance(line, Line)
    (found,) = line.problems
    return found.line()


def test_lines_end_at_the_newline_only() -> None:
    """U+2028, U+2029, U+0085 and a carriage return within a string end no line."""
    lines = read('{"a": "x\u2028y\u2029z\u0085"}\r\n{"b": 1}'.encode())

    assert [{"a": "x\u2028y\u2029z\u0085"}, {"b": 1}] == [line.record for line in lines if isinstance(line, Line)]


def test_places_name_file_and_line() -> None:
    """The first line is line 1, and a blank one in between counts."""
    lines = read(b'{"a": 1}\n \t\n{"b": 1}\n')

    assert ["x.jsonl:1", 2, "x.jsonl:3"] == [line.file if isinstance(line, Line) else line for line in lines]


@pytest.mark.parametrize("content", [b"", b"\n", b"\n \n\r\n"])
def test_blank_lines_at_the_end_are_none(content: bytes) -> None:
    """A file may end with any number of blank lines; one of blank lines alone has no line."""
    assert [] == read(content)
    assert 1 == len(read(b"{}" + content))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"a": 1', "expected one JSON value, found the end of the line at column 8"),
        (b"not json", 'expected one JSON value, found "n" (expecting value) at column 1'),
        (b'{"a": 1} {"b": 2}', 'expected one JSON value, found "{" (extra data) at column 10'),
        (b'{"a": {"b": NaN}}', "a.b: expected a finite number, found NaN"),
        (b'{"a": 1, "a": 2}', "a: expected a member once, found it more than once"),
        (b'{"a": "\\ud800"}', 'a: expected whole characters, found half a surrogate pair ("\\ud800")'),
        (b'\xef\xbb\xbf{"a": 1}', "expected UTF-8 without one, found a byte order mark; save the file as plain UTF-8"),
        (b'{"a": "\xff"}', "expected UTF-8, found byte 0xff at offset 7; save the file as UTF-8"),
        (b"[1, 2]", "expected an object, one example a line, found an array of 2"),
        (b"3", "expected an object, one example a line, found 3"),
        (b"[" * 100_000, "expected a few levels, found hundreds of levels of nesting"),
    ],
    ids=lambda value: repr(value[:12]) if isinstance(value, bytes) else "",
)
def test_a_line_that_cannot_be_read_is_named(content: bytes, expected: str) -> None:
    """Torn lines, garbage and JSON that parsers change in silence are problems of their line."""
    assert f"x.jsonl:1: {expected}" == problem(content)


def test_numbers_can_be_had_as_they_are_written() -> None:
    """5.0, 1e1 and 2.50 are the same numbers as 5, 10 and 2.5, but not the same text."""
    assert {"points": ["5.0", "1e1", "2.50", "-7", "-0"]} == literal_numbers(b'{"points": [5.0, 1e1, 2.50, -7, -0]}')
