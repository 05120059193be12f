"""Rules that any object of a line keeps: which members it has, of which types, and what ids, texts and tags look like.

In: a value and its place in the line. Out: problems; members that nobody knows are counted, not refused: published
files may gain some. Not done here: what an example is made of (`example_rules`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from builder.healthbench.tally import Spot
from builder.rules.item_rules import check_text
from builder.rules.problems import Problem, member, shown

ROLES: Final = ("system", "developer", "user", "assistant")
_TURN: Final = ("role", "content")


def check_object(
    spot: Spot, value: dict[str, Any], *, place: str, kind: str, needed: Collection[str], known: Collection[str] = ()
) -> Iterator[Problem]:
    """Yield an error for every member that an object lacks; count those that it has and nobody knows.

    Args:
        place: the object's own, empty for the line itself.
        kind: the same for all objects like it, such as `rubrics[*]`.
        known: members that may be there or not.
    """
    for name in needed:
        if name not in value:
            yield spot.at.error("missing-field", f"{place}.{name}".lstrip("."), "none", "the member that it must have")
    for name in value:
        if name not in needed and name not in known:
            unknown = f"{kind}{member(name)}".lstrip(".")
            spot.count("unknown-field", unknown, shown(value[name]), "no such member", "a mirror leaves it out")


def check_id(spot: Spot, name: str, value: object) -> Iterator[Problem]:
    """Yield an error unless a value is text that is not blank and shows as it is."""
    yield from check_text(spot.at, name, value)
    if isinstance(value, str) and value.strip() and not value.isprintable():
        yield spot.at.error("id-characters", name, shown(value), "an id of characters that print")


def check_optional_text(spot: Spot, name: str, value: object) -> Iterator[Problem]:
    """Yield an error unless a value is text or null."""
    if value is not None and not isinstance(value, str):
        yield spot.at.error("wrong-type", name, shown(value), "text or null")


def check_content(spot: Spot, place: str, value: object, *, kind: str) -> Iterator[Problem]:
    """Yield an error unless a value is text that is not empty; one of white space alone is counted."""
    if not isinstance(value, str) or not value:
        yield from check_text(spot.at, place, value)
    elif not value.strip():
        spot.count("blank-text", kind, shown(value), "text that is not white space alone")


def check_conversation(spot: Spot, place: str, turns: object) -> Iterator[Problem]:
    """Yield every problem of a list of turns, which ends with the user's."""
    if not isinstance(turns, list):
        yield spot.at.error("wrong-type", place, shown(turns), "an array of turns")
        return
    if not turns:
        yield spot.at.error("no-turns", place, shown(turns), "at least one turn")
        return
    for i, turn in enumerate(turns):
        yield from _turn(spot, f"{place}[{i}]", turn, kind=f"{place}[*]")
    last = turns[-1]
    if isinstance(last, dict) and last.get("role") in ROLES and last["role"] != "user":
        yield spot.at.error("last-turn", f"{place}[{len(turns) - 1}].role", shown(last["role"]), '"user", as last turn')


def _turn(spot: Spot, place: str, turn: object, *, kind: str) -> Iterator[Problem]:
    if not isinstance(turn, dict):
        yield spot.at.error("wrong-type", place, shown(turn), "an object with role and content")
        return
    yield from check_object(spot, turn, place=place, kind=kind, needed=_TURN)
    if "role" in turn and turn["role"] not in ROLES:
        yield spot.at.error("role", f"{place}.role", shown(turn["role"]), f"one of {', '.join(ROLES)}")
    if "content" in turn:
        yield from check_content(spot, f"{place}.content", turn["content"], kind=f"{kind}.content")


def check_tags(spot: Spot, place: str, tags: object) -> Iterator[Problem]:
    """Yield every problem of a list of tags: each is text, and there once."""
    if not isinstance(tags, list):
        yield spot.at.error("wrong-type", place, shown(tags), "an array of tags")
        return
    first: dict[str, int] = {}
    for i, tag in enumerate(tags):
        yield from check_text(spot.at, f"{place}[{i}]", tag)
        if isinstance(tag, str) and (same := first.setdefault(tag, i)) != i:
            yield spot.at.error("tag-duplicate", f"{place}[{i}]", f"{shown(tag)}, as {place}[{same}]", "a tag once")


def count_tags(spot: Spot, tags: object, prefix: str, *, kind: str) -> None:
    """Count a warning unless exactly one tag begins with a prefix, as in the published core files."""
    if isinstance(tags, list):
        n = sum(isinstance(tag, str) and tag.startswith(prefix) for tag in tags)
        if n != 1:
            spot.count("tag-group", kind, "none" if n == 0 else f"{n} of them", f"exactly one {prefix} tag")


def check_canary(spot: Spot, record: dict[str, Any]) -> Iterator[Problem]:
    """Yield a problem where a canary is no text, or a line has two that differ."""
    for name in ("canary", "canary_string"):
        yield from check_optional_text(spot, name, record.get(name))
    both = record.get("canary"), record.get("canary_string")
    if all(both) and both[0] != both[1]:
        yield spot.at.error("canary", "canary_string", shown(both[1]), "the value of canary, or only one of them")
