"""Which parameter a server refuses, and what is sent instead."""

from __future__ import annotations

from typing import Any

import pytest

from eval.calls.adapt import Adaptation, adapted, next_step, refused_parameter
from eval.calls.reply import ServerError, read_error
from tests.llm_replies import parameter_error

SCHEMA = {"type": "json_schema", "json_schema": {"name": "decisions", "schema": {"type": "object"}}}
SENT: dict[str, Any] = {
    "max_completion_tokens": 5000,
    "reasoning_effort": "high",
    "response_format": SCHEMA,
    "temperature": 0,
}


@pytest.mark.parametrize("wording", ["openai", "vllm", "fastapi", "ollama", "llamacpp"])
@pytest.mark.parametrize("param", SENT)
def test_a_refusal_is_understood_in_the_words_of_each_server(param: str, wording: str) -> None:
    """By the error's own field where it has one, else by its message."""
    status, body = parameter_error(param, wording, SENT[param])

    assert param == refused_parameter(read_error(status, body), SENT)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Unsupported value: 'temperature' does not support 0 with this model.", "temperature"),
        ("`temperature` must be strictly positive", "temperature"),
        ("Unrecognized request argument supplied: reasoning_effort", "reasoning_effort"),
        ('"gemma3:1b" does not support thinking', "reasoning_effort"),
        ("'response_format.type' must be 'json_schema' or 'text'", "response_format"),
        ("This model does not support structured outputs", "response_format"),
        ("Use 'max_tokens' instead of 'max_completion_tokens'", "max_completion_tokens"),
        ("max_completion_tokens is too large: 5000. This model supports at most 4096 completion tokens", None),
        ("max_completion_tokens must be at least 16", None),
        ("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens", None),
        ("the request exceeds the available context size, try increasing it", None),
        ("prompt too long; lower the temperature or the max_completion_tokens", None),
        ("max_tokens is not supported", None),  # was not sent
        ("messages must not be empty", None),
    ],
)
def test_a_message_names_a_parameter_or_speaks_of_something_else(message: str, expected: str | None) -> None:
    """Complaints about length name max_completion_tokens too, and must not be taken for a refusal of it."""
    assert expected == refused_parameter(ServerError(400, message), SENT)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ServerError(400, "invalid schema", "response_format.json_schema", "invalid_value"), "response_format"),
        (ServerError(422, "Extra inputs are not permitted", "body.temperature"), "temperature"),
        (ServerError(400, "context_length_exceeded: temperature", "messages", "context_length_exceeded"), None),
        (ServerError(401, "no temperature for you", "temperature"), None),
        (ServerError(500, "CUDA error while sampling with temperature 0"), None),
        (ServerError(500, "response_format: out of memory"), None),
        (ServerError(200, "temperature"), None),
    ],
)
def test_only_refusals_count(error: ServerError, expected: str | None) -> None:
    """A status other than 400 or 422 is about something else; a 500 counts only for a plain no to response_format."""
    assert expected == refused_parameter(error, SENT)


def step(param: str, action: str, to: str | None, status: int = 400) -> Adaptation:
    """Return a step of the judge's."""
    return Adaptation("judge", "m", "http://h/v1", param, action, to, status)


@pytest.mark.parametrize(
    ("param", "value", "expected"),
    [
        ("temperature", 0, step("temperature", "drop", None)),
        ("reasoning_effort", "high", step("reasoning_effort", "drop", None)),
        ("response_format", SCHEMA, step("response_format", "rename", "json_object")),
        ("response_format", {"type": "json_object"}, step("response_format", "drop", None)),
        ("max_completion_tokens", 9, step("max_completion_tokens", "rename", "max_tokens")),
        ("max_tokens", 9, step("max_tokens", "rename", "max_completion_tokens")),
    ],
)
def test_each_parameter_has_its_next_weaker_form(param: str, value: object, expected: Adaptation) -> None:
    """One refusal takes one step."""
    error = ServerError(400, "not supported", param)

    assert expected == next_step(error, {param: value}, role="judge", model="m", endpoint="http://h/v1", taken=())


def test_a_new_name_that_is_refused_too_ends_the_search() -> None:
    """max_tokens and max_completion_tokens are not tried in turn for ever."""
    taken = [step("max_completion_tokens", "rename", "max_tokens")]
    error = ServerError(400, "not supported", "max_tokens")

    assert next_step(error, {"max_tokens": 9}, role="judge", model="m", endpoint="http://h/v1", taken=taken) is None


def test_steps_are_applied_in_order_and_leave_the_request_as_asked_for_alone() -> None:
    """Replaying the steps of an earlier start gives the request that passed then."""
    steps = [
        step("response_format", "rename", "json_object"),
        step("max_completion_tokens", "rename", "max_tokens"),
        step("temperature", "drop", None),
        step("top_p", "drop", None),
    ]

    assert {"reasoning_effort": "high", "response_format": {"type": "json_object"}, "max_tokens": 5000} == adapted(
        SENT, steps
    )
    assert {"reasoning_effort": "high", "max_tokens": 5000} == adapted(
        SENT, [*steps, step("response_format", "drop", None)]
    )
    assert SCHEMA == SENT["response_format"]


def test_a_step_is_the_same_whatever_status_taught_it() -> None:
    """Two calls that learn it from a 400 and a 422 have learned one thing."""
    assert step("temperature", "drop", None, 400) == step("temperature", "drop", None, 422)
