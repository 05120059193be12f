"""A journal of listings -> for every document the lists that its judges gave, by judge and repeat, and what they make.

In: what a journal file holds. Out: one `ListedDocument` a document, in the order of the file of documents. Lists are
parsed from the stored replies every time, as decisions are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from builder.errors import BadInput
from eval.calls.call import CaseHead
from eval.calls.journal import JournalData
from eval.judging.grading import JudgeReply, Replies, case_replies
from eval.judging.suites import WHOLE_CASE
from eval.statements.merge import Merged, merge_lists
from eval.statements.parse import parse_statements
from eval.statements.protocol import SUITE

LISTED: Final = "listed"
FAILED: Final = "failed"
PENDING: Final = "pending"
_PENDING_REASON: Final = "calls are pending"

ByCall: TypeAlias = tuple[tuple[tuple[str, ...] | None, ...], ...]


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document with every list that it got, by judge, then repeat: None where a call gave none or is still to come.

    `state` is listed, failed (a judge has no list) or pending (calls are still to come); `states` are those of the
    calls, None of one that has not come; `reason` says what the first failed call met.
    """

    case_id: str
    system: str
    text: str
    lists: ByCall
    states: tuple[tuple[str | None, ...], ...]
    reason: str | None = None

    @property
    def state(self) -> str:
        """What is known of the document."""
        if any(state is None for of_judge in self.states for state in of_judge):
            return PENDING
        return FAILED if self.merged().without else LISTED

    def merged(self, judges: Sequence[int] | None = None) -> Merged:
        """Return what the jury says of it, or some of its judges alone; no counts while calls are pending."""
        chosen = range(len(self.lists)) if judges is None else judges
        merged = merge_lists([self.lists[judge] for judge in chosen], self.text)
        if all(state is not None for judge in chosen for state in self.states[judge]):
            return merged
        why = _PENDING_REASON
        return replace(merged, confirmed=None, provisional=None, confirmed_reason=why, provisional_reason=why)


def listed_documents(data: JournalData) -> list[ListedDocument]:
    """Return every document of a journal with its lists.

    Raises:
        BadInput: the journal is of another kind of run.
    """
    identity = data.identity
    if identity["suite"] != SUITE:
        raise BadInput(f"statements: expected a run that lists statements, found one of suite {identity['suite']}")
    replies = case_replies(data)
    n_judges, repeats = len(identity["judges"]), identity["repeats"]
    return [_document(head, replies[head.case_id], n_judges=n_judges, repeats=repeats) for head in data.cases]


def _document(head: CaseHead, replies: Replies, *, n_judges: int, repeats: int) -> ListedDocument:
    given = replies.answers.get(0)
    called = [
        [replies.judged.get((0, judge, repeat, WHOLE_CASE)) for repeat in range(repeats)] for judge in range(n_judges)
    ]
    failed = (reply.reason for of_judge in called for reply in of_judge if reply and reply.state != "ok")
    return ListedDocument(
        case_id=head.case_id,
        system=head.benchmark,
        text=(given and given.text) or "",
        lists=tuple(tuple(map(_list, of_judge)) for of_judge in called),
        states=tuple(tuple(reply.state if reply else None for reply in of_judge) for of_judge in called),
        reason=next(failed, None),
    )


def _list(reply: JudgeReply | None) -> tuple[str, ...] | None:
    return parse_statements(reply.call.text or "") if reply and reply.state == "ok" else None
