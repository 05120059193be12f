"""Calls against a real server on 127.0.0.1: states, retries, deadlines, the shared gate, adaptations, secrets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable
from typing import Any

import pytest

from eval.calls.endpoint import Adaptation, Client, Endpoint, Reply
from tests.llm_server import LlmServer

KEY = "sk-dummy-0123456789abcdef"
PARAMS = {"max_completion_tokens": 5000, "response_format": {"type": "json_object"}, "temperature": 0}
MESSAGES = [{"role": "user", "content": "Which dose?"}]


def ask(client: Client, url: str, *, role: str = "judge", key: str | None = KEY, **options: Any) -> Awaitable[Reply]:
    """Begin one call."""
    asked = {"model": "m", "messages": MESSAGES, "params": PARAMS, **options}
    return client.call(Endpoint(url, key), role=role, **asked)


async def calls(url: str, n: int = 1, *, known: Iterable[Adaptation] = (), **options: Any) -> list[Reply]:
    """Make `n` calls at once through one client with short waits."""
    async with Client(backoff_s=0.01, max_body_bytes=2**20) as client:
        client.replay(known)
        return await asyncio.gather(*(ask(client, url, **options) for _ in range(n)))


def call(server: LlmServer | str, **options: Any) -> Reply:
    """Make one call."""
    return asyncio.run(calls(server if isinstance(server, str) else server.url, **options))[0]


def test_an_answer_comes_back_with_all_that_the_server_says_about_it() -> None:
    """A plain success carries text, usage, finish reason, returned model, fingerprint, latency and what was sent."""
    with LlmServer({"fault": "message", "content": "5 mg"}) as server:
        reply = call(server)

    assert ("ok", "5 mg", None, "stop") == (reply.state, reply.text, reply.reason, reply.finish_reason)
    assert reply.usage and {"input": 2, "cached": 0, "output": 1, "reasoning": 0} == reply.usage.as_dict()
    assert ("m-2026-01-01", "fp_stand_in", PARAMS, 1) == (reply.model, reply.fingerprint, reply.sent, reply.attempts)
    assert (200, False, 0) == (reply.status, reply.fatal, reply.replaced)
    assert reply.latency_ms and reply.latency_ms > 0


def test_a_reason_is_plain_text_whatever_a_header_holds() -> None:
    """A redirect's address with control characters or broken bytes comes out as one printable line."""
    with LlmServer({"fault": "302", "location": "http://else.test/\x1b[31m\u00e9"}) as server:
        reply = call(server)

    assert reply.reason and reply.reason.isprintable()
    assert "redirects to http://else.test/ [31m" in reply.reason


def test_the_request_is_what_was_asked_for() -> None:
    """Model, messages and parameters arrive unchanged, with the key as a bearer token."""
    with LlmServer() as server:
        call(server)
        seen = server.requests[0]

    assert {"model": "m", "messages": MESSAGES, **PARAMS} == seen["body"]
    assert f"Bearer {KEY}" == seen["headers"]["authorization"]
    assert "/v1/chat/completions" == seen["path"]


RETRIED = [
    ({"fault": "408"}, "transport", "HTTP 408"),
    ({"fault": "409"}, "transport", "HTTP 409"),
    ({"fault": "425"}, "transport", "HTTP 425"),
    ({"fault": "429"}, "rate_limited", "HTTP 429"),
    ({"fault": "500"}, "transport", "HTTP 500"),
    ({"fault": "501"}, "transport", "HTTP 501"),
    ({"fault": "503", "body": "<h1>Busy</h1>"}, "transport", 'HTTP 503: not a JSON object but "Busy"'),
    ({"fault": "529"}, "transport", "HTTP 529"),
    ({"fault": "reset"}, "transport", "broke"),
    ({"fault": "reset_mid"}, "transport", "broke off before its end"),
    ({"fault": "close"}, "transport", "closed the connection without a reply"),
    ({"fault": "short"}, "transport", "broke off before its end"),
    ({"fault": "html"}, "transport", 'not a JSON object but "502 Bad Gateway"'),
    ({"fault": "empty_body"}, "transport", "an empty body"),
    ({"fault": "not_json"}, "transport", "not a JSON object but"),
    ({"fault": "no_choices"}, "transport", "a JSON object with no choices"),
    ({"fault": "error_in_200"}, "transport", "HTTP 502: provider overloaded"),
    ({"fault": "huge"}, "transport", "longer than 1 MB"),
    ({"fault": "message", "content": "Take", "finish_reason": "error"}, "transport", "finish_reason error"),
]


@pytest.mark.parametrize(("rule", "state", "words"), RETRIED, ids=lambda value: str(value)[:24])
def test_passing_faults_are_tried_again_and_lasting_ones_end_as_a_state(
    rule: dict[str, Any], state: str, words: str
) -> None:
    """Twice a fault, then a reply: ok after three requests. The fault for ever: as many requests as allowed."""
    with LlmServer({**rule, "times": 2}) as server:
        healed = call(server)
        assert ("ok", 3, 3) == (healed.state, healed.attempts, server.hits)
        server.brain.reset()
        server.script(rule)
        failed = call(server, max_attempts=3)

        assert (state, 3, 3, None, False) == (failed.state, failed.attempts, server.hits, failed.text, failed.fatal)
        assert failed.reason and words in failed.reason and failed.reason.endswith("(3 tries)")


FINAL = [
    ({"fault": "400", "message": "bad messages"}, "rejected", False, "HTTP 400: bad messages"),
    ({"fault": "401", "message": "who?"}, "rejected", True, "HTTP 401 (check the API key): who?"),
    ({"fault": "402", "message": "pay"}, "rejected", True, "HTTP 402 (the account has no credit left): pay"),
    ({"fault": "403"}, "rejected", True, "HTTP 403 (this key may not use this model or endpoint): stand-in fault 403"),
    ({"fault": "404", "body": "404 page"}, "rejected", True, "check the base URL and the model id"),
    ({"fault": "413"}, "rejected", False, "HTTP 413: stand-in fault 413"),
    (
        {"fault": "308", "location": "https://else.test/v1?t=1"},
        "rejected",
        True,
        "redirects to https://else.test/v1",
    ),
    ({"fault": "429", "code": "insufficient_quota"}, "rate_limited", True, "the account has no credit left"),
]


@pytest.mark.parametrize(("rule", "state", "fatal", "words"), FINAL, ids=lambda value: str(value)[:24])
def test_lasting_refusals_are_asked_once(rule: dict[str, Any], state: str, fatal: bool, words: str) -> None:
    """A refusal that no second try can mend costs one request; those that every call would meet stop the run."""
    with LlmServer(rule) as server:
        reply = call(server)

    assert (state, fatal, 1, 1) == (reply.state, reply.fatal, reply.attempts, server.hits)
    assert reply.reason and words in reply.reason


def test_a_prompt_longer_than_the_context_is_rejected_and_nothing_is_renamed() -> None:
    """vLLM names max_completion_tokens when the context is too small; another name would not help."""
    said = "'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens"
    with LlmServer({"fault": "400", "message": said}) as server:
        reply = call(server)

    assert ("rejected", 1, PARAMS) == (reply.state, server.hits, reply.sent)
    assert f"HTTP 400: {said}" == reply.reason


def test_a_long_message_of_a_server_is_shortened_to_one_line() -> None:
    """The reason stays one line of at most 300 characters, without control characters."""
    with LlmServer({"fault": "400", "message": "too\n\x1b[31mmuch " * 5000}) as server:
        reason = call(server).reason

    assert reason and len(reason) == 300 and reason.isprintable() and reason.endswith("...")


@pytest.mark.parametrize("fault", ["hang", "drip"])
def test_a_server_that_never_ends_its_reply_ends_as_timeout(fault: str) -> None:
    """The limit is wall-clock time for the whole try: a byte now and then does not extend it."""
    with LlmServer({"fault": fault}) as server:
        started = time.monotonic()
        reply = call(server, timeout_s=0.2, max_attempts=2)
        took = time.monotonic() - started

    assert ("timeout", 2, 2) == (reply.state, reply.attempts, server.hits)
    assert 0.4 <= took < 4
    assert reply.reason and "within 0.2 s (2 tries)" in reply.reason


def test_the_deadline_covers_the_call_with_all_its_waits() -> None:
    """However many tries are left, the call ends with its deadline."""
    with LlmServer({"fault": "hang"}) as server:
        started = time.monotonic()
        reply = call(server, timeout_s=0.2, deadline_s=0.5, max_attempts=50)
        took = time.monotonic() - started

    assert "timeout" == reply.state
    assert took < 4 and server.hits <= 3


@pytest.mark.parametrize("rule", [{"retry_after": 30}, {"retry_after_ms": 30000}, {"retry_after_date": 30}])
@pytest.mark.parametrize(("fault", "state"), [("429", "rate_limited"), ("503", "transport")])
def test_a_wait_beyond_the_deadline_is_not_begun(rule: dict[str, Any], fault: str, state: str) -> None:
    """A server that asks for more time than the call has ends it at once, and the reason names the wait."""
    with LlmServer({"fault": fault, **rule}) as server:
        started = time.monotonic()
        reply = call(server, deadline_s=5)

    assert time.monotonic() - started < 4
    assert (state, 1) == (reply.state, server.hits)
    assert reply.reason and "asks to wait " in reply.reason


@pytest.mark.parametrize(
    ("rule", "least", "most"),
    [
        ({"retry_after_ms": 300}, 0.3, 3),
        ({"retry_after": "0.3"}, 0.3, 3),
        ({"retry_after": 1}, 1, 4),
        ({"retry_after_date": 2}, 1, 5),
        ({"retry_after": 30, "retry_after_ms": 200}, 0.2, 3),
        ({"retry_after": "nan"}, 0, 3),
        ({"retry_after": "-5"}, 0, 3),
        ({"retry_after": "soon"}, 0, 3),
    ],
    ids=str,
)
def test_retry_after_is_honoured_in_each_of_its_forms(rule: dict[str, Any], least: float, most: float) -> None:
    """Seconds, milliseconds and dates are waited for; nonsense falls back on our own short wait."""
    with LlmServer({"fault": "429", "times": 1, **rule}) as server:
        reply = call(server)
        first, second = (seen["at"] for seen in server.requests)

    assert ("ok", 2) == (reply.state, reply.attempts)
    assert least <= second - first < most


def test_one_429_holds_back_every_call_to_the_endpoint() -> None:
    """While the gate is closed nothing is sent; after it, all calls end well, few of them at a time."""

    async def one_then_many(url: str) -> list[Reply]:
        async with Client(backoff_s=0.01) as client:
            first = asyncio.ensure_future(ask(client, url))
            await asyncio.sleep(0.3)
            many = [ask(client, url) for _ in range(8)]
            return await asyncio.gather(first, *many)

    with LlmServer({"fault": "429", "numbers": [1], "retry_after_ms": 900}, latency_ms=20) as server:
        replies = asyncio.run(one_then_many(server.url))
        times = [seen["at"] for seen in server.requests]

    assert {"ok"} == {reply.state for reply in replies}
    assert [2] + [1] * 8 == [reply.attempts for reply in replies]
    assert times[1] - times[0] >= 0.9
    assert server.brain.max_in_flight < 8


def test_a_crowd_that_meets_the_limit_is_thinned_out_and_served() -> None:
    """32 calls against a server that takes 4 at a time all end ok within their six tries."""
    with LlmServer({"fault": "429", "busy": 4, "retry_after_ms": 50}, latency_ms=10) as server:
        replies = asyncio.run(calls(server.url, 32))

    assert {"ok"} == {reply.state for reply in replies}
    assert server.hits == sum(reply.attempts for reply in replies)


def test_a_refused_parameter_is_adapted_once_for_all_calls() -> None:
    """Sixteen calls at once learn it together, the next ones know it; one adaptation is told, tries are not used up."""
    learned: list[Adaptation] = []
    with LlmServer({"fault": "refuse", "param": "temperature"}) as server:
        replies = asyncio.run(calls(server.url, 16, on_adapt=learned.append, max_attempts=1))
        server.brain.reset()
        server.script({"fault": "refuse", "param": "temperature"})
        later = call(server, known=learned, max_attempts=1)
        hits = server.hits

    assert {"ok"} == {reply.state for reply in replies}
    assert [Adaptation("judge", "m", "http://127.0.0.1/v1", "temperature", "drop", None, 400)] == learned
    assert all("temperature" not in reply.sent and reply.attempts == 2 for reply in replies)
    assert ("ok", 1) == (later.state, hits)


def test_everything_that_a_server_refuses_is_taken_back_step_by_step() -> None:
    """Four parameters refused in turn: the request gets weaker until it passes, and all steps are told in order."""
    params = {**PARAMS, "reasoning_effort": "high", "response_format": {"type": "json_schema", "json_schema": {}}}
    learned: list[Adaptation] = []
    refused = [{"fault": "refuse", "param": name, "wording": "vllm"} for name in (*PARAMS, "reasoning_effort")]
    with LlmServer(*refused) as server:
        reply = call(server, params=params, on_adapt=learned.append)

    assert ("ok", {"max_tokens": 5000}) == (reply.state, reply.sent)
    assert [
        ("max_completion_tokens", "rename", "max_tokens"),
        ("response_format", "rename", "json_object"),
        ("response_format", "drop", None),
        ("temperature", "drop", None),
        ("reasoning_effort", "drop", None),
    ] == [(step.param, step.action, step.to) for step in learned]


def test_a_word_in_an_error_teaches_nothing_unless_the_next_request_passes() -> None:
    """A refusal of the prompt that speaks of a temperature changes this call's tries, never the run's parameters."""
    learned: list[Adaptation] = []
    with LlmServer({"fault": "400", "message": "prompt refused: patient with a temperature of 39"}) as server:
        reply = call(server, on_adapt=learned.append)

    assert ("rejected", []) == (reply.state, learned)


def test_roles_and_models_are_adapted_apart() -> None:
    """What the judge's server refuses says nothing about the answering model's requests."""

    async def both(url: str) -> tuple[Reply, Reply]:
        async with Client() as client:
            judge = await ask(client, url)
            return judge, await ask(client, url, role="answer")

    with LlmServer({"fault": "refuse", "param": "temperature", "times": 1}) as server:
        judge, answer = asyncio.run(both(server.url))

    assert "temperature" not in judge.sent
    assert "temperature" in answer.sent


def test_no_secret_reaches_a_reply() -> None:
    """Key, user, password and query of the base URL are in no field, even if the server repeats them."""
    secrets = (KEY, "hunter2-pass", "q-token-123456")
    echo = "you sent " + " ".join(secrets) + " to https://dr:hunter2-pass@gate.test/v1?token=q-token-123456"
    rules = [
        {"fault": "echo_key"},
        {"fault": "400", "message": echo},
        {"fault": "500", "body": echo},
        {"fault": "301", "location": f"https://dr:hunter2-pass@gate.test/{KEY}?token=q-token-123456"},
        {"fault": "message", "content": f"the key is {KEY}"},
        {"fault": "hang"},
    ]
    with LlmServer() as server:
        url = server.url.replace("//", "//dr:hunter2-pass@") + "?token=q-token-123456"
        for rule in rules:
            server.script(rule)
            shown = repr(call(url, max_attempts=1, timeout_s=0.2)) + repr(Endpoint(url, KEY))
            assert not [secret for secret in secrets if secret in shown], shown
        sent = server.requests[0]

    assert "Basic ZHI6aHVudGVyMi1wYXNz" == sent["headers"]["authorization"]
    assert "/v1/chat/completions?token=q-token-123456" == sent["path"]


def test_nothing_listening_is_said_in_words_that_help() -> None:
    """A refused connection and an unknown host end as transport, with what to do."""
    refused = call("http://127.0.0.1:9/v1", max_attempts=2)
    unknown = call("http://no-such-host.invalid/v1", max_attempts=2)

    assert ("transport", "transport") == (refused.state, unknown.state)
    assert (
        "nothing listens at http://127.0.0.1:9 (connection refused): start the server or correct the base URL (2 tries)"
        == refused.reason
    )
    assert (
        unknown.reason and "cannot find the host of http://no-such-host.invalid: check the base URL" in unknown.reason
    )


def test_ctrl_c_passes_through_and_frees_the_place() -> None:
    """A cancelled call raises CancelledError at once, and calls after it still pass."""

    async def cancelled(url: str) -> Reply:
        async with Client() as client:
            task = asyncio.ensure_future(ask(client, url))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await ask(client, url)

    with LlmServer({"fault": "hang", "times": 1}) as server:
        assert "ok" == asyncio.run(cancelled(server.url)).state


def test_256_calls_are_in_flight_at_once() -> None:
    """The client adds no limit of its own."""
    with LlmServer(latency_ms=1500) as server:
        replies = asyncio.run(calls(server.url, 256))
        most = server.brain.max_in_flight

    assert {"ok"} == {reply.state for reply in replies}
    assert 256 == most


def test_a_prompt_of_megabytes_and_a_broken_character_are_sent() -> None:
    """Ten megabytes pass, and a lone surrogate goes out as JSON's escape instead of ending the run."""

    async def send(url: str, text: str) -> Reply:
        async with Client() as client:
            messages = [{"role": "user", "content": text}]
            return await ask(client, url, messages=messages)

    with LlmServer() as server:
        for text in ("x" * 10_000_000, "dose \ud835 5 mg"):
            assert "ok" == asyncio.run(send(server.url, text)).state
            assert text == server.requests[-1]["body"]["messages"][0]["content"]
