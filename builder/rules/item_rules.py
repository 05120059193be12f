"""The rules that the rubric of one case must keep: its items, their ids, texts and points.

In: the value of `rubric_items` and the prompt's md5. Out: problems.
Not done here: the other fields of a case (`case_rules`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import md5
from math import isfinite
from operator import itemgetter
from typing import Any, Final

from bedside_bench import ITEM_FIELDS, Case
from builder.rules.problems import At, Problem, member, shown

INT64: Final = range(-(1 << 63), 1 << 63)
"""What a points column of the mirror can hold."""
USUAL_POINTS: Final = range(-3, 4)
"""The weights of a management plan; points panels may go beyond them, with a warning."""

_ITEM_KEYS: Final = frozenset(ITEM_FIELDS)
_ITEM: Final = itemgetter(*ITEM_FIELDS)
_INDEXES: Final = tuple(map(str, range(100)))
_ITEM_ID: Final = re.compile(r"(?:(?P<prefix>[0-9a-f]{32})|item)_(?P<number>0|[1-9][0-9]{0,8})")
_CONTROL_BYTES: Final = bytes(range(0x20)) + b"\x7f"
_BREAKS_A_LINE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

Numbered = list[tuple[int, Any]]
"""Values of one member of the rubric items, each with the position of its item."""


def check_items(at: At, items: list[Any], digest: str | None, *, plan: bool) -> Iterator[Problem]:
    """Yield every problem of a rubric.

    Args:
        digest: the md5 of the prompt, None where there is none to compare with.
        plan: whether the panel is one of management plans, whose points are -3 to 3.
    """
    yield from _shapes(at, items)
    yield from _ids(at, digest, _column(items, "item_id"), len(items))
    yield from _texts(at, _column(items, "text"))
    yield from _points(at, _column(items, "points"), len(items), plan=plan)


def is_plain_rubric(items: list[Any], prompt: str) -> bool:
    """Whether a rubric surely breaks no rule of this module, tested a column at a time.

    Raises:
        KeyError, TypeError: an item lacks a field, or something in it is of another type.
    """
    ids, texts, points = zip(*map(_ITEM, items), strict=True)
    prefix = "item_" if ids[0] == "item_0" else f"{md5(prompt.encode(), usedforsecurity=False).hexdigest()}_"
    return (
        set(map(len, items)) == {len(ITEM_FIELDS)}
        and "|".join(ids) == prefix + f"|{prefix}".join(_INDEXES[: len(items)])
        and len(set(texts)) == len(texts)
        and all(map(str.strip, texts))
        and _is_printable("".join(texts))
        and set(map(type, points)) == {int}
        and USUAL_POINTS.start <= min(points)
        and 0 < max(points) < USUAL_POINTS.stop
    )


def _is_printable(text: str) -> bool:
    if text.isascii():  # three times as fast as str.isprintable
        data = text.encode()
        return len(data.translate(None, _CONTROL_BYTES)) == len(data)
    return text.isprintable()


def first_item_id(case: Case) -> re.Match[str] | None:
    """Return the parts of a case's first item id: `prefix` (None in the dialect `item_<i>`) and `number`."""
    try:
        return _ITEM_ID.fullmatch(case["rubric_items"][0]["item_id"])
    except (KeyError, IndexError, TypeError):  # anything may stand there
        return None


def prompt_md5(case: Case) -> str | None:
    """Return the md5 of a case's prompt, which its item ids begin with, or None where there is no prompt."""
    prompt = case.get("prompt")
    if not isinstance(prompt, str) or not prompt or prompt.isspace():
        return None
    return md5(prompt.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()


def check_members(at: At, place: str, value: dict[str, Any], names: tuple[str, ...], what: str) -> Iterator[Problem]:
    """Yield an error for every member that an object lacks or should not have."""
    for name in names:
        if name not in value:
            yield at.error("missing-field", f"{place}.{name}".lstrip("."), "none", f"the field that {what} must have")
    for name in value:
        if name not in names:
            field = f"{place}{member(name)}".lstrip(".")
            yield at.error("unknown-field", field, shown(value[name]), f"no such field; {what} has {', '.join(names)}")


def check_text(at: At, field: str, value: object) -> Iterator[Problem]:
    """Yield an error unless a value is text that is not blank."""
    if not isinstance(value, str):
        yield at.error("wrong-type", field, shown(value), "text")
    elif not value.strip():
        yield at.error("empty-string", field, shown(value), "text that is not empty")


def _column(items: list[Any], name: str) -> Numbered:
    return [(i, item[name]) for i, item in enumerate(items) if isinstance(item, dict) and name in item]


def _shapes(at: At, items: list[Any]) -> Iterator[Problem]:
    for i, item in enumerate(items):
        if not isinstance(item, dict):
            yield at.error("wrong-type", f"rubric_items[{i}]", shown(item), f"an object with {', '.join(ITEM_FIELDS)}")
        elif item.keys() != _ITEM_KEYS:
            yield from check_members(at, f"rubric_items[{i}]", item, ITEM_FIELDS, "a rubric item")


def _texts(at: At, texts: Numbered) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for i, text in texts:
        if not isinstance(text, str) or not text.strip():
            yield from check_text(at, f"rubric_items[{i}].text", text)
            continue
        if bad := _BREAKS_A_LINE.search(text):
            hint = "the judge is shown one line an item, and this could forge another"
            found = f"{shown(bad[0])} in it"
            yield at.warning("item-text-control", f"rubric_items[{i}].text", found, "text of one line", hint)
        if (same := first.setdefault(text, i)) != i:
            found = f"the text of rubric_items[{same}]"
            yield at.warning("item-text-duplicate", f"rubric_items[{i}].text", found, "a text of its own")


def _points(at: At, points: Numbered, n_items: int, *, plan: bool) -> Iterator[Problem]:
    for i, value in points:
        if type(value) is not int or value not in USUAL_POINTS:
            yield _odd_points(at, f"rubric_items[{i}].points", value, plan=plan)
    if len(points) == n_items and not any(type(value) is not int or value > 0 for _, value in points):
        ungraded = "" if plan else " (the upstream dialects leave it ungraded)"
        hint = f"every answer to this case scores 0{ungraded}"
        yield at.warning("unscorable", "rubric_items", "none", "an item with positive points", hint)


def _odd_points(at: At, field: str, value: object, *, plan: bool) -> Problem:
    expected = "an integer from -3 to 3" if plan else "an integer"
    if type(value) is not int:
        return at.error("points-type", field, shown(value), expected, _points_hint(value, plan=plan))
    if plan:
        return at.error("points-range", field, shown(value), expected)
    if value not in INT64:
        return at.error("points-range", field, shown(value), "an integer of at most 64 bits")
    return at.warning("points-range", field, shown(value), "points from -3 to 3, the usual range")


def _points_hint(value: object, *, plan: bool) -> str | None:
    match value:
        case str():
            return "write it without quotes"
        case bool():
            return "write a number"
        case float() if value.is_integer():
            return f"write {int(value)}" if abs(value) < 1e15 else None
        case float() if not plan and isfinite(value):
            return "scale the rubric so that all its points are integers"
    return None


def _ids(at: At, digest: str | None, ids: Numbered, n_items: int) -> Iterator[Problem]:
    values = [value for _, value in ids]
    if values == [f"{digest}_{i}" for i in range(n_items)] or values == [f"item_{i}" for i in range(n_items)]:
        return
    read = []
    for i, value in ids:
        field = f"rubric_items[{i}].item_id"
        if not isinstance(value, str) or not value.strip():
            yield from check_text(at, field, value)
        elif found := _ITEM_ID.fullmatch(value):
            read.append((i, found))
        else:
            expected = f'"{digest or "<md5 of the prompt>"}_{i}" or "item_{i}"'
            yield at.error("item-id-format", field, shown(value), expected)
    yield from _prefixes(at, digest, read)
    yield from _numbers(at, read, n_items)


def _prefixes(at: At, digest: str | None, ids: list[tuple[int, re.Match[str]]]) -> Iterator[Problem]:
    if len({found["prefix"] is None for _, found in ids}) > 1:
        yield at.error("item-id-mixed", "rubric_items", "<md5>_<i> beside item_<i>", "one way of writing item ids")
    wrong = [(i, found) for i, found in ids if digest and found["prefix"] not in (None, digest)]
    hint = "the ids are made from the md5 of the prompt: make them again if the prompt was changed"
    if len(wrong) > 1 and len({found["prefix"] for _, found in wrong}) == 1:
        found_ids, expected = f"{wrong[0][1]['prefix']}_<i> {len(wrong)} times", f"{digest}_<i>"
        yield at.error("item-id-prefix", "rubric_items[*].item_id", found_ids, expected, hint)
        return
    for i, found in wrong:
        expected = shown(f"{digest}_{found['number']}")
        yield at.error("item-id-prefix", f"rubric_items[{i}].item_id", shown(found[0]), expected, hint)


def _numbers(at: At, ids: list[tuple[int, re.Match[str]]], n_items: int) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for i, found in ids:
        if (same := first.setdefault(found[0], i)) != i:
            text = f"the id of rubric_items[{same}]"
            yield at.error("item-id-duplicate", f"rubric_items[{i}].item_id", text, "an id of its own")
    numbers = [int(found["number"]) for _, found in ids]
    if len(first) < n_items or numbers == list(range(n_items)):
        return
    listed = ", ".join(map(str, numbers[:12])) + (", …" if n_items > 12 else "")
    if sorted(numbers) == list(range(n_items)):
        yield at.warning("item-id-order", "rubric_items", f"indexes {listed}", "item ids in the order of their indexes")
    else:
        expected = f"the indexes 0 to {n_items - 1} once each"
        yield at.error("item-id-gap", "rubric_items", f"indexes {listed}", expected)
