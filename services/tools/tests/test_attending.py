"""Calls that something else answers: looked at until then, by one request each."""

from collections.abc import Callable
from functools import partial

import pytest

from fairlead_eventlog.memory.work_queues import MemoryMessage
from fairlead_session.calls.lifecycle import Outcome, Succeeded
from fairlead_session.state.calls import UnsettledCall
from fairlead_tools.calls.begin import LOOK_S, Later, Looks, Spare
from fairlead_tools.calls.taken_request import Unheld
from fairlead_tools.registry.tool import CallContext
from services.tools.tests.conftest import AT, Asked, World, standing, tool, until


def attended(answer: Callable[[], Outcome | None]) -> Callable[..., object]:
    async def attend(_asked: Asked, _context: CallContext) -> Outcome | None:
        return answer()

    return attend


def _looked(job: MemoryMessage, times: int) -> bool:
    return job.deliveries > times


async def test_requests_for_a_call_that_is_not_answered_do_not_add_up(world: World) -> None:
    """A session that waits for long is swept again and again; the newest request looks after it."""
    answers: list[Outcome] = []
    made = tool("ask", attend=attended(lambda: answers[-1] if answers else None))
    world.registry.register(made)
    await world.call(made)
    for _ in range(5):
        await world.put()
    newest = world.jobs[-1]

    async with standing(world.worker("wkr_a")):
        await until(lambda: world.jobs == [newest])
        looked = newest.deliveries
        await until(lambda: newest.deliveries > looked + 1)
        assert world.jobs == [newest], "it looks again"

        answers.append(Succeeded({"said": "at last"}))
        await until(lambda: not world.jobs)

    assert await world.settlements() == ["{'said': 'at last'}"]
    assert (await world.starts(), len(world.wakes)) == ([], 1)


async def test_a_worker_that_saw_no_newer_request_keeps_the_one_it_has(world: World) -> None:
    """What one worker dropped was spare to it: another still looks."""
    made = tool("ask", attend=attended(lambda: None))
    world.registry.register(made)
    job = await world.call(made)
    for name in ("wkr_a", "wkr_b"):
        async with standing(world.worker(name)):
            seen = job.deliveries
            await until(partial(_looked, job, seen + 2))
        job.expire()

    assert world.jobs == [job]


def test_a_request_is_not_spare_for_one_that_does_not_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that lost its newest requests gives their sequences once more, from lower ones on."""
    now = 100.0
    monkeypatch.setattr("fairlead_tools.calls.begin.monotonic", lambda: now)
    call = UnsettledCall("msg_a", "call_1", "task", {}, "build", "idempotent", "r1", 7)
    looks = Looks()

    def again(sequence: int) -> Later | Spare:
        return looks.again(AT, call, Unheld(sequence=sequence))

    assert isinstance(again(120), Later)
    now += LOOK_S
    assert isinstance(again(118), Spare)
    now += LOOK_S + 1
    assert isinstance(again(118), Later)
    assert isinstance(again(119), Later)
    assert isinstance(again(118), Spare)
