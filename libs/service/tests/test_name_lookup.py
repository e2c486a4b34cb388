"""Look-ups of names: one that stalls delays nobody who asks for another one."""

import asyncio
from threading import Event
from typing import Any

import pytest

from fairlead_service.web import name_lookup
from fairlead_service.web.name_lookup import NameLookups, TooManyLookups

HANG_S = 20.0


class NameServer:
    """Answers every name at once, but those that begin with `stall` when it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer = Event()

    def find(self, host: str, _port: None, **_: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401
        self.asked.append(host)
        if host.startswith("stall"):
            self.answer.wait(HANG_S)
        if host == "nowhere":
            raise OSError("unknown")
        return [(2, 1, 6, "", ("203.0.113.1", 0))]


async def test_names_that_stall_delay_no_other_name() -> None:
    """There are more of them than threads for everything else in the event loop."""
    server = NameServer()
    lookups = NameLookups(server.find)
    stalled = [
        asyncio.create_task(lookups.find_addresses(f"stall{number}")) for number in range(100)
    ]
    async with asyncio.timeout(HANG_S):
        assert await lookups.find_addresses("well") == ["203.0.113.1"]
        assert not any(task.done() for task in stalled)
        server.answer.set()
        await asyncio.gather(*stalled)
        with pytest.raises(OSError, match="unknown"):
            await lookups.find_addresses("nowhere")


async def test_all_who_ask_for_a_name_share_a_look_up_and_each_may_stop_waiting() -> None:
    server = NameServer()
    lookups = NameLookups(server.find)
    first, second = [asyncio.create_task(lookups.find_addresses("stall")) for _ in range(2)]
    await asyncio.sleep(0.05)
    first.cancel()
    server.answer.set()
    async with asyncio.timeout(HANG_S):
        assert await second == ["203.0.113.1"]

    assert first.cancelled()
    assert server.asked == ["stall"]
    assert await lookups.find_addresses("stall") == ["203.0.113.1"]
    assert server.asked == ["stall", "stall"]


async def test_look_ups_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_lookup, "LOOKUPS_MAX", 2)
    server = NameServer()
    lookups = NameLookups(server.find)
    stalled = [asyncio.create_task(lookups.find_addresses(f"stall{one}")) for one in range(2)]
    await asyncio.sleep(0.05)
    with pytest.raises(TooManyLookups):
        await lookups.find_addresses("another")

    server.answer.set()
    async with asyncio.timeout(HANG_S):
        await asyncio.gather(*stalled)
        assert await lookups.find_addresses("another") == ["203.0.113.1"]
