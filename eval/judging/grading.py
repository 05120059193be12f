"""A journal -> the decisions its replies hold -> graded cases, by the jury's rule.

In: what a journal file holds. Out: `RunData` for the summary, and each judge reply's decisions for the results tables.
Decisions are parsed from the stored text every time: what a reply says, `judge` decides, here as at run time.
A case without an accepted decision on every item is ungraded, never partly scored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from eval.calls.call import JUDGED_ANSWERS, Call, CaseHead
from eval.calls.journal import JournalData
from eval.judging.graded import GradedCase, RunData
from eval.judging.judge import RefusedReplyError, parse_decisions
from eval.judging.jury import verdict, vote

_TOKENS = ("input", "cached", "output", "reasoning")

UNRESOLVED: Final = "unresolved"
"""State of a failed case whose judges were all called and decided, but gave no verdict on some item."""

# Why a case has no score, in words that hold no text of a prompt, a rubric, an answer or a reply: a summary and a
# results folder are passed on. What a server or a judge really said stands in the journal, in each call's `reason`.
REASONS: Final[Mapping[str, str]] = {
    "truncated": "the reply was cut at its token limit",
    "refused": "the model refused to reply",
    "empty": "the reply holds no text",
    "filtered": "the provider held the reply back",
    "timeout": "no whole reply came before the deadline",
    "transport": "every try ended in a connection or server error",
    "rate_limited": "the rate limit held on every try",
    "rejected": "the server refused the request",
    "budget": "the budget was spent",
    "missing": "the file of answers has no answer for this case",
    "invalid_reply": "no reply held exactly one decision for every item",
    UNRESOLVED: "the jury reached no verdict on every item",
}


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """One judge's reply to one answer: its call, its state as read now, its decisions in item order if any."""

    call: Call
    state: str
    matched: tuple[bool, ...] | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Replies:
    """The calls of a case that count: answers by repeat, judge replies by (answer repeat, judge, repeat)."""

    answers: Mapping[int, Call]
    judged: Mapping[tuple[int, int, int], JudgeReply]


def case_replies(data: JournalData) -> dict[str, Replies]:
    """Return what each case of a journal has so far, by case id."""
    heads = {head.case_id: head for head in data.cases}
    styles = [judge["id_style"] for judge in data.identity["judges"]]
    found: dict[str, Replies] = {head.case_id: Replies({}, {}) for head in data.cases}
    # Every call, not only the current one of its key: a reply that was edited since must not hide a later good one.
    for call in _by_time(data.calls):
        replies = found.get(call.case_id)
        if replies is None:
            continue
        if call.role == "answer":
            _keep(replies.answers, call.answer_repeat, call, done=call.done)
        else:
            reply = _read(call, heads[call.case_id], styles[call.judge or 0])
            where = (call.answer_repeat, call.judge or 0, call.repeat or 0)
            _keep(replies.judged, where, reply, done=reply.state == "ok")
    return found


def _by_time(calls: Iterable[Call]) -> list[Call]:
    return sorted(calls, key=lambda call: call.at or "")


def _keep(into: Any, key: Any, value: Any, *, done: bool) -> None:
    """Keep the latest, but never put an unfinished reply in a finished one's place."""
    old = into.get(key)
    if old is None or done or not (old.done if isinstance(old, Call) else old.state == "ok"):
        into[key] = value


def _read(call: Call, head: CaseHead, id_style: str) -> JudgeReply:
    if call.state != "ok":
        return JudgeReply(call, call.state, None, call.reason)
    own = tuple(id_ for id_, _ in head.items)
    ids = own if id_style == "full" else tuple(f"item_{index}" for index in range(len(own)))
    try:
        return JudgeReply(call, "ok", parse_decisions(call.text or "", ids), None)
    except RefusedReplyError as error:
        return JudgeReply(call, "invalid_reply", None, str(error))


def grade_journal(data: JournalData) -> RunData:
    """Return a journal's run with every selected case graded, failed or pending."""
    identity, header = data.identity, data.header
    replies = case_replies(data)
    cases = tuple(grade_case(head, replies[head.case_id], identity) for head in data.cases)
    times = [call.at for call in data.calls if call.at]
    return RunData(
        protocol_version=identity["protocol"],
        cases=cases,
        file_order=_file_order(data, cases),
        answer_model=identity["answer"]["model"],
        judge_model=" + ".join(judge["model"] for judge in identity["judges"]),
        answer_temperature=_sent_temperature(data, "answer"),
        judge_temperature=_sent_temperature(data, "judge"),
        started_at=header.get("started"),
        # A reply taken over keeps the time of its own run, which may have been over before this one began.
        finished_at=max([*times, header.get("started") or ""]) if times else None,
        dataset_sha256=identity["dataset_sha256"],
        content_sha256=header.get("data", {}).get("content_sha256"),
        identity_sha256=header["identity_sha256"],
        semantics_sha256=identity["semantics_sha256"],
        identity=identity,
        data={
            "repo": header.get("data", {}).get("repo"),
            "revision": header.get("data", {}).get("revision"),
            "n_cases": identity["n_cases"],
        },
        states=reply_states(replies.values()),
        usage={role: _usage(data.calls, role) for role in ("answer", "judge")},
        notices=tuple(_notices(data)),
    )


def grade_case(head: CaseHead, replies: Replies, identity: Mapping[str, Any]) -> GradedCase:
    """Return a case graded by its first answer's replies, or failed, or pending."""
    answer = replies.answers.get(0)
    graded = GradedCase(
        case_id=head.case_id,
        benchmark=head.benchmark,
        grading_method=head.grading_method,
        answer_repeat=0,
        item_ids=tuple(id_ for id_, _ in head.items),
        points=tuple(points for _, points in head.items),
        matched=None,
        state="pending",
        answer_state=answer.state if answer else None,
    )
    if answer is None:
        return graded
    if answer.state not in JUDGED_ANSWERS or answer.text is None:
        return _failed(graded, "answer", "empty" if answer.state in JUDGED_ANSWERS else answer.state)
    matched = _verdicts(replies, n_items=len(head.items), identity=identity)
    if matched is not None:
        return replace(graded, matched=matched, state="graded")
    states = _judge_states(replies, identity)
    refused = next((state for state in states if state not in (None, "ok")), None)
    state = refused or (None if None in states else UNRESOLVED)
    return _failed(graded, "judge", state) if state else graded


def _judge_states(replies: Replies, identity: Mapping[str, Any]) -> list[str | None]:
    """Return the states of every judge's repeats on the first answer, None where one was not called yet."""
    units = [(0, judge, repeat) for judge in range(len(identity["judges"])) for repeat in range(identity["repeats"])]
    return [replies.judged[unit].state if unit in replies.judged else None for unit in units]


def _verdicts(replies: Replies, *, n_items: int, identity: Mapping[str, Any]) -> tuple[bool, ...] | None:
    """Return the jury's verdict on every item of the first answer, or None where any item has none."""
    verdicts = []
    for index in range(n_items):
        votes = []
        for judge in range(len(identity["judges"])):
            asked = [replies.judged.get((0, judge, repeat)) for repeat in range(identity["repeats"])]
            votes.append(vote([reply.matched[index] if reply and reply.matched else None for reply in asked]))
        verdicts.append(verdict(votes))
    decided = tuple(value for value in verdicts if value is not None)
    return decided if len(decided) == n_items else None


def _failed(case: GradedCase, role: str, state: str) -> GradedCase:
    return replace(case, state="failed", failed_role=role, failed_state=state, reason=REASONS.get(state))


def _file_order(data: JournalData, cases: Sequence[GradedCase]) -> tuple[int, ...]:
    index = {case.case_id: number for number, case in enumerate(cases) if case.state == "graded"}
    judged = [call.case_id for call in data.calls if call.role == "judge" and call.state == "ok"]
    return tuple(index[case_id] for case_id in dict.fromkeys(judged) if case_id in index)


def _sent_temperature(data: JournalData, role: str) -> float | None:
    """Return the temperature that was really sent on every finished call of a role, or None where it was not."""
    sent = {(call.sent or {}).get("temperature") for call in data.calls if call.role == role and call.done}
    value = sent.pop() if len(sent) == 1 else None
    return value if isinstance(value, int | float) else None


def reply_states(replies: Iterable[Replies]) -> dict[str, dict[str, int]]:
    """Return how many answers and judge replies that count are in each state."""
    listed = list(replies)
    answers = Counter(call.state for case in listed for call in case.answers.values())
    judged = Counter(reply.state for case in listed for reply in case.judged.values())
    return {"answer": dict(sorted(answers.items())), "judge": dict(sorted(judged.items()))}


def _usage(calls: Sequence[Call], role: str) -> dict[str, int]:
    """Return calls made, calls reused and tokens of the calls made; a count that no call reports is left out."""
    made = [call for call in calls if call.role == role and call.reused_from is None]
    reused = sum(call.role == role and call.reused_from is not None for call in calls)
    usage = {"calls": len(made), "reused": reused}
    for name in _TOKENS:
        known = [count for call in made if (count := call.usage.get(name)) is not None]
        if known:
            usage[name] = sum(known)
    return usage


def _notices(data: JournalData) -> list[str]:
    notices = []
    again = sum(call.role == "judge" and call.state == "invalid_reply" for call in data.calls)
    if again:
        notices.append(f"unreadable judge replies, asked again and never scored: {again}")
    dropped = sorted({f"{line['role']} {line['param']} ({line['action']})" for line in data.adaptations})
    if dropped:
        notices.append(f"parameters that a server refused were dropped or renamed: {', '.join(dropped)}")
    return notices
