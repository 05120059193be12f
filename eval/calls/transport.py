"""One POST to one model server: connections, proxies, TLS, and plain words for what breaks on the way.

In: an `Endpoint` and the bytes to send. Out: a `Response` (any HTTP status), or a `Failure` that says what happened and
what to do. Not done here: trying again (`endpoint`) and reading a reply's text (`reply`).

Proxies are those of HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY (and of the system on macOS and Windows); they are
looked up once per endpoint, since aiohttp's own `trust_env` starts two threads for every request. Certificates are
checked against SSL_CERT_FILE / SSL_CERT_DIR where set, else against the system's store. Redirects are not followed, so
a key never travels to an address that the user did not give.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from types import TracebackType
from typing import Final, Self
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from bedside_bench import __version__
from builder.errors import BadInput
from eval.calls.address import LONG_SECRET_LENGTH, Endpoint, authorization, chat_url, redact, secrets_of

MAX_BODY_BYTES: Final = 64 * 2**20
CONNECT_TIMEOUT_S: Final = 30.0
_WARNED_BODY_BYTES: Final = 2**20  # aiohttp warns about a longer body given as bytes


@dataclass(frozen=True, slots=True)
class Response:
    """What a server answered, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Failure:
    """Why no answer came: state `timeout` or `transport`. `final`: every other call would meet the same."""

    state: str
    reason: str
    final: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """How an endpoint is reached, worked out once. `secrets` holds all that no message may show, longest first."""

    url: URL
    headers: dict[str, str]
    tls: ssl.SSLContext | bool
    proxy: URL | None  # with its user and password: aiohttp makes the header of them
    secrets: tuple[str, ...]
    long_secrets: tuple[str, ...]

    @property
    def place(self) -> str:
        """Return the server's `scheme://host:port`, for messages."""
        return str(self.url.origin())

    @property
    def proxy_place(self) -> str:
        """Return the proxy's `scheme://host:port`, for messages."""
        return str(self.proxy.origin()) if self.proxy else "none"

    def message(self, text: str) -> str:
        """Return a message that is safe to show and to store."""
        return redact(text, self.secrets)

    def words(self, text: str) -> str:
        """Return a model's words; only a real key of ours is taken out of them."""
        for secret in self.long_secrets:
            if secret in text:
                text = text.replace(secret, "[key]")
        return text


def route_to(endpoint: Endpoint) -> Route:
    """Return the route to an endpoint under the proxy and certificate settings of this moment.

    Raises:
        BadInput: the environment names a proxy that is no http(s) address.
    """
    url = chat_url(endpoint)
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    headers["Cache-Control"] = "no-cache"  # every call asks for a sample of its own
    headers["User-Agent"] = f"bedside-bench/{__version__}"
    if credentials := authorization(endpoint):
        headers["Authorization"] = credentials
    proxy = _proxy_for(url)
    secrets = secrets_of(endpoint, proxy)
    return Route(
        url=url,
        headers=headers,
        tls=tls_context() if "https" in (url.scheme, proxy and proxy.scheme) else True,
        proxy=proxy,
        secrets=secrets,
        long_secrets=tuple(secret for secret in secrets if len(secret) >= LONG_SECRET_LENGTH),
    )


def _proxy_for(url: URL) -> URL | None:
    proxies = getproxies()
    address = proxies.get(url.scheme) or proxies.get("all")
    host = url.host or ""
    if not address or proxy_bypass(f"{host}:{url.port}") or _in_network(host, proxies.get("no", "")):
        return None
    try:
        proxy = URL(address if "://" in address else f"http://{address}")
        if proxy.scheme in ("http", "https") and proxy.host:
            return proxy
    except ValueError:  # a port that is no number ...
        pass
    raise BadInput(
        f"proxy settings: expected an http:// proxy for {url.origin()}, found {redact(address)}; "
        f"set {url.scheme.upper()}_PROXY to an http:// address or list the host in NO_PROXY"
    )


def _in_network(host: str, no_proxy: str) -> bool:
    """Say whether NO_PROXY names a network (10.0.0.0/8) that holds this address; urllib knows only names."""
    for part in no_proxy.split(","):
        try:
            if "/" in part and ipaddress.ip_address(host) in ipaddress.ip_network(part.strip(), strict=False):
                return True
        except ValueError:
            continue
    return False


def tls_context(platform: str = sys.platform) -> ssl.SSLContext:
    """Return a context that checks certificates: SSL_CERT_FILE / SSL_CERT_DIR where set, else the system's store."""
    paths = ssl.get_default_verify_paths()  # what the two variables name, where that exists
    chosen = paths.cafile not in (None, paths.openssl_cafile) or paths.capath not in (None, paths.openssl_capath)
    if platform in ("darwin", "win32") and not chosen:
        import truststore  # their stores are not files that OpenSSL could read

        context: ssl.SSLContext = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    else:
        context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class Transport:
    """The open connections of a run, to any number of endpoints."""

    def __init__(self, *, max_connections: int, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        """Take the number of calls in flight (0: no limit) and the longest reply that is read."""
        self._max_connections = max_connections
        self._max_body_bytes = max_body_bytes
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open the pool of connections."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._max_connections),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        if self._session:
            await self._session.close()

    async def post(self, route: Route, body: bytes, *, timeout_s: float) -> Response | Failure:
        """Send one request and read the whole reply within `timeout_s` seconds of wall-clock time."""
        if self._session is None:
            raise RuntimeError("a Transport is used inside its `async with` block")
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._session.post(
                    route.url,
                    data=body if len(body) < _WARNED_BODY_BYTES else BytesIO(body),
                    headers=route.headers,
                    ssl=route.tls,
                    proxy=route.proxy,
                    allow_redirects=False,
                ) as response,
            ):
                read = await self._read(response.content)
                return Response(response.status, response.headers, read) if read is not None else self._too_long()
        except aiohttp.ClientError as error:
            return explain(error, route)
        except TimeoutError:
            return Failure("timeout", f"no complete reply from {route.place} within {timeout_s:.3g} s")
        except OSError as error:
            return Failure("transport", f"connection to {route.place} failed: {_os_words(error)}")

    async def _read(self, content: aiohttp.StreamReader) -> bytes | None:
        """Return the body, or None when it is longer than the limit."""
        body = await content.readany()
        if content.at_eof():
            return body if len(body) <= self._max_body_bytes else None
        parts = [body]
        size = len(body)
        while size <= self._max_body_bytes and (part := await content.readany()):
            parts.append(part)
            size += len(part)
        return b"".join(parts) if size <= self._max_body_bytes else None

    def _too_long(self) -> Failure:
        return Failure("transport", f"the reply is longer than {self._max_body_bytes // 2**20} MB")


def explain(error: aiohttp.ClientError, route: Route) -> Failure:
    """Return a failure of a connection in words that name the place and what to do."""
    return _explain_proxy(error, route) or _explain_tls(error, route) or Failure("transport", _words(error, route))


def _explain_proxy(error: aiohttp.ClientError, route: Route) -> Failure | None:
    hint = "check HTTP_PROXY / HTTPS_PROXY, or list the host in NO_PROXY"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return Failure("transport", f"cannot reach the proxy {route.proxy_place} ({_os_words(error.os_error)}): {hint}")
    if isinstance(error, aiohttp.ClientHttpProxyError):
        final = error.status in (403, 407)
        return Failure("transport", f"the proxy {route.proxy_place} answered HTTP {error.status}: {hint}", final)
    return None


def _explain_tls(error: aiohttp.ClientError, route: Route) -> Failure | None:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "") or "not valid"
        hint = "if it is your own authority's, set SSL_CERT_FILE to that authority's certificate"
        return Failure("transport", f"the TLS certificate of {route.place} is not trusted ({why}): {hint}", final=True)
    if isinstance(error, aiohttp.ClientSSLError):
        why = _os_words(error.os_error)
        return Failure("transport", f"no TLS with {route.place} ({why}): is it an http:// address?")
    return None


def _words(error: aiohttp.ClientError, route: Route) -> str:
    place = route.place
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"cannot find the host of {place}: check the base URL and the network"
    if isinstance(error, aiohttp.ClientConnectorError):
        if error.os_error.errno == errno.ECONNREFUSED:
            return f"nothing listens at {place} (connection refused): start the server or correct the base URL"
        return f"cannot connect to {place}: {_os_words(error.os_error)}"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"no connection to {place} within {CONNECT_TIMEOUT_S:g} s: check the base URL and the network"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return f"{place} closed the connection without a reply"
    if isinstance(error, aiohttp.ClientPayloadError):
        return f"the reply of {place} broke off before its end"
    if isinstance(error, aiohttp.ClientOSError):
        return f"the connection to {place} broke ({_os_words(error)})"
    return f"{place} did not answer in HTTP ({type(error).__name__})"


def _os_words(error: OSError) -> str:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "too many open files; lower --concurrency or raise `ulimit -n`"
    if isinstance(error, ssl.SSLError):
        return (error.reason or type(error).__name__).lower().replace("_", " ")
    if error.errno is not None and error.errno in errno.errorcode:
        return os.strerror(error.errno)
    return error.strerror or type(error).__name__
