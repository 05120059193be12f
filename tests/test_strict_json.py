"""Strict JSON: what a lenient parser accepts or changes in silence is named with its place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.tree.strict_json import MAX_FAULTS_PER_FILE, parse

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)

FAULTY = {
    "byte order mark": (b'\xef\xbb\xbf{"a": 1}', "byte-order-mark", None, "a byte order mark"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "encoding", None, "UTF-16"),
    "UTF-16 without a mark": ('{"a": 1}'.encode("utf-16-le"), "encoding", None, "NUL bytes, as UTF-16 has them"),
    "UTF-32": ('{"a": 1}'.encode("utf-32"), "encoding", None, "UTF-32"),
    "Latin-1": ('{"a": "é"}'.encode("latin-1"), "encoding", None, "byte 0xe9 at offset 7"),
    "key twice": (b'{"a": {"b": 1, "b": 1}}', "duplicate-key", "a.b", "it more than once"),
    "NaN": (b'{"a": [1, NaN]}', "non-finite-number", "a[1]", "NaN"),
    "minus infinity": (b'{"a b": -Infinity}', "non-finite-number", '["a b"]', "-Infinity"),
    "number beyond a double": (b'{"a": 1e999}', "non-finite-number", "a", "Infinity"),
    "half a pair": (rb'{"a": "\ud835 mg"}', "lone-surrogate", "a", r'half a surrogate pair ("\ud835")'),
    "half a pair in a key": (rb'{"\uDC00": 1}', "lone-surrogate", r'["\udc00"]', r'half a surrogate pair ("\udc00")'),
    "NUL": (rb'{"a": "\u0000"}', "nul-character", "a", "a NUL character"),
    "empty": (b"", "json-syntax", None, "the end of the file at line 1, column 1"),
    "cut off": (b'{"a":\n 1', "json-syntax", None, "the end of the file at line 2, column 3"),
    "trailing comma": (b"[1,]", "json-syntax", None, '"]" (expecting value) at line 1, column 4'),
    "text after it": (b"{} {}", "json-syntax", None, '"{" (extra data) at line 1, column 4'),
    "raw newline": (b'"a\nb"', "json-syntax", None, r'"\n" (invalid control character at) at line 1, column 3'),
    "arrays a million deep": (b"[" * 1_000_000, "nesting", None, "hundreds of levels of nesting"),
    "objects a million deep": (b'{"a":' * 1_000_000, "nesting", None, "hundreds of levels of nesting"),
    "endless integer": (b"9" * 5_000, "json-syntax", None, "an integer of thousands of digits"),
}


@pytest.mark.parametrize(("raw", "rule", "field", "found"), FAULTY.values(), ids=FAULTY.keys())
def test_a_faulty_text_is_named(raw: bytes, rule: str, field: str | None, found: str) -> None:
    """A text that is not strict JSON is reported once, with its rule, its place and what stands there."""
    (fault,) = parse(raw).faults

    assert (fault.rule, fault.field, fault.found) == (rule, field, found)


@given(JSON_VALUES, st.sampled_from([None, 2]), st.booleans())
def test_a_strict_text_is_read_as_it_is(value: object, indent: int | None, ascii_only: bool) -> None:
    """Whatever JSON writer was used, the value comes back with the same types and no fault."""
    raw = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()

    parsed = parse(raw)

    assert (repr(parsed.value), parsed.faults) == (repr(value), ())


@given(st.binary(max_size=40))
def test_no_bytes_raise(raw: bytes) -> None:
    """Any bytes at all give a value or a fault, never an exception."""
    parsed = parse(raw)

    assert parsed.faults or json.loads(raw) == parsed.value


def test_windows_line_ends_change_nothing() -> None:
    """CRLF between the members is white space like any other."""
    assert parse(b'{\r\n  "a": 1\r\n}\r\n').value == {"a": 1}


def test_all_faults_of_a_text_are_reported() -> None:
    """Several faults are listed together, in the order of the text."""
    parsed = parse(rb'{"a": NaN, "b": [{"c": 1, "c": 2}], "d": "\u0000"}')

    assert [fault.field for fault in parsed.faults] == ["a", "b[0].c", "d"]


def test_a_million_faults_stay_bounded() -> None:
    """A hostile file cannot fill the report: its faults are listed up to a limit."""
    parsed = parse(b"[" + b"NaN," * 100_000 + b"1]")

    assert len(parsed.faults) == MAX_FAULTS_PER_FILE


def test_a_deep_place_is_cut() -> None:
    """The place of a fault under hundreds of levels shows the innermost ones."""
    (fault,) = parse(b"[" * 500 + b"NaN" + b"]" * 500).faults

    assert fault.field == "…" + "[0]" * 12
