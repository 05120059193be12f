"""Parse JSON strictly: what a lenient parser would let through or change silently is named, with its place.

In: the bytes of a file. Out: the value, and the faults met. Whatever the bytes, nothing here raises.
Not done here: what the value should look like (`validate`).
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from builder.rules.problems import Fault, member, shown

MAX_FAULTS_PER_FILE: Final = 1000
_SHOWN_LEVELS: Final = 12


class Parsed(NamedTuple):
    """The value of a JSON text (None also where there is none) and its faults; with a fault it is not to be used."""

    value: Any
    faults: tuple[Fault, ...]


def parse(raw: bytes) -> Parsed:
    """Parse strict JSON: UTF-8 without a byte order mark, no key twice, finite numbers, whole characters."""
    value = _parse_plain(raw)
    return _parse_strictly(raw) if value is None else Parsed(value, ())


_ESCAPE: Final = re.compile(rb"\\u")


def _parse_plain(raw: bytes) -> Any:
    """Return the value if the bytes are exactly how a plain writer puts that value, else None.

    Such bytes cannot hold a key twice, a mark, NaN or a number that was changed in reading; this proof takes a
    third of the time of a strict parse, and upstream's files are all written so.
    """
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE if raw[1:2] == b"\n" else 0
    try:
        same = orjson.dumps(value, option=options) == raw
    except orjson.JSONEncodeError:  # nested deeper than orjson writes
        return None
    return value if same and not _ESCAPE.search(raw) else None


class _Twice(dict[str, Any]):
    """An object some of whose keys came more than once."""

    repeated: tuple[str, ...] = ()


class _Watch:
    """The hooks of one strict parse; `alarm` says that the value must be searched for faults."""

    alarm = False

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) == len(pairs):
            return value
        self.alarm = True
        twice = _Twice(value)
        twice.repeated = tuple(name for name, n in Counter(name for name, _ in pairs).items() if n > 1)
        return twice

    def number(self, text: str) -> float:
        value = float(text)  # also the hook for NaN and Infinity, and 1e999 becomes infinite without one
        self.alarm = self.alarm or not math.isfinite(value)
        return value


_ESCAPED_BAD: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_BAD: Final = re.compile("[\0\ud800-\udfff]")
_MARKS: Final = ((b"\xff\xfe\0\0", "UTF-32"), (b"\0\0", "UTF-32"), (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))


def _parse_strictly(raw: bytes) -> Parsed:
    marked = raw.startswith(codecs.BOM_UTF8)
    mark = Fault("byte-order-mark", "a byte order mark", "UTF-8 without one", hint="save the file as plain UTF-8")
    text = _decode(raw[3:] if marked else raw)
    value, faults = _parse_text(text) if isinstance(text, str) else Parsed(None, (text,))
    return Parsed(value, (mark, *faults) if marked else faults)


def _decode(raw: bytes) -> str | Fault:
    if b"\0" in raw[:4] and not raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF32_BE)):
        return Fault("encoding", "NUL bytes, as UTF-16 has them", "UTF-8", hint="save the file as UTF-8")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        for mark, name in _MARKS:
            if raw.startswith(mark):
                return Fault("encoding", name, "UTF-8", hint="save the file as UTF-8")
        where = f"byte 0x{raw[error.start]:02x} at offset {error.start:,}"
        return Fault("encoding", where, "UTF-8", hint="save the file as UTF-8")


def _parse_text(text: str) -> Parsed:
    watch = _Watch()
    strict = json.JSONDecoder(object_pairs_hook=watch.object, parse_float=watch.number, parse_constant=watch.number)
    try:
        value = strict.decode(text)
    except json.JSONDecodeError as error:
        return _not_json(f"{_reason(error)} at line {error.lineno:,}, column {error.colno:,}")
    except RecursionError:
        return Parsed(None, (Fault("nesting", "hundreds of levels of nesting", "at most three"),))
    except ValueError:
        return _not_json("an integer of thousands of digits")
    if not (watch.alarm or _ESCAPED_BAD.search(text)):
        return Parsed(value, ())
    return Parsed(value, tuple(islice(_faults_within(value), MAX_FAULTS_PER_FILE)))


def _not_json(found: str) -> Parsed:
    return Parsed(None, (Fault("json-syntax", found, "one JSON value"),))


def _reason(error: json.JSONDecodeError) -> str:
    if error.pos >= len(error.doc.rstrip()):
        return "the end of the file"
    return f"{shown(error.doc[error.pos])} ({error.msg.lower()})"


class _Node(NamedTuple):
    """A value within the parsed one, and the way to it."""

    above: _Node | None
    key: str | int
    value: Any


def _faults_within(root: Any) -> Iterator[Fault]:
    """Yield the faults that a parser lets through, in the order of the text; a loop, as values may be nested deep."""
    stack = [_Node(None, "", root)]
    while stack:
        node = stack.pop()
        match node.value:
            case str() | float():
                yield from _scalar_faults(node, node.value)
            case dict():
                yield from _key_faults(node)
                stack += [_Node(node, key, child) for key, child in reversed(node.value.items())]
            case list():
                stack += [
                    _Node(node, i, child) for i, child in zip(_down(node.value), reversed(node.value), strict=True)
                ]


def _down(values: list[Any]) -> range:
    return range(len(values) - 1, -1, -1)


def _scalar_faults(node: _Node, value: str | float) -> Iterator[Fault]:
    if isinstance(value, float):
        if not math.isfinite(value):
            yield Fault("non-finite-number", shown(value), "a finite number", _place(node))
    elif bad := _BAD.search(value):
        yield _bad_character(bad[0], _place(node))


def _key_faults(node: _Node) -> Iterator[Fault]:
    for key in node.value:
        if bad := _BAD.search(key):
            yield _bad_character(bad[0], _place(_Node(node, key, None)))
    for key in getattr(node.value, "repeated", ()):
        yield Fault("duplicate-key", "it more than once", "a member once", _place(_Node(node, key, None)))


def _bad_character(character: str, place: str) -> Fault:
    if character == "\0":
        return Fault("nul-character", "a NUL character", "text without NUL", place)
    return Fault("lone-surrogate", f"half a surrogate pair ({shown(character)})", "whole characters", place)


def _place(node: _Node) -> str:
    """Return a node's place such as `rubric_items[2].points`, the outermost levels left out when there are many."""
    steps: list[str] = []
    while node.above is not None and len(steps) < _SHOWN_LEVELS:
        steps.append(f"[{node.key}]" if isinstance(node.key, int) else member(node.key))
        node = node.above
    place = "".join(reversed(steps)).removeprefix(".")
    return place if node.above is None else f"…{place}"
