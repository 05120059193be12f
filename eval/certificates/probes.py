"""Authored probes: answers whose decisions are known, by kind of panel, as JSON files in `authored/`.

In: the files. Out: `Probe`s, their digest, and the cases and given answers that a judge is asked about. Each holds one
trait of answers that judges stumble over: what is clearly good or bad, what is advised against, what is half said,
orders and verdicts inside the answer, another language, great length, nothing at all. A sentinel item is one on which
no competent reader can differ.

A new kind is a row in `KINDS` and a file of the same name. An answer is a text or a list of parts, one of which may be
`{"repeat": n, "text": ...}`; `<<item_0>>` in it stands for the id under which a judge is asked about the first item.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from bedside_bench import F1_WEIGHTED_RUBRIC, POINTS_RUBRIC, SEVERITY_CLASS, sha256_json
from builder.errors import BadInput
from builder.healthbench.names import SUITE as HEALTHBENCH_NAME
from builder.rules.problems import shown
from builder.tree.strict_json import parse
from eval.calls.answers import GivenAnswer, GivenAnswers
from eval.cases import Case, CaseSet, Item
from eval.judging.suites import BEDSIDE_NAME
from eval.judging.texts import fill
from eval.statements.protocol import GRADING_METHOD as STATEMENTS_METHOD
from eval.statements.protocol import SUITE as STATEMENTS

FORMAT: Final = "bedside-bench/probes/1"
TRAITS: Final = (
    "good",
    "bad",
    "negation",
    "partial",
    "injection",
    "verdict_json",
    "language",
    "long",
    "empty",
)
CONFIG: Final = "probes"
ANSWERS: Final = "probes"
"""The name that stands for a model where the probes' own answers are judged."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of panel: the suite whose judges are asked about it, and the grading method of its cases."""

    name: str
    suite: str
    grading_method: str


KINDS: Final = (
    Kind("knowledge", BEDSIDE_NAME, POINTS_RUBRIC),
    Kind("hallucination", BEDSIDE_NAME, POINTS_RUBRIC),
    Kind("calculation", BEDSIDE_NAME, POINTS_RUBRIC),
    Kind("equity", BEDSIDE_NAME, POINTS_RUBRIC),
    Kind("plan", BEDSIDE_NAME, F1_WEIGHTED_RUBRIC),
    Kind("healthbench", HEALTHBENCH_NAME, HEALTHBENCH_NAME),
    # Its judges decide no items: an item's text is what a listed statement must or must not hold (`statements.probed`).
    Kind("statements", STATEMENTS, STATEMENTS_METHOD),
)


@dataclass(frozen=True, slots=True)
class ProbeItem:
    """One item, the decision that is right, and whether no competent reader can differ."""

    text: str
    points: int
    expected: bool
    sentinel: bool


@dataclass(frozen=True, slots=True)
class Probe:
    """One authored answer: the conversation it ends, of (role, content) turns, and the items to be decided on it."""

    id: str
    kind: str
    trait: str
    conversation: tuple[tuple[str, str], ...]
    answer: str
    items: tuple[ProbeItem, ...]

    @property
    def case_id(self) -> str:
        """The id of its case: 32 hex as real cases have, so that no name tells a judge what is expected."""
        return _case_id(self.id)

    @property
    def item_ids(self) -> tuple[str, ...]:
        """The ids under which a judge is asked about its items."""
        return tuple(f"{self.case_id}_{index}" for index in range(len(self.items)))


def _case_id(probe_id: str) -> str:
    return hashlib.md5(probe_id.encode(), usedforsecurity=False).hexdigest()


@cache
def read_probes() -> tuple[Probe, ...]:
    """Return all probes, kind after kind, each in its file's order.

    Raises:
        BadInput: a file is not as this module describes it.
    """
    folder = files("eval.certificates") / "authored"
    probes = [probe for kind in KINDS for probe in parse_probes((folder / f"{kind.name}.json").read_bytes(), kind)]
    twice = sorted({probe.id for probe in probes if sum(other.id == probe.id for other in probes) > 1})
    if twice:
        raise BadInput(f"probes: expected each id once, found {', '.join(twice)} again; give it another")
    return tuple(probes)


def kinds_of(suite: str) -> tuple[Kind, ...]:
    """Return the kinds of panel that a suite's judges are asked about; () where a suite has no probes."""
    return tuple(kind for kind in KINDS if kind.suite == suite)


def probes_of(suite: str) -> tuple[Probe, ...]:
    """Return the probes for a suite's judges."""
    names = {kind.name for kind in kinds_of(suite)}
    return tuple(probe for probe in read_probes() if probe.kind in names)


def probes_sha256(probes: Sequence[Probe]) -> str:
    """Return the digest of everything that probes ask and expect, in their order."""
    return sha256_json([asdict(probe) for probe in probes])


def probe_cases(probes: Sequence[Probe]) -> tuple[Case, ...]:
    """Return probes as cases; the benchmark of each is its kind."""
    methods = {kind.name: kind.grading_method for kind in KINDS}
    return tuple(
        Case(
            case_id=probe.case_id,
            benchmark=probe.kind,
            grading_method=methods[probe.kind],
            conversation=probe.conversation,
            items=tuple(
                Item(item_id, item.text, item.points) for item_id, item in zip(probe.item_ids, probe.items, strict=True)
            ),
        )
        for probe in probes
    )


def probe_data(suite: str) -> CaseSet:
    """Return a suite's probes as a data set, named by their digest."""
    probes = probes_of(suite)
    digest = probes_sha256(probes)
    return CaseSet(probe_cases(probes), digest, digest, None, None, None, suite=suite, config=CONFIG)


def probe_answers(probes: Sequence[Probe]) -> GivenAnswers:
    """Return the answers to judge; an empty one is judged too, for a judge must find nothing in it."""
    answers = {probe.case_id: [GivenAnswer(probe.answer, "ok")] for probe in probes}
    return GivenAnswers(answers, ANSWERS, probes_sha256(probes))


def parse_probes(raw: bytes, kind: Kind) -> tuple[Probe, ...]:
    """Return the probes that the bytes of a kind's file hold.

    Raises:
        BadInput: naming the place and what is wrong there.
    """
    where = f"authored/{kind.name}.json"
    found, faults = parse(raw)
    if faults:
        raise BadInput(f"{where}: expected strict JSON, found {faults[0].found}")
    _members(found, {"format", "kind", "probes"}, where)
    for name, expected in (("format", FORMAT), ("kind", kind.name)):
        if found[name] != expected:
            raise BadInput(f"{where}: {name}: expected {expected}, found {shown(found[name])}")
    return tuple(_probe(entry, kind, f"{where}: probe {n}") for n, entry in enumerate(_list(found["probes"], where)))


def _probe(entry: Any, kind: Kind, where: str) -> Probe:
    asked = "conversation" if isinstance(entry, dict) and "conversation" in entry else "prompt"
    _members(entry, {"id", "trait", asked, "answer", "items"}, where)
    probe_id, trait = _text(entry["id"], f"{where}: id"), entry["trait"]
    where = f"{where} ({probe_id})"
    if trait not in TRAITS:
        raise BadInput(f"{where}: trait: expected one of {', '.join(TRAITS)}, found {shown(trait)}")
    items = tuple(_item(item, kind, f"{where}: item {n}") for n, item in enumerate(_list(entry["items"], where)))
    if not items:
        raise BadInput(f"{where}: expected items, found none")
    ids = {f"item_{index}": f"{_case_id(probe_id)}_{index}" for index in range(len(items))}
    try:
        answer = fill(_answer(entry["answer"], where), ids)
    except KeyError as place:
        raise BadInput(f"{where}: answer: expected places {', '.join(ids)}, found {place}") from None
    return Probe(probe_id, kind.name, trait, _conversation(entry[asked], where), answer, items)


def _conversation(found: Any, where: str) -> tuple[tuple[str, str], ...]:
    if isinstance(found, str):
        return (("user", _text(found, f"{where}: prompt")),)
    turns = []
    for n, turn in enumerate(_list(found, where)):
        _members(turn, {"role", "content"}, f"{where}: turn {n}")
        turns.append((_text(turn["role"], f"{where}: turn {n}: role"), _text(turn["content"], f"{where}: turn {n}")))
    if not turns or turns[-1][0] != "user":
        raise BadInput(f"{where}: conversation: expected turns that end with the user's")
    return tuple(turns)


def _answer(found: Any, where: str) -> str:
    """Return an answer put together from its parts; "" is an answer."""
    if isinstance(found, str):
        return found
    parts = []
    for n, part in enumerate(_list(found, f"{where}: answer")):
        if isinstance(part, str):
            parts.append(part)
            continue
        _members(part, {"repeat", "text"}, f"{where}: answer: part {n}")
        if type(part["repeat"]) is not int or part["repeat"] < 1:
            raise BadInput(f"{where}: answer: part {n}: repeat: expected 1 or more, found {shown(part['repeat'])}")
        parts.append(part["repeat"] * _text(part["text"], f"{where}: answer: part {n}"))
    return "".join(parts)


def _item(entry: Any, kind: Kind, where: str) -> ProbeItem:
    _members(entry, {"text", "points", "expected", "sentinel"}, where)
    points = entry["points"]
    if type(points) is not int or (kind.grading_method == F1_WEIGHTED_RUBRIC and points not in SEVERITY_CLASS):
        raise BadInput(f"{where}: points: expected an integer of the kind's panels, found {shown(points)}")
    for name in ("expected", "sentinel"):
        if type(entry[name]) is not bool:
            raise BadInput(f"{where}: {name}: expected true or false, found {shown(entry[name])}")
    return ProbeItem(_text(entry["text"], f"{where}: text"), points, entry["expected"], entry["sentinel"])


def _members(found: Any, names: set[str], where: str) -> None:
    if not isinstance(found, Mapping) or set(found) != names:
        there = ", ".join(sorted(found)) if isinstance(found, Mapping) else shown(found)
        raise BadInput(f"{where}: expected the members {', '.join(sorted(names))}, found {there or 'none'}")


def _list(found: Any, where: str) -> list[Any]:
    if not isinstance(found, list):
        raise BadInput(f"{where}: expected a list, found {shown(found)}")
    return found


def _text(found: Any, where: str) -> str:
    if not isinstance(found, str) or not found.strip():
        raise BadInput(f"{where}: expected a text, found {shown(found)}")
    return found
