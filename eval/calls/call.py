"""One call of a run and its reply, as the journal keeps it: its fields, its states, its line, and which one counts.

In: what was asked and what came back. Out: the lines of formats.md 4 as objects and back to lines. Not done here: the
file (`journal`), the types that a line's members must have (`lines`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from bedside_bench import sha256_json
from builder.healthbench.names import SUITE as HEALTHBENCH

if TYPE_CHECKING:
    from eval.cases import Case

VERSION: Final = 1
# States of a finished call whose text goes on to the next step (formats.md 5); every other state is asked again.
JUDGED_ANSWERS: Final = frozenset({"ok", "truncated", "refused"})
_FAILED: Final = frozenset({"empty", "filtered", "timeout", "transport", "rate_limited", "rejected", "budget"})
STATES: Final = {
    "answer": JUDGED_ANSWERS | _FAILED | {"missing"},
    "judge": frozenset({"ok", "invalid_reply", "truncated", "refused"}) | _FAILED,
}
NO_USAGE: Final[dict[str, int | None]] = {"input": None, "cached": None, "output": None, "reasoning": None}


@dataclass(frozen=True, slots=True)
class Call:
    """One call and its reply; the fields of a journal's call line. Latency in ms, `at` the UTC time it ended.

    `response_id` is the server's name of the reply, `cache` the header by which a cache said that it gave an old one.
    """

    key: str
    role: str
    case_id: str
    answer_repeat: int
    state: str
    text: str | None = None
    reason: str | None = None
    group: str | None = None
    judge: int | None = None
    repeat: int | None = None
    reply: int = 1
    finish_reason: str | None = None
    usage: Mapping[str, int | None] = field(default_factory=lambda: dict(NO_USAGE))
    model: str | None = None
    fingerprint: str | None = None
    sent: Mapping[str, Any] | None = None
    attempts: int | None = None
    latency_ms: float | None = None
    at: str | None = None
    reused_from: str | None = None
    response_id: str | None = None
    cache: str | None = None

    @property
    def done(self) -> bool:
        """Whether this reply is final: it is never asked for again."""
        return self.state in JUDGED_ANSWERS if self.role == "answer" else self.state == "ok"


CallName: TypeAlias = tuple[str, str, int, str | None]
"""Case id, key, answer repeat and group: what is asked in the same words has the same key, and each unit its own call.

Two cases of one prompt, two equal answers to one case, two equal items of one rubric.
"""

# An answer line has none of these; formats.md 4.
_JUDGE_ONLY: Final = ("group", "judge", "repeat")


@dataclass(frozen=True, slots=True)
class CaseHead:
    """What a journal keeps of a case: enough to score it without the mirror. `index` is its place in dataset order.

    `about` is what scores by tag need of a HealthBench example; None in other suites.
    """

    case_id: str
    benchmark: str
    grading_method: str
    items: tuple[tuple[str, int | float | None], ...]
    index: int
    about: ExampleFacts | None = None


@dataclass(frozen=True, slots=True)
class ExampleFacts:
    """What a HealthBench example's head holds beside: its tags, each item's tags, its physicians' group and labels."""

    tags: tuple[str, ...]
    item_tags: tuple[tuple[str, ...], ...]
    group: str | None = None
    labels: tuple[tuple[str, bool], ...] = ()


def current_calls(calls: Iterable[Call]) -> dict[CallName, Call]:
    """Return for each case and key the call that counts: a final one if any, else the latest; in order of first sight.

    Later means later by `at`, then by place in the file, so that shuffled lines say the same.
    """
    current: dict[CallName, Call] = {}
    for call in calls:
        name = call_name(call)
        known = current.get(name)
        if known is None or (call.done, call.at or "") >= (known.done, known.at or ""):
            current[name] = call
    return current


def call_name(call: Call) -> CallName:
    """Return which unit of a run a call belongs to."""
    return call.case_id, call.key, call.answer_repeat, call.group


def request_key(
    *, endpoint: str, model: str, messages: Sequence[Mapping[str, str]], params: Mapping[str, Any], repeat: int
) -> str:
    """Return the name of a request as asked for, never as adapted (formats.md 4)."""
    return sha256_json({"endpoint": endpoint, "model": model, "messages": messages, "params": params, "repeat": repeat})


def call_line(call: Call) -> dict[str, Any]:
    """Return a call as its journal line."""
    # Field by field: dataclasses.asdict copies deeply and costs as much as the rest of a call.
    line: dict[str, Any] = {"v": VERSION, "kind": "call"}
    for name in Call.__slots__:
        if call.role == "judge" or name not in _JUDGE_ONLY:
            line[name] = getattr(call, name)
    return line


def case_heads(cases: Sequence[Case]) -> list[CaseHead]:
    """Return what a journal keeps of cases given in dataset order."""
    return [
        CaseHead(
            case_id=case.case_id,
            benchmark=case.benchmark,
            grading_method=case.grading_method,
            items=tuple((item.item_id, item.points) for item in case.items),
            index=index,
            about=_about(case) if case.grading_method == HEALTHBENCH else None,
        )
        for index, case in enumerate(cases)
    ]


def _about(case: Case) -> ExampleFacts:
    return ExampleFacts(case.tags, tuple(item.tags for item in case.items), case.group, case.labels)


def case_line(head: CaseHead) -> dict[str, Any]:
    """Return a case head as its journal line."""
    line: dict[str, Any] = {"v": VERSION, "kind": "case"}
    line |= {name: getattr(head, name) for name in ("case_id", "benchmark", "grading_method", "items", "index")}
    if head.about is None:
        return line
    items = [[*item, tags] for item, tags in zip(head.items, head.about.item_tags, strict=True)]
    return {**line, "items": items, "tags": head.about.tags, "group": head.about.group, "labels": head.about.labels}


def line_head(line: Mapping[str, Any], *, index: int) -> CaseHead:
    """Return the case head that a checked journal line holds.

    Args:
        index: its place in dataset order where the line names none.
    """
    about = None
    if "tags" in line:
        about = ExampleFacts(
            tags=tuple(line["tags"]),
            item_tags=tuple(tuple(tags) for _, _, tags in line["items"]),
            group=line.get("group"),
            labels=tuple((physician, label) for physician, label in line.get("labels", ())),
        )
    return CaseHead(
        case_id=line["case_id"],
        benchmark=line["benchmark"],
        grading_method=line["grading_method"],
        items=tuple((item[0], item[1]) for item in line["items"]),
        index=line.get("index", index),
        about=about,
    )
