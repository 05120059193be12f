"""One judge reply -> exactly one decision for every asked item, or a refusal with its reason. Nothing is guessed.

The grammar is small: the whole reply is one JSON object, bare or inside one code fence that spans the whole reply; its
`decisions` holds, in any order, exactly one `{"item_id": str, "matched": true|false}` for each id asked. Members beside
these are ignored. Ids are compared to the byte. A refused reply is never "false": on a negative item that would raise
the score.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eval.cases import Item

_FENCE = re.compile(r"\s*```[^\n`]*\n(.*)\n?```\s*", re.DOTALL)


class RefusedReplyError(Exception):
    """A judge reply that holds no usable decisions; the message is its one-line reason."""


def parse_decisions(text: str, ids: Sequence[str]) -> tuple[bool, ...]:
    """Return the decisions of a judge reply in the order of the asked ids.

    Raises:
        RefusedReplyError: the reply is anything but exactly one boolean for exactly each asked id.
    """
    found: dict[str, bool] = {}
    repeated = []
    for id_, matched in (_decision(entry) for entry in _decision_list(text)):
        if id_ in found:
            repeated.append(id_)
        found[id_] = matched
    missing = [id_ for id_ in ids if id_ not in found]
    unknown = [id_ for id_ in found if id_ not in set(ids)]
    if missing or unknown or repeated:
        raise RefusedReplyError(
            f"expected exactly one decision for each of {len(ids)} items; "
            f"missing {_listed(missing)}, unknown {_listed(unknown)}, repeated {_listed(repeated)}"
        )
    return tuple(found[id_] for id_ in ids)


def _decision_list(text: str) -> list[Any]:
    reply = reply_object(text)
    if not isinstance(reply.get("decisions"), list):
        raise RefusedReplyError('expected an object with a list "decisions"')
    decisions: list[Any] = reply["decisions"]
    return decisions


def reply_object(text: str) -> dict[str, Any]:
    """Return the one JSON object that a whole reply is, bare or in one code fence that spans it.

    Raises:
        RefusedReplyError: the reply is anything else: a word beside it, a key twice, NaN, a cut text.
    """
    fenced = _FENCE.fullmatch(text)
    try:
        reply = _decoder().decode(fenced.group(1) if fenced else text)
    except (ValueError, RecursionError) as error:
        raise RefusedReplyError(f"expected one JSON object and nothing else, found: {_line(error)}") from None
    if not isinstance(reply, dict):
        raise RefusedReplyError(f"expected a JSON object, found {_short(reply)}")
    return reply


def _decision(entry: object) -> tuple[str, bool]:
    if isinstance(entry, dict):
        id_, matched = entry.get("item_id"), entry.get("matched")
        # `type(...) is bool`: 1, 1.0 and "true" are no booleans.
        if type(id_) is str and type(matched) is bool:
            return id_, matched
    raise RefusedReplyError(f"expected a decision with a string item_id and a boolean matched, found {_short(entry)}")


def verbatim_reply(answer: str, *, items: Sequence[Item], ids: Sequence[str]) -> str:
    """Return the built-in judge's reply: an item matches iff its text is a whole line, or lines, of the answer."""
    decisions = [{"item_id": id_, "matched": stands_in(item, answer)} for id_, item in zip(ids, items, strict=True)]
    return json.dumps({"decisions": decisions}, ensure_ascii=False)


def stands_in(item: Item, answer: str) -> bool:
    """Whether an item's text is a whole line, or a run of whole lines, of an answer."""
    return f"\n{item.text}\n" in f"\n{answer}\n"


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = [key for key, n in Counter(key for key, _ in pairs).items() if n > 1]
        raise ValueError(f"key {repeated[0]!r} stands twice in one object")
    return found


@cache
def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=_no_repeats, parse_constant=_refuse)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _listed(ids: Sequence[str]) -> str:
    # A reply's ids are a model's words: any length, any characters, broken ones too.
    return f"{len(ids)} ({', '.join(map(_shown_id, ids[:3]))}{', ...' if len(ids) > 3 else ''})" if ids else "none"


def _shown_id(id_: str) -> str:
    return id_ if id_.isprintable() and len(id_) <= 60 else _short(id_)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def _line(error: Exception) -> str:
    return "a nesting too deep" if isinstance(error, RecursionError) else str(error).splitlines()[0]
