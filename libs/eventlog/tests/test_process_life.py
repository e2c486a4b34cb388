"""Whether another process lives: two looks, over a connection that held all the time."""

import asyncio
from collections.abc import Callable

import pytest
from typing_extensions import override

from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.memory.liveness import MemoryLiveness
from fairlead_eventlog.process_life import PingResult, confirmed_life
from fairlead_testing.nats import Server

WAIT_S = 60.0


class ScriptedLiveness(MemoryLiveness):
    """Calls a function after each ping."""

    def __init__(self, after_ping: Callable[["ScriptedLiveness"], None]) -> None:
        super().__init__()
        self.pings = 0
        self._after_ping = after_ping

    @override
    async def ping(self, instance: str, *, timeout_s: float) -> PingResult:
        life = await super().ping(instance, timeout_s=timeout_s)
        self.pings += 1
        self._after_ping(self)
        return life


async def look(liveness: MemoryLiveness, reconnect_s: float = 0.02) -> PingResult:
    return await confirmed_life(
        liveness, "run_a", timeout_s=1.0, second_look_s=0.001, reconnect_s=reconnect_s
    )


async def test_a_process_is_gone_after_two_looks() -> None:
    liveness = ScriptedLiveness(lambda _liveness: None)

    assert await look(liveness) == "gone"
    assert liveness.pings == 2


async def test_a_process_that_answers_the_second_look_lives() -> None:
    """A7: the process reconnected between the looks."""
    liveness = ScriptedLiveness(lambda liveness: liveness.alive.add("run_a"))

    assert await look(liveness) == "alive"


async def test_a_silent_process_needs_no_second_look() -> None:
    """The process listens, so it is not reconnecting. Its own deadline says the rest."""
    liveness = ScriptedLiveness(lambda _liveness: None)
    liveness.alive.add("run_a")
    liveness.paused.add("run_a")

    assert await look(liveness) == "silent"
    assert liveness.pings == 1


async def test_a_young_connection_waits_for_others_that_are_on_their_way() -> None:
    """A7: our own connection just came back, and the other process may need a moment more."""

    def grow_older(liveness: ScriptedLiveness) -> None:
        liveness.connection_age_s += 0.008
        if liveness.pings == 2:
            liveness.alive.add("run_a")

    liveness = ScriptedLiveness(grow_older)
    liveness.connection_age_s = 0.0

    assert await look(liveness) == "alive"


async def test_silence_over_a_broken_connection_proves_nothing() -> None:
    """A7: nobody could have answered."""

    def connect_again(liveness: ScriptedLiveness) -> None:
        liveness.connection_age_s = 0.0
        liveness.paused.clear()

    liveness = ScriptedLiveness(connect_again)
    liveness.alive.add("run_a")
    liveness.paused.add("run_a")

    assert await look(liveness) == "alive"
    assert liveness.pings == 2


@pytest.mark.integration
async def test_a_process_that_reconnects_after_a_restart_of_the_server_is_not_gone(
    own_server: Server,
) -> None:
    """A7: whoever reconnects first does not take the others for dead."""
    async with (
        connect(own_server.address, name="owner") as owner,
        connect(own_server.address, name="asker") as asker,
    ):
        await owner.liveness.start_answering("run_a")
        async with asyncio.timeout(WAIT_S):
            # A server that has just started may not know of the subscription at once.
            while await asker.liveness.ping("run_a", timeout_s=2.0) != "alive":
                await asyncio.sleep(0.01)
        assert asker.liveness.connected_s() > 10**9

        own_server.kill()
        async with asyncio.timeout(WAIT_S):
            while asker.liveness.connected_s() > 0:
                await asyncio.sleep(0.01)
        own_server.start()

        async with asyncio.timeout(WAIT_S):
            life = await confirmed_life(asker.liveness, "run_a", timeout_s=0.5)
        assert life == "alive"
        assert asker.liveness.connected_s() < WAIT_S
