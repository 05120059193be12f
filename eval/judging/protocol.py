"""The words that models read, and the parameters they are sent with: frozen, hashed, quoted from the protocol.

In: a case, an answer. Out: messages and parameters of the answer call and of the judge call. The prompt texts are files
of their own beside this module (`prompts/*.txt`, Doximity's, see NOTICE); change one there and the run says so: its
protocol id then carries the digest of its semantics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from eval.cases import Case, Item
from eval.judging.texts import Message, Prompts, fill

PROTOCOL: Final = "bedside-bench-grading-v1"
REFERENCE_JUDGE: Final = "gpt-5.6-sol"

# Spec section 4: parameter values are the protocol's.
ANSWER_MAX_TOKENS: Final = 32_000
ANSWER_TEMPERATURE: Final = 1
JUDGE_TEMPERATURE: Final = 0
JUDGE_MIN_TOKENS: Final = 5_000
JUDGE_BASE_TOKENS: Final = 1_000
JUDGE_TOKENS_PER_ITEM: Final = 80
JUDGE_TOKENS_RULE: Final = f"max({JUDGE_MIN_TOKENS}, {JUDGE_BASE_TOKENS} + {JUDGE_TOKENS_PER_ITEM} x items)"

JUDGE_FORMATS: Final = ("json_schema", "json_object", "none")
ID_STYLES: Final = ("full", "short")


@cache
def protocol_prompts() -> Prompts:
    """Return the protocol's own texts, to the byte."""
    folder = files("eval.judging") / "prompts"
    names = ("answer_system", "judge_system", "judge_user", "judge_item")
    return Prompts(*((folder / f"{name}.txt").read_bytes().decode() for name in names))


def asked_ids(items: Sequence[Item], *, id_style: str = "full") -> tuple[str, ...]:
    """Return the ids that the judge is shown, in file order: the items' own, or `item_<index>` in short style."""
    if id_style == "short":
        return tuple(f"item_{index}" for index in range(len(items)))
    return tuple(item.item_id for item in items)


def answer_messages(case: Case, *, prompts: Prompts) -> list[Message]:
    """Return the answer call's messages: the system text, if the suite sends one, and the conversation unchanged."""
    turns = [{"role": role, "content": content} for role, content in case.conversation]
    return turns if prompts.answer_system is None else [{"role": "system", "content": prompts.answer_system}, *turns]


def judge_messages(
    case: Case, answer: str, *, items: Sequence[Item], ids: Sequence[str], prompts: Prompts
) -> list[Message]:
    """Return the judge call's messages for the items that one call asks about; points print in Python's `+g` form."""
    line = prompts.judge_item or ""
    lines = [
        fill(line, {"item_id": id_, "points": format(item.points, "+g"), "text": item.text})
        for id_, item in zip(ids, items, strict=True)
    ]
    user = fill(prompts.judge_user, {"prompt": case.prompt, "answer": answer, "items": "\n".join(lines)})
    return [{"role": "system", "content": prompts.judge_system or ""}, {"role": "user", "content": user}]


def answer_params(*, temperature: float | None, reasoning_effort: str | None) -> dict[str, Any]:
    """Return the answer call's parameters as requested."""
    params: dict[str, Any] = {"max_completion_tokens": ANSWER_MAX_TOKENS}
    if reasoning_effort is not None:
        params["reasoning_effort"] = reasoning_effort
    if temperature is not None:
        params["temperature"] = temperature
    return params


def judge_params(
    ids: Sequence[str], *, judge_format: str, temperature: float | None = JUDGE_TEMPERATURE
) -> dict[str, Any]:
    """Return the judge call's parameters as requested, for the ids that the call asks about."""
    tokens = max(JUDGE_MIN_TOKENS, JUDGE_BASE_TOKENS + JUDGE_TOKENS_PER_ITEM * len(ids))
    return reply_params(tokens, _decisions_schema(ids), judge_format=judge_format, temperature=temperature)


def reply_params(
    tokens: int, schema: Mapping[str, Any], *, judge_format: str, temperature: float | None
) -> dict[str, Any]:
    """Return a judge call's parameters as requested, of any suite.

    Args:
        tokens: the most that the reply may take.
        schema: the reply's form, sent where `judge_format` is `json_schema`.
    """
    params: dict[str, Any] = {"max_completion_tokens": tokens}
    if judge_format == "json_object":
        params["response_format"] = {"type": "json_object"}
    elif judge_format == "json_schema":
        params["response_format"] = {"type": "json_schema", "json_schema": schema}
    if temperature is not None:
        params["temperature"] = temperature
    return params


def _decisions_schema(ids: Sequence[str]) -> dict[str, Any]:
    decision = {
        "type": "object",
        "properties": {"item_id": {"type": "string", "enum": list(ids)}, "matched": {"type": "boolean"}},
        "required": ["item_id", "matched"],
        "additionalProperties": False,
    }
    decisions = {"type": "array", "items": decision, "minItems": len(ids), "maxItems": len(ids)}
    schema = {
        "type": "object",
        "properties": {"decisions": decisions},
        "required": ["decisions"],
        "additionalProperties": False,
    }
    return {"name": "decisions", "strict": True, "schema": schema}
