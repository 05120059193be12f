"""The rules that one line keeps, by its shape: core, hard and consensus; Professional; meta-evaluation.

In: a line that was read, and the shape of its file. Out: every problem of that line, none raised.
Not done here: rules between lines (`check`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from builder.healthbench.criterion_rules import CORE_RUBRIC, PROFESSIONAL_RUBRIC, check_rubric
from builder.healthbench.lines import Line
from builder.healthbench.member_rules import (
    check_canary,
    check_content,
    check_conversation,
    check_id,
    check_object,
    check_optional_text,
    check_tags,
    count_tags,
)
from builder.healthbench.objects import CORE_SHAPE, META_SHAPE, PROFESSIONAL_SHAPE, TAG_FIELDS, turns_of
from builder.healthbench.tally import Spot
from builder.rules.item_rules import check_text
from builder.rules.problems import Problem, shown

GROUPS: Final = ("Group 1", "Group 2", "Group 3")
CANARIES: Final = ("canary", "canary_string")

_TELLING: Final[Mapping[str, frozenset[str]]] = {
    CORE_SHAPE: frozenset({"rubrics", "example_tags", "ideal_completions_data"}),
    PROFESSIONAL_SHAPE: frozenset({"id", "conversation", "rubric_items"}),
    META_SHAPE: frozenset({"completion", "rubric", "binary_labels"}),
}
_IDEAL: Final = ("ideal_completion", "ideal_completions_group", "ideal_completions_ref_completions")
_META: Final = (
    *("prompt", "completion", "completion_id", "prompt_id", "category", "rubric"),
    *("binary_labels", "anonymized_physician_ids"),
)
ID_FIELD: Final[Mapping[str, str]] = {CORE_SHAPE: "prompt_id", PROFESSIONAL_SHAPE: "id"}
"""The member that holds an example's id; a meta record has none."""


def shape_of(record: Mapping[str, Any]) -> str | None:
    """Return the shape that most of a line's members tell of, or None where they tell nothing."""
    found = {shape: len(names & record.keys()) for shape, names in _TELLING.items()}
    best = max(found, key=lambda shape: found[shape])
    return best if found[best] else None


def check_record(spot: Spot, line: Line, record: dict[str, Any], shape: str) -> Iterator[Problem]:
    """Yield every problem of a line of this shape."""
    yield from _CHECKS[shape](spot, line, record)
    yield from check_canary(spot, record)


def _core(spot: Spot, line: Line, record: dict[str, Any]) -> Iterator[Problem]:
    needed = ("prompt_id", "prompt", "rubrics", "example_tags")
    yield from check_object(spot, record, place="", kind="", needed=needed, known=("ideal_completions_data", *CANARIES))
    if "prompt_id" in record:
        yield from check_id(spot, "prompt_id", record["prompt_id"])
    if "prompt" in record:
        yield from check_conversation(spot, "prompt", record["prompt"])
    yield from check_rubric(spot, line, record, CORE_RUBRIC)
    if "example_tags" in record:
        yield from check_tags(spot, "example_tags", record["example_tags"])
        count_tags(spot, record["example_tags"], "theme:", kind="example_tags")
    yield from _ideal(spot, record.get("ideal_completions_data"))


def _ideal(spot: Spot, ideal: object) -> Iterator[Problem]:
    place = "ideal_completions_data"
    if ideal is None:
        return
    if not isinstance(ideal, dict):
        yield spot.at.error("wrong-type", place, shown(ideal), f"null or an object of {', '.join(_IDEAL)}")
        return
    yield from check_object(spot, ideal, place=place, kind=place, needed=_IDEAL)
    yield from check_optional_text(spot, f"{place}.ideal_completion", ideal.get("ideal_completion"))
    group, references = (ideal.get(name) for name in _IDEAL[1:])
    yield from check_optional_text(spot, f"{place}.ideal_completions_group", group)
    if isinstance(group, str) and group not in GROUPS:
        spot.count("group", f"{place}.ideal_completions_group", shown(group), f"one of {', '.join(GROUPS)}")
    place = f"{place}.ideal_completions_ref_completions"
    if references is not None and not isinstance(references, list):
        yield spot.at.error("wrong-type", place, shown(references), "an array of texts or null")
    for i, text in enumerate(references if isinstance(references, list) else ()):
        if not isinstance(text, str):
            yield spot.at.error("wrong-type", f"{place}[{i}]", shown(text), "text")


def _professional(spot: Spot, line: Line, record: dict[str, Any]) -> Iterator[Problem]:
    facts = (*TAG_FIELDS, "physician_response")
    needed = ("id", "conversation", "rubric_items")
    yield from check_object(spot, record, place="", kind="", needed=needed, known=(*facts, *CANARIES))
    if "id" in record:
        yield from check_id(spot, "id", record["id"])
    if "conversation" in record:
        yield from _conversation(spot, record["conversation"])
    yield from check_rubric(spot, line, record, PROFESSIONAL_RUBRIC)
    for name in facts:
        yield from check_optional_text(spot, name, record.get(name))
        if name not in record or record[name] == "":
            found = "none" if name not in record else '""'
            spot.count("missing-fact", name, found, "text or null", "the mirror has null there, and no tag of it")


def _conversation(spot: Spot, conversation: object) -> Iterator[Problem]:
    """Yield the problems of a conversation, which is {"messages": [...]} or the bare list."""
    place = "conversation"
    if isinstance(conversation, dict):
        yield from check_object(spot, conversation, place=place, kind=place, needed=("messages",))
        if "messages" not in conversation:
            return
        place = "conversation.messages"
    yield from check_conversation(spot, place, turns_of(conversation))


def _meta(spot: Spot, line: Line, record: dict[str, Any]) -> Iterator[Problem]:  # noqa: ARG001  # as the others
    yield from check_object(spot, record, place="", kind="", needed=_META, known=CANARIES)
    if "prompt" in record:
        yield from check_conversation(spot, "prompt", record["prompt"])
    if "completion" in record:
        yield from check_content(spot, "completion", record["completion"], kind="completion")
    for name in ("completion_id", "prompt_id", "category"):
        if name in record:
            yield from check_id(spot, name, record[name])
    if "rubric" in record:
        yield from check_text(spot.at, "rubric", record["rubric"])
    yield from _labels(spot, record)


def _labels(spot: Spot, record: dict[str, Any]) -> Iterator[Problem]:
    labels, physicians = (record.get(name, ()) for name in ("binary_labels", "anonymized_physician_ids"))
    yield from _list_of(spot, "binary_labels", labels, (bool,), "true or false")
    yield from _list_of(spot, "anonymized_physician_ids", physicians, (str, int), "text or an integer")
    if not isinstance(labels, list) or not isinstance(physicians, list):
        return
    if not labels:
        yield spot.at.error("no-labels", "binary_labels", shown(labels), "at least one physician's label")
    if len(labels) != len(physicians):
        expected = f"{len(labels)} ids, one a label"
        yield spot.at.error("label-count", "anonymized_physician_ids", shown(physicians), expected)
    for physician, n in Counter(map(str, physicians)).items():
        if n > 1:
            found = f"{shown(physician)} {n} times"
            spot.count("physician-twice", "anonymized_physician_ids", found, "a physician once a record")


def _list_of(spot: Spot, place: str, values: object, types: tuple[type, ...], expected: str) -> Iterator[Problem]:
    if values == ():
        return  # its absence is reported with the other members
    if not isinstance(values, list):
        yield spot.at.error("wrong-type", place, shown(values), "an array")
        return
    for i, value in enumerate(values):
        if type(value) not in types:
            yield spot.at.error("wrong-type", f"{place}[{i}]", shown(value), expected)


_CHECKS: Final[Mapping[str, Callable[[Spot, Line, dict[str, Any]], Iterator[Problem]]]] = {
    CORE_SHAPE: _core,
    PROFESSIONAL_SHAPE: _professional,
    META_SHAPE: _meta,
}
