"""One line of a result file -> the case it holds, checked: decisions complete, unique, booleans; points finite.

In: a parsed line of the published runner, or a minimal line {case_id, answer, matched}, and where a mirror is named the
case as the mirror knows it. Out: a `GradedCase`, graded or failed; anything else is refused with its line number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from builder.errors import BadInput
from eval.judging.graded import GradedCase
from eval.numbers.scoring import SCORERS

MOST_POINTS: Final = 1_000_000
"""Beyond this either way, points are taken for damage: sums of floats would lose the other items."""

# How upstream words a judge reply that it refused; its other errors do not say which call failed.
_JUDGE_ERRORS: Final = ("invalid judge JSON", "each judge decision", "duplicate judge decision", "judge item mismatch")


@dataclass(frozen=True, slots=True)
class KnownCase:
    """What a mirror knows of a case: where it belongs, and its items in file order."""

    benchmark: str
    grading_method: str
    item_ids: tuple[str, ...]
    points: tuple[int | float, ...]


def read_case(where: str, fields: Any, cases: Mapping[str, KnownCase] | None) -> GradedCase:
    """Return the case of one row: graded with decisions in item order, or failed."""
    if not isinstance(fields, dict):
        raise BadInput(f"{where}: expected a JSON object, found {shown(fields)}")
    case_id = _text(where, fields, "case_id")
    known = (cases or {}).get(case_id)
    if "matched" in fields and "decisions" not in fields:
        return _minimal(where, fields, case_id, known, has_mirror=cases is not None)
    case = _bare(where, fields, case_id)
    if known is not None and (case.benchmark, case.grading_method) != (known.benchmark, known.grading_method):
        found = f"{case.benchmark}, {case.grading_method}"
        raise BadInput(f"{where}: case {case_id}: expected {known.benchmark}, {known.grading_method}, found {found}")
    if fields.get("error"):
        return _failed(case, str(fields["error"]), known)
    if "decisions" not in fields:
        raise BadInput(f"{where}: expected decisions, an error or matched, found none; a score alone cannot be checked")
    return _aligned(where, _decided(where, case, fields["decisions"]), known)


def _bare(where: str, fields: Mapping[str, Any], case_id: str) -> GradedCase:
    method = _text(where, fields, "grading_method")
    if method not in SCORERS:
        raise BadInput(f"{where}: grading_method: expected one of {', '.join(SCORERS)}, found {method!r}")
    return GradedCase(case_id, _text(where, fields, "benchmark"), method, 0, (), (), None, "failed")


def _failed(case: GradedCase, error: str, known: KnownCase | None) -> GradedCase:
    judge = any(sign in error for sign in _JUDGE_ERRORS)
    return replace(
        case,
        item_ids=known.item_ids if known else (),
        points=known.points if known else (),
        failed_role="judge" if judge else None,
        failed_state="invalid_reply" if judge else None,
        reason=" ".join(error.split())[:300],
        answer_state="ok" if judge else None,
    )


def _decided(where: str, case: GradedCase, decisions: Any) -> GradedCase:
    """Check upstream's decisions: a non-empty list of unique ids with finite points and real booleans."""
    if not isinstance(decisions, list) or not decisions:
        raise BadInput(f"{where}: decisions: expected a list with one decision an item, found {shown(decisions)}")
    for position, decision in enumerate(decisions):
        at = f"{where}: decisions[{position}]"
        if not isinstance(decision, dict):
            raise BadInput(f"{at}: expected an object, found {shown(decision)}")
        _text(at, decision, "item_id")
        _check_decision(at, decision.get("matched"))
        _check_points(at, decision.get("points"))
    ids = tuple(decision["item_id"] for decision in decisions)
    if len(set(ids)) < len(ids):
        raise BadInput(f"{where}: decisions: expected each item once, found one twice")
    points = tuple(decision["points"] for decision in decisions)
    matched = tuple(decision["matched"] for decision in decisions)
    return replace(case, item_ids=ids, points=points, matched=matched, state="graded", answer_state="ok")


def _aligned(where: str, case: GradedCase, known: KnownCase | None) -> GradedCase:
    """Put decisions into the mirror's item order and check that they were made on the mirror's rubric.

    An older revision of the published data numbers items within the case (`item_0` ...); same places, same items.
    """
    if known is None or case.matched is None:
        return case
    local = tuple(f"item_{index}" for index in range(len(known.item_ids)))
    ids = local if set(case.item_ids) == set(local) else known.item_ids
    _check_complete(where, case.item_ids, ids)
    places = [case.item_ids.index(id_) for id_ in ids]
    if tuple(case.points[place] for place in places) != known.points:
        raise BadInput(f"{where}: case {case.case_id}: its points differ from the mirror's; score it with its own data")
    return replace(
        case,
        item_ids=known.item_ids,
        points=known.points,
        matched=tuple(case.matched[place] for place in places),
    )


def _minimal(
    where: str, fields: Mapping[str, Any], case_id: str, known: KnownCase | None, *, has_mirror: bool
) -> GradedCase:
    """Return the case of a {case_id, answer, matched} line; points and panel are the mirror's."""
    if not has_mirror:
        raise BadInput(f"{where}: a line with matched holds no points: name the mirror it was judged on (--data)")
    _text(where, fields, "answer", may_be_empty=True)
    matched = fields["matched"]
    if not isinstance(matched, dict):
        raise BadInput(f"{where}: matched: expected an object of item_id: true or false, found {shown(matched)}")
    for item_id, decision in matched.items():
        _check_decision(f"{where}: matched[{item_id!r}]", decision)
    if known is None:  # not selected: its rows are left out and counted
        return GradedCase(case_id, "", "", 0, (), (), None, "failed")
    _check_complete(where, matched, known.item_ids)
    decided = tuple(matched[item_id] for item_id in known.item_ids)
    return replace(pending_case(case_id, known), matched=decided, state="graded", answer_state="ok")


def pending_case(case_id: str, known: KnownCase) -> GradedCase:
    """Return a case of the mirror that has no row yet."""
    return GradedCase(
        case_id, known.benchmark, known.grading_method, 0, known.item_ids, known.points, None, state="pending"
    )


def _text(where: str, fields: Mapping[str, Any], name: str, *, may_be_empty: bool = False) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not (value or may_be_empty):
        raise BadInput(f"{where}: {name}: expected text, found {shown(value)}")
    return value


def _check_decision(at: str, value: Any) -> None:
    if type(value) is not bool:
        raise BadInput(f"{at}: expected true or false, found {shown(value)}; a missing decision is never false")


def _check_points(at: str, value: Any) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not -MOST_POINTS <= value <= MOST_POINTS:
        raise BadInput(f"{at}: points: expected a number, found {shown(value)}")


def _check_complete(where: str, found: Iterable[str], expected: Sequence[str]) -> None:
    missing, extra = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    if missing or extra:
        raise BadInput(
            f"{where}: expected one decision for each item of the case; "
            f"missing {shown(missing)}, not its own {shown(extra)}"
        )


def shown(value: object) -> str:
    """Return a value for a message, as JSON and short."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
