"""What a HealthBench run says to models: the conversation alone to the first, one criterion a call to the grader.

In: an example, an answer. Out: messages and parameters, and the grader's decision read from its reply. The grader
template is this project's own wording (`grader.txt`) of the published rules; a user who has another one passes it as a
file with the same two places, and the protocol's name says so. With --grouping case one call asks about all criteria of
an example, in a wording of its own (`grader_all.txt`) under a name of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from builder.errors import BadInput
from eval.cases import Case, Item
from eval.judging.judge import RefusedReplyError, reply_object, stands_in
from eval.judging.protocol import JUDGE_TOKENS_PER_ITEM, judge_params, reply_params
from eval.judging.texts import Message, Prompts

GRADER: Final = "bedside-bench-grader-v1"
GRADER_SHA256: Final = "b0bb6c0fe7684adf9476c216765ae3e8a8965097a6932d884dd7320bb18fe4bc"
"""Of `grader.txt`: another wording is another protocol, and gets a new name here."""
PROTOCOL: Final = f"healthbench+{GRADER}"
PLACES: Final = ("<<conversation>>", "<<rubric_item>>")

GRADER_ALL: Final = "bedside-bench-grader-all-v1"
GRADER_ALL_SHA256: Final = "99d19eb67499c87a22518cfce5796690d1abd3eba6d3c28ef5c24fefbd324718"
"""Of `grader_all.txt`, as above."""
PROTOCOL_ALL: Final = f"healthbench+{GRADER_ALL}"
PLACES_ALL: Final = ("<<conversation>>", "<<rubric_items>>")
_PLACES_OF: Final = {"item": PLACES, "case": PLACES_ALL}

GRADER_TEMPERATURE: Final = 0
GRADER_MAX_TOKENS: Final = 2_048
GRADER_ALL_TOKENS_RULE: Final = f"{GRADER_MAX_TOKENS} + {JUDGE_TOKENS_PER_ITEM} x items"


@cache
def own_prompts() -> Prompts:
    """Return the texts of a HealthBench run: no system text, and the grader template of our own wording."""
    return _own("grader.txt")


@cache
def own_prompts_all() -> Prompts:
    """Return the texts of a run that asks about all criteria of an example in one call."""
    return _own("grader_all.txt")


def _own(name: str) -> Prompts:
    template = (files("eval.healthbench") / name).read_bytes().decode()
    return Prompts(answer_system=None, judge_system=None, judge_user=template)


def read_template(path: Path, *, grouping: str = "item") -> Prompts:
    """Return the texts of a run with another grader template.

    Args:
        grouping: what one call asks about; of all criteria (`case`) the place is `<<rubric_items>>`.

    Raises:
        BadInput: the file cannot be read, or lacks one of its two places.
    """
    try:
        template = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: expected a UTF-8 text file for --grader-template, found: {error}") from None
    if template.startswith("\ufeff"):
        raise BadInput(f"{path}: expected plain UTF-8, found a byte order mark, which would go into every prompt")
    places = _PLACES_OF[grouping]
    missing = [place for place in places if place not in template]
    if missing:
        raise BadInput(
            f"{path}: expected the places {' and '.join(places)} in it, found no {' and no '.join(missing)}"
            f"{_other_place(template, grouping)}"
        )
    return Prompts(answer_system=None, judge_system=None, judge_user=template)


def _other_place(template: str, grouping: str) -> str:
    """Say for which grouping a template is written, where it is not this one."""
    other = next(name for name in _PLACES_OF if name != grouping)
    place = _PLACES_OF[other][1]
    return f" but {place}, which is for --grouping {other}" if place in template else ""


def protocol_name(prompts_sha256: str | None) -> str:
    """Return the protocol's name for a grader template, given its digest."""
    if prompts_sha256 == GRADER_SHA256:
        return PROTOCOL
    return f"healthbench+template-{(prompts_sha256 or '')[:8]}"


def protocol_all_name(prompts_sha256: str | None) -> str:
    """Return the protocol's name for a template that asks about all criteria at once, given its digest."""
    if prompts_sha256 == GRADER_ALL_SHA256:
        return PROTOCOL_ALL
    return f"healthbench+template-all-{(prompts_sha256 or '')[:8]}"


def points_literal(points: float) -> str:
    """Return points as the grader sees them: `5`, not `5.0`; `-2.5`."""
    return str(int(points)) if float(points).is_integer() else repr(float(points))


def rubric_line(item: Item) -> str:
    """Return what the grader is shown of an item: `[points] criterion`; a meta example's criterion has no points."""
    return item.text if item.points is None else f"[{points_literal(item.points)}] {item.text}"


def grader_messages(
    case: Case,
    answer: str,
    *,
    items: Sequence[Item],
    ids: Sequence[str],  # noqa: ARG001 - a call asks about one item and does not name it
    prompts: Prompts,
) -> list[Message]:
    """Return the grader call's one message: the conversation with the answer as its last turn, and the one item."""
    (item,) = items
    return _message(case, answer, prompts, PLACES, rubric_line(item))


def grader_all_messages(
    case: Case, answer: str, *, items: Sequence[Item], ids: Sequence[str], prompts: Prompts
) -> list[Message]:
    """Return the one message of a grader call on all items: each on a line of its own, `id: [points] criterion`."""
    lines = "\n".join(f"{id_}: {rubric_line(item)}" for id_, item in zip(ids, items, strict=True))
    return _message(case, answer, prompts, PLACES_ALL, lines)


def _message(case: Case, answer: str, prompts: Prompts, places: Sequence[str], rubric: str) -> list[Message]:
    turns = [*case.conversation, ("assistant", answer)]
    conversation = "\n\n".join(f"{role}: {content}" for role, content in turns)
    values = dict(zip(places, (conversation, rubric), strict=True))
    # Only these two: a user's template may speak of other `<<places>>`, and a conversation may hold any.
    content = re.sub("|".join(places), lambda place: values[place.group()], prompts.judge_user)
    return [{"role": "user", "content": content}]


def grader_params(
    ids: Sequence[str],  # noqa: ARG001 - the limit is the same for every call
    *,
    judge_format: str,
    temperature: float | None = GRADER_TEMPERATURE,
) -> dict[str, Any]:
    """Return the grader call's parameters as requested."""
    return reply_params(GRADER_MAX_TOKENS, _SCHEMA, judge_format=judge_format, temperature=temperature)


def grader_all_params(
    ids: Sequence[str], *, judge_format: str, temperature: float | None = GRADER_TEMPERATURE
) -> dict[str, Any]:
    """Return the parameters of a grader call on all items: the room for its reply grows with their number."""
    params = judge_params(ids, judge_format=judge_format, temperature=temperature)
    return {**params, "max_completion_tokens": GRADER_MAX_TOKENS + JUDGE_TOKENS_PER_ITEM * len(ids)}


_SCHEMA: Final = {
    "name": "grade",
    "strict": True,
    "schema": {
        "type": "object",
        "properties": {"explanation": {"type": "string"}, "criteria_met": {"type": "boolean"}},
        "required": ["explanation", "criteria_met"],
        "additionalProperties": False,
    },
}


def parse_grade(text: str, ids: Sequence[str]) -> tuple[bool, ...]:
    """Return the decision of a grader reply as a tuple of one.

    Raises:
        RefusedReplyError: the reply is no JSON object, bare or in one fence, or its `criteria_met` is no boolean. Such
            a reply is never "false": on a negative criterion that would raise the score.
    """
    if len(ids) != 1:
        raise ValueError(f"a grader reply is about one item, not {len(ids)}")
    met = reply_object(text).get("criteria_met")
    if type(met) is not bool:
        raise RefusedReplyError(f'expected a boolean "criteria_met", found {met!r:.60}')
    return (met,)


def verbatim_grade(answer: str, *, items: Sequence[Item], ids: Sequence[str]) -> str:  # noqa: ARG001 - as above
    """Return the built-in judge's reply: a criterion is met iff it is a whole line of the answer."""
    (item,) = items
    met = stands_in(item, answer)
    why = "the criterion is a line of the answer" if met else "the criterion is no line of the answer"
    return json.dumps({"explanation": why, "criteria_met": met})
