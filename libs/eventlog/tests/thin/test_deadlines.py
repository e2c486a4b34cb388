"""The deadlines of many requests on one timer."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fairlead_eventlog.jetstream.thin.deadlines import Deadlines, Waiter

HANG_S = 60.0


def end(waiter: Waiter) -> None:
    waiter.set_result(asyncio.get_running_loop().time())


async def test_a_hundred_thousand_waiters_expire_each_in_its_time() -> None:
    loop = asyncio.get_running_loop()
    deadlines = Deadlines(end)
    due: list[tuple[float, Waiter]] = []
    for n in range(100_000):
        waiter, timeout_s = loop.create_future(), 0.1 + n % 1000 / 2000
        due.append((loop.time() + timeout_s, waiter))
        deadlines.add(waiter, timeout_s)

    async with asyncio.timeout(HANG_S):
        await asyncio.gather(*(waiter for _, waiter in due))
    assert all(waiter.result() >= at for at, waiter in due), "nobody too early"


async def test_answered_requests_share_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    armed: list[float] = []
    call_at = loop.call_at

    def count(when: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:  # noqa: ANN401
        armed.append(when)
        return call_at(when, callback, *args)

    monkeypatch.setattr(loop, "call_at", count)
    deadlines = Deadlines(end)
    for n in range(1_000):
        waiter = loop.create_future()
        deadlines.add(waiter, 5.0 + n / 1000).discard(waiter)

    assert len(armed) == 1
    deadlines.close()


async def test_a_nearer_deadline_is_kept_and_a_later_one_too() -> None:
    loop = asyncio.get_running_loop()
    order: list[Waiter] = []

    def note(waiter: Waiter) -> None:
        order.append(waiter)
        end(waiter)

    deadlines = Deadlines(note)
    waiters = {timeout_s: loop.create_future() for timeout_s in (0.15, 0.05, 0.1)}
    for timeout_s, waiter in waiters.items():
        deadlines.add(waiter, timeout_s)
    kept = loop.create_future()
    deadlines.add(kept, 0.05).discard(kept)

    async with asyncio.timeout(HANG_S):
        await asyncio.gather(*waiters.values())
    assert order == [waiters[0.05], waiters[0.1], waiters[0.15]]
    assert not kept.done()


async def test_all_expire_when_the_connection_closes() -> None:
    deadlines = Deadlines(end)
    waiters = [asyncio.get_running_loop().create_future() for _ in range(3)]
    for waiter in waiters:
        deadlines.add(waiter, 3600.0)
    deadlines.close()

    assert all(waiter.done() for waiter in waiters)
