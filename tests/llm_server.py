"""An OpenAI-compatible model server on 127.0.0.1 with faults by script, for tests and benchmarks.

In a test: `with LlmServer(latency_ms=5) as server: ... server.url ...`. In a process of its own, so that its CPU is not
the client's: `with server_process(latency_ms=50) as url: ...` or `python -m tests.llm_server --port 0`, which prints
the URL. It speaks plain HTTP/1.1 with keep-alive, or TLS, and follows a script of faults (`llm_faults`).

POST */chat/completions; GET */models, /requests (what came, bodies parsed), /stats; POST /script (rules), /config
(settings), /reset.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from tests.llm_faults import Rule, Settings, Step, faulty, http, normal, rule
from tests.llm_replies import dump, read_asked


class Brain:
    """What the server remembers and decides; it does not know about sockets."""

    def __init__(self, settings: Settings) -> None:
        """Start with no script."""
        self.settings = settings
        self.rules: list[Rule] = []
        self.requests: list[dict[str, Any]] = []
        self.in_flight = 0
        self.connections: set[asyncio.Transport] = set()
        self.reset()

    def reset(self) -> None:
        """Forget what came, and the script."""
        self.rules, self.requests, self.number = [], [], 0
        self.max_in_flight = 0
        self.roles: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()

    def stats(self) -> dict[str, Any]:
        """Return counts since the last reset."""
        return {
            "requests": self.number,
            "max_in_flight": self.max_in_flight,
            "roles": dict(self.roles),
            "faults": dict(self.faults),
        }

    def control(self, path: str, body: bytes) -> bytes:
        """Answer everything but a completion."""
        if path == "/script":
            self.rules = [rule(line) for line in json.loads(body)]
        elif path == "/config":
            for key, value in json.loads(body).items():
                setattr(self.settings, key, value)
        elif path == "/reset":
            self.reset()
        elif path == "/requests":
            return http(200, json.dumps(self.requests).encode())
        elif path.endswith("/models"):
            return http(200, dump({"object": "list", "data": [{"id": "stand-in", "object": "model"}]}))
        elif path != "/stats":
            return http(404, dump({"error": {"message": f"no such path: {path}", "code": "not_found"}}))
        return http(200, dump({**self.stats(), "settings": asdict(self.settings)}))

    def steps(self, path: str, headers: dict[str, str], body: bytes) -> list[Step]:
        """Return how the server reacts to a completion request."""
        self.number += 1
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        asked = read_asked(self.number, json.loads(body))
        self.roles[asked.role] += 1
        if self.settings.record:
            seen = {"number": asked.number, "role": asked.role, "path": path, "headers": headers, "body": asked.body}
            self.requests.append({**seen, "at": time.monotonic()})
        for found in self.rules:
            if found.fits(asked, self.in_flight):
                found.left -= 1
                self.faults[found.fault] += 1
                return faulty(found, asked, self.settings, key=headers.get("authorization", ""))
        return [Step(self.settings.latency_ms / 1000, normal(asked, self.settings))]


class _Connection(asyncio.Protocol):
    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self._buffer = b""
        self._steps: Iterator[Step] | None = None  # of the completion under way
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by class
        self._brain.connections.add(self._transport)

    def connection_lost(self, _: Exception | None) -> None:
        self._brain.connections.discard(self._transport)
        if self._timer:
            self._timer.cancel()
        if self._steps:
            self._brain.in_flight -= 1
            self._steps = None

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._steps:
            self._parse()

    def _parse(self) -> None:
        head, blank, rest = self._buffer.partition(b"\r\n\r\n")
        if not self._buffer[:1].isalpha():  # a TLS greeting to a plain server
            self._transport.write(http(400, b"not HTTP"))
            self._transport.close()
            return
        if not blank:
            return
        line, *fields = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return
        body, self._buffer = rest[:length], rest[length:]
        path = line.split(" ")[1]
        if path.partition("?")[0].endswith("/chat/completions"):
            self._steps = iter(self._brain.steps(path, headers, body))
            self._go_on()
        else:
            self._transport.write(self._brain.control(path, body))

    def _go_on(self) -> None:
        step = next(self._steps, None) if self._steps else None
        if step is None:
            self._brain.in_flight -= 1
            self._steps = None
            if self._buffer:
                self._parse()
        elif step.after_s > 0:
            self._timer = asyncio.get_running_loop().call_later(step.after_s, self._take, step)
        else:
            self._take(step)

    def _take(self, step: Step) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(step.data)
        if step.then == "abort":  # linger 0 turns the close into a reset
            self._transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
            self._transport.abort()
        elif step.then == "close":
            self._transport.close()
        else:
            self._go_on()


async def _listen(brain: Brain, port: int, tls: ssl.SSLContext | None) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: _Connection(brain), "127.0.0.1", port, backlog=4096, ssl=tls)


class LlmServer:
    """The server in a thread of the test; `tls` is a PEM file with certificate and key."""

    def __init__(self, *rules: dict[str, Any], tls: Path | None = None, **settings: Any) -> None:
        """Take a script and settings (see `Settings`)."""
        self.brain = Brain(Settings(**settings))
        self.script(*rules)
        self._tls = None
        if tls:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(tls)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        """Listen on a free port."""
        self._thread.start()
        listening = asyncio.run_coroutine_threadsafe(_listen(self.brain, 0, self._tls), self._loop)
        self._server = listening.result(10)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drop every connection and stop."""
        self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(10)
        self._loop.close()

    def _stop(self) -> None:
        self._server.close()
        for transport in tuple(self.brain.connections):
            transport.abort()  # its socket would else be closed by the collector, in the middle of another test
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.call_later(0.01, self._loop.stop)  # an aborted transport closes its socket in the next rounds

    @property
    def url(self) -> str:
        """Return the base URL."""
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Return what came: number, role, path, headers, body, at (monotonic seconds)."""
        return self.brain.requests

    @property
    def hits(self) -> int:
        """Return how many completions were asked for."""
        return self.brain.number

    def script(self, *rules: dict[str, Any]) -> None:
        """Replace the script."""
        self.brain.rules = [rule(line) for line in rules]


@contextmanager
def server_process(**settings: Any) -> Iterator[str]:
    """Run the server in a process of its own; yield its root URL, without /v1."""
    command = [sys.executable, "-m", "tests.llm_server", "--port", "0", "--set", json.dumps(settings)]
    root = Path(__file__).parent.parent
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


async def _serve(port: int, settings: Settings) -> None:
    server = await _listen(Brain(settings), port, None)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)  # noqa: T201
    await asyncio.Event().wait()


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--set", default="{}", help='settings as JSON: {"latency_ms": 50, "judge": "verbatim"}')
    options = parser.parse_args()
    factory = None
    with suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=factory) as runner:
        runner.run(_serve(options.port, Settings(**json.loads(options.set))))


if __name__ == "__main__":
    main()
