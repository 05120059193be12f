"""What is wrong with a source tree, in a form that a person and a program can both read.

In: the single problems that `sources` and `validate` find. Out: one line a problem, the whole report as text or JSON.
Not done here: finding problems.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any, Final, Literal

Severity = Literal["error", "warning"]

REPORT_SCHEMA: Final = "bedside-bench/check/1"
TEXT_WIDTH: Final = 80
SHOWN_CHARACTERS: Final = 60
"""How much of a found text a problem quotes: enough to recognise it, whatever its size."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What keeps a file from being read as it should; `field` is the place within its JSON, if known."""

    rule: str
    found: str
    expected: str
    field: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """One rule that one place of the tree breaks.

    `file` is a posix path relative to the source's root; `field` a place within it such as `rubric_items[2].points`;
    `found` and `expected` are short phrases that read after those words.
    """

    severity: Severity
    rule: str
    file: str
    case_id: str | None
    field: str | None
    found: str
    expected: str
    hint: str | None = None

    def line(self) -> str:
        """Return the problem as one line."""
        return f"{self.file}: {self.message()}"

    def message(self) -> str:
        """Return the problem as one line, without the file."""
        place = f"{self.field}: " if self.field else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{place}expected {self.expected}, found {self.found}{hint}"


@dataclass(frozen=True, slots=True)
class At:
    """A file and the id of its case: what the problems of one file have in common."""

    file: str
    case_id: str | None

    def error(self, rule: str, field: str | None, found: str, expected: str, hint: str | None = None) -> Problem:
        """Return an error in this file."""
        return Problem("error", rule, self.file, self.case_id, field, found, expected, hint)

    def warning(self, rule: str, field: str | None, found: str, expected: str, hint: str | None = None) -> Problem:
        """Return a warning about this file."""
        return Problem("warning", rule, self.file, self.case_id, field, found, expected, hint)


@dataclass(frozen=True, slots=True)
class Report:
    """All problems of a tree in dataset order, and what was counted on the way.

    `panels` maps a panel to the case files found in it; `id_dialects` maps a way of writing item ids to the cases
    that use it (`md5`: `<md5 of the prompt>_<i>`, `local`: `item_<i>`), empty where items have no ids of their own.
    """

    problems: tuple[Problem, ...]
    n_cases: int
    n_items: int
    panels: dict[str, int]
    id_dialects: dict[str, int] = field(default_factory=dict)
    license: str | None = None

    @property
    def ok(self) -> bool:
        """Whether no problem is an error."""
        return not self.count("error")

    def count(self, severity: Severity) -> int:
        """Return how many problems are of a severity."""
        return sum(problem.severity == severity for problem in self.problems)

    def to_json(self) -> str:
        """Return the whole report as JSON text in ASCII, the same for the same tree."""
        report: dict[str, Any] = {
            "schema": REPORT_SCHEMA,
            "ok": self.ok,
            "counts": {"error": self.count("error"), "warning": self.count("warning")},
            "n_cases": self.n_cases,
            "n_items": self.n_items,
            "panels": self.panels,
            "id_dialects": self.id_dialects,
            "license": self.license,
            "problems": [asdict(problem) for problem in self.problems],
        }
        return json.dumps(report, indent=1, allow_nan=False)

    def text(self) -> str:
        """Return the whole report as lines of at most 80 columns: errors, warnings, counts."""
        blocks = [*_blocks("error", self.problems), *_blocks("warning", self.problems), *_counts(self)]
        return "\n".join(blocks)


def shown(value: object) -> str:
    """Return a JSON value in short: strings and numbers as JSON writes them but cut, containers by their size."""
    match value:
        case str():
            return _shown_text(value)
        case bool() | None:
            return json.dumps(value)
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case int() | float():
            digits = repr(value)
            return digits if len(digits) <= 30 else f"{digits[:12]}… ({len(digits)} characters)"
        case dict():
            return f"an object of {len(value)}" if value else "an empty object"
        case list():
            return f"an array of {len(value)}" if value else "an empty array"
    return f"a {type(value).__name__}"


def member(name: str) -> str:
    """Return how a place names a member of an object: `.points`, or `["odd name"]`."""
    return f".{name}" if name.isidentifier() and name.isascii() and len(name) < 64 else f"[{shown(name)}]"


def printable(text: str) -> str:
    """Return a text with every character that would not show, or would move the cursor, written as an escape."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _shown_text(text: str) -> str:
    cut = text[:SHOWN_CHARACTERS]
    more = f"… ({len(text):,} characters)" if len(text) > SHOWN_CHARACTERS else ""
    return printable(json.dumps(cut, ensure_ascii=False)) + more


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _blocks(severity: Severity, problems: Iterable[Problem]) -> Iterator[str]:
    chosen = [problem for problem in problems if problem.severity == severity]
    if not chosen:
        return
    yield f"{_number(len(chosen), severity)}:"
    for file, group in groupby(chosen, key=lambda problem: problem.file):
        yield f"  {file}"
        for problem in group:
            yield _wrapped(f"{problem.message()} [{problem.rule}]", indent=4)
    yield ""


def _counts(report: Report) -> Iterator[str]:
    dialects = {"md5": "<md5 of prompt>_<i>", "local": "item_<i>"}
    ids = ", ".join(f"{dialects[name]} in {_number(n, 'case')}" for name, n in report.id_dialects.items() if n)
    panels = ", ".join(f"{panel} {n:,}" for panel, n in report.panels.items())
    yield _wrapped(f"{_number(report.n_cases, 'case')}, {_number(report.n_items, 'item')}: {panels or 'no panel'}")
    item_ids = f"item ids: {ids or 'none read'}; " if report.id_dialects or not report.panels else ""
    yield _wrapped(f"{item_ids}license: {report.license or 'unknown'}")
    yield f"{_number(report.count('error'), 'error')}, {_number(report.count('warning'), 'warning')}"


def _number(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _wrapped(text: str, indent: int = 0) -> str:
    return textwrap.fill(
        text,
        width=TEXT_WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_on_hyphens=False,
        drop_whitespace=True,
    )
