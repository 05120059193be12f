"""Start a run, or go on with one: open its journal, compare identities, learn what is finished, start the loop.

In: a plan, the file, and journals whose paid replies may be taken over. Out: how the loop ended. A file that belongs to
another run is refused with every field that differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bedside_bench import sha256_json
from builder.errors import BadInput
from eval.calls.call import VERSION, Call, CaseHead, case_line, current_calls
from eval.calls.endpoint import Adaptation, Client
from eval.calls.journal import Journal, JournalData, read_journal
from eval.calls.plan import Plan
from eval.calls.run import Outcome, Progress, Runner
from eval.calls.units import Reusable
from eval.judging.certified import NOT_NEEDED, VALID
from eval.judging.identity import differences


async def run_plan(
    plan: Plan,
    output: Path,
    *,
    reuse: Sequence[Path] = (),
    concurrency: int,
    header: Mapping[str, Any],
    now: Callable[[], str],
    on_start: Callable[[int, int], None],
    on_progress: Callable[[Progress], None],
    certified: Mapping[str, Any] | None = None,
    returned: Mapping[int, frozenset[str]] | None = None,
) -> Outcome:
    """Run a plan into a journal: a new file, or the rest of the one that is there.

    Args:
        header: what the first line of a new journal says beside the identity (formats.md 4): `software`.
        on_start: called once with how many of the selected cases are judged already, and how many there are.
        certified: what the judges' certificates say at this start (`eval.certificates.gate`); kept in the journal.
        returned: the names that the servers of certified judges gave their models; another stops the run.

    Raises:
        BadInput: the file belongs to a run that differs (every differing field is named), or is in use.
    """
    reusable = reusable_calls(map(read_journal, reuse))
    with Journal(output) as journal:
        old = _open(plan, journal, header=header, started=now())
        async with Client(max_connections=concurrency) as client:
            client.replay(map(_adaptation, old.adaptations))
            known = current_calls(old.calls)
            reusable.drop_taken(old.calls)
            if certified is not None and certified != old.certified and not _started_uncertified(old):
                journal.append({"v": VERSION, "kind": "certified", **certified})
            on_start(_judged(plan, known.values()), len(plan.cases))
            runner = Runner(plan, journal, client, known, reusable, now, on_progress, returned or {})
            return await runner.run(concurrency=concurrency)


def _started_uncertified(old: JournalData) -> bool:
    """Whether a run's judges were called under an override of their certificates: no later start takes that back."""
    return (
        old.certified is not None
        and bool(old.certified["uncertified"])
        and any(judge["state"] not in (VALID, NOT_NEEDED) for judge in old.certified["judges"])
        and any(call.role == "judge" for call in old.calls)
    )


def _judged(plan: Plan, calls: Iterable[Call]) -> int:
    """Return how many of a plan's cases have a decision on every item of every answer."""
    done = Counter(call.case_id for call in calls if call.role == "judge" and call.done)
    repeats = plan.reading.answer_repeats
    return sum(0 < done[case.case_id] >= repeats * plan.judge_calls(case) for case in plan.cases)


def _open(plan: Plan, journal: Journal, *, header: Mapping[str, Any], started: str) -> JournalData:
    """Create the journal, or take up the one that is there if its identity is the plan's."""
    identity = plan.identity()
    head = {
        "identity": identity,
        "identity_sha256": sha256_json(identity),
        "started": started,
        "data": {
            "repo": plan.data.repo,
            "revision": plan.data.revision,
            "license": plan.data.license,
            "content_sha256": plan.data.content_sha256,
            "splits": dict(plan.data.splits),
            "canaries": list(plan.data.canaries),
        },
        **header,
    }
    if not journal.path.exists() or journal.path.stat().st_size == 0:
        journal.create(head, plan.heads())
        return JournalData(header=dict(head), cases=(), adaptations=[], calls=[])
    old = journal.resume()
    changed = differences(old.identity, identity)
    if changed:
        raise BadInput(
            f"{journal.path}: holds another run; {'; '.join(changed)}. Repeat the first command to go on, "
            "or give another --output (--reuse carries paid replies over)"
        )
    for head_ in _missing_heads(journal.path, old.cases, plan.heads()):
        journal.append(case_line(head_))
    return old


def _missing_heads(path: Path, held: Sequence[CaseHead], planned: Sequence[CaseHead]) -> list[CaseHead]:
    """Return the case lines that a journal lacks; the points that a run is scored with are its data's or it is refused.

    Raises:
        BadInput: a case line is not that of the data.
    """
    known = {head.case_id: head for head in planned}
    for head in held:
        if known.get(head.case_id) != head:
            raise BadInput(f"{path}: the line of case {head.case_id} is not what the data say of it; restore the line")
    there = {head.case_id for head in held}
    return [head for head in planned if head.case_id not in there]


def _adaptation(line: Mapping[str, Any]) -> Adaptation:
    return Adaptation(**{name: line[name] for name in Adaptation.__slots__})


def reusable_calls(journals: Iterable[JournalData]) -> Reusable:
    """Return the final replies of other journals, each marked with the identity that paid for it.

    What a policy said is left out: its words cost nothing, and its key does not name the items they are made of.
    """
    found = Reusable()
    for journal in journals:
        origin = journal.header["identity_sha256"]
        policy = journal.identity["answer"]["source"] == "policy"
        for call in current_calls(journal.calls).values():
            if call.done and not (policy and call.role == "answer"):
                found.add(replace(call, reused_from=call.reused_from or origin))
    return found
