"""What only a run's calls can tell a reader of its numbers: sentences on how they went, no number changed.

In: a journal. Out: sentences in a fixed order: replies asked for again, parameters dropped, repeats that were no new
samples.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from eval.calls.call import Call, current_calls
from eval.calls.journal import JournalData


def call_notices(data: JournalData) -> Iterator[str]:
    """Yield what a journal's calls tell, each once."""
    again = sum(call.role == "judge" and call.state == "invalid_reply" for call in data.calls)
    if again:
        yield f"unreadable judge replies, asked again and never scored: {again}"
    dropped = sorted({f"{line['role']} {line['param']} ({line['action']})" for line in data.adaptations})
    if dropped:
        yield f"parameters that a server refused were dropped or renamed: {', '.join(dropped)}"
    yield from _caches(data.calls)
    if data.identity["repeats"] > 1:
        yield from _repeats(data)


def _caches(calls: Sequence[Call]) -> Iterator[str]:
    """Yield the caches that said they gave an old reply, by role and header."""
    held = Counter((call.role, call.cache) for call in calls if call.cache is not None and call.reused_from is None)
    for (role, header), n in sorted(held.items(), key=str):
        yield f"{role} replies from a cache, which are no new samples ({header}): {n}"


def _repeats(data: JournalData) -> Iterator[str]:
    """Yield how far a judge's repeats are samples of their own: equal texts, and replies under one id."""
    units: dict[tuple[object, ...], list[Call]] = defaultdict(list)
    for call in current_calls(data.calls).values():
        if call.role == "judge" and call.done:
            units[call.case_id, call.answer_repeat, call.group, call.judge].append(call)
    repeated = [calls for calls in units.values() if len(calls) > 1]
    if repeated:
        equal = sum(len({call.text for call in calls}) == 1 for calls in repeated)
        yield (
            f"repeats of one judge on one question that came back equal to the letter: {equal} of {len(repeated)}; "
            "where nothing varies, repeats add no evidence"
        )
    twice = sum(_same_reply(calls) for calls in repeated)
    if twice:
        yield f"repeats answered under one response id, so by a cache and not by the model again: {twice}"


def _same_reply(calls: Sequence[Call]) -> int:
    """Return how many of one question's replies are another's: the same id and the same text."""
    named = [(call.response_id, call.text) for call in calls if call.response_id is not None]
    return len(named) - len(set(named))
