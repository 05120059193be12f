"""Judges x repeats -> one vote a judge -> the verdict on an item. One judge called once is the simplest jury.

Rules (spec 3, layer B; decided D1, D2, D4): a judge votes what more than half of its called repeats say, else it has no
vote. One judge: its vote. Two: both must agree. Three and more: a strict majority of the jury. None stands for
"no verdict", never for false.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

VOTE_RULE: Final = "more than half of called"
VERDICT_RULE: Final = "1 that judge; 2 unanimous; 3+ strict majority"


def vote(decisions: Sequence[bool | None]) -> bool | None:
    """Return what more than half of a judge's called repeats decided on an item; None is a repeat without decision."""
    return _more_than_half(decisions)


def verdict(votes: Sequence[bool | None]) -> bool | None:
    """Return the jury's verdict on an item from its judges' votes, or None where the rule gives none."""
    return _more_than_half(votes)


def _more_than_half(values: Sequence[bool | None]) -> bool | None:
    # Of one, that one; of two, both; of three and more, a strict majority: one rule says all of them.
    if len(values) == 1:
        return values[0]
    for value in (True, False):
        if 2 * sum(given is value for given in values) > len(values):
            return value
    return None
