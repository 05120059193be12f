"""What a run asks next: units in an order that keeps memory flat, and the paid replies that may answer them.

In: the first units of a plan, and the final replies of other journals. Out: one unit at a time, and for a request the
reply that was paid for it elsewhere. Nothing is sent or written here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eval.calls.call import Call, call_name
from eval.calls.plan import Request
from eval.cases import Case, Item
from eval.judging.suites import WHOLE_CASE


@dataclass(slots=True)
class JudgedAnswer:
    """An answer that is being judged, and how many of its judge calls have not ended."""

    text: str
    left: int


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing to ask: a case's answer, or with `of_answer` a judge's decisions on a group of its items, once more."""

    case: Case
    repeat: int
    of_answer: JudgedAnswer | None = None
    group: str = WHOLE_CASE
    items: tuple[Item, ...] = ()
    judge: int = 0
    judge_repeat: int = 0


class Units:
    """The units of a run, handed out so that what was answered is judged before the next case is asked.

    So no more answers wait in memory than calls are in flight, however many cases there are.
    """

    def __init__(self, first: Iterator[Unit]) -> None:
        """Begin with the units that need nothing else."""
        self._first = first
        self._ready: deque[Unit] = deque()
        self._in_work = 0
        self._changed = asyncio.Event()

    async def take(self) -> Unit | None:
        """Return the next unit; None when there is none and none can come."""
        while True:
            unit = self._ready.popleft() if self._ready else next(self._first, None)
            if unit is not None:
                self._in_work += 1
                return unit
            if not self._in_work:
                return None
            self._changed.clear()
            await self._changed.wait()

    def give(self, follow: Iterable[Unit]) -> None:
        """End a unit that was taken, with those that can be asked now."""
        self._in_work -= 1
        self._ready.extend(follow)
        if self._ready or not self._in_work:
            self._changed.set()


class Reusable:
    """Final replies of other journals. Each is taken once: a repeat never gets the reply of another repeat."""

    def __init__(self) -> None:
        """Begin with none."""
        self._by_key: dict[str, list[Call]] = {}

    def add(self, call: Call) -> None:
        """Take in a final reply; of several for one unit the first stays."""
        calls = self._by_key.setdefault(call.key, [])
        if all(call_name(held) != call_name(call) for held in calls):
            calls.append(call)

    def drop_taken(self, calls: Iterable[Call]) -> None:
        """Leave out what earlier sessions of this run took: the calls of its journal."""
        for call in calls:
            if call.reused_from is not None:
                held = self._by_key.get(call.key, [])
                held[:] = [one for one in held if (one.at, one.text) != (call.at, call.text)]

    def take(self, request: Request) -> Call | None:
        """Return the reply to this very unit, else one to another unit that asked the same words; None if none is left.

        A case whose id changed, an item that moved: the words and so the key are the same, the unit's name is not.
        """
        calls = self._by_key.get(request.key)
        if not calls:
            return None
        name = (request.case.case_id, request.key, request.answer_repeat, request.group)
        return calls.pop(next((at for at, call in enumerate(calls) if call_name(call) == name), 0))
