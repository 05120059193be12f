"""What a chat-completions server said: the bytes of a response -> a text with its state, or an error in its words.

In: response bodies and headers. Out: a `Completion` (formats.md 5: ok, truncated, refused, empty, filtered, rejected)
or a `ServerError`. Not done here: sending, trying again, and deciding anything from the text (`judge`).

Text is cleaned once, here: unpaired surrogates and NUL become U+FFFD and are counted, since no JSON file, Parquet table
or terminal keeps them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final

import orjson

# A reply cut by the token limit, and one held back by a filter, in the words of servers in use.
_CUT: Final = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_HELD_BACK: Final = frozenset({"content_filter", "safety", "recitation", "blocklist", "prohibited_content"})
_UNKEPT: Final = re.compile("[\ud800-\udfff\0]")
_TAG: Final = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_HIT: Final = re.compile(r"\bhit\b")
_MESSAGE_CHARS: Final = 300
_NAME_CHARS: Final = 200
_READ_CHARS: Final = 20_000
_MAX_TOKENS: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the server counted them; None where it did not say. `cached` is part of `input`,
    `reasoning` of `output`.
    """

    input: int | None
    cached: int | None
    output: int | None
    reasoning: int | None

    def as_dict(self) -> dict[str, int | None]:
        """Return the counts under the names of formats.md 4."""
        return {"input": self.input, "cached": self.cached, "output": self.output, "reasoning": self.reasoning}


@dataclass(frozen=True, slots=True)
class Completion:
    """A well-formed reply. `text` is None where there is none; `replaced` counts characters that became U+FFFD."""

    state: str
    text: str | None
    reason: str | None
    finish_reason: str | None
    usage: Usage | None
    model: str | None
    fingerprint: str | None
    replaced: int
    response_id: str | None = None


@dataclass(frozen=True, slots=True)
class ServerError:
    """A response that is no completion. `status` is HTTP's, or the one that the body names under HTTP 200.

    `message` is the server's, one line of any length; `param` and `code` are what its error object holds.
    """

    status: int
    message: str
    param: str = ""
    code: str = ""


def read_completion(body: bytes) -> Completion | ServerError:
    """Return what the body of an HTTP 200 response holds."""
    data = _parsed(body)
    if not isinstance(data, dict):
        return ServerError(200, _excerpt(body))
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        # Gateways report a failed provider this way: HTTP 200, and the true status inside the error.
        return _error_of(data, 200) if data.get("error") else ServerError(200, "a JSON object with no choices")
    finish = _name(choice.get("finish_reason"))
    if finish == "error":
        return ServerError(200, "the server broke the reply off (finish_reason error)")
    return _completion(data, message, finish)


def _completion(data: dict[str, Any], message: dict[str, Any], finish: str | None) -> Completion:
    usage = _usage(data.get("usage"))
    text, refusal, odd = _content(message)
    state, reason = _state(text, refusal, odd, finish, usage)
    kept, replaced = cleaned({"refused": refusal, "empty": ""}.get(state, text))
    return Completion(
        state=state,
        text=kept or None,
        reason=reason,
        finish_reason=finish,
        usage=usage,
        model=_name(data.get("model")),
        fingerprint=_name(data.get("system_fingerprint")),
        replaced=replaced,
        response_id=_name(data.get("id")),
    )


def _content(message: dict[str, Any]) -> tuple[str, str, str]:
    """Return (text, refusal, kind of the first part that is neither) of a message."""
    content = message.get("content")
    refusal = message.get("refusal")
    refusal = refusal if isinstance(refusal, str) else ""
    if content is None or isinstance(content, str):
        return content or "", refusal, ""
    if not isinstance(content, list):
        return "", refusal, type(content).__name__
    text = ""
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else type(part).__name__
        words = part.get("refusal" if kind == "refusal" else "text") if isinstance(part, dict) else None
        if kind not in ("text", "output_text", "refusal") or not isinstance(words, str):
            return "", refusal, _name(kind) or "unknown"
        text, refusal = (text, refusal + words) if kind == "refusal" else (text + words, refusal)
    return text, refusal, ""


def _state(text: str, refusal: str, odd: str, finish: str | None, usage: Usage | None) -> tuple[str, str | None]:
    end = (finish or "").casefold()
    if odd:
        return "rejected", f"the reply holds a part of type {odd}; only text can be read"
    if refusal.strip():
        return "refused", None
    if end in _HELD_BACK or end.startswith("content_filter"):
        return "filtered", f"the provider held the reply back (finish_reason {finish})"
    if not text.strip():
        return "empty", _why_empty(end, usage)
    return ("truncated", None) if end in _CUT else ("ok", None)


def _why_empty(end: str, usage: Usage | None) -> str:
    if end not in _CUT:
        return f"the reply has no text (finish_reason {end or 'unknown'})"
    spent = f", {usage.reasoning} of {usage.output} tokens were reasoning" if usage and usage.reasoning else ""
    return f"the token limit was reached before any text (finish_reason {end}{spent})"


def _usage(data: object) -> Usage | None:
    if not isinstance(data, dict):
        return None
    usage = Usage(
        input=_count(data.get("prompt_tokens")),
        cached=_count(_detail(data, "prompt_tokens_details", "cached_tokens")),
        output=_count(data.get("completion_tokens")),
        reasoning=_count(_detail(data, "completion_tokens_details", "reasoning_tokens")),
    )
    return None if usage.input is None and usage.output is None else usage


def _detail(data: dict[str, Any], group: str, key: str) -> object:
    details = data.get(group)
    return details.get(key) if isinstance(details, dict) else None


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= _MAX_TOKENS else None


def cleaned(text: str) -> tuple[str, int]:
    """Return a text that every file format keeps, and how many of its characters became U+FFFD."""
    if "\0" not in text:
        try:
            text.encode()
            return text, 0
        except UnicodeEncodeError:
            pass
    return _UNKEPT.subn("\ufffd", text)


def _name(value: object) -> str | None:
    return one_line(value[:_NAME_CHARS]) or None if isinstance(value, str) else None


def _parsed(body: bytes) -> object:
    """Return the JSON value of a body, None when it is none; what strict UTF-8 JSON refuses comes in as surrogates."""
    try:
        return orjson.loads(body)
    except ValueError:
        pass
    try:
        return json.loads(body.decode("utf-8-sig", "surrogateescape"))
    except (ValueError, RecursionError):
        return None


def read_error(status: int, body: bytes) -> ServerError:
    """Return what a server said with an HTTP status that is no success."""
    data = _parsed(body)
    return _error_of(data, status) if isinstance(data, dict) else ServerError(status, _excerpt(body))


def _error_of(data: dict[str, Any], status: int) -> ServerError:
    """Read {"error": {..}} (OpenAI), {"message": ..} (vLLM), {"error": ".."} (Ollama) or {"detail": ..} (FastAPI)."""
    error = data.get("error") or data.get("detail") or data
    if isinstance(error, list) and error:
        error = error[0]
    if not isinstance(error, dict):
        return ServerError(status, one_line(str(error)))
    code = error.get("code") or error.get("type") or ""
    if status == 200 and type(code) is int and 400 <= code < 600:
        status = code
    place = error.get("param") or error.get("loc") or ""
    return ServerError(
        status,
        message=one_line(str(error.get("message") or error.get("msg") or json.dumps(error))),
        param=".".join(map(str, place)) if isinstance(place, list) else str(place),
        code=str(error.get("type") or "" if type(code) is int else code),
    )


def one_line(text: str) -> str:
    """Return a text as one line that a terminal shows as it is: no control, direction or broken characters."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text[:_READ_CHARS])
    return " ".join(text.split())


def shortened(line: str, limit: int = _MESSAGE_CHARS) -> str:
    """Return a line of at most `limit` characters. Redact first: half a key is still a leak."""
    return line if len(line) <= limit else line[: limit - 3] + "..."


def _excerpt(body: bytes) -> str:
    text = one_line(_TAG.sub(" ", body[:_READ_CHARS].decode("utf-8", "replace")))
    return f'not a JSON object but "{shortened(text, 120)}"' if text else "an empty body"


def cache_hit(headers: Mapping[str, str]) -> str | None:
    """Return the header by which a cache says that it gave a reply from its store, None where none says so.

    Gateways have no common name for it: `x-cache`, `cf-aig-cache-status`, `helicone-cache`, `x-litellm-cache-hit` ...
    """
    for name, value in headers.items():
        lower, said = name.casefold(), value.strip().casefold()
        if "cache" in lower and (_HIT.search(said) or (lower.endswith("hit") and said in ("true", "1"))):
            return shortened(one_line(f"{lower}: {value}"), 120)
    return None


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds a server asks to wait (RFC 9110 10.2.3, and `retry-after-ms`), None when it names none.

    A date is counted from the response's own Date, so that two clocks need not agree.
    """
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    return _seconds(text) or _until(text, headers.get("date", ""))


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def _until(text: str, now: str) -> float | None:
    try:
        wait = (parsedate_to_datetime(text) - parsedate_to_datetime(now)).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return None
    return wait if wait > 0 else None
