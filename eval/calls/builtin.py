"""Answer policies and a judge that need no network: floors, ceilings, the demo and the tests.

They run through the same journal, the same judge messages and the same reply grammar as models do, and are labelled as
what they are. They say where the scale of a panel begins and ends; they say nothing about any model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from eval.cases import Case

PREFIX: Final = "builtin:"
ENDPOINT: Final = "builtin"
VERBATIM_JUDGE: Final = "builtin:verbatim"

_REFUSAL: Final = "I cannot answer this question."


def _refuse(case: Case) -> str:  # noqa: ARG001 - every policy takes the case
    return _REFUSAL


def _echo_prompt(case: Case) -> str:
    return case.prompt


def _all_items(case: Case) -> str:
    return "\n".join(item.text for item in case.items)


def _positive_items(case: Case) -> str:
    return "\n".join(item.text for item in case.items if (item.points or 0) > 0)


POLICIES: Final[dict[str, Callable[[Case], str]]] = {
    "builtin:refuse": _refuse,
    "builtin:echo-prompt": _echo_prompt,
    "builtin:all-items": _all_items,
    "builtin:positive-items": _positive_items,
}
