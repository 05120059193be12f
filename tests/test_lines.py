"""Journals edited by hand: what no run wrote is refused by its line, never a traceback and never a number."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from bedside_bench import sha256_json
from builder.errors import BadInput
from eval.calls.adapt import Adaptation
from eval.calls.journal import Journal, read_journal
from eval.numbers.readers import read_run, summarise_run
from eval.showing.report import score_table
from tests.plans import case_set, make_plan, run

_GONE = object()
ODD_VALUES = (None, True, "x", [1], _GONE)


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a finished run of one case, an adapt line included."""
    run(make_plan(case_set(1, ["drug_safety"])), path)
    change = Adaptation("judge", "m", "http://127.0.0.1/v1", "temperature", "drop", None, 400)
    with Journal(path) as journal:
        journal.resume()
        journal.append({"v": 1, "kind": "adapt", **asdict(change)})
    return [json.loads(line) for line in path.read_text().splitlines()]


def _members(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every member of a JSON value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in pairs:
        yield (*at, name)
        yield from _members(inner, (*at, name))


def _changed(lines: list[dict[str, Any]], number: int, path: tuple[Any, ...], value: object) -> list[dict[str, Any]]:
    new = copy.deepcopy(lines)
    holder: Any = new[number]
    for name in path[:-1]:
        holder = holder[name]
    if value is _GONE:
        holder.pop(path[-1])
    else:
        holder[path[-1]] = value
    if path[0] == "identity" and len(path) > 1:
        new[0]["identity_sha256"] = sha256_json(new[0]["identity"])
    return new


def test_any_odd_member_is_refused_or_harmless(tmp_path: Path) -> None:
    """Each member of each kind of line, missing or of another type: one line of error with its number, or a summary."""
    lines = _lines(tmp_path / "x.jsonl")
    path, refused = tmp_path / "y.jsonl", 0
    for number, line in enumerate(lines):
        for member in _members(line):
            for value in ODD_VALUES:
                new = _changed(lines, number, member, value)
                path.write_text("".join(json.dumps(changed) + "\n" for changed in new))
                try:
                    summary = summarise_run(read_run(path), dialect="spec", samples=5, seed=1, software={})
                    assert score_table(summary)
                except BadInput as error:
                    refused += 1
                    assert "\n" not in str(error)

    assert refused > 200


REFUSED: dict[str, tuple[int, tuple[Any, ...], object, str]] = {
    "points": (1, ("items", 0, 1), "2", "y.jsonl:2: expected a line of a journal, found item ['"),
    "boolean points": (1, ("items", 0, 1), True, "y.jsonl:2: expected a line of a journal, found item ['"),
    "panel": (1, ("benchmark",), 5, "y.jsonl:2: expected a line of a journal, found benchmark 5"),
    "no key": (2, ("key",), _GONE, "y.jsonl:3: expected a line of a journal, found no key"),
    "state": (3, ("state",), "fine", "y.jsonl:4: expected a line of a journal, found state 'fine' of role"),
    "repeat": (3, ("repeat",), 9, "y.jsonl:4: expected a line of a journal, found repeat 9 of 1"),
    "answer": (2, ("answer_repeat",), 5, "y.jsonl:3: expected a line of a journal, found answer_repeat 5 of 1"),
    "judge": (3, ("judge",), 1, "y.jsonl:4: expected a line of a journal, found judge 1 of 1"),
    "tokens": (2, ("usage", "input"), "7", "y.jsonl:3: expected a line of a journal, found usage.input '7'"),
    "identity": (0, ("identity", "repeats"), 0, "y.jsonl:1: expected the identity of a run, found an identity without"),
    "protocol": (0, ("identity", "protocol"), _GONE, "y.jsonl:1: expected the identity of a run, found no protocol"),
}


@pytest.mark.parametrize(("number", "member", "value", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_the_line_and_the_member_are_named(
    tmp_path: Path, number: int, member: tuple[Any, ...], value: object, message: str
) -> None:
    """The error says which line, what it should be, and what stands there."""
    lines = _changed(_lines(tmp_path / "x.jsonl"), number, member, value)
    (tmp_path / "y.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    with pytest.raises(BadInput) as refused:
        read_journal(tmp_path / "y.jsonl")
    assert str(refused.value).startswith(str(tmp_path / message))


def test_null_usage_is_unknown_usage(tmp_path: Path) -> None:
    """A call line whose usage is null reads as one that reported no tokens."""
    lines = _changed(_lines(tmp_path / "x.jsonl"), 2, ("usage",), None)
    (tmp_path / "y.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    assert read_journal(tmp_path / "x.jsonl").calls == read_journal(tmp_path / "y.jsonl").calls
