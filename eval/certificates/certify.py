"""Ask one judge about every probe of a suite, as a run would ask it, and decide whether it may be trusted.

In: a judge and a suite. Out: a plan over the probes, and from its journal a certificate, or the calls that are still
missing. A judge that gives no readable reply on a sentinel has failed; a call that never reached the judge says nothing
of it, and no certificate is written before it did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from builder.errors import BadInput
from eval.calls.journal import JournalData
from eval.calls.plan import STANDARD_LIMITS, Judge, Limits, Model, Plan, Reading
from eval.certificates.certificate import Decision, make_certificate, verdict_of
from eval.certificates.probes import KINDS, Probe, probe_answers, probe_data, probes_of
from eval.judging.certified import FAILED
from eval.judging.grading import JudgeReply, case_replies
from eval.judging.jury import vote
from eval.judging.suites import suite_of
from eval.judging.texts import Prompts
from eval.statements.probed import marked
from eval.statements.protocol import SUITE as STATEMENTS

UNREADABLE: Final = frozenset({"invalid_reply", "truncated", "refused", "empty", "filtered"})
"""States of a judge's reply that holds no decision by the judge's own doing."""
REJECTED: Final = "rejected"
PENDING: Final = "pending"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a journal over the probes comes to: a certificate, or how many items miss a call, by state."""

    certificate: Mapping[str, Any] | None
    missing: Mapping[str, int]


def probe_plan(
    judge: Judge,
    *,
    suite: str,
    grouping: str | None = None,
    repeats: int = 1,
    prompts: Prompts | None = None,
    limits: Limits = STANDARD_LIMITS,
) -> Plan:
    """Return the plan that asks a judge about every probe of a suite.

    Args:
        grouping: what one call asks about; the suite's own where None. So are `prompts`.

    Raises:
        BadInput: the judge needs no certificate, or the suite cannot be asked so.
    """
    if judge.model.builtin:
        raise BadInput(f"{judge.model.name}: a builtin judge needs no certificate; name a model")
    if not (judge.model.name.strip() and judge.model.name.isprintable()):
        raise BadInput(f"judge {judge.model.name!a}: expected a name of printable characters")
    probes = probes_of(suite)
    if not probes:
        known = ", ".join(dict.fromkeys(kind.suite for kind in KINDS))
        raise BadInput(f"--suite {suite}: expected one that has probes: {known}")
    own = suite_of(suite, grouping)
    if grouping is not None and own.grouping != grouping and own.id_style == "none":
        raise BadInput(f"--suite {suite}: its judges are asked by {own.grouping}: drop --grouping {grouping}")
    if own.id_style == "none" and judge.id_style is not None:
        raise BadInput(f"--suite {suite}: its judges are asked by {own.grouping} and see no item ids: drop --id-style")
    data = probe_data(suite)
    return Plan(
        data=data,
        cases=data.cases,
        selection={"panels": None, "smoke": False, "limit": None},
        answer=Model("probes"),
        judges=(judge,),
        reading=Reading(
            prompts=prompts or own.prompts(),
            grouping=grouping or own.grouping,
            repeats=repeats,
            answer_temperature=None,
        ),
        given=probe_answers(probes),
        limits=limits,
    )


def finding(journal: JournalData, *, made_by: Mapping[str, Any]) -> Finding:
    """Return the certificate that a journal over the probes comes to, or what is still missing for one."""
    decisions, missing = _decisions(journal)
    calls = [call for call in journal.calls if call.role == "judge" and call.at]
    if _incomplete(decisions, missing) or not calls:
        return Finding(None, Counter(missing.values()))
    certificate = make_certificate(
        journal.identity,
        decisions,
        models_returned=(call.model for call in calls if call.model),
        date=max(call.at or "" for call in calls),
        made_by=made_by,
    )
    return Finding(certificate, Counter(missing.values()))


def _incomplete(decisions: list[Decision], missing: Mapping[str, str]) -> bool:
    """Whether calls are missing that decide: those a server refuses for good cannot save a judge that has failed."""
    reached = [one for one in decisions if one.item_id not in missing]
    refused = all(state == REJECTED for state in missing.values())
    return bool(missing) and not (refused and verdict_of(reached) == FAILED)


def _decisions(journal: JournalData) -> tuple[list[Decision], dict[str, str]]:
    """Return what the judge decided on each item, and by item id why a call on it says nothing of the judge."""
    identity, replies = journal.identity, case_replies(journal)
    heads = {head.case_id: head for head in journal.cases}
    decisions, missing = [], {}
    for probe in probes_of(identity["suite"]):
        head, of_case = heads[probe.case_id], replies[probe.case_id]
        asked = [
            of_case.of_items(head, grouping=identity["grouping"], answer_repeat=0, judge=0, repeat=repeat)
            for repeat in range(identity["repeats"])
        ]
        if identity["suite"] == STATEMENTS:
            asked = [_listed(probe, of_repeat) for of_repeat in asked]
        for index, (item_id, item) in enumerate(zip(probe.item_ids, probe.items, strict=True)):
            of_item = [of_repeat[index] for of_repeat in asked]
            found = vote([decision for _, decision in of_item])
            decisions.append(Decision(probe.id, item_id, item.sentinel, item.expected, found))
            if state := next((state for reply, _ in of_item if (state := _not_reached(reply))), None):
                missing[item_id] = state
    return decisions, missing


def _listed(
    probe: Probe, asked: Sequence[tuple[JudgeReply | None, bool | None]]
) -> list[tuple[JudgeReply | None, bool | None]]:
    """Return what one listing says on each item of a probe; None where it cannot be read."""
    reply = asked[0][0]
    if reply is None or reply.state != "ok":
        return list(asked)
    return [(reply, found) for found in marked(reply.call.text or "", [item.text for item in probe.items])]


def _not_reached(reply: JudgeReply | None) -> str | None:
    """Return the state of a call that says nothing of the judge, None of one that does."""
    if reply is None:
        return PENDING
    return None if reply.state == "ok" or reply.state in UNREADABLE else reply.state
