"""Judges x repeats -> one vote a judge -> the verdict on an item. One judge called once is the simplest jury.

Rules (spec 3, layer B; decided D1, D2, D4): a judge votes what more than half of its called repeats say, else it has no
vote. One judge: its vote. Two: both must agree. Three and more: a strict majority of the jury. None stands for
"no verdict", never for false. An item on which no judge has a vote is missing, and its case ungraded; any other item
without a verdict is unresolved, a value of its own: it is scored at its worst (conservative) and at its best (liberal).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from eval.judging.graded import Ballots, GradedCase

PENDING: Final = "pending"
NO_VOTE: Final = "no_vote"
"""State of a failed case whose judges all replied, but on some item none of them says one thing in most repeats."""
VOTE_RULE: Final = "more than half of called"
VERDICT_RULE: Final = "1 that judge; 2 unanimous; 3+ strict majority"


def vote(decisions: Sequence[bool | None]) -> bool | None:
    """Return what more than half of a judge's called repeats decided on an item; None is a repeat without decision."""
    return _more_than_half(decisions)


def verdict(votes: Sequence[bool | None]) -> bool | None:
    """Return the jury's verdict on an item from its judges' votes, or None where the rule gives none."""
    return _more_than_half(votes)


def missing(votes: Sequence[bool | None]) -> bool:
    """Whether an item has no vote at all, so that nothing is known of it: another thing than a jury that disagrees."""
    return all(given is None for given in votes)


def item_votes(ballots: Ballots, judges: Sequence[int] | None = None) -> list[tuple[bool | None, ...]]:
    """Return the votes on each item, one a judge, in the order of `judges` (all of them where not given)."""
    of_judges = [ballots[judge] for judge in (range(len(ballots)) if judges is None else judges)]
    votes = [[vote(decisions) for decisions in zip(*repeats, strict=True)] for repeats in of_judges]
    return list(zip(*votes, strict=True))


def vendor_key(vendor: str | None) -> str | None:
    """Return what makes two names of a vendor one: neither case nor blanks at an end tell vendors apart."""
    return None if vendor is None else vendor.strip().casefold()


def same_vendor(one: str | None, other: str | None) -> bool:
    """Whether two vendors are known and one."""
    return one is not None and vendor_key(one) == vendor_key(other)


def by_votes(case: GradedCase, votes: Sequence[Sequence[bool | None]]) -> GradedCase:
    """Return a case as the votes on its items decide it: failed, pending or graded.

    Failed where an item has no vote and none can come; else pending while a reply is to come; else graded.
    """
    verdicts = tuple(map(verdict, votes))
    open_ = replace(case, matched=None, decided=verdicts, failed_role=None, failed_state=None, reason=None)
    if any(missing(of_item) for at, of_item in enumerate(votes) if at not in case.waiting):
        return replace(open_, state="failed", failed_role="judge", failed_state=NO_VOTE)
    if case.waiting:
        return replace(open_, state=PENDING)
    return replace(open_, matched=verdicts, decided=None, state="graded")


def judged_by(case: GradedCase, judges: Sequence[int]) -> GradedCase:
    """Return a case as some of its judges alone would have graded it, by the rule of so many judges.

    A case whose answer could not be judged stays as it is. An item is waited for as the whole jury waits for it.
    """
    return by_votes(case, item_votes(case.ballots, judges)) if case.ballots else case


def _more_than_half(values: Sequence[bool | None]) -> bool | None:
    # Of one, that one; of two, both; of three and more, a strict majority: one rule says all of them.
    if len(values) == 1:
        return values[0]
    for value in (True, False):
        if 2 * sum(given is value for given in values) > len(values):
            return value
    return None
