"""One judge reply -> the statements that it lists, or a refusal with its reason. Nothing is guessed.

The whole reply is one JSON object, bare or in one code fence that spans it; its `statements` is a list of strings, and
members beside it are ignored. An empty list is an answer: the judge found nothing. Anything else is refused and asked
for again, for a reply that cannot be read must never stand for "nothing was made up".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from eval.judging.judge import RefusedReplyError, reply_object

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def parse_statements(text: str) -> tuple[str, ...]:
    """Return the statements of a reply in its order, as they stand there: repeated ones twice, blank ones left out.

    Raises:
        RefusedReplyError: the reply is no such object, or `statements` is no list of strings of whole characters.
    """
    listed = reply_object(text).get("statements")
    if not isinstance(listed, list):
        raise RefusedReplyError('expected an object with a list "statements"')
    for number, statement in enumerate(listed):
        if type(statement) is not str:
            raise RefusedReplyError(f"expected a string as statements[{number}], found {statement!r:.60}")
        if _SURROGATE.search(statement):
            raise RefusedReplyError(f"expected whole characters in statements[{number}], found half a surrogate pair")
    return tuple(statement for statement in listed if statement.strip())


def read_listing(text: str, ids: Sequence[str]) -> tuple[bool, ...]:  # noqa: ARG001 - a listing is about no item
    """Check that a reply is a listing, as a run needs to know; it holds no decision, so () is returned.

    Raises:
        RefusedReplyError: as `parse_statements`.
    """
    parse_statements(text)
    return ()
