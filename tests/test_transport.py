"""Proxies, certificates and redirects, against real servers on 127.0.0.1."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
import truststore

from builder.errors import BadInput
from eval.calls.address import Endpoint
from eval.calls.transport import Failure, Response, Transport, route_to, tls_context
from tests.llm_server import LlmServer
from tests.proxy_server import ProxyServer

TLS = Path(__file__).parent / "tls"
PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start without the proxies and certificates of whoever runs the tests."""
    for name in (*PROXY_VARIABLES, *map(str.upper, PROXY_VARIABLES), "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


def post(url: str, *, key: str | None = None) -> Response | Failure:
    """Send one small request."""

    async def send() -> Response | Failure:
        async with Transport(max_connections=1) as transport:
            body = b'{"model": "m", "messages": []}'
            return await transport.post(route_to(Endpoint(url, key)), body, timeout_s=5)

    return asyncio.run(send())


def test_http_goes_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY is used with its credentials, and the model server still gets its own key."""
    with LlmServer() as server, ProxyServer(user="me", password="pass word") as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:pass%20word@{proxy.address}")
        answer = post(f"http://model.test:{server.port}/v1", key="sk-1")

    assert isinstance(answer, Response) and 200 == answer.status
    assert [f"POST http://model.test:{server.port}/v1/chat/completions HTTP/1.1"] == proxy.asked
    assert "Bearer sk-1" == server.requests[0]["headers"]["authorization"]


@pytest.mark.parametrize("variable", ["https_proxy", "HTTPS_PROXY", "all_proxy"])
def test_https_goes_through_a_tunnel_of_the_proxy(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy sees the host name only; TLS is checked end to end."""
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "authority.pem"))
    with LlmServer(tls=TLS / "server.pem") as server, ProxyServer() as proxy:
        monkeypatch.setenv(variable, proxy.address)
        answer = post(f"https://model.test:{server.port}/v1", key="sk-1")

    assert isinstance(answer, Response) and 200 == answer.status
    assert [f"CONNECT model.test:{server.port} HTTP/1.1"] == proxy.asked
    assert "Bearer sk-1" == server.requests[0]["headers"]["authorization"]


@pytest.mark.parametrize("listed", ["127.0.0.1", "localhost,127.0.0.0/8", "*"])
def test_a_host_in_no_proxy_is_reached_directly(listed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, networks and the star keep the request away from the proxy."""
    with LlmServer() as server, ProxyServer() as proxy:
        monkeypatch.setenv("http_proxy", proxy.address)
        monkeypatch.setenv("no_proxy", listed)
        answer = post(server.url)

    assert isinstance(answer, Response) and 200 == answer.status
    assert [] == proxy.asked


def test_a_proxy_that_fails_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that is not there, or refuses the credentials, is told apart from the model server."""
    monkeypatch.setenv("https_proxy", "http://me:hunter2@127.0.0.1:9")
    gone = post("https://model.test/v1")
    with ProxyServer(user="me", password="right") as proxy:
        monkeypatch.setenv("https_proxy", f"http://me:hunter2@{proxy.address}")
        refused = post("https://model.test/v1")

    hint = "check HTTP_PROXY / HTTPS_PROXY, or list the host in NO_PROXY"
    assert isinstance(gone, Failure) and isinstance(refused, Failure)
    assert ("transport", False) == (gone.state, gone.final)
    assert f"cannot reach the proxy http://127.0.0.1:9 (Connection refused): {hint}" == gone.reason
    assert Failure("transport", f"the proxy http://{proxy.address} answered HTTP 407: {hint}", final=True) == refused


@pytest.mark.parametrize("address", ["socks5://me:hunter2@127.0.0.1:9", "http://me:hunter2@127.0.0.1:port"])
def test_a_proxy_of_another_kind_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A SOCKS proxy or a mistyped one is not silently left out, and its password is not shown."""
    monkeypatch.setenv("all_proxy", address)
    with pytest.raises(BadInput) as caught:
        route_to(Endpoint("https://h.test/v1"))

    shown = address.replace("me:hunter2@", "")
    assert f"expected an http:// proxy for https://h.test, found {shown}; set HTTPS_PROXY to" in str(caught.value)


def test_a_certificate_of_an_unknown_authority_is_refused_by_default() -> None:
    """The one-line reason says what to set, and no second try is worth it."""
    with LlmServer(tls=TLS / "server.pem") as server:
        answer = post(server.url)

    assert isinstance(answer, Failure) and answer.final
    assert f"the TLS certificate of https://127.0.0.1:{server.port} is not trusted (" in answer.reason
    assert "set SSL_CERT_FILE to that authority's certificate" in answer.reason
    assert 0 == server.hits


def test_a_certificate_of_the_users_own_authority_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """SSL_CERT_FILE names the authority; its certificate must still be for the host that is asked."""
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "authority.pem"))
    with LlmServer(tls=TLS / "server.pem") as server:
        trusted = post(server.url)
        other_host = post(server.url.replace("127.0.0.1", "127.0.0.2"))

    assert isinstance(trusted, Response) and 200 == trusted.status
    assert isinstance(other_host, Failure)  # nothing listens there, or the name does not match


def test_https_to_a_server_without_tls_is_said_so() -> None:
    """An https:// address of a plain server is the commonest slip with local servers."""
    with LlmServer() as server:
        answer = post(server.url.replace("http:", "https:"))

    assert isinstance(answer, Failure)
    assert answer.reason.startswith(f"no TLS with https://127.0.0.1:{server.port} (")
    assert answer.reason.endswith("): is it an http:// address?")


def test_the_system_store_is_asked_where_it_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS and Windows the operating system decides, unless SSL_CERT_FILE says otherwise."""
    assert isinstance(tls_context("darwin"), truststore.SSLContext)
    assert not isinstance(tls_context("linux"), truststore.SSLContext)
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "authority.pem"))

    assert not isinstance(tls_context("win32"), truststore.SSLContext)
    assert ssl.CERT_REQUIRED == tls_context("win32").verify_mode


def test_redirects_are_not_followed() -> None:
    """The key goes to the address that the user gave and to no other."""
    with LlmServer() as other, LlmServer({"fault": "307", "location": f"{other.url}/chat/completions"}) as server:
        answer = post(server.url, key="sk-1")

    assert isinstance(answer, Response) and 307 == answer.status
    assert 0 == other.hits
