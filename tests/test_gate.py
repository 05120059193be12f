"""The gate before an endpoint: open, closed for a while, then narrow."""

from __future__ import annotations

import asyncio
import time

import pytest

from eval.calls.gate import Gate


def test_an_open_gate_lets_everybody_through_at_once() -> None:
    """No limit of its own before the first 429."""

    async def enter() -> list[bool]:
        gate = Gate()
        return [await gate.enter(time.monotonic() + 1) for _ in range(1000)]

    assert all(asyncio.run(enter()))


def test_a_closed_gate_opens_after_its_wait_and_lets_half_as_many_pass() -> None:
    """Eight under way, one 429 with a wait of 0.1 s: nobody passes before, four at a time after."""

    async def crowd() -> tuple[float, int]:
        gate = Gate()
        started = time.monotonic()
        for _ in range(8):
            await gate.enter(started + 5)
        gate.narrow(0.1, entered_at=time.monotonic())
        for _ in range(8):
            gate.leave()
        waiting = [asyncio.create_task(gate.enter(started + 5)) for _ in range(8)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        opened = time.monotonic() - started
        await asyncio.sleep(0.02)
        passed = sum(task.done() for task in waiting)
        for _ in range(8):
            gate.leave()
            await asyncio.sleep(0)
        await asyncio.gather(*waiting)
        return opened, passed

    opened, passed = asyncio.run(crowd())

    assert 0.1 <= opened < 4
    assert 4 == passed


def test_one_wave_of_429s_narrows_once() -> None:
    """Eight 429s to requests sent together halve the width once, not eight times."""

    async def width() -> int:
        gate = Gate()
        sent = time.monotonic()
        for _ in range(8):
            await gate.enter(sent + 1)
        for _ in range(8):
            gate.narrow(0.001, entered_at=sent)
            gate.leave()
        await asyncio.sleep(0.01)
        entering = [asyncio.create_task(gate.enter(time.monotonic() + 0.05)) for _ in range(8)]
        return sum(await asyncio.gather(*entering))

    assert 4 == asyncio.run(width())


def test_a_wait_beyond_the_deadline_is_refused_without_waiting() -> None:
    """A call that cannot make it is told at once; one that has time waits."""

    async def enter(wait_s: float) -> tuple[bool, float]:
        gate = Gate()
        started = time.monotonic()
        gate.narrow(wait_s, entered_at=started)
        return await gate.enter(started + 4), time.monotonic() - started

    early, took = asyncio.run(enter(60))
    late, waited = asyncio.run(enter(0.1))

    assert (False, True) == (early, late)
    assert took < 3 and waited >= 0.1


def test_places_go_in_the_order_in_which_calls_came() -> None:
    """A call that waits is not overtaken by the next call of a busy worker."""

    async def order() -> list[str]:
        gate, passed = Gate(), list[str]()
        gate.narrow(0.0, entered_at=time.monotonic())  # one at a time from here
        await gate.enter(time.monotonic() + 1)

        async def one(name: str) -> None:
            await gate.enter(time.monotonic() + 1)
            passed.append(name)
            gate.leave()

        waiting = [asyncio.create_task(one(name)) for name in "abc"]
        await asyncio.sleep(0)
        gate.leave()
        await asyncio.gather(one("late"), *waiting)
        return passed

    assert ["a", "b", "c", "late"] == asyncio.run(order())


@pytest.mark.parametrize("way", ["cancel", "deadline"])
def test_a_call_that_gives_up_leaves_no_hole(way: str) -> None:
    """After a cancelled or late call in the queue, the place goes to the next one."""

    async def give_up() -> bool:
        gate = Gate()
        gate.narrow(0.0, entered_at=time.monotonic())
        await gate.enter(time.monotonic() + 1)
        first = asyncio.create_task(gate.enter(time.monotonic() + (5 if way == "cancel" else 0.02)))
        second = asyncio.create_task(gate.enter(time.monotonic() + 5))
        await asyncio.sleep(0.05)
        first.cancel()
        await asyncio.wait([first])
        gate.leave()
        return await second

    assert asyncio.run(give_up())


def test_successes_widen_the_gate_again() -> None:
    """From one at a time, three successes are enough for three at a time."""

    async def widened() -> int:
        gate = Gate()
        gate.narrow(0.0, entered_at=time.monotonic())
        for _ in range(3):
            gate.widen()
        entering = [asyncio.create_task(gate.enter(time.monotonic() + 0.05)) for _ in range(8)]
        return sum(await asyncio.gather(*entering))

    assert 3 <= asyncio.run(widened()) < 8
