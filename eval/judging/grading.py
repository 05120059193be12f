"""A journal -> the decisions its replies hold -> graded cases, by the jury's rule.

In: what a journal file holds. Out: `RunData` for the summary, and each judge reply's decisions for the results tables.
Decisions are parsed from the stored text every time: what a reply says, `judge` decides, here as at run time.
A case with an item that no judge has a vote on is ungraded, never partly scored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from builder.errors import BadInput
from eval.calls.call import JUDGED_ANSWERS, Call, CaseHead, ExampleFacts
from eval.calls.journal import JournalData
from eval.judging.call_notices import call_notices
from eval.judging.certified import STALE, VALID
from eval.judging.graded import Ballots, GradedCase, RunData
from eval.judging.judge import RefusedReplyError
from eval.judging.jury import NO_VOTE, by_votes, item_votes, missing
from eval.judging.suites import STATEMENTS_SUITE, WHOLE_CASE, Suite, suite_of

_TOKENS = ("input", "cached", "output", "reasoning")

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
    "missing": "no answer was given for this case",
    "invalid_reply": "no reply held exactly one decision for every item",
    NO_VOTE: "on some item no judge said one thing in more than half of its repeats",
}


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """One judge's reply to one answer: its call, its state as read now, and its decisions in the order of its items."""

    call: Call
    state: str
    matched: tuple[bool, ...] | None
    reason: str | None


Unit: TypeAlias = tuple[int, int, int, str]
"""Answer repeat, judge, repeat, and the group of items that one call asks about."""


@dataclass(frozen=True, slots=True)
class Replies:
    """The calls of a case that count: answers by repeat, judge replies by unit."""

    answers: Mapping[int, Call]
    judged: Mapping[Unit, JudgeReply]

    def of_items(
        self, head: CaseHead, *, grouping: str, answer_repeat: int, judge: int, repeat: int
    ) -> list[tuple[JudgeReply | None, bool | None]]:
        """Return for each item of a case the reply that decides it, None before it came, and the decision in it."""
        if grouping == "item":
            own = [self.judged.get((answer_repeat, judge, repeat, item_id)) for item_id, _ in head.items]
            return [(reply, reply.matched[0] if reply and reply.matched else None) for reply in own]
        reply = self.judged.get((answer_repeat, judge, repeat, WHOLE_CASE))
        decisions = reply.matched if reply and reply.matched else (None,) * len(head.items)
        return [(reply, decision) for decision in decisions]


def case_replies(data: JournalData) -> dict[str, Replies]:
    """Return what each case of a journal has so far, by case id."""
    identity = data.identity
    grouping = identity["grouping"]
    suite = suite_of(identity["suite"], grouping)
    styles = [judge["id_style"] for judge in identity["judges"]]
    groups = {head.case_id: _groups(head, grouping) for head in data.cases}
    found: dict[str, Replies] = {head.case_id: Replies({}, {}) for head in data.cases}
    # Every call, not only the current one of its key: a reply that was edited since must not hide a later good one.
    for call in _by_time(data.calls):
        replies = found.get(call.case_id)
        if replies is None:
            continue
        if call.role == "answer":
            _keep(replies.answers, call.answer_repeat, call, done=call.done)
            continue
        group = call.group or WHOLE_CASE
        items = groups[call.case_id].get(group)
        if items is not None:
            reply = _read(call, _asked_ids(items, styles[call.judge or 0]), suite)
            where = (call.answer_repeat, call.judge or 0, call.repeat or 0, group)
            _keep(replies.judged, where, reply, done=reply.state == "ok")
    return found


def _groups(head: CaseHead, grouping: str) -> dict[str, tuple[str, ...]]:
    """Return the item ids of each judge call on a case, by the group that its calls name."""
    ids = tuple(item_id for item_id, _ in head.items)
    return {item_id: (item_id,) for item_id in ids} if grouping == "item" else {WHOLE_CASE: ids}


def _asked_ids(ids: tuple[str, ...], id_style: str) -> tuple[str, ...]:
    return tuple(f"item_{index}" for index in range(len(ids))) if id_style == "short" else ids


def _by_time(calls: Iterable[Call]) -> list[Call]:
    return sorted(calls, key=lambda call: call.at or "")


def _keep(into: Any, key: Any, value: Any, *, done: bool) -> None:
    """Keep the latest, but never put an unfinished reply in a finished one's place."""
    old = into.get(key)
    if old is None or done or not (old.done if isinstance(old, Call) else old.state == "ok"):
        into[key] = value


def _read(call: Call, ids: tuple[str, ...], suite: Suite) -> JudgeReply:
    if call.state != "ok":
        return JudgeReply(call, call.state, None, call.reason)
    try:
        return JudgeReply(call, "ok", suite.read_reply(call.text or "", ids), None)
    except RefusedReplyError as error:
        return JudgeReply(call, "invalid_reply", None, str(error))


def as_answered(certified: Mapping[str, Any] | None, replies: Mapping[str, Replies]) -> Mapping[str, Any] | None:
    """Return what is said of a run's certificates, a valid one stale where its judge also decided as another model."""
    if certified is None:
        return None
    came: dict[int, set[str]] = {}
    for of_case in replies.values():
        for (_, judge, _, _), reply in of_case.judged.items():
            if reply.state == "ok" and reply.call.model is not None:
                came.setdefault(judge, set()).add(reply.call.model)
    judges = [_as_answered(about, came.get(about["judge"], set())) for about in certified["judges"]]
    return {**certified, "judges": judges}


def _as_answered(about: Mapping[str, Any], came: Set[str]) -> Mapping[str, Any]:
    known = set((about["certificate"] or {}).get("models_returned") or ())
    other = sorted(came - known)
    if about["state"] != VALID or not known or not other:
        return about
    reason = f"stale: certified as {', '.join(sorted(known))}, it also decided as {', '.join(other)}"
    return {**about, "state": STALE, "reason": reason}


def answer_repeats(identity: Mapping[str, Any]) -> int:
    """Return how many answers a run asks for to each case."""
    return int(identity.get("answer_repeats", 1))


def _check_cases(data: JournalData) -> None:
    """Stop at calls on a case whose line is gone: it would be left out of every count."""
    known = {head.case_id for head in data.cases}
    lost = next((call.case_id for call in data.calls if call.case_id not in known), None)
    if lost is not None:
        raise BadInput(
            f"journal: expected a case line for every call, found none for case {lost}; "
            "repeat the run's command, which mends it, or restore the line"
        )


def grade_cases(
    heads: Iterable[CaseHead], replies: Mapping[str, Replies], identity: Mapping[str, Any]
) -> tuple[GradedCase, ...]:
    """Return every selected case graded, failed or pending, one for each of its answers, in dataset order."""
    repeats = range(answer_repeats(identity))
    return tuple(grade_case(head, replies[head.case_id], identity, answer_repeat=n) for head in heads for n in repeats)


def scored_run(data: JournalData) -> RunData:
    """Return a journal's run as `grade_journal` does, if its judges decided on rubric items.

    Raises:
        BadInput: they did not, or as `grade_journal`.
    """
    if data.identity["suite"] == STATEMENTS_SUITE.name:
        raise BadInput(
            "journal: expected a run with rubric items, found lists of unsupported statements, which have no score; "
            "see bedside-bench statements --summarize-only"
        )
    return grade_journal(data)


def grade_journal(data: JournalData) -> RunData:
    """Return a journal's run with every selected case graded, failed or pending.

    Raises:
        BadInput: its calls are on cases that it lacks.
    """
    identity, header = data.identity, data.header
    _check_cases(data)
    replies = case_replies(data)
    cases = grade_cases(data.cases, replies, identity)
    times = [call.at for call in data.calls if call.at]
    return RunData(
        protocol_version=identity["protocol"],
        cases=cases,
        file_order=_file_order(data, cases),
        suite=identity["suite"],
        config=identity["config"],
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
        certified=as_answered(data.certified, replies),
        notices=tuple(call_notices(data)),
    )


def grade_case(head: CaseHead, replies: Replies, identity: Mapping[str, Any], *, answer_repeat: int = 0) -> GradedCase:
    """Return a case graded by the replies to one of its answers, or failed, or pending."""
    answer, about = replies.answers.get(answer_repeat), head.about or _NOTHING_MORE
    graded = GradedCase(
        case_id=head.case_id,
        benchmark=head.benchmark,
        grading_method=head.grading_method,
        answer_repeat=answer_repeat,
        item_ids=tuple(id_ for id_, _ in head.items),
        points=tuple(points for _, points in head.items),
        matched=None,
        state="pending",
        answer_state=answer.state if answer else None,
        n_chars=None if answer is None or answer.text is None else len(answer.text),
        tags=about.tags,
        item_tags=about.item_tags,
        group=about.group,
        labels=about.labels,
    )
    if answer is None:
        return graded
    if answer.state not in JUDGED_ANSWERS or answer.text is None:
        return _failed(graded, "answer", "empty" if answer.state in JUDGED_ANSWERS else answer.state)
    ballots, states = _ballots(head, replies, identity, answer_repeat=answer_repeat)
    waiting = frozenset(at for at, of_item in enumerate(states) if None in of_item)
    votes = item_votes(ballots)
    decided = by_votes(replace(graded, ballots=ballots, waiting=waiting), votes)
    if decided.state != "failed":
        return decided
    lost = [states[at] for at, of_item in enumerate(votes) if missing(of_item) and at not in waiting]
    bad = next((state for of_item in lost for state in of_item if state != "ok"), None)
    return _failed(decided, "judge", bad or NO_VOTE)


_NOTHING_MORE: Final = ExampleFacts(tags=(), item_tags=())


def _ballots(
    head: CaseHead, replies: Replies, identity: Mapping[str, Any], *, answer_repeat: int
) -> tuple[Ballots, list[list[str | None]]]:
    """Return every decision on an answer, and for each item the states of the replies that are to decide it.

    The state of a reply that has not come is None.
    """
    ballots: list[tuple[tuple[bool | None, ...], ...]] = []
    states: list[list[str | None]] = [[] for _ in head.items]
    for judge in range(len(identity["judges"])):
        of_judge = []
        for repeat in range(identity["repeats"]):
            asked = replies.of_items(
                head, grouping=identity["grouping"], answer_repeat=answer_repeat, judge=judge, repeat=repeat
            )
            of_judge.append(tuple(decision for _, decision in asked))
            for of_item, (reply, _) in zip(states, asked, strict=True):
                of_item.append(reply.state if reply else None)
        ballots.append(tuple(of_judge))
    return tuple(ballots), states


def _failed(case: GradedCase, role: str, state: str) -> GradedCase:
    return replace(case, state="failed", failed_role=role, failed_state=state, reason=REASONS.get(state))


def _file_order(data: JournalData, cases: Sequence[GradedCase]) -> tuple[int, ...]:
    index: dict[str, list[int]] = {}
    for number, case in enumerate(cases):
        if case.state == "graded":
            index.setdefault(case.case_id, []).append(number)
    judged = [call.case_id for call in data.calls if call.role == "judge" and call.state == "ok"]
    return tuple(number for case_id in dict.fromkeys(judged) for number in index.get(case_id, ()))


def _sent_temperature(data: JournalData, role: str) -> float | None:
    """Return the temperature that was really sent on every finished call of a role, or None where it was not."""
    sent = [(call.sent or {}).get("temperature") for call in data.calls if call.role == role and call.done]
    value = sent[0] if sent and all(one == sent[0] for one in sent) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


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
