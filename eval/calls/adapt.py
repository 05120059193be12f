"""What a server refuses in a request: named in its 400 -> dropped, renamed or weakened, and remembered.

In: a `ServerError` and the parameters that were sent. Out: one `Adaptation`, the next smallest step, or None when the
error is about something else. Not done here: keeping them for a run (`endpoint`) and writing them down (`journal`).

The steps: temperature and reasoning_effort are dropped; max_completion_tokens and max_tokens become each other, once;
response_format goes from json_schema to json_object (action rename, to json_object), then away (drop). There is no
table of model names: what counts is what the server says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from eval.calls.reply import ServerError

# How servers name a parameter in prose. Ollama says "does not support thinking" of a reasoning effort.
_NAMES: Final = {
    "temperature": re.compile(r"\btemperature\b"),
    "response_format": re.compile(r"\bresponse[_ ]format\b|\bjson_(?:schema|object)\b|\bjson mode\b|structured output"),
    "reasoning_effort": re.compile(r"\breasoning[_ .]effort\b|does not support (?:thinking|reasoning)"),
    "max_completion_tokens": re.compile(r"\bmax_completion_tokens\b"),
    "max_tokens": re.compile(r"\bmax_tokens\b"),
}
_OTHER_NAME: Final = {"max_completion_tokens": "max_tokens", "max_tokens": "max_completion_tokens"}

# A complaint about size names max_tokens without refusing the parameter: another name for it would not help.
_SIZE: Final = re.compile(
    r"context[_ ](?:length|window|size)|too (?:large|long|many|high|small|low)|exceed|at (?:most|least)|"
    r"(?:less|greater) than|must be (?:positive|between|an? integer)|maximum"
)
_REFUSED: Final = frozenset({400, 422})
_FAILED: Final = frozenset({500, 501})  # llama.cpp of 2024 and llama-cpp-python refuse a response_format with these
_FORMAT_WORDS: Final = re.compile(r"must be one of|not supported|unsupported|does not support|input should be")


@dataclass(frozen=True, slots=True)
class Adaptation:
    """One step by which requests of a role to a model differ from what was asked for (formats.md 4, kind adapt).

    `action` is drop or rename; `to` is a rename's new name, for response_format the weaker type.
    """

    role: str
    model: str
    endpoint: str
    param: str
    action: str
    to: str | None
    status: int = field(compare=False)


def adapted(params: Mapping[str, Any], steps: Iterable[Adaptation]) -> dict[str, Any]:
    """Return the parameters after the given steps, in their order; steps about absent parameters do nothing."""
    sent = dict(params)
    for step in steps:
        if step.param in sent:
            value = sent.pop(step.param)
            if step.param == "response_format" and step.to:
                sent[step.param] = {"type": step.to}
            elif step.to:
                sent[step.to] = value
    return sent


def next_step(
    error: ServerError, sent: Mapping[str, Any], *, role: str, model: str, endpoint: str, taken: Iterable[Adaptation]
) -> Adaptation | None:
    """Return the step that the error asks for, None when it names none of the parameters that were sent."""
    param = refused_parameter(error, sent)
    if param is None or any(step.to == param for step in taken):  # the new name is refused too: do not go to and fro
        return None
    to = _OTHER_NAME.get(param)
    if param == "response_format" and _type_of(sent[param]) == "json_schema":
        to = "json_object"
    return Adaptation(role, model, endpoint, param, "rename" if to else "drop", to, error.status)


def _type_of(response_format: object) -> object:
    return response_format.get("type") if isinstance(response_format, dict) else None


def refused_parameter(error: ServerError, sent: Mapping[str, Any]) -> str | None:
    """Return which of the parameters sent a server refuses: by the error's own `param`, else by its words."""
    words = f"{error.code} {error.message}".casefold()
    if error.status in _FAILED:
        named = _NAMES["response_format"].search(words) and _FORMAT_WORDS.search(words)
        return "response_format" if named and "response_format" in sent else None
    if error.status not in _REFUSED:
        return None
    about_size = bool(_SIZE.search(words))
    candidates = [name for name in _NAMES if name in sent and not (about_size and name in _OTHER_NAME)]
    segments = set(re.split(r"[.\[\]]", error.param))
    for name in candidates:
        if name in segments:
            return name
    if about_size and re.search(r"context|prompt|\btokens?\b", words):
        return None
    found = [(match.start(), name) for name in candidates if (match := _NAMES[name].search(words))]
    return min(found)[1] if found else None
