"""Base URLs and keys: what is asked, under which name it is known, and what is never shown."""

from __future__ import annotations

import pytest

from builder.errors import BadInput
from eval.calls.address import Endpoint, chat_url, redact


@pytest.mark.parametrize(
    ("base_url", "name", "url"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1/", "https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com", "https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
        ("https://API.openai.com:443/", "https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
        ("http://gpu:8000/v1/chat/completions", "http://gpu:8000/v1", "http://gpu:8000/v1/chat/completions"),
        ("http://gpu:8000/api/", "http://gpu:8000/api", "http://gpu:8000/api/chat/completions"),
        ("http://localhost:8080", "http://localhost/v1", "http://localhost:8080/v1/chat/completions"),
        ("http://127.0.0.9:1/v1", "http://127.0.0.9/v1", "http://127.0.0.9:1/v1/chat/completions"),
        ("http://[::1]:8080/v1", "http://[::1]/v1", "http://[::1]:8080/v1/chat/completions"),
        ("https://u:p@h.test/v1?k=s#f", "https://h.test/v1", "https://h.test/v1/chat/completions?k=s"),
    ],
)
def test_every_common_form_of_a_base_url_is_understood(base_url: str, name: str, url: str) -> None:
    """With or without /v1, a slash or the full path; the public name hides user, query and a loopback's port."""
    endpoint = Endpoint(base_url)

    assert (name, url) == (endpoint.name, str(chat_url(endpoint)))


@pytest.mark.parametrize(
    "base_url", ["", "localhost:8000", "ftp://h/v1", "http://", "http://h:99999", "http://a..b/v1"]
)
def test_an_address_that_is_none_is_refused_in_one_line(base_url: str) -> None:
    """The message says what is expected and how to write it."""
    with pytest.raises(BadInput) as caught:
        Endpoint(base_url)

    assert f'expected http:// or https:// and a host, found "{base_url}"; write it like' in str(caught.value)


def test_an_address_that_is_a_key_or_holds_one_is_not_repeated() -> None:
    """A key pasted in the wrong place does not reach the screen."""
    for pasted in ("sk-dummy-0123456789abcdef", "ftp://me:sk-dummy-0123456789abcdef@h/?k=sk-dummy-0123456789abcdef"):
        with pytest.raises(BadInput) as caught:
            Endpoint(pasted)

        assert "0123456789abcdef" not in str(caught.value)


def test_a_key_is_trimmed_and_one_that_no_header_can_carry_is_refused() -> None:
    """A newline after the key does no harm; a curly quote inside it is named without showing the key."""
    assert "sk-1" == Endpoint(api_key=" sk-1\n").api_key
    assert Endpoint(api_key=" ").api_key is None
    with pytest.raises(
        BadInput, match=r"^API key: expected printable ASCII characters, found others; copy the key again$"
    ):
        Endpoint(api_key="sk-“secret")


def test_an_endpoint_shows_only_its_public_name() -> None:
    """Neither key nor password is in what a log or a traceback would print."""
    assert "Endpoint(name='https://h.test/v1')" == repr(Endpoint("https://u:password1@h.test/v1?k=s", "sk-secret-1"))


def test_messages_lose_whatever_looks_like_a_key() -> None:
    """Keys of any vendor, bearer tokens, users and queries of URLs go; the rest of the sentence stays."""
    text = "key sk-proj-AbC_123456789, Bearer abc.def-12345 and https://me:pw@h.test/p?token=x refused"

    assert "key [key], [key] and https://h.test/p refused" == redact(text)
