"""The members of a journal's lines and the types they must have (formats.md 4): what else stands there is refused.

In: a parsed line. Out: nothing, or the reason why no run wrote it. A journal is edited by hands and mended by scripts;
a member of another type would be counted as something it is not, or end in a traceback far from its line.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any, Final, TypeAlias

from builder.healthbench.names import META
from builder.healthbench.names import SUITE as HEALTHBENCH
from eval.calls.call import Call
from eval.judging.suites import GROUPINGS, suite_of

Types: TypeAlias = tuple[type, ...]

_TEXT: Final[Types] = (str,)
_TEXT_OR_NULL: Final[Types] = (str, NoneType)
_COUNT: Final[Types] = (int,)
_COUNT_OR_NULL: Final[Types] = (int, NoneType)
_NUMBER: Final[Types] = (int, float)
_OBJECT: Final[Types] = (dict,)
_OBJECT_OR_NULL: Final[Types] = (dict, NoneType)

CALL: Final[Mapping[str, Types]] = {
    **dict.fromkeys(("key", "role", "case_id", "state"), _TEXT),
    "answer_repeat": _COUNT,
}
CALL_OPTIONAL: Final[Mapping[str, Types]] = {
    **dict.fromkeys(
        (
            "text",
            "reason",
            "group",
            "finish_reason",
            "model",
            "fingerprint",
            "at",
            "reused_from",
            "response_id",
            "cache",
        ),
        _TEXT_OR_NULL,
    ),
    **dict.fromkeys(("judge", "repeat", "attempts"), _COUNT_OR_NULL),
    "reply": _COUNT,
    "usage": _OBJECT_OR_NULL,
    "sent": _OBJECT_OR_NULL,
    "latency_ms": (*_NUMBER, NoneType),
}
CASE: Final[Mapping[str, Types]] = {
    **dict.fromkeys(("case_id", "benchmark", "grading_method"), _TEXT),
    "items": (list,),
}
CASE_OPTIONAL: Final[Mapping[str, Types]] = {
    "index": _COUNT,
    "tags": (list,),
    "group": _TEXT_OR_NULL,
    "labels": (list,),
}
ADAPT: Final[Mapping[str, Types]] = {
    **dict.fromkeys(("role", "model", "endpoint", "param", "action"), _TEXT),
    "to": _TEXT_OR_NULL,
    "status": _COUNT_OR_NULL,
}
CERTIFIED: Final[Mapping[str, Types]] = {"judges": (list,), "uncertified": (bool,)}
CERTIFIED_JUDGE: Final[Mapping[str, Types]] = {
    "judge": _COUNT,
    "model": _TEXT,
    "state": _TEXT,
    "reason": _TEXT_OR_NULL,
    "certificate": _OBJECT_OR_NULL,
}
IDENTITY: Final[Mapping[str, Types]] = {
    **dict.fromkeys(("suite", "protocol", "config", "dataset_sha256", "grouping", "semantics_sha256"), _TEXT),
    **dict.fromkeys(("n_cases", "repeats"), _COUNT),
    **dict.fromkeys(("selection", "answer"), _OBJECT),
    "judges": (list,),
}
DATA: Final[Mapping[str, Types]] = {
    **dict.fromkeys(("repo", "revision", "license", "content_sha256"), _TEXT_OR_NULL),
    "splits": _OBJECT,
    "canaries": (list,),
}
ANSWER: Final[Mapping[str, Types]] = {
    **dict.fromkeys(("source", "model"), _TEXT),
    **dict.fromkeys(("endpoint", "system_sha256", "file_sha256"), _TEXT_OR_NULL),
    "params": _OBJECT,
}
JUDGE: Final[Mapping[str, Types]] = {
    **dict.fromkeys(("model", "endpoint", "template_sha256", "format", "id_style"), _TEXT),
    "params": _OBJECT,
    **dict.fromkeys(("vendor", "system_sha256"), _TEXT_OR_NULL),
}


def check_members(found: Any, required: Mapping[str, Types], optional: Mapping[str, Types] | None = None) -> None:
    """Check the members of an object; those that are not named are left alone.

    Raises:
        ValueError: it is no object, a member is missing or of another type. true and false are no numbers.
    """
    if not isinstance(found, dict):
        raise ValueError(f"{_shown(found)} in place of an object")
    for name, types in required.items():
        if name not in found:
            raise ValueError(f"no {name}")
        _check_type(name, found[name], types)
    for name, types in (optional or {}).items():
        if name in found:
            _check_type(name, found[name], types)


def _check_type(name: str, value: Any, types: Types) -> None:
    if type(value) not in types:
        raise ValueError(f"{name} {_shown(value)}")


def call_values(line: dict[str, Any]) -> list[Any]:
    """Return the members of a call line in the order of `CALL_NAMES`, None where an optional one is not there.

    Raises:
        ValueError: as `check_members`, of the line or of its token counts.
    """
    values = list(map(line.get, CALL_NAMES))
    if "reply" not in line:
        values[_REPLY] = 1
    usage = values[_USAGE]
    shape = tuple(map(type, values)), tuple(map(type, usage.values())) if type(usage) is dict else None
    if shape in _GOOD_SHAPES:
        return values
    check_members(line, CALL, CALL_OPTIONAL)
    for name, count in (usage or {}).items():
        _check_type(f"usage.{name}", count, _COUNT_OR_NULL)
    if len(_GOOD_SHAPES) < _MOST_SHAPES:
        _GOOD_SHAPES.add(shape)
    return values


CALL_NAMES: Final = Call.__slots__
_REPLY: Final = CALL_NAMES.index("reply")
_USAGE: Final = CALL_NAMES.index("usage")
# A journal has tens of thousands of calls of few shapes: types that were found good once need no second look.
_MOST_SHAPES: Final = 1000
_GOOD_SHAPES: Final[set[object]] = set()


def check_case(line: dict[str, Any]) -> None:
    """Check a case line's members: items are [item_id, points], of a HealthBench example [item_id, points, tags].

    Raises:
        ValueError: as `check_members`.
    """
    check_members(line, CASE, CASE_OPTIONAL)
    tagged = line["grading_method"] == HEALTHBENCH
    if tagged != ("tags" in line):
        raise ValueError("no tags" if tagged else f"tags {_shown(line['tags'])}")
    for item in line["items"]:
        if not (isinstance(item, list) and len(item) == 2 + tagged and _is_item(item, meta=line["benchmark"] == META)):
            raise ValueError(f"item {_shown(item)}")
    if len({item[0] for item in line["items"]}) < len(line["items"]):
        raise ValueError(f"case {line['case_id']} with one item twice")
    if not _are_texts(line.get("tags", [])):
        raise ValueError(f"tags {_shown(line['tags'])}")
    for label in line.get("labels", []):
        if not (isinstance(label, list) and list(map(type, label)) == [str, bool]):
            raise ValueError(f"label {_shown(label)}")


def _is_item(item: list[object], *, meta: bool) -> bool:
    """Whether an item is [item_id, points] or with tags a third; only a meta example's criterion has no points."""
    types = (NoneType,) if meta else _NUMBER
    return type(item[0]) is str and type(item[1]) in types and all(map(_are_texts, item[2:]))


def _are_texts(values: object) -> bool:
    return isinstance(values, list) and all(type(value) is str for value in values)


def check_certified(line: dict[str, Any], *, n_judges: int) -> None:
    """Check a line on certificates: for each judge in turn its state and, where it has one, its certificate.

    Raises:
        ValueError: as `check_members`.
    """
    check_members(line, CERTIFIED)
    for number, judge in enumerate(line["judges"]):
        check_members(judge, CERTIFIED_JUDGE)
        if judge["judge"] != number or len(line["judges"]) != n_judges:
            raise ValueError(f"judges of another jury than the run's {n_judges}")


def check_header(header: dict[str, Any]) -> None:
    """Check a first line's identity and what it says of the data.

    Raises:
        ValueError: as `check_members`; also an identity without a judge or a repeat, or of an unknown suite.
    """
    check_members(header, {"identity": _OBJECT}, {"data": _OBJECT, "started": _TEXT})
    check_members(header.get("data", {}), {}, DATA)
    identity = header["identity"]
    check_members(identity, IDENTITY, {"answer_repeats": _COUNT})
    check_members(identity["answer"], ANSWER, {"vendor": _TEXT})
    for judge in identity["judges"]:
        check_members(judge, JUDGE)
    if not identity["judges"] or identity["repeats"] < 1 or identity.get("answer_repeats", 1) < 1:
        raise ValueError("an identity without a judge call")
    suite_of(identity["suite"])
    if identity["grouping"] not in GROUPINGS:
        raise ValueError(f"grouping {_shown(identity['grouping'])}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
