"""Measure what one call costs: `python -m tests.bench.bench_endpoint`.

Against the stand-in server in a process of its own (50 ms a reply), 2,426 judge-sized calls at 64 and 256 in flight:
client CPU a call and wall time over the ideal (calls x latency / concurrency). The floor, aiohttp with nothing around
it, is taken in the same run; `--package` adds the openai package, where it is installed. A journal line a call is
included in ours. The server takes the other core: on a busy machine read the ratio to the floor only.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Final

import aiohttp
import orjson

from eval.calls.endpoint import Client, Endpoint
from tests.llm_server import server_process

CALLS: Final = 2426  # 1,213 cases, an answer and a judge call each
LATENCY_S: Final = 0.05
ITEMS: Final = 12

Call = Callable[[list[dict[str, Any]]], Awaitable[None]]


def messages(number: int) -> list[dict[str, Any]]:
    """Return a judge's request about twelve items, another for each call."""
    items = "\n".join(
        f"[{number:032x}_{index}] points=+1 :: names finding {index} of the case" for index in range(ITEMS)
    )
    prompt = "A patient with a question that takes seventy words to ask. " * 7
    answer = "The answer takes about two hundred words to give. " * 25
    user = f"CLINICAL PROMPT:\n{prompt}\n\nANSWER:\n{answer}\n\nRUBRIC ITEMS:\n{items}"
    return [{"role": "system", "content": "Grade the answer. " * 45}, {"role": "user", "content": user}]


PARAMS: Final = {"max_completion_tokens": 5000, "response_format": {"type": "json_object"}, "temperature": 0}


async def ours(stack: AsyncExitStack, url: str, concurrency: int) -> Call:
    """Return a call through our client, with a journal line for it."""
    client = await stack.enter_async_context(Client(max_connections=concurrency))
    journal = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    endpoint = Endpoint(url, "sk-benchmark-0123456789")

    async def call(asked: list[dict[str, Any]]) -> None:
        reply = await client.call(endpoint, role="judge", model="m", messages=asked, params=PARAMS)
        if reply.state != "ok":
            raise RuntimeError(reply.reason)
        line = {"kind": "call", "text": reply.text, "usage": reply.usage and reply.usage.as_dict(), "sent": reply.sent}
        os.write(journal.fileno(), json.dumps(line).encode() + b"\n")

    return call


async def bare(stack: AsyncExitStack, url: str, concurrency: int) -> Call:
    """Return a call through aiohttp alone."""
    connector = aiohttp.TCPConnector(limit=concurrency)
    session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))

    async def call(asked: list[dict[str, Any]]) -> None:
        body = orjson.dumps({"model": "m", "messages": asked, **PARAMS})
        headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-benchmark"}
        async with session.post(f"{url}/chat/completions", data=body, headers=headers) as response:
            orjson.loads(await response.read())

    return call


async def package(stack: AsyncExitStack, url: str, concurrency: int) -> Call:
    """Return a call through the openai package as its manual writes it."""
    import openai

    client = await stack.enter_async_context(openai.AsyncOpenAI(base_url=url, api_key="sk-benchmark", max_retries=0))

    async def call(asked: list[dict[str, Any]]) -> None:
        create: Any = client.chat.completions.create
        await create(model="m", messages=asked, **PARAMS)

    del concurrency
    return call


async def measure(make: Callable[[AsyncExitStack, str, int], Awaitable[Call]], url: str, *, concurrency: int) -> str:
    """Return one line of the table."""
    numbers = iter(range(CALLS))
    async with AsyncExitStack() as stack:
        call = await make(stack, url, concurrency)

        async def work() -> None:
            for number in numbers:
                await call(messages(number))

        cpu, wall = _cpu_s(), time.monotonic()
        await asyncio.gather(*(work() for _ in range(concurrency)))
        cpu, wall = _cpu_s() - cpu, time.monotonic() - wall
    ideal = CALLS * LATENCY_S / concurrency
    return f"{make.__name__:8} {concurrency:4}   {1000 * cpu / CALLS:6.3f} ms   {wall:6.2f} s   {wall / ideal:5.2f} x"


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print the table."""
    makers = [bare, ours, package] if "--package" in sys.argv else [bare, ours]
    print("client   in flight  CPU/call   wall      over ideal")  # noqa: T201
    with server_process(latency_ms=LATENCY_S * 1000, record=False) as root:
        for concurrency in (64, 256):
            for make in makers:
                print(asyncio.run(measure(make, f"{root}/v1", concurrency=concurrency)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
