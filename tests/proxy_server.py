"""An HTTP proxy on 127.0.0.1 for tests: every host name leads to this machine, and what was asked is kept.

It forwards plain requests (one a connection) and opens CONNECT tunnels; with `password` it wants Basic credentials.
"""

from __future__ import annotations

import asyncio
import threading
from base64 import b64encode
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class ProxyServer:
    """The proxy in a thread of the test. `asked` holds the first line of each request."""

    def __init__(self, *, user: str = "", password: str = "") -> None:
        """Take the credentials that clients must show, if any."""
        self.asked: list[str] = []
        self._writers: list[asyncio.StreamWriter] = []
        self._wanted = "Basic " + b64encode(f"{user}:{password}".encode()).decode() if user else ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        """Listen on a free port."""
        self._thread.start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, dropping every connection."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _stop(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in self._writers:  # a writer that outlives its loop complains when it is collected
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._forward(reader, writer)
        writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head.rstrip().split("\r\n")
        self.asked.append(line)
        if self._wanted and f"Proxy-Authorization: {self._wanted}" not in fields:
            writer.write(b"HTTP/1.1 407 Credentials wanted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        method, target, _ = line.split(" ")
        place = target if method == "CONNECT" else urlsplit(target).netloc
        there, back = await asyncio.open_connection("127.0.0.1", int(place.rpartition(":")[2]))
        self._writers.append(back)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            lines = [f"{method} {urlsplit(target).path} HTTP/1.1", *fields, "Connection: close", "", ""]
            back.write("\r\n".join(lines).encode("latin-1"))
        await asyncio.gather(_pump(reader, back), _pump(there, writer))


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        with suppress(OSError):
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
    finally:
        target.close()
