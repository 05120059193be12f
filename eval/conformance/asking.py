"""Ask a scorer about vectors, whoever wrote it: JSON in, JSON out, and whatever it does is that vector's outcome.

In: a scorer, a callable that takes a vector as a dict and returns a dict with the keys of its `expected`, or
`{"unsupported": "why"}`. Out: an `Outcome` a vector. A scorer that raises, or returns what JSON does not have, fails
the vector with a reason of one line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from builder.rules.problems import member, printable
from eval.conformance.places import NOTHING, Difference, differences, leaves
from eval.conformance.vectors import Vector

Scorer: TypeAlias = Callable[[dict[str, Any]], Any]

PASSED: Final = "passed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
STATES: Final = (PASSED, FAILED, SKIPPED)

UNSUPPORTED: Final = "unsupported"
_DEEPEST: Final = 50
_LONGEST: Final = 160  # characters of a scorer's own message
_LARGEST: Final = 2**1023


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a scorer made of one vector.

    `found` are the leaves of its answer under the keys asked for, None where there is no answer to compare; then
    `reason` says why, and also for a skipped vector.
    """

    vector: Vector
    state: str
    differences: tuple[Difference, ...] = ()
    reason: str | None = None
    found: Mapping[str, Any] | None = None


def ask_all(scorer: Scorer, vectors: Iterable[Vector]) -> tuple[Outcome, ...]:
    """Return the outcome of every vector, in order."""
    return tuple(ask(scorer, vector) for vector in vectors)


def ask(scorer: Scorer, vector: Vector) -> Outcome:
    """Return what a scorer makes of one vector: it gets a copy of its own, and keys not asked for are passed over."""
    try:
        answer = scorer(json.loads(json.dumps(vector.whole)))
    except (Exception, SystemExit) as error:
        return Outcome(vector, FAILED, reason=f"the scorer raised {named_error(error)}")
    if type(answer) is not dict:
        return Outcome(vector, FAILED, reason=f"expected a dict, found {_type(answer)}")
    if not_json := _not_json(answer, "", 0):
        return Outcome(vector, FAILED, reason=not_json)
    if set(answer) == {UNSUPPORTED}:
        return Outcome(vector, SKIPPED, reason=_one_line(str(answer[UNSUPPORTED])))
    asked = {name: answer[name] for name in vector.expected if name in answer}
    found = leaves(asked) if asked else {}
    wrong = differences(leaves(vector.expected), found, vector.tolerance)
    return Outcome(vector, FAILED if wrong else PASSED, wrong, found=found)


def named_error(error: BaseException) -> str:
    """Return an error of a scorer's in one line: its kind and what it says, whatever that is."""
    try:
        text = str(error)
    except Exception:
        text = ""
    return _one_line(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _one_line(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def _not_json(value: Any, place: str, depth: int) -> str | None:
    """Return why a value cannot go through JSON and come back the same; None if it can."""
    where = f"{place or 'the answer'}: "
    if depth > _DEEPEST:
        return "the answer: expected JSON, found more than 50 levels of nesting"
    if type(value) is float and not math.isfinite(value):
        return f"{where}expected a number or None, found {value}: JSON has no such number"
    if type(value) is int and abs(value) > _LARGEST:
        return f"{where}expected a number, found an integer of {value.bit_length():,} bits"
    if type(value) is dict:
        return _not_json_dict(value, place, depth)
    if type(value) is list:
        found = (_not_json(child, f"{place}[{index}]", depth + 1) for index, child in enumerate(value))
        return next(filter(None, found), None)
    if value is None or type(value) in (bool, int, float, str):
        return None
    return f"{where}expected JSON, found {_type(value)}{_remedy(value)}"


def _not_json_dict(value: dict[Any, Any], place: str, depth: int) -> str | None:
    odd = next((name for name in value if type(name) is not str), NOTHING)
    if odd is not NOTHING:
        return f"{place or 'the answer'}: expected text as every key, found {_type(odd)}"
    below = (_not_json(child, f"{place}{member(name)}".removeprefix("."), depth + 1) for name, child in value.items())
    return next(filter(None, below), None)


def _type(value: object) -> str:
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
    return f"a {name}" if value is not None else "None"


def _remedy(value: object) -> str:
    if isinstance(value, tuple):
        return "; return a list"
    if type(value).__module__.partition(".")[0] == "numpy":
        return "; convert it with .tolist()" if hasattr(value, "__len__") else "; convert it with .item()"
    return ""
