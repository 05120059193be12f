"""The gate before one endpoint: every call passes it, and a 429 to one of them slows them all.

In: calls that enter and leave, successes and refusals for too many requests. Out: when a call may be sent. Not done
here: sending, and how long a server asks to wait.

Additive increase, multiplicative decrease: after a 429 the gate closes for the wait and then lets half as many pass at
a time as were under way; each full round of successes widens it by two. Places go in the order in which calls came, or
a busy worker's next call would always overtake the calls that wait.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from typing import Final

_WIDENING: Final = 2.0  # calls more at a time after a full round of successes


class Gate:
    """Let calls through to one endpoint, in their order; fewer at a time once the server said 429."""

    def __init__(self) -> None:
        """Start wide open."""
        self._in_flight = 0
        self._width = math.inf
        self._opens_at = 0.0
        self._narrowed_at = 0.0
        self._queue: deque[asyncio.Future[None]] = deque()

    async def enter(self, deadline: float) -> bool:
        """Wait for a place; return False when none comes before the deadline (monotonic seconds)."""
        if not self._queue and self._in_flight < self._width and self._is_open():
            self._in_flight += 1
            return True
        return self._opens_at <= deadline and await self._queued(deadline)

    async def _queued(self, deadline: float) -> bool:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # the place came together with the end of the wait
                self.leave()
            elif turn in self._queue:
                self._queue.remove(turn)
            if isinstance(error, TimeoutError):
                return False
            raise
        return True

    def _is_open(self) -> bool:
        return self._opens_at <= time.monotonic()

    def _admit(self) -> None:
        while self._queue and self._in_flight < self._width and self._is_open():
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                self._in_flight += 1

    def leave(self) -> None:
        """Give the place to the next call."""
        self._in_flight -= 1
        self._admit()

    def narrow(self, wait_s: float, *, entered_at: float) -> None:
        """Close for a while after a 429, and then let half as many pass; once for all that were under way."""
        now = time.monotonic()
        if now + wait_s > self._opens_at:
            self._opens_at = now + wait_s
            self._open()
        if entered_at >= self._narrowed_at:
            self._narrowed_at = now
            self._width = max(1.0, self._in_flight // 2)

    def _open(self) -> None:
        early = self._opens_at - time.monotonic()
        if early > 0:
            asyncio.get_running_loop().call_later(early, self._open)
        else:
            self._admit()

    def widen(self) -> None:
        """Let a few more pass after a success."""
        if self._width < math.inf:
            self._width += _WIDENING / self._width
            self._admit()
