"""What the readers of other evaluators' files share: strict members of a parsed JSON object, and the case they make.

In: the bytes of a file, and places in it. Out: checked values, and a `GradedCase` of one answer with its verdicts.
Not done here: what a format looks like (`simple_evals`, `inspect_logs`).

A verdict that is not a JSON boolean is no decision: the case is then ungraded, never scored with it as false.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from builder.errors import BadInput
from builder.healthbench.names import SUITE
from builder.rules.problems import shown
from eval.judging.graded import GradedCase

NO_DECISION: Final = "the file holds no decision on {} of its {} items"
MOST_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class Judged:
    """A rubric in file order with a decision for each item, None where the file holds none."""

    criteria: tuple[str, ...]
    points: tuple[int | float, ...]
    tags: tuple[tuple[str, ...], ...]
    decided: tuple[bool | None, ...]

    def same_rubric(self, other: Judged) -> bool:
        """Whether another answer was judged by the same items."""
        return (self.criteria, self.points, self.tags) == (other.criteria, other.points, other.tags)


def load(raw: bytes, where: str) -> dict[str, Any]:
    """Return the one JSON object of a file; NaN and Infinity pass here, as Python's own writer writes them.

    Raises:
        BadInput: the bytes are not JSON, hold something else than an object, or an object in which a key stands twice:
            of two verdicts none is the right one.
    """
    try:
        value = json.loads(raw.decode(), object_pairs_hook=_no_repeats)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where}: expected one JSON object, found none: {error}") from None
    return an_object(value, where)


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in found if keys.count(key) > 1)
        raise ValueError(f"key {shown(repeated)} stands twice in one object")
    return found


def read_file(path: Path) -> bytes:
    """Return the bytes of a file, or refuse it in one line."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None


def an_object(value: Any, where: str) -> dict[str, Any]:
    """Return a value that must be an object."""
    if not isinstance(value, dict):
        raise BadInput(f"{where}: expected an object, found {shown(value)}")
    return value


def object_at(fields: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    """Return a member that must be an object."""
    return an_object(_member(fields, name, where), f"{where}.{name}")


def list_at(fields: Mapping[str, Any], name: str, where: str) -> list[Any]:
    """Return a member that must be a list."""
    value = _member(fields, name, where)
    if not isinstance(value, list):
        raise BadInput(f"{where}.{name}: expected a list, found {shown(value)}")
    return value


def text_at(fields: Mapping[str, Any], name: str, where: str, *, may_be_empty: bool = False) -> str:
    """Return a member that must be text."""
    value = _member(fields, name, where)
    if not isinstance(value, str) or not (value or may_be_empty):
        raise BadInput(f"{where}.{name}: expected text, found {shown(value)}")
    return value


def texts_at(fields: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    """Return a member that must be a list of texts."""
    values = list_at(fields, name, where)
    for index, value in enumerate(values):
        if not isinstance(value, str):
            raise BadInput(f"{where}.{name}[{index}]: expected text, found {shown(value)}")
    return tuple(values)


def number_at(fields: Mapping[str, Any], name: str, where: str) -> int | float:
    """Return a member that must be a finite number."""
    value = finite(_member(fields, name, where))
    if value is None:
        raise BadInput(f"{where}.{name}: expected a finite number, found {shown(fields[name])}")
    return value


def finite(value: Any) -> int | float | None:
    """Return a value if it is a number that a float holds, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # an integer of hundreds of digits
        return None


def _member(fields: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in fields:
        raise BadInput(f"{where}: expected the member {name}, found none")
    return fields[name]


def read_items(items: Sequence[Any], where: str, *, verdict: str) -> Judged:
    """Return a list of judged rubric items, each {criterion, points, tags, <verdict>}, checked.

    Raises:
        BadInput: the list is empty, or a member but the verdict is not what it must be.
    """
    if not items:
        raise BadInput(f"{where}: expected at least one rubric item, found an empty array")
    criteria, points, tags, decided = [], [], [], []
    for index, value in enumerate(items):
        place = f"{where}[{index}]"
        item = an_object(value, place)
        criteria.append(text_at(item, "criterion", place))
        points.append(number_at(item, "points", place))
        tags.append(texts_at(item, "tags", place))
        met = _member(item, verdict, place)
        decided.append(met if isinstance(met, bool) else None)
    return Judged(tuple(criteria), tuple(points), tuple(tags), tuple(decided))


def judged_case(
    case_id: str, judged: Judged, *, config: str, answer_repeat: int, tags: Sequence[str], n_chars: int
) -> GradedCase:
    """Return the case of one answer: graded if every item is decided, else failed with its decisions kept apart."""
    undecided = judged.decided.count(None)
    return GradedCase(
        case_id=case_id,
        benchmark=config,
        grading_method=SUITE,
        answer_repeat=answer_repeat,
        item_ids=tuple(f"{case_id}_{index}" for index in range(len(judged.points))),
        points=judged.points,
        matched=None if undecided else tuple(bool(met) for met in judged.decided),
        state="failed" if undecided else "graded",
        failed_role="judge" if undecided else None,
        failed_state="invalid_reply" if undecided else None,
        reason=NO_DECISION.format(undecided, len(judged.points)) if undecided else None,
        answer_state="ok",
        decided=judged.decided if undecided else None,
        tags=tuple(tags),
        item_tags=judged.tags,
        n_chars=n_chars,
    )


def undecided_notices(cases: Sequence[GradedCase]) -> Iterator[str]:
    """Count and list the answers that stay ungraded because a decision is missing."""
    found = [case for case in cases if case.decided is not None]
    if found:
        yield f"{len(found)} of {len(cases)} answers have an item without a decision: ungraded, never taken as not met"
    for case in found[:MOST_LISTED]:
        places = [str(index) for index, met in enumerate(case.decided or ()) if met is None]
        yield f"case {case.case_id}, answer {case.answer_repeat}: no decision on item {', '.join(places)}"
    if len(found) > MOST_LISTED:
        yield f"{len(found) - MOST_LISTED} more answers without a decision on some item"


def uneven_notices(cases: Sequence[GradedCase]) -> Iterator[str]:
    """Say how many examples have fewer answers than others: they are in no number over repeats."""
    by_example = Counter(case.case_id for case in cases)
    most = len({case.answer_repeat for case in cases})
    if fewer := sum(n < most for n in by_example.values()):
        yield f"{fewer} of {len(by_example)} examples have fewer than {most} answers: left out of spread and worst-at-k"


def state_counts(cases: Sequence[GradedCase]) -> dict[str, dict[str, int]]:
    """Count what became of the answers, and of the judge's decisions on each of their items."""
    answers: dict[str, int] = {}
    for case in cases:
        state = case.answer_state or case.failed_state or "missing"
        answers[state] = answers.get(state, 0) + 1
    decisions = [met for case in cases for met in case.matched or case.decided or ()]
    judged = {"invalid_reply": decisions.count(None), "ok": len(decisions) - decisions.count(None)}
    return {"answer": dict(sorted(answers.items())), "judge": {state: n for state, n in judged.items() if n}}
