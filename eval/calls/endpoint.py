"""One call to one OpenAI-compatible chat-completions endpoint: messages in, text and usage out, or a typed failure.

In: an `Endpoint`, a role and model, messages and parameters as asked for. Out: a `Reply` in every case; a model server
raises nothing here, and Ctrl-C passes through. Not done here: what a reply means (`judge`), asking again for a better
one, and how many calls are in flight (`run`).

This is the only layer that tries again. Connection faults, timeouts, 408, 409, 425, 429, every 5xx and an HTTP 200 that
holds no completion are retried within `max_attempts` and the call's deadline; Retry-After is honoured, else the wait
doubles with jitter. A 429 closes one gate for all calls to that endpoint and halves how many pass at a time; successes
widen it again. A loop of our own does it: tenacity's costs a tenth of a whole call, knows no shared gate, and sleeps
into a deadline that it could see coming.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

import orjson

from eval.calls.adapt import Adaptation, adapted, next_step
from eval.calls.address import DEFAULT_BASE_URL, Endpoint
from eval.calls.gate import Gate
from eval.calls.reply import (
    Completion,
    ServerError,
    Usage,
    cache_hit,
    one_line,
    read_completion,
    read_error,
    retry_after_s,
    shortened,
)
from eval.calls.transport import MAX_BODY_BYTES, Failure, Response, Route, Transport, route_to

__all__ = ["DEFAULT_BASE_URL", "Adaptation", "Client", "Endpoint", "Reply", "Usage"]

MAX_WAIT_S: Final = 60.0
"""The longest wait of our own choosing; a server may ask for more."""

_RETRIED: Final = frozenset({408, 409, 425, 429})
# What every other call would meet too: no key, no credit, no right, no such model or path, no pass at the proxy.
_FATAL: Final = frozenset({401, 402, 403, 404, 407})
_HINTS: Final = {
    401: "check the API key",
    402: "the account has no credit left",
    403: "this key may not use this model or endpoint",
    404: "check the base URL and the model id",
    407: "the proxy wants a user and password",
}
_NO_CREDIT: Final = "insufficient_quota"  # OpenAI's code for an account without credit: a 429 that no wait mends


@dataclass(frozen=True, slots=True)
class Reply:
    """How one call ended (states: formats.md 5).

    `reason` is one line, free of secrets, None when the state says it all. `sent` holds the parameters as sent, without
    model and messages. `attempts` counts the requests sent, those that a 400 made us adapt included. `latency_ms` is
    the time of the last request. `fatal` means that the run should stop: every other call would fail alike. `replaced`
    counts the characters of the text that became U+FFFD. `response_id` is the server's name of the reply; `cache` the
    response header by which a cache between us and the model said that it gave an old reply.
    """

    state: str
    text: str | None
    reason: str | None
    finish_reason: str | None = None
    usage: Usage | None = None
    model: str | None = None
    fingerprint: str | None = None
    sent: dict[str, Any] = field(default_factory=dict)
    attempts: int = 0
    latency_ms: float | None = None
    status: int | None = None
    fatal: bool = False
    replaced: int = 0
    response_id: str | None = None
    cache: str | None = None


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why a request brought no completion, and whether and when to send it again."""

    state: str
    reason: str
    status: int | None = None
    again: bool = True
    fatal: bool = False
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class _Line:
    """What the calls to one endpoint share."""

    route: Route
    gate: Gate


@dataclass(slots=True)
class _Call:
    """One call while it is tried: what is asked for, and how far it has come. `tries` are the requests that count."""

    line: _Line
    who: tuple[str, str, str]  # endpoint name, model, role
    messages: list[dict[str, Any]]
    params: Mapping[str, Any]
    timeout_s: float
    deadline: float
    max_attempts: int
    sent: dict[str, Any] = field(default_factory=dict)
    steps: tuple[Adaptation, ...] = ()
    attempts: int = 0
    tries: int = 0
    latency_ms: float | None = None
    cache: str | None = None

    def body(self) -> bytes:
        request = {"model": self.who[1], "messages": self.messages, **self.sent}
        try:
            return orjson.dumps(request)
        except TypeError:  # a lone surrogate or an integer beyond 64 bits: JSON can say it, orjson will not
            return json.dumps(request).encode()

    def completed(self, done: Completion) -> Reply:
        words = self.line.route.words
        return Reply(
            state=done.state,
            text=done.text and words(done.text),
            reason=done.reason and self._reason(done.reason),
            finish_reason=done.finish_reason,
            usage=done.usage,
            model=done.model and words(done.model),
            fingerprint=done.fingerprint and words(done.fingerprint),
            sent=self.sent,
            attempts=self.attempts,
            latency_ms=self.latency_ms,
            status=200,
            replaced=done.replaced,
            response_id=done.response_id and words(done.response_id),
            cache=self.cache and words(self.cache),
        )

    def failed(self, fault: _Fault) -> Reply:
        tries = f" ({self.attempts} tries)" if self.attempts > 1 else ""
        return Reply(
            state=fault.state,
            text=None,
            reason=self._reason(fault.reason) + tries,
            sent=self.sent,
            attempts=self.attempts,
            latency_ms=self.latency_ms,
            status=fault.status,
            fatal=fault.fatal,
        )

    def _reason(self, text: str) -> str:
        return shortened(one_line(self.line.route.message(text)))


class Client:
    """Calls to any number of endpoints over shared connections; used as an async context manager.

    Args:
        max_connections: connections open at once, so at least the calls in flight; 0 for no limit.
        max_body_bytes: a longer reply is a transport failure.
        backoff_s: the first wait of our own choosing, in seconds; it doubles up to `MAX_WAIT_S`.
        jitter: gives a number from 0 to 1 for each such wait, which is cut by up to half of itself.
    """

    def __init__(
        self,
        *,
        max_connections: int = 0,
        max_body_bytes: int = MAX_BODY_BYTES,
        backoff_s: float = 1.0,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """Set the limits; nothing is opened before `async with`."""
        self._transport = Transport(max_connections=max_connections, max_body_bytes=max_body_bytes)
        self._backoff_s = backoff_s
        self._jitter = jitter
        self._lines: dict[Endpoint, _Line] = {}
        self._known: dict[tuple[str, str, str], tuple[Adaptation, ...]] = {}

    async def __aenter__(self) -> Self:
        """Open the pool of connections."""
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        await self._transport.__aexit__(kind, error, trace)

    def replay(self, adaptations: Iterable[Adaptation]) -> None:
        """Apply what an earlier start of the run learned, from the first request on."""
        for step in adaptations:
            self._remember(step)

    async def call(
        self,
        endpoint: Endpoint,
        *,
        role: str,
        model: str,
        messages: list[dict[str, Any]],
        params: Mapping[str, Any],
        timeout_s: float = 300.0,
        deadline_s: float = 1800.0,
        max_attempts: int = 6,
        on_adapt: Callable[[Adaptation], None] | None = None,
    ) -> Reply:
        """Ask once, trying again as the module says, and return how it ended.

        Args:
            timeout_s: wall-clock seconds of one request, from connecting to the last byte.
            deadline_s: wall-clock seconds of the whole call with all its waits.
            max_attempts: requests at most, not counting those that only taught us what the server refuses.
            on_adapt: told each new adaptation of the run once, when a request that it changed succeeded.

        Raises:
            BadInput: on the first call to an endpoint, when the environment's proxy settings cannot be used.
        """
        line = self._lines.get(endpoint) or self._open(endpoint)
        deadline = time.monotonic() + deadline_s
        call = _Call(line, (endpoint.name, model, role), messages, params, timeout_s, deadline, max_attempts)
        fault = _Fault("rate_limited", "the endpoint's rate limit left no time before the call's deadline")
        while await line.gate.enter(deadline):
            came = await self._request(call)
            if isinstance(came, Completion):
                self._learn(call, on_adapt)
                return call.completed(came)
            if came is not None:
                fault = came
                if not await self._waits(call, fault):
                    break
        return call.failed(fault)

    def _open(self, endpoint: Endpoint) -> _Line:
        line = self._lines[endpoint] = _Line(route_to(endpoint), Gate())
        return line

    async def _request(self, call: _Call) -> Completion | _Fault | None:
        """Send one request; None means that the server refused a parameter and the next request goes without it."""
        gate = call.line.gate
        began = time.monotonic()
        try:
            call.sent = adapted(call.params, self._steps(call))
            call.attempts += 1
            timeout_s = min(call.timeout_s, call.deadline - began)
            answer = await self._transport.post(call.line.route, call.body(), timeout_s=timeout_s)
            call.latency_ms = round((time.monotonic() - began) * 1000, 1)
            call.cache = cache_hit(answer.headers) if isinstance(answer, Response) else None
            came = self._read(call, answer)
            if isinstance(came, Completion):
                gate.widen()
            elif came and came.state == "rate_limited" and came.again:
                gate.narrow(came.wait_s or self._backoff(call), entered_at=began)
            return came
        finally:
            gate.leave()

    def _steps(self, call: _Call) -> tuple[Adaptation, ...]:
        return self._known.get(call.who, ()) + call.steps

    def _read(self, call: _Call, answer: Response | Failure) -> Completion | _Fault | None:
        if isinstance(answer, Failure):
            return _Fault(answer.state, answer.reason, again=not answer.final, fatal=answer.final)
        came = read_completion(answer.body) if 200 <= answer.status < 300 else read_error(answer.status, answer.body)
        if isinstance(came, Completion):
            return came
        endpoint, model, role = call.who
        step = next_step(came, call.sent, role=role, model=model, endpoint=endpoint, taken=self._steps(call))
        if step is None:
            return _fault(came, answer.headers, call.line.route.place)
        call.steps += (step,)
        return None

    async def _waits(self, call: _Call, fault: _Fault) -> bool:
        """Wait for the next try; return False when there is to be none. After a 429 it is the gate that waits."""
        call.tries += 1
        if not fault.again or call.tries >= call.max_attempts:
            return False
        if fault.state != "rate_limited":
            wait_s = fault.wait_s or self._backoff(call)
            if time.monotonic() + wait_s >= call.deadline:
                return False
            await asyncio.sleep(wait_s)
        return True

    def _backoff(self, call: _Call) -> float:
        longest = min(MAX_WAIT_S, self._backoff_s * 2.0 ** min(call.tries, 30))
        return longest * (1 - self._jitter() / 2)

    def _learn(self, call: _Call, on_adapt: Callable[[Adaptation], None] | None) -> None:
        """Keep the steps that made a request succeed. A 400 that names a parameter by chance never gets here."""
        for step in call.steps:
            if self._remember(step) and on_adapt:
                on_adapt(step)

    def _remember(self, step: Adaptation) -> bool:
        who = (step.endpoint, step.model, step.role)
        known = self._known.get(who, ())
        if step in known:
            return False
        self._known[who] = (*known, step)
        return True


def _fault(error: ServerError, headers: Mapping[str, str], place: str) -> _Fault:
    """Return what an HTTP error means for the call (formats.md 5) and for the run."""
    status, wait_s = error.status, retry_after_s(headers)
    if status < 300:
        return _Fault("transport", f"HTTP {status} from {place} without a completion: {error.message}", status)
    if status < 400:
        where = headers.get("location", "another address")
        reason = f"HTTP {status} (give the address that answers as the base URL): {place} redirects to {where}"
        return _Fault("rejected", reason, status, again=False, fatal=True)
    if status == 429 and error.code == _NO_CREDIT:
        return _Fault("rate_limited", f"HTTP 429 ({_HINTS[402]}): {error.message}", status, again=False, fatal=True)
    hint = f" ({_HINTS[status]})" if status in _HINTS else f" (asks to wait {wait_s:.4g} s)" if wait_s else ""
    reason = f"HTTP {status}{hint}: {error.message}"
    if status in _RETRIED or status >= 500:
        return _Fault("rate_limited" if status == 429 else "transport", reason, status, wait_s=wait_s)
    return _Fault("rejected", reason, status, again=False, fatal=status in _FATAL)
