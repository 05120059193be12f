"""What goes wrong on purpose: the script of the stand-in model server.

A script is a list of rules, given to `script` or POSTed to /script as JSON; the first rule that fits decides:
    {"fault": NAME, "role": "judge", "contains": "text in the messages", "numbers": [1, 2], "times": 1, "rate": 0.1}
`numbers` counts requests from 1 since the last reset, `times` is how often the rule acts, `rate` draws from a hash,
`busy` acts only while more than so many are in flight.
    "400" .. "599"  that status; message, code, param, type, body (raw text), retry_after, retry_after_ms,
                    retry_after_date (seconds from now), location
    refuse          the refusal of `param` if the request has it; wording openai, llamacpp, vllm, ollama, fastapi;
                    types: only these response_format types
    echo_key        401 that repeats the key
    reset reset_mid close short hang drip (every_s)                    the connection breaks, ends or never ends
    cached                                                             a completion that a cache says it kept
    html empty_body not_json no_choices error_in_200 huge              HTTP 200 without a completion
    message         a completion with any of content, refusal, finish_reason, usage
    a name of SPOILED in llm_replies                                   a judge's reply that must not be accepted
In: a request and the settings. Out: the steps that the server takes. Not done here: sockets (`llm_server`).
"""

from __future__ import annotations

import email.utils
import time
from dataclasses import dataclass, field
from typing import Any, Final

from tests.llm_replies import SPOILED, Asked, completion, dump, parameter_error, reply_text

_SELECTORS: Final = ("fault", "role", "contains", "numbers", "times", "rate", "busy")
_HUGE_BYTES: Final = 3 * 2**20


@dataclass(slots=True)
class Settings:
    """How the server answers where no rule says otherwise."""

    latency_ms: float = 0.0
    judge: str = "hash"  # or verbatim, strict, lenient, moody
    words: int = 20  # of a plain answer
    record: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """Wait, write, then perhaps end the connection: "close" (orderly) or "abort" (reset)."""

    after_s: float
    data: bytes = b""
    then: str = ""


@dataclass(slots=True)
class Rule:
    """One line of the script; `left` is how often it may still act."""

    fault: str
    role: str | None = None
    contains: str = ""
    numbers: tuple[int, ...] = ()
    left: float = float("inf")
    rate: float = 1.0
    busy: int = 0
    options: dict[str, Any] = field(default_factory=dict)

    def fits(self, asked: Asked, in_flight: int) -> bool:
        """Say whether the rule acts on a request that came as one of `in_flight`."""
        if self.left <= 0 or (self.role or asked.role) != asked.role or self.contains not in asked.text:
            return False
        if self.busy and in_flight <= self.busy:
            return False
        if self.numbers and asked.number not in self.numbers:
            return False
        if self.fault == "refuse":
            value = asked.body.get(self.options["param"])
            types = self.options.get("types")
            return value is not None and (not types or value.get("type") in types)
        return self.rate >= 1 or (asked.number * 2654435761 % 2**32) / 2**32 < self.rate


def rule(line: dict[str, Any]) -> Rule:
    """Return the rule that a line of the script says."""
    times = line.get("times")
    return Rule(
        fault=str(line["fault"]),
        role=line.get("role"),
        contains=line.get("contains", ""),
        numbers=tuple(line.get("numbers", ())),
        left=float("inf") if times is None else times,
        rate=line.get("rate", 1.0),
        busy=line.get("busy", 0),
        options={key: value for key, value in line.items() if key not in _SELECTORS},
    )


def http(status: int, body: bytes, *headers: str, content_type: str = "application/json") -> bytes:
    """Return a whole HTTP response."""
    lines = [f"HTTP/1.1 {status} Status", f"content-type: {content_type}", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def normal(asked: Asked, settings: Settings, spoil: str = "") -> bytes:
    """Return the response of a server that works; `spoil` is one of `SPOILED`."""
    text = reply_text(asked, judge=settings.judge, words=settings.words, spoil=spoil)
    return http(200, completion(asked, {"content": text}, finish="length" if spoil == "cut" else "stop"))


def faulty(found: Rule, asked: Asked, settings: Settings, *, key: str) -> list[Step]:
    """Return how the server reacts under a rule; `key` is the Authorization header that came."""
    name, options = found.fault, found.options
    if name == "message":
        message = {str(field): options[field] for field in ("content", "refusal") if field in options}
        finish = options.get("finish_reason", "stop")
        response = http(200, completion(asked, message, finish=finish, usage=options.get("usage")))
    elif name == "refuse":
        wording, param = options.get("wording", "openai"), options["param"]
        response = http(*parameter_error(param, wording, asked.body[param]))
    elif name == "echo_key":
        response = http(401, dump({"error": {"message": f"Incorrect API key provided: {key}"}}))
    elif name.isdigit():
        response = status_fault(int(name), options)
    elif name == "cached":
        response = http(200, completion(asked, {"content": "an old reply"}, finish="stop"), "x-cache: HIT from edge")
    elif name in SPOILED:
        response = normal(asked, settings, name)
    else:
        return body_fault(name) or broken(name, normal(asked, settings), options)
    return [Step(settings.latency_ms / 1000, response)]


def status_fault(status: int, options: dict[str, Any]) -> bytes:
    """Return an error response in OpenAI's shape."""
    now = time.time()
    headers = [f"date: {email.utils.formatdate(now, usegmt=True)}"]
    named = (name for name in ("retry_after", "retry_after_ms", "location") if name in options)
    headers.extend(f"{name.replace('_', '-')}: {options[name]}" for name in named)
    if "retry_after_date" in options:
        headers.append(f"retry-after: {email.utils.formatdate(now + options['retry_after_date'], usegmt=True)}")
    error = {key: options.get(key) for key in ("message", "type", "param", "code")}
    error["message"] = error["message"] or f"stand-in fault {status}"
    body = options["body"].encode() if "body" in options else dump({"error": error})
    return http(status, body, *headers)


def body_fault(name: str) -> list[Step]:
    """Return an HTTP 200 that holds no completion; nothing when the name is another fault's."""
    if name == "html":
        page = b"<html><head><style>p {color: red}</style></head><body><h1>502 Bad Gateway</h1></body></html>"
        return [Step(0, http(200, page, content_type="text/html"))]
    bodies = {
        "not_json": b'{"choices": [{"mess',
        "no_choices": b'{"object": "chat.completion", "choices": []}',
        "empty_body": b"",
        "error_in_200": dump({"error": {"message": "provider overloaded", "code": 502}}),
        "huge": b" " * _HUGE_BYTES,
    }
    return [Step(0, http(200, bodies[name]))] if name in bodies else []


def broken(name: str, response: bytes, options: dict[str, Any]) -> list[Step]:
    """Return the steps of a connection that does not do its work."""
    half = response[: len(response) - 40]
    if name == "drip":  # the head at once, then a space now and then, for as long as anybody listens
        head = http(200, b"").replace(b"content-length: 0", b"content-length: 100000")
        return [Step(0, head), *[Step(options.get("every_s", 0.05), b" ")] * 2000]
    return {
        "reset": [Step(0, b"", "abort")],
        "reset_mid": [Step(0, half), Step(0.01, b"", "abort")],
        "close": [Step(0, b"", "close")],
        "short": [Step(0, half, "close")],
        "hang": [Step(3600)],
    }[name]
