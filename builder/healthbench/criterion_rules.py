"""Rules that the rubric of an example keeps: its items, their criteria, points and tags.

In: the list of items as it stands in the line. Out: problems. The points keep the form in which they print: a grader's
prompt shows them, and another form is another prompt.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from builder.healthbench.lines import Line, literal_numbers
from builder.healthbench.member_rules import check_object, check_tags, count_tags
from builder.healthbench.objects import LARGEST, printed_points
from builder.healthbench.tally import Spot
from builder.rules.item_rules import check_text
from builder.rules.problems import Problem, shown

SMALLEST: Final = 1e-6
"""The least points but 0: a score is a ratio of points, and those of 1e-300 would make it overflow."""


@dataclass(frozen=True, slots=True)
class RubricShape:
    """How a shape names its rubric and an item's text, and whether items must have tags, with which groups."""

    name: str
    text: str
    needs_tags: bool
    groups: tuple[str, ...]

    @property
    def needed(self) -> tuple[str, ...]:
        """The members that an item must have."""
        return (self.text, "points", *(("tags",) if self.needs_tags else ()))


CORE_RUBRIC = RubricShape("rubrics", "criterion", needs_tags=True, groups=("axis:", "level:"))
PROFESSIONAL_RUBRIC = RubricShape("rubric_items", "criterion_text", needs_tags=False, groups=())


def check_rubric(spot: Spot, line: Line, record: dict[str, Any], shape: RubricShape) -> Iterator[Problem]:
    """Yield every problem of an example's rubric; its absence is reported with the other members."""
    items = record.get(shape.name, ())
    if items == ():
        return
    if not isinstance(items, list):
        yield spot.at.error("wrong-type", shape.name, shown(items), "an array of rubric items")
        return
    if not items:
        yield spot.at.error("no-items", shape.name, shown(items), "at least one rubric item")
        return
    for i, item in enumerate(items):
        yield from _item(spot, f"{shape.name}[{i}]", item, shape)
    _count_literals(spot, line, shape, items)
    yield from _scorable(spot, shape, items)


def _item(spot: Spot, place: str, item: object, shape: RubricShape) -> Iterator[Problem]:
    kind = f"{shape.name}[*]"
    if not isinstance(item, dict):
        yield spot.at.error("wrong-type", place, shown(item), f"an object with {', '.join(shape.needed)}")
        return
    yield from check_object(spot, item, place=place, kind=kind, needed=shape.needed, known=("tags",))
    if shape.text in item:
        yield from check_text(spot.at, f"{place}.{shape.text}", item[shape.text])
    if "points" in item:
        yield from _points(spot, f"{place}.points", item["points"], kind=f"{kind}.points")
    if "tags" in item:
        yield from check_tags(spot, f"{place}.tags", item["tags"])
        for prefix in shape.groups:
            count_tags(spot, item["tags"], prefix, kind=f"{kind}.tags")


def _points(spot: Spot, place: str, value: object, *, kind: str) -> Iterator[Problem]:
    if not is_number(value):
        hint = "write it without quotes" if isinstance(value, str) else None
        yield spot.at.error("points-type", place, shown(value), "a number", hint)
    elif abs(value) > LARGEST:
        expected = "a number of at most 2^53 in size: a mirror gives no larger one back"
        yield spot.at.error("points-range", place, shown(value), expected)
    elif 0 < abs(value) < SMALLEST:
        expected = f"a number of at least {SMALLEST:g} in size, or 0: scores are ratios of points, and would overflow"
        yield spot.at.error("points-range", place, shown(value), expected)
    elif value == 0:
        spot.count("points-zero", kind, shown(value), "points other than 0", "such an item never changes a score")


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a JSON value is a number (a boolean is none, though Python counts it as one)."""
    return type(value) in (int, float)


def _count_literals(spot: Spot, line: Line, shape: RubricShape, items: list[Any]) -> None:
    """Count the points that a mirror gives back in another form than the line has: `5.0` comes back as `5`."""
    points = [item.get("points") if isinstance(item, dict) else None for item in items]
    if not any(type(value) is float or value == 0 for value in points):
        return  # an integer other than 0 has one form
    literals = literal_numbers(line.raw)[shape.name]
    for value, item in zip(points, literals, strict=True):
        if is_number(value) and item["points"] != (printed := repr(printed_points(value))):
            hint = f"the mirror gives back {printed}, and a grader is shown that"
            expected = "points in the form in which they print"
            spot.count("points-form", f"{shape.name}[*].points", str(item["points"])[:30], expected, hint)


def _scorable(spot: Spot, shape: RubricShape, items: list[Any]) -> Iterator[Problem]:
    points = [item.get("points") if isinstance(item, dict) else None for item in items]
    numbers = [value for value in points if is_number(value)]
    if len(numbers) == len(points) and not any(value > 0 for value in numbers):
        hint = "no answer to this example has a score: it is ungraded in every run"
        yield spot.at.warning("unscorable", shape.name, "none", "an item with positive points", hint)
