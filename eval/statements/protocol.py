"""What a judge is asked about a document: list what its source does not support, one call a document.

In: a case whose last user turn is the source (a system turn before it is the instruction that the document was written
to), and as the answer the document. Out: message and parameters. The prompt is this project's own wording
(`statements.txt`) of the rules; another wording is another protocol and gets a new name here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from bedside_bench import sha256_json
from eval.cases import Case, Item
from eval.judging.protocol import reply_params
from eval.judging.texts import Message, Prompts, fill

SUITE: Final = "unsupported-statements"
PROTOCOL: Final = "bedside-bench-statements-v1"
STATEMENTS_SHA256: Final = "7b8a1d7b0559c840a5e72a2d55955945803d38a9bddf8e454c31f03b70fad127"
"""Of `statements.txt`."""
GRADING_METHOD: Final = "statements"
CONFIG: Final = "documents"

JUDGE_REPEATS: Final = 3
"""Calls of a judge on a document where nobody says otherwise (spec 3, layer B)."""
LISTING_TEMPERATURE: Final = 0
LISTING_MAX_TOKENS: Final = 8_000
NO_INSTRUCTION: Final = "(none was given)"
_MARK_DIGITS: Final = 16


@cache
def listing_prompts() -> Prompts:
    """Return the texts of a listing: no system text, and the judge's message of our own wording."""
    template = (files("eval.statements") / "statements.txt").read_bytes().decode()
    return Prompts(answer_system=None, judge_system=None, judge_user=template)


def protocol_name(prompts_sha256: str | None) -> str:
    """Return the protocol's name for a prompt, given its digest."""
    if prompts_sha256 == STATEMENTS_SHA256:
        return PROTOCOL
    return f"statements+template-{(prompts_sha256 or '')[:8]}"


def listing_messages(
    case: Case,
    answer: str,
    *,
    items: Sequence[Item],  # noqa: ARG001 - a listing is about no item
    ids: Sequence[str],  # noqa: ARG001 - as above
    prompts: Prompts,
) -> list[Message]:
    """Return the judge call's one message: the instruction, the source and the document, each fenced by a mark.

    The mark is drawn from the three texts, so that none of them can hold the line that ends it.
    """
    given = "\n\n".join(content for role, content in case.conversation if role == "system")
    texts = {"instruction": given or NO_INSTRUCTION, "source": case.prompt, "document": answer}
    mark = sha256_json(texts)[:_MARK_DIGITS]
    return [{"role": "user", "content": fill(prompts.judge_user, {**texts, "mark": mark})}]


def listing_params(
    ids: Sequence[str],  # noqa: ARG001 - the limit is the same for every document
    *,
    judge_format: str,
    temperature: float | None = LISTING_TEMPERATURE,
) -> dict[str, Any]:
    """Return the judge call's parameters as requested."""
    return reply_params(LISTING_MAX_TOKENS, _SCHEMA, judge_format=judge_format, temperature=temperature)


_SCHEMA: Final = {
    "name": "statements",
    "strict": True,
    "schema": {
        "type": "object",
        "properties": {"statements": {"type": "array", "items": {"type": "string"}}},
        "required": ["statements"],
        "additionalProperties": False,
    },
}


def no_listing(answer: str, *, items: Sequence[Item], ids: Sequence[str]) -> str:  # noqa: ARG001 - as the others
    """Return the built-in judge's reply: none that could be read, for it compares words and reads no source."""
    return "The built-in judge reads no source and can list nothing."
