"""Read a JSONL file a line at a time: bytes between "\\n" parsed strictly, and whatever keeps a line from being read.

In: the bytes of a file. Out: its lines in order, each an object or the problems of reading it. A line ends at "\\n" and
nowhere else: U+2028 and its like stand inside the strings of published files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from builder.rules.problems import At, Fault, Problem, shown
from builder.tree.strict_json import parse

_BLANK: Final = b" \t\r"
_ONE_LINE: Final = re.compile(r"at line 1, column ([\d,]+)$")


@dataclass(frozen=True, slots=True)
class Line:
    """One line that is not blank: `record` is its object, None where `problems` (of reading it) are there.

    `file` is what a problem in it names, `<name>:<number>`; numbers begin with 1.
    """

    file: str
    number: int
    raw: bytes
    record: dict[str, Any] | None
    problems: tuple[Problem, ...]


def read_lines(content: bytes, name: str) -> Iterator[Line | int]:
    """Yield the lines of a file in order; of a blank one only its number, and none for blank ones at the end."""
    start, number, end = 0, 0, len(content.rstrip(_BLANK + b"\n"))
    while start < end:
        number += 1
        stop = content.find(b"\n", start)
        raw = content[start : len(content) if stop < 0 else stop]
        start = len(content) if stop < 0 else stop + 1
        yield _read(raw, name, number) if raw.strip(_BLANK) else number


def _read(raw: bytes, name: str, number: int) -> Line:
    file = f"{name}:{number}"
    value, faults = parse(raw)
    if faults:
        return Line(file, number, raw, None, tuple(_problem(fault, file) for fault in faults))
    if not isinstance(value, dict):
        problem = At(file, None).error("wrong-type", None, shown(value), "an object, one example a line")
        return Line(file, number, raw, None, (problem,))
    return Line(file, number, raw, value, ())


def _problem(fault: Fault, file: str) -> Problem:
    found = _ONE_LINE.sub(r"at column \1", fault.found).replace("the end of the file", "the end of the line")
    expected = "a few levels" if fault.rule == "nesting" else fault.expected
    return At(file, None).error(fault.rule, fault.field, found, expected, fault.hint)


class Literal(str):
    """A JSON number as it stands in the text."""


def literal_numbers(raw: bytes) -> Any:
    """Return the value of a strict JSON text with every number as the `Literal` it was written as."""
    return json.loads(raw, parse_float=Literal, parse_int=Literal)
