"""Two runs that ask the same judges about the same answers, once a case and once a rubric item.

In: a journal or a results folder for each. Out: the runs with what an audit needs beside their decisions (the digest
of every answer, what the judge calls cost), and the answers that both graded. Runs that differ in anything but how
items are grouped are refused with the names of the fields. A HealthBench grader reads another wording with each
grouping: the two that are ours may differ, and nobody else's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from builder.errors import BadInput
from builder.healthbench.names import SUITE as HEALTHBENCH
from eval.healthbench.protocol import GRADER_ALL_SHA256, GRADER_SHA256
from eval.judging.graded import GradedCase, RunData
from eval.judging.identity import differences
from eval.results.answers import AnswerKey, answer_digests

ONE_CALL: Final = "case"
ATOMIC: Final = "item"
_OWN_WORDINGS: Final = {(HEALTHBENCH, ONE_CALL): GRADER_ALL_SHA256, (HEALTHBENCH, ATOMIC): GRADER_SHA256}
# Of a judge's parameters, those that follow from how many items a call asks about.
_REPLY_FORM: Final = frozenset({"max_completion_tokens", "max_tokens", "response_format"})


@dataclass(frozen=True, slots=True)
class Spent:
    """Judge calls, those asked again among them, and their tokens; None where a call does not say."""

    calls: int
    input: int | None
    output: int | None


@dataclass(frozen=True, slots=True)
class Side:
    """One run: the SHA-256 of each answer's text, and what its judging cost by answer, None where only the whole is
    known (a results folder)."""

    where: str
    run: RunData
    answers: Mapping[AnswerKey, str]
    spent: Mapping[AnswerKey, Spent] | None = None


@dataclass(frozen=True, slots=True)
class Sides:
    """Two comparable runs, and how many answers both graded (`pairs`, in dataset order) or not.

    `alone` counts answers that one run has and the other was never to judge, `ungraded` those without a score in one.
    """

    one_call: Side
    atomic: Side
    pairs: tuple[tuple[GradedCase, GradedCase], ...]
    alone: int
    ungraded: int


def read_side(path: Path) -> Side:
    """Return a run from its journal or its results folder, verified.

    Raises:
        BadInput: the path holds no such run, or several.
        DigestMismatch: a folder does not verify.
    """
    from eval.numbers.readers import is_journal
    from eval.results.reread import run_at

    if not path.is_dir() and not is_journal(path):
        raise BadInput(f"{path}: expected a journal of `run` or a results folder, found another file")
    spent = None if path.is_dir() else _spent(path)
    return Side(str(path), run_at(path), answer_digests(path), spent)


def _spent(journal: Path) -> dict[AnswerKey, Spent]:
    from eval.calls.journal import read_journal

    by_answer: dict[AnswerKey, list[Mapping[str, int | None]]] = defaultdict(list)
    for call in read_journal(journal).calls:
        if call.role == "judge":
            by_answer[call.case_id, call.answer_repeat].append(call.usage)
    return {
        name: Spent(len(usages), total([u.get("input") for u in usages]), total([u.get("output") for u in usages]))
        for name, usages in by_answer.items()
    }


def total(counts: list[int | None]) -> int | None:
    """Return the sum of counts, None where one of them is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def match(a: Side, b: Side) -> Sides:
    """Return two runs as the two sides of an audit, in either order.

    Raises:
        BadInput: they differ in anything but how items are grouped, or have no graded answer in common.
    """
    one, atomic = (a, b) if _grouping(a) == ONE_CALL else (b, a)
    found = sorted(str(_grouping(side)) for side in (a, b))
    if found != [ONE_CALL, ATOMIC]:
        raise BadInput(
            f"audit: expected one run with --grouping {ONE_CALL} and one with --grouping {ATOMIC}, "
            f"found {found[0]} and {found[1]}"
        )
    differing = differences(_compared(one), _compared(atomic))
    if differing:
        lines = [line.replace(" in the file,", " in one run,").replace(" now", " in the other") for line in differing]
        shown = "; ".join(lines)
        raise BadInput(f"audit: expected runs that differ in grouping only, found {shown}")
    _check_answers(one, atomic)
    return _paired(one, atomic)


def _grouping(side: Side) -> Any:
    return (side.run.identity or {}).get("grouping")


def _compared(side: Side) -> dict[str, Any]:
    """Return what must be equal: the data, and the judges but for the form and length of their replies."""
    run, identity = side.run, side.run.identity or {}
    own = _OWN_WORDINGS.get((run.suite, identity.get("grouping", "")))
    return {
        "suite": run.suite,
        "config": run.config,
        "dataset_sha256": run.dataset_sha256,
        "repeats": identity.get("repeats"),
        "judges": [_judge(judge, own=own) for judge in identity.get("judges", ())],
    }


def _judge(judge: Mapping[str, Any], *, own: str | None) -> dict[str, Any]:
    """Return what must be equal of a judge; `own` is the digest of the wording that its suite has for this grouping."""
    params = {name: value for name, value in judge["params"].items() if name not in _REPLY_FORM}
    names = ("model", "endpoint", "vendor", "system_sha256", "template_sha256")
    asked = {**{name: judge.get(name) for name in names}, "params": params}
    return asked | {"template_sha256": "the suite's own"} if own and asked["template_sha256"] == own else asked


def _check_answers(one: Side, atomic: Side) -> None:
    differing = [name for name, digest in one.answers.items() if atomic.answers.get(name, digest) != digest]
    if differing:
        case_id, repeat = differing[0]
        raise BadInput(
            f"audit: expected the same answers in both runs, found {len(differing)} that differ, first case {case_id} "
            f"(answer {repeat}); judge the answers of the first run again: run --answers FIRST.jsonl, or --reuse"
        )


def _paired(one: Side, atomic: Side) -> Sides:
    mine, other = _by_name(one), _by_name(atomic)
    both = [name for name in mine if name in other]
    pairs = [(mine[name], other[name]) for name in both if mine[name].state == other[name].state == "graded"]
    if not pairs:
        raise BadInput("audit: expected answers that both runs graded, found none; give the second run the same cases")
    for left, right in pairs:
        if (left.item_ids, left.points) != (right.item_ids, right.points):
            raise BadInput(f"audit: case {left.case_id}: expected one rubric in both runs, found two")
    alone = len(mine) + len(other) - 2 * len(both)
    return Sides(one, atomic, tuple(pairs), alone, len(both) - len(pairs))


def _by_name(side: Side) -> dict[AnswerKey, GradedCase]:
    return {(case.case_id, case.answer_repeat): case for case in side.run.cases}


def spent_on(side: Side, names: set[AnswerKey]) -> Spent:
    """Return what judging some answers cost a run; None where it is not known, as of part of a results folder."""
    if side.spent is not None:
        parts = [side.spent.get(name, Spent(0, None, None)) for name in sorted(names)]
        tokens = {kind: total([getattr(part, kind) for part in parts]) for kind in ("input", "output")}
        return Spent(sum(part.calls for part in parts), **tokens)
    usage: Counter[str] = Counter(side.run.usage.get("judge", {}))
    calls = usage["calls"] + usage["reused"]
    # Tokens of replies taken over from another file stand in that run's summary, not in this one's.
    whole = names == _by_name(side).keys() and not usage["reused"]
    return Spent(calls if whole else 0, *(usage.get(kind) if whole else None for kind in ("input", "output")))
