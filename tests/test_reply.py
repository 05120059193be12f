"""What a server's bytes come down to: a text with its state, or an error in the server's words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.calls.reply import (
    Completion,
    ServerError,
    Usage,
    cleaned,
    one_line,
    read_completion,
    read_error,
    retry_after_s,
    shortened,
)


def body(message: dict[str, Any], finish: str | None = "stop", **more: Any) -> bytes:
    """Return a completion's bytes."""
    return json.dumps({"choices": [{"message": message, "finish_reason": finish}], **more}).encode()


def completion(data: bytes) -> Completion:
    """Read bytes that hold a completion."""
    read = read_completion(data)
    assert isinstance(read, Completion), read
    return read


TEXT = {"type": "text", "text": "Take"}


@pytest.mark.parametrize(
    ("message", "finish", "state", "text"),
    [
        ({"content": "Take 5"}, "stop", "ok", "Take 5"),
        ({"content": "Take 5"}, None, "ok", "Take 5"),
        ({"content": " \nTake 5\n"}, "stop", "ok", " \nTake 5\n"),
        ({"content": "<think>a</think>b"}, "stop", "ok", "<think>a</think>b"),
        ({"content": "Take"}, "length", "truncated", "Take"),
        ({"content": "Take"}, "MAX_TOKENS", "truncated", "Take"),
        ({"content": ""}, "length", "empty", None),
        ({"content": None}, "stop", "empty", None),
        ({"content": ""}, "stop", "empty", None),
        ({"content": " \n\t"}, "stop", "empty", None),
        ({}, "tool_calls", "empty", None),
        ({"content": None, "refusal": "I cannot."}, "stop", "refused", "I cannot."),
        ({"content": "", "refusal": "I cannot."}, "stop", "refused", "I cannot."),
        ({"content": "Take", "refusal": ""}, "stop", "ok", "Take"),
        ({"content": None}, "content_filter", "filtered", None),
        ({"content": "Take 5"}, "content_filter", "filtered", "Take 5"),
        ({"content": "Take 5"}, "SAFETY", "filtered", "Take 5"),
        ({"content": [TEXT, {"type": "text", "text": " 5"}]}, "stop", "ok", "Take 5"),
        ({"content": [{"type": "refusal", "refusal": "I cannot."}]}, "stop", "refused", "I cannot."),
        ({"content": []}, "stop", "empty", None),
        ({"content": [TEXT, {"type": "image_url", "image_url": {}}]}, "stop", "rejected", None),
        ({"content": [TEXT, "loose"]}, "stop", "rejected", None),
        ({"content": [{"type": "text", "text": 5}]}, "stop", "rejected", None),
        ({"content": {"text": "Take"}}, "stop", "rejected", None),
    ],
)
def test_each_shape_of_a_reply_has_one_state(
    message: dict[str, Any], finish: str | None, state: str, text: str | None
) -> None:
    """A refusal, a filter, a cut and an empty text are told apart, and never look like an answer."""
    read = completion(body(message, finish))

    assert (state, text, finish) == (read.state, read.text, read.finish_reason)


def test_an_empty_text_says_where_the_tokens_went() -> None:
    """Reasoning that ate the whole budget is the commonest cause, and is named."""
    usage = {"prompt_tokens": 9, "completion_tokens": 5000, "completion_tokens_details": {"reasoning_tokens": 5000}}
    read = completion(body({"content": ""}, "length", usage=usage))

    assert Usage(9, None, 5000, 5000) == read.usage
    assert (
        "the token limit was reached before any text (finish_reason length, 5000 of 5000 tokens were reasoning)"
        == read.reason
    )


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ([], None),
        ({"prompt_tokens": "9"}, None),
        ({"prompt_tokens": 9, "completion_tokens": True}, Usage(9, None, None, None)),
        ({"prompt_tokens": 9, "completion_tokens": -1}, Usage(9, None, None, None)),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(9, 4, None, None)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None}, Usage(9, None, 2, None)),
        ({"prompt_tokens": 2**63, "completion_tokens": 2}, Usage(None, None, 2, None)),
    ],
)
def test_token_counts_are_integers_or_unknown(usage: object, expected: Usage | None) -> None:
    """Whatever a server writes there, a count is a plain whole number that fits a table, or null."""
    assert expected == completion(body({"content": "x"}, usage=usage)).usage


@pytest.mark.parametrize(
    ("sent", "text", "replaced"),
    [
        (rb"dose \ud835 5", "dose \ufffd 5", 1),
        (rb"dose \ud835\udc00", "dose \U0001d400", 0),
        (rb"a\u0000b\u0000", "a\ufffdb\ufffd", 2),
        (b"a\xffb", "a\ufffdb", 1),
        ("ácido ≥ 5 μg".encode(), "ácido ≥ 5 μg", 0),
        (rb"a\u2028b\u001b[1m", "a\u2028b\x1b[1m", 0),
    ],
)
def test_characters_that_no_file_keeps_are_replaced_and_counted(sent: bytes, text: str, replaced: int) -> None:
    """Lone surrogates, NUL and broken UTF-8 become U+FFFD at the boundary; everything else is left alone."""
    read = completion(b'{"choices":[{"message":{"content":"' + sent + b'"}}]}')

    assert (text, replaced) == (read.text, read.replaced)


@given(st.text(alphabet=st.characters(), max_size=40))
def test_cleaned_text_can_be_written_anywhere(text: str) -> None:
    """Cleaning is done once, keeps the length, and leaves valid text as it is."""
    kept, replaced = cleaned(text)

    assert "\0" not in kept and kept == kept.encode().decode()
    assert (len(text), (kept, 0)) == (len(kept), cleaned(kept))
    assert (kept == text) == (replaced == 0)


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b"<p>x", b'{"a"', b"[" * 100_000, b"\xff\xfe{\x00", b"9" * 5000])
def test_bodies_that_are_no_object_are_errors_not_crashes(data: bytes) -> None:
    """Cut, nested, encoded otherwise or empty: one error that shows the beginning."""
    read = read_completion(data)

    assert isinstance(read, ServerError) and 200 == read.status
    assert ("an empty body" if not data else "not a JSON object but ") in read.message


@pytest.mark.parametrize(
    "choices", [None, [], {}, "x", [None], [{}], [{"message": None}], [{"message": []}], [{"text": "old completion"}]]
)
def test_an_object_without_a_message_is_an_error(choices: object) -> None:
    """Missing choices never become an empty answer."""
    assert ServerError(200, "a JSON object with no choices") == read_completion(
        json.dumps({"choices": choices}).encode()
    )


@settings(max_examples=50)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_json_is_read_without_a_crash(value: object) -> None:
    """A server may say anything in any place."""
    for data in (
        {"choices": value},
        {"choices": [{"message": value}]},
        {"choices": [{"message": {"content": value}}]},
        {"error": value},
    ):
        read = json.dumps(data).encode()
        assert isinstance(read_completion(read), Completion | ServerError)
        assert "\n" not in read_error(400, read).message


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            {"error": {"message": "no\nkey", "type": "auth", "param": None, "code": "invalid_api_key"}},
            ServerError(401, "no key", "", "invalid_api_key"),
        ),
        (
            {"object": "error", "message": "too long", "type": "BadRequestError", "param": None, "code": 400},
            ServerError(401, "too long", "", "BadRequestError"),
        ),
        ({"error": "model not found"}, ServerError(401, "model not found")),
        (
            {"detail": [{"type": "extra_forbidden", "loc": ["body", "temperature"], "msg": "not permitted"}]},
            ServerError(401, "not permitted", "body.temperature", "extra_forbidden"),
        ),
        ({"detail": "Not authenticated"}, ServerError(401, "Not authenticated")),
        ([{"error": {"code": 401}}], ServerError(401, 'not a JSON object but "[{"error": {"code": 401}}]"')),
        ({"error": {"code": 401}}, ServerError(401, '{"code": 401}')),
    ],
)
def test_errors_of_the_servers_in_use_are_understood(data: object, expected: ServerError) -> None:
    """OpenAI's, vLLM's, Ollama's and FastAPI's shapes give message, parameter and code."""
    assert expected == read_error(401, json.dumps(data).encode())


def test_a_page_of_html_becomes_a_few_words() -> None:
    """What a gateway writes for people is cut down to its text."""
    page = b"<html><style>p {}</style><body><h1>502 Bad&nbsp;Gateway</h1><script>x()</script></body></html>"

    assert 'not a JSON object but "502 Bad&nbsp;Gateway"' == read_error(502, page).message


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "90"}, 90.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "90", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "90", "retry-after-ms": "x"}, 90.0),
        ({"retry-after": "Mon, 05 Jan 2026 10:00:30 GMT", "date": "Mon, 05 Jan 2026 10:00:00 GMT"}, 30.0),
        ({"retry-after": "Mon, 05 Jan 2026 09:00:00 GMT", "date": "Mon, 05 Jan 2026 10:00:00 GMT"}, None),
        ({"retry-after": "Mon, 05 Jan 2026 10:00:30 GMT"}, None),
        ({"retry-after": "tomorrow", "date": "Mon, 05 Jan 2026 10:00:00 GMT"}, None),
    ],
)
def test_the_wait_that_a_server_asks_for(headers: dict[str, str], expected: float | None) -> None:
    """Seconds, milliseconds (which win) and dates on the server's own clock; nonsense is no wait."""
    assert expected == retry_after_s(headers)


def test_lines_are_clean_and_short() -> None:
    """Line ends, escapes and direction marks go, and a long line says that it goes on."""
    assert "a b c [31m d" == one_line(" a\nb\u2028c \x1b[31m\u202e d ")
    assert ("abc", "abcdef...") == (shortened("abc", 9), shortened("abcdefghij", 9))
