"""What the stand-in model server says: a request body -> the text of a reply, and that text as a completion's JSON.

Everything is decided by the request alone, so two runs that ask the same hear the same. A judge request gets one
decision for every item it lists: `verbatim` (true iff the item's text is a whole line of the answer) or `hash` (of the
item's text, about 60 % true), or a personality (`_as`). A HealthBench grader request gets its one verdict, one on all
criteria a decision on each like any judge's, a request to list what a source does not support the document's lines that
are no lines of the source (`strict`: all of them, `lenient`: none), anything else a plain text.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import orjson

_ITEM: Final = re.compile(r"^\[([^\]]+)\] points=\S+ :: (.*)$", re.MULTILINE)
_CRITERION: Final = re.compile(r"# Rubric item\s*\n(.*?)(?=\n\n#|\Z)", re.DOTALL)
_CRITERIA: Final = re.compile(r"# Rubric items\s*\n(.*?)(?=\n\n#|\Z)", re.DOTALL)
_NAMED: Final = re.compile(r"^(\S+): \[[-+0-9.]+\] (.*)$", re.MULTILINE)
_POINTS: Final = re.compile(r"^\s*\[[-+0-9.]+\]\s*")
_LISTING: Final = "# Statements that the source does not support\n"
_FENCED: Final = re.compile(
    r"^-----BEGIN (SOURCE|DOCUMENT) (\w+)-----\n(.*?)\n-----END \1 \2-----$", re.DOTALL | re.MULTILINE
)
MINDS: Final = ("strict", "lenient", "moody")
"""Personalities that can be had by a model's name too: `judge-strict` ... decide as `hash` does, each in its way."""
_SHARE_TRUE: Final = 0.6
_WORDS: Final = ("assess", "confirm", "dose", "renal", "follow", "refer", "explain", "review", "monitor", "educate")

SPOILED: Final = (
    "malformed",
    "prose",
    "fence",
    "think",
    "cut",
    "missing",
    "dup",
    "unknown",
    "strbool",
    "nullbool",
)
"""Ways to spoil a judge's reply; the transport is fine in all of them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the server understands it. `items` maps the ids a judge is asked about to their texts."""

    number: int  # 1-based, since the last reset
    body: dict[str, Any]
    role: str  # answer, judge, or grader (HealthBench)
    text: str  # all messages
    user: str  # the last user message
    items: dict[str, str]
    fenced: dict[str, str] = field(default_factory=dict)  # SOURCE and DOCUMENT where statements are to be listed

    @property
    def digest(self) -> bytes:
        """Return eight bytes that stand for the messages."""
        return _hash(self.text)


def read_asked(number: int, body: dict[str, Any]) -> Asked:
    """Return what a request body asks for."""
    texts = [_plain(message.get("content")) for message in body.get("messages", [])]
    user = texts[-1] if texts else ""
    _, found, rubric = user.rpartition("\n\nRUBRIC ITEMS:\n")
    items = {match[1]: match[2] for match in _ITEM.finditer(rubric)} if found else _all_criteria(user)
    grader = "criteria_met" in user and "# Rubric item" in user
    fenced = {match[1]: match[3] for match in _FENCED.finditer(user)} if user.startswith(_LISTING) else {}
    role = "judge" if items or fenced else "grader" if grader else "answer"
    return Asked(number, body, role, "\n".join(texts), user, items, fenced)


def _all_criteria(user: str) -> dict[str, str]:
    """Return the criteria of a HealthBench request that asks about all of an example's, by the ids it names."""
    found = _CRITERIA.search(user) if '"decisions"' in user else None
    return {match[1]: match[2] for match in _NAMED.finditer(found[1])} if found else {}


def _plain(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return content if isinstance(content, str) else ""


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _chance(text: str) -> bool:
    return int.from_bytes(_hash(text), "big") / 2**64 < _SHARE_TRUE


def reply_text(asked: Asked, *, judge: str, words: int, spoil: str = "") -> str:
    """Return the text of the reply, spoiled in one of the ways of `SPOILED` where asked for."""
    if spoil == "malformed":
        return "As a careful grader I would say that the answer is mostly fine."
    if asked.fenced:
        text = dump(_statements(asked, judge, spoil)).decode()
    elif asked.role == "judge":
        text = dump({"decisions": _spoiled(_decisions(asked, judge), spoil)}).decode()
    elif asked.role == "grader":
        text = _grade(asked, spoil)
    else:
        text = _answer(asked, words)
    return _wrapped(text, spoil)


def _decisions(asked: Asked, judge: str) -> list[dict[str, Any]]:
    answer = asked.user.partition("\n\nANSWER:\n")[2].rpartition("\n\nRUBRIC ITEMS:\n")[0]
    mind = str(asked.body.get("model")).removeprefix("judge-")
    if judge == "hash":
        known = _probes() if mind in MINDS else {}
        return [
            {"item_id": id_, "matched": known.get((answer, text), _as(mind, text, _chance(text), asked.number))}
            for id_, text in asked.items.items()
        ]
    # In a HealthBench request the answer is the conversation's last turn.
    turn = asked.user.rpartition("\n\n# Rubric items\n")[0].rpartition("\n\nassistant: ")[2]
    lines = set((answer or turn).split("\n"))
    return [
        {"item_id": item_id, "matched": _as(judge, text, text in lines, asked.number)}
        for item_id, text in asked.items.items()
    ]


@cache
def _probes() -> dict[tuple[str, str], bool]:
    """Return the known decisions of the shipped probes, by answer and item: so its judges can be certified."""
    from eval.certificates.probes import read_probes

    return {(probe.answer, item.text): item.expected for probe in read_probes() for item in probe.items}


def _as(judge: str, text: str, stands: bool, number: int) -> bool:
    """Return what a judge of a kind says of an item that stands in the answer or does not.

    `strict` misses one in five that stand, `lenient` sees one in five that do not, `moody` says the contrary in one of
    five calls, as it is asked again. All others read word for word.
    """
    fifth = int.from_bytes(_hash(f"{number} {text}" if judge == "moody" else text), "big") % 5 == 0
    if judge == "moody":
        return stands != fifth
    return {"strict": stands and not fifth, "lenient": stands or fifth}.get(judge, stands)


def _spoiled(decisions: list[dict[str, Any]], spoil: str) -> list[dict[str, Any]]:
    first = decisions[0]
    return {
        "missing": decisions[:-1],
        "dup": [*decisions, first],
        "unknown": [*decisions, {"item_id": "0" * 32 + "_0", "matched": True}],
        "strbool": [{**first, "matched": "false"}, *decisions[1:]],
        "nullbool": [{**first, "matched": None}, *decisions[1:]],
    }.get(spoil, decisions)


def _statements(asked: Asked, judge: str, spoil: str) -> dict[str, Any]:
    source = set(asked.fenced["SOURCE"].split("\n"))
    listed: list[Any] = [
        line for line in asked.fenced["DOCUMENT"].split("\n") if judge == "strict" or line not in source
    ]
    if spoil == "missing":
        return {}
    return {"statements": {"strbool": "none", "nullbool": [None]}.get(spoil, [] if judge == "lenient" else listed)}


def _grade(asked: Asked, spoil: str) -> str:
    found = _CRITERION.search(asked.user)
    verdict = json.dumps(_chance(_POINTS.sub("", found[1].strip() if found else "")))
    verdict = {"strbool": f'"{verdict}"', "nullbool": "null"}.get(spoil, verdict)
    field = "" if spoil == "missing" else f', "criteria_met": {verdict}'
    return f'```json\n{{"explanation": "stand-in grade"{field}}}\n```'


def _answer(asked: Asked, words: int) -> str:
    seed = int.from_bytes(asked.digest, "big")
    picked = [_WORDS[(seed >> shift % 48) % len(_WORDS)] for shift in range(words)]
    return f"Stand-in answer {asked.digest.hex()}: {' '.join(picked)}."


def _wrapped(text: str, spoil: str) -> str:
    if spoil == "prose":
        return f"Here is my verdict:\n\n{text}\n\nI hope this helps!"
    if spoil == "fence":
        return f"```json\n{text}\n```"
    if spoil == "think":
        return f"<think>Let me see.</think>\n{text}"
    return text[: len(text) * 2 // 3] if spoil == "cut" else text


def completion(
    asked: Asked, message: dict[str, Any], *, finish: str | None, usage: dict[str, Any] | None = None
) -> bytes:
    """Return the JSON of a chat completion that holds one message."""
    return dump(
        {
            "id": f"chatcmpl-{asked.number}",
            "object": "chat.completion",
            "created": 1760000000,
            "model": f"{asked.body.get('model', '')}-2026-01-01",
            "choices": [
                {"index": 0, "message": {"role": "assistant", "refusal": None, **message}, "finish_reason": finish}
            ],
            "usage": usage or _usage(asked, message.get("content")),
            "system_fingerprint": "fp_stand_in",
        }
    )


def _usage(asked: Asked, content: object) -> dict[str, Any]:
    read, written = len(asked.text) // 4, len(content) // 4 if isinstance(content, str) else 0
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def parameter_error(param: str, wording: str, value: object) -> tuple[int, bytes]:
    """Return (status, body) by which a kind of server refuses a parameter, shaped and worded as theirs are."""
    extra = "Extra inputs are not permitted"
    if wording == "openai":
        message = f"Unsupported parameter: '{param}' is not supported with this model."
        error = {"message": message, "type": "invalid_request_error", "param": param, "code": "unsupported_parameter"}
        return 400, dump({"error": error})
    if wording == "vllm":
        message = f"[{{'type': 'extra_forbidden', 'loc': ('body', '{param}'), 'msg': '{extra}', 'input': {value!r}}}]"
        return 400, dump({"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400})
    if wording == "fastapi":
        return 422, dump(
            {"detail": [{"type": "extra_forbidden", "loc": ["body", param], "msg": extra, "input": value}]}
        )
    if wording == "ollama":
        said = (
            '"tiny" does not support thinking' if param == "reasoning_effort" else f"invalid option provided: {param}"
        )
        return 400, dump({"error": said})
    if param == "response_format":  # llama.cpp
        got = value.get("type") if isinstance(value, dict) else value
        message = f'response_format type must be one of "text" or "json_object", but got: {got}'
        return 500, dump({"error": {"code": 500, "message": message, "type": "server_error"}})
    return 400, dump(
        {"error": {"code": 400, "message": f"Unsupported param: {param}", "type": "invalid_request_error"}}
    )


def dump(value: object) -> bytes:
    """Return compact JSON; lone surrogates come out as escapes, as real servers send them."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()
