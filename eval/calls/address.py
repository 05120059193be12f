"""Where a model server is and what opens it: base URL and key -> the request's address, a public name, and no leaks.

In: what the user typed. Out: an `Endpoint`, its chat-completions URL, the credentials to send, and the words to take
out of messages. Not done here: connecting (`transport`).
"""

from __future__ import annotations

import ipaddress
import re
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from yarl import URL

from builder.errors import BadInput

DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"
CHAT_PATH: Final = "/chat/completions"
_SECRET_LENGTH: Final = 4  # shorter keys ("x") are placeholders: hiding them would only garble messages
LONG_SECRET_LENGTH: Final = 16  # a model's own words are changed for a real key only, never for one like "password"

# What looks like a key or carries one, whoever's it is.
_KEY_LIKE: Final = re.compile(r"\b(?:sk|pk|rk|hf|gsk|xai|ghp)[-_][\w-]{8,}|\bBearer\s+[\w.~+/=-]{8,}|\bAIza[\w-]{20,}")
_URL_USER: Final = re.compile(r"(?<=://)[^/@\s\"'<>]+@")
_URL_QUERY: Final = re.compile(r"(https?://[^\s?\"'<>]+)\?[^\s\"'<>]*")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that speaks OpenAI's chat completions, and the key for it.

    `base_url` may end in a slash or in the full `/chat/completions`; a bare host gets `/v1`. `name` is its public form,
    `scheme://host[:port]/path` without user, password and query, and without the port on loopback hosts.

    Raises:
        BadInput: the address is no http(s) URL, or no HTTP header can carry the key.
    """

    base_url: str = field(default=DEFAULT_BASE_URL, repr=False)
    api_key: str | None = field(default=None, repr=False)
    name: str = field(init=False)

    def __post_init__(self) -> None:
        """Check address and key, and work out the public name."""
        key = (self.api_key or "").strip() or None
        if key and not (key.isascii() and key.isprintable()):
            raise BadInput("API key: expected printable ASCII characters, found others; copy the key again")
        object.__setattr__(self, "api_key", key)
        object.__setattr__(self, "name", _public_form(_parsed(self.base_url)))


def _parsed(base_url: str) -> URL:
    try:
        url = URL(base_url.strip())
        if url.scheme in ("http", "https") and url.host and url.host.encode("idna"):
            return url
    except ValueError:  # a port beyond 65535, a broken IPv6 address, an empty label in a name ...
        pass
    raise BadInput(
        f'base URL: expected http:// or https:// and a host, found "{redact(base_url)[:80]}"; '
        "write it like http://127.0.0.1:8000/v1"
    )


def _base_path(url: URL) -> str:
    path = url.raw_path.rstrip("/").removesuffix(CHAT_PATH).rstrip("/")
    return path or "/v1"


def _public_form(url: URL) -> str:
    port = url.explicit_port
    hidden = port is None or _is_loopback(url.host or "") or url.is_default_port()
    return f"{url.scheme}://{url.host_subcomponent}{'' if hidden else f':{port}'}{_base_path(url)}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def redact(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Return a message without the given secrets, without anything like a key, and URLs without user and query."""
    for secret in secrets:
        text = text.replace(secret, "[key]")
    return _URL_QUERY.sub(r"\1", _URL_USER.sub("", _KEY_LIKE.sub("[key]", text)))


def chat_url(endpoint: Endpoint) -> URL:
    """Return the URL to post to: the base URL's query is kept, its user and fragment are not."""
    given = _parsed(endpoint.base_url)
    return given.with_user(None).with_path(_base_path(given) + CHAT_PATH, encoded=True).with_query(given.query)


def authorization(endpoint: Endpoint) -> str | None:
    """Return the Authorization header: Basic where the base URL names a user, else the key as a bearer token."""
    given = _parsed(endpoint.base_url)
    if given.user or given.password:
        return _basic(given)
    return f"Bearer {endpoint.api_key}" if endpoint.api_key else None


def _basic(url: URL) -> str:
    return "Basic " + b64encode(f"{url.user or ''}:{url.password or ''}".encode()).decode()


def secrets_of(endpoint: Endpoint, proxy: URL | None) -> tuple[str, ...]:
    """Return all that no message about an endpoint may show, in every spelling, longest first."""
    given = _parsed(endpoint.base_url)
    parts = {endpoint.api_key or "", given.raw_query_string, *given.query.values()}
    for url in filter(None, (given, proxy)):
        if url.user or url.password:
            parts |= {url.password or url.user or "", url.raw_password or "", _basic(url).removeprefix("Basic ")}
    parts |= {quote(part, safe="") for part in parts}
    return tuple(sorted((part for part in parts if len(part) >= _SECRET_LENGTH), key=lambda part: (-len(part), part)))
