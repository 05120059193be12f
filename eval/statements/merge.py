"""The lists of several judges, each called several times, on one document -> its statements, confirmed or provisional.

In: lists of statements by judge and repeat. Out: the union over the judges, without doubles, each statement with the
judges that flag it. Rules (spec 3, layer B; decided D5 to D8): a statement counts for a judge if it stands in more than
half of the R lists that the judge was called for, where a call that failed is a list that is not there; flagged by two
judges or more it is confirmed, by one provisional. Statements are one if they are the same text but for case, spaces,
compatibility forms and punctuation at the ends. Nothing is merged by meaning, so paraphrases stay apart.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

Lists: TypeAlias = Sequence[Sequence[Sequence[str] | None]]
"""By judge, then repeat, the statements of a list; None where the call gave none."""

CONFIRMED: Final = "confirmed"
PROVISIONAL: Final = "provisional"
CONFIRMING_JUDGES: Final = 2
NEEDS_JUDGES: Final = f"needs >= {CONFIRMING_JUDGES} judges"
LIST_RULE: Final = "in more than half of a judge's called lists"
UNION_RULE: Final = f"confirmed: {CONFIRMING_JUDGES}+ judges; provisional: 1"
SAME_RULE: Final = "NFKC, casefold, blanks, edge punctuation"


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a document: how it is shown, its normal form, and the judges that flag it by their index.

    `quoted` says whether it stands in the document but for what the normal form drops: a judge may invent a quotation.
    """

    text: str
    form: str
    judges: tuple[int, ...]
    quoted: bool

    @property
    def status(self) -> str:
        """Whether it is confirmed or provisional."""
        return CONFIRMED if len(self.judges) >= CONFIRMING_JUDGES else PROVISIONAL


@dataclass(frozen=True, slots=True)
class Merged:
    """What a jury says of one document.

    `statements` stand in the order in which the judges name them. The counts are None where they are not known, and
    then a reason says why: `confirmed` of a single judge, both where a judge has no list. `without` are the judges
    that have none.
    """

    statements: tuple[Statement, ...]
    confirmed: int | None
    provisional: int | None
    without: tuple[int, ...] = ()
    confirmed_reason: str | None = None
    provisional_reason: str | None = None


def merge_lists(lists: Lists, document: str) -> Merged:
    """Return the union of the judges' lists on a document, with what is counted of it."""
    own = [judge_list(of_judge) for of_judge in lists]
    statements = _union(own, document)
    without = tuple(index for index, listed in enumerate(own) if listed is None)
    if without or not lists:
        why = f"no list of {len(without)} of {len(lists)} judges"
        return Merged(statements, None, None, without, why, why)
    confirmed = sum(statement.status == CONFIRMED for statement in statements)
    provisional = len(statements) - confirmed
    if len(lists) < CONFIRMING_JUDGES:
        return Merged(statements, None, provisional, confirmed_reason=NEEDS_JUDGES)
    return Merged(statements, confirmed, provisional)


def judge_list(lists: Sequence[Sequence[str] | None]) -> dict[str, str] | None:
    """Return what counts for a judge, from its lists by repeat: normal form -> the first text of that form.

    None where at most half of the called lists are there: no statement could stand in more than half of them, and
    "nothing was found" would be read out of calls that failed.
    """
    called, there = len(lists), [listed for listed in lists if listed is not None]
    if 2 * len(there) <= called:
        return None
    shown: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for listed in there:
        for text in listed:
            if form := normal_form(text):
                shown.setdefault(form, text)
        counts.update({normal_form(text) for text in listed})  # a set: listing one twice says no more
    return {form: text for form, text in shown.items() if 2 * counts[form] > called}


def _union(own: Sequence[dict[str, str] | None], document: str) -> tuple[Statement, ...]:
    shown: dict[str, str] = {}
    flagged: dict[str, list[int]] = {}
    for index, listed in enumerate(own):
        for form, text in (listed or {}).items():
            shown.setdefault(form, text)
            flagged.setdefault(form, []).append(index)
    whole = _folded(document)
    return tuple(Statement(shown[form], form, tuple(judges), form in whole) for form, judges in flagged.items())


_SUPERSCRIPT: Final = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
# They belong to a number: "5%" is not "5".
_OF_NUMBERS: Final = "%‰"
_DASHES: Final = "-‐‑‒–—−"


def normal_form(statement: str) -> str:
    """Return the text by which two statements are one; empty where nothing but blanks and punctuation is there.

    What moves a number stays: a sign before a digit, a percent sign, and a raised digit (10⁵ is not 105).
    """
    text = _folded(statement)
    start, end = 0, len(text)
    while start < end and _at_edge(text[start]) and not _is_sign(text, start):
        start += 1
    while end > start and _at_edge(text[end - 1]):
        end -= 1
    return text[start:end]


def _folded(text: str) -> str:
    raised = _SUPERSCRIPT.sub(lambda digits: f"^{digits.group()}", text)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", raised).casefold())
    return " ".join(folded.split())


def _at_edge(character: str) -> bool:
    if character in _OF_NUMBERS:
        return False
    return character.isspace() or unicodedata.category(character).startswith("P")


def _is_sign(text: str, at: int) -> bool:
    return text[at] in _DASHES and text[at + 1 : at + 2].isdigit()
