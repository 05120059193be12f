"""What a listing says on the items of a probe, so that judges who list can be certified like judges who decide.

In: a readable reply, and the items' texts, which are markers. Out: a decision an item: whether some listed statement
holds the marker; of `*`, whether some statement holds none of the other markers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eval.statements.merge import normal_form
from eval.statements.parse import parse_statements

ANYTHING_ELSE: Final = "*"


def marked(text: str, markers: Sequence[str]) -> tuple[bool, ...]:
    """Return for each marker whether a reply lists it.

    Raises:
        RefusedReplyError: the reply is no listing.
    """
    listed = [form for statement in parse_statements(text) if (form := normal_form(statement))]
    forms = [normal_form(marker) for marker in markers if marker != ANYTHING_ELSE]
    others = any(not any(form in statement for form in forms) for statement in listed)
    return tuple(
        others if marker == ANYTHING_ELSE else any(normal_form(marker) in statement for statement in listed)
        for marker in markers
    )
