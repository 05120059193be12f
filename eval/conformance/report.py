"""What became of the vectors, for a person and for a program: counts a file, each failure, the deviations it shows.

In: outcomes, and the diagnoses of their failures. Out: a text that fits 80 columns, or a JSON object. Not done here:
finding the deviations (`diagnosis`).
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from eval.conformance.asking import FAILED, PASSED, SKIPPED, STATES, Outcome
from eval.conformance.deviations import Deviation
from eval.conformance.diagnosis import Diagnosis
from eval.conformance.places import NOTHING, Difference, shown_leaf
from eval.conformance.vectors import Vector

REPORT: Final = "bedside-bench/conformance-report/1"
WIDTH: Final = 80
_NAME: Final = 44
_SHOWN: Final = 4  # wrong numbers of a vector; JSON has all


def conforms(outcomes: Sequence[Outcome]) -> bool:
    """Tell whether no vector failed, and at least one passed: who skips everything shows nothing."""
    states = Counter(outcome.state for outcome in outcomes)
    return not states[FAILED] and states[PASSED] > 0


def report_text(scorer: str, outcomes: Sequence[Outcome], diagnoses: Sequence[Diagnosis]) -> str:
    """Return the outcomes as a table, the failures one by one, and what they show."""
    lines = [*_wrapped(f"scorer: {scorer}", "", "        "), "", *_table(outcomes)]
    for title, part in (("failed", _failures(outcomes)), ("skipped", _skipped(outcomes)), ("shown", _shown(diagnoses))):
        if found := list(part):
            lines += ["", f"{title}:", *found]
    return "\n".join(lines)


def _table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    counts: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        counts.setdefault(outcome.vector.subject, Counter())[outcome.state] += 1
    head = _row("vectors", STATES)
    yield from (head, "-" * len(head))
    for subject, states in counts.items():
        yield _row(subject, [states[state] for state in STATES])
    total = Counter(outcome.state for outcome in outcomes)
    yield from ("-" * len(head), _row("all", [total[state] for state in STATES]))


def _row(name: str, values: Iterable[object]) -> str:
    return f"{name:<{_NAME}}" + "".join(f"{value!s:>10}" for value in values)


def _failures(outcomes: Iterable[Outcome]) -> Iterator[str]:
    for outcome in (outcome for outcome in outcomes if outcome.state == FAILED):
        yield f"  {outcome.vector.id}"
        if outcome.reason:
            yield from _wrapped(outcome.reason, "    ")
        for place, expected, found in outcome.differences[:_SHOWN]:
            yield from _wrapped(f"{place}: expected {shown_leaf(expected)}, found {shown_leaf(found)}", "    ")
        if (more := len(outcome.differences) - _SHOWN) > 0:
            yield f"    and {more} more"
        yield from _wrapped(f"why: {outcome.vector.reason}", "    ")


def _skipped(outcomes: Iterable[Outcome]) -> Iterator[str]:
    by_reason: dict[str, Counter[str]] = {}
    for outcome in (outcome for outcome in outcomes if outcome.state == SKIPPED):
        by_reason.setdefault(outcome.reason or "no reason given", Counter())[outcome.vector.subject] += 1
    for reason, subjects in by_reason.items():
        where = ", ".join(f"{subject} {n}" for subject, n in subjects.items())
        yield from _wrapped(f"{reason}: {where}", "  ")


def _shown(diagnoses: Iterable[Diagnosis]) -> Iterator[str]:
    for found in diagnoses:
        for deviation in found.named:
            yield from _wrapped(f"{found.suite}: the scorer {_sentence(deviation)}", "  ")
        if found.named:
            part = f"{found.explained} of {found.failed} failed vectors"
            yield from _wrapped(f"{found.suite}: this explains {part}", "  ")
        else:
            yield from _wrapped(f"{found.suite}: no known deviation explains the failures", "  ")
        for deviation in found.also:
            yield from _wrapped(f"{found.suite}: also fits: the scorer {_sentence(deviation)}", "  ")
        for partial in found.partial:
            part = f"in {partial.agrees} of {partial.shows} vectors where it would show"
            yield from _wrapped(f"{found.suite}: in part, {part}: the scorer {_sentence(partial.deviation)}", "  ")


def _sentence(deviation: Deviation) -> str:
    return f"{deviation.does} [{deviation.id}]. Seen in {deviation.seen_in}."


def list_text(vectors: Iterable[Vector]) -> str:
    """Return every vector's id, what it asks for, and its reason."""
    lines: list[str] = []
    for vector in vectors:
        lines.append(vector.id)
        lines += _wrapped(f"{vector.variant}: {', '.join(vector.expected)}", "  ")
        lines += _wrapped(vector.reason, "  ")
    return "\n".join(lines)


def _wrapped(text: str, indent: str, rest: str | None = None) -> list[str]:
    below = f"{indent}  " if rest is None else rest
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=below, break_on_hyphens=False)


def report_json(scorer: str, outcomes: Sequence[Outcome], diagnoses: Sequence[Diagnosis]) -> dict[str, Any]:
    """Return the outcomes as a JSON object; a difference has no `expected`, or no `found`, where there is nothing."""
    total = Counter(outcome.state for outcome in outcomes)
    return {
        "format": REPORT,
        "scorer": scorer,
        "conforms": conforms(outcomes),
        **{state: total[state] for state in STATES},
        "vectors": [_outcome_json(outcome) for outcome in outcomes],
        "deviations": [_diagnosis_json(found) for found in diagnoses],
    }


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    about: dict[str, Any] = {"id": outcome.vector.id, "suite": outcome.vector.suite, "state": outcome.state}
    if outcome.reason is not None:
        about["reason"] = outcome.reason
    if outcome.differences:
        about["differences"] = [_difference_json(difference) for difference in outcome.differences]
    return about


def _difference_json(difference: Difference) -> dict[str, Any]:
    return {name: value for name, value in difference._asdict().items() if value is not NOTHING}


def _diagnosis_json(found: Diagnosis) -> dict[str, Any]:
    return {
        "suite": found.suite,
        "named": [_deviation_json(deviation) for deviation in found.named],
        "also_fits": [_deviation_json(deviation) for deviation in found.also],
        "partial": [
            {**_deviation_json(partial.deviation), "agrees": partial.agrees, "shows": partial.shows}
            for partial in found.partial
        ],
        "explained": found.explained,
        "failed": found.failed,
    }


def _deviation_json(deviation: Deviation) -> dict[str, Any]:
    return {"id": deviation.id, "does": deviation.does, "seen_in": deviation.seen_in}
