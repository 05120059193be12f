"""A JSON value as its single numbers, texts and nulls, each at its place, and where two such values differ.

In: two JSON values and a tolerance. Out: places such as `rubric_tags["axis:accuracy"].n`, with what either has there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from builder.rules.problems import member, shown


class _Nothing:
    """What stands at a place that a value does not have; another thing than null."""


NOTHING: Final = _Nothing()


class Difference(NamedTuple):
    """A place where what was expected and what was found differ; NOTHING where one of them ends before it."""

    place: str
    expected: Any
    found: Any


def leaves(value: Any) -> dict[str, Any]:
    """Return every number, text, boolean and null of a JSON value by its place; an empty container is one itself."""
    return dict(_leaves(value, ""))


def differences(expected: Mapping[str, Any], found: Mapping[str, Any], tolerance: float) -> tuple[Difference, ...]:
    """Return where two sets of leaves differ, in the order of the expected ones, then what was found beyond them."""
    places = dict.fromkeys([*expected, *found])
    pairs = ((place, expected.get(place, NOTHING), found.get(place, NOTHING)) for place in places)
    return tuple(Difference(*pair) for pair in pairs if not alike(pair[1], pair[2], tolerance))


def alike(one: Any, other: Any, tolerance: float) -> bool:
    """Tell whether two leaves are the same: numbers within the tolerance, all else exactly; true is not 1."""
    if _is_number(one) and _is_number(other):
        return bool(abs(one - other) <= tolerance)
    return type(one) is type(other) and bool(one == other)


def shown_leaf(value: Any) -> str:
    """Return a leaf in short, `nothing` where there is none."""
    return "nothing" if value is NOTHING else shown(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, child in value.items():
            yield from _leaves(child, f"{place}{member(name)}".removeprefix("."))
    elif isinstance(value, list) and value:
        for index, child in enumerate(value):
            yield from _leaves(child, f"{place}[{index}]")
    else:
        yield place, value
