"""Calls that something else answers: each waits with one request until the answer is there."""

from collections.abc import Callable
from functools import partial

import pytest

from fairlead_eventlog.memory.work_queues import MemoryMessage
from fairlead_session.calls.lifecycle import Outcome, Succeeded
from fairlead_tools.calls.request import ANSWER_RECHECK_S, RequestDedup, TakenRequest
from fairlead_tools.registry.tool import CallContext
from services.tools.tests.conftest import AT, EchoInput, Harness, run_worker, tool, wait_until


def attend_with(answer: Callable[[], Outcome | None]) -> Callable[..., object]:
    async def attend(_request: EchoInput, _context: CallContext) -> Outcome | None:
        return answer()

    return attend


def _came_again(job: MemoryMessage, times: int) -> bool:
    return job.deliveries > times


async def test_requests_for_a_call_that_is_not_answered_do_not_add_up(harness: Harness) -> None:
    """Each sweep of a waiting session brings one more request. Only the newest one is kept."""
    answers: list[Outcome] = []
    ask_tool = tool("ask", attend=attend_with(lambda: answers[-1] if answers else None))
    harness.registry.register(ask_tool)
    await harness.call(ask_tool)
    for _ in range(5):
        await harness.put()
    newest = harness.jobs[-1]

    async with run_worker(harness.worker("wkr_a")):
        await wait_until(lambda: harness.jobs == [newest])
        deliveries = newest.deliveries
        await wait_until(lambda: newest.deliveries > deliveries + 1)
        assert harness.jobs == [newest], "the newest request comes again"

        answers.append(Succeeded({"said": "at last"}))
        await wait_until(lambda: not harness.jobs)

    assert await harness.settlements() == ["{'said': 'at last'}"]
    assert (await harness.starts(), len(harness.wakes)) == ([], 1)


async def test_a_worker_that_saw_no_newer_request_keeps_the_one_it_has(harness: Harness) -> None:
    """Each worker knows only the requests that it saw itself."""
    ask_tool = tool("ask", attend=attend_with(lambda: None))
    harness.registry.register(ask_tool)
    job = await harness.call(ask_tool)
    for name in ("wkr_a", "wkr_b"):
        async with run_worker(harness.worker(name)):
            deliveries = job.deliveries
            await wait_until(partial(_came_again, job, deliveries + 2))
        job.expire()

    assert harness.jobs == [job]


def test_a_request_is_no_duplicate_of_one_that_does_not_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that lost its newest requests gives their sequences to later requests."""
    now = 100.0
    monkeypatch.setattr("fairlead_tools.calls.request.monotonic", lambda: now)
    dedup = RequestDedup()

    def is_duplicate(sequence: int) -> bool:
        return dedup.is_duplicate(TakenRequest(AT, "msg_a", "call_1", sequence))

    assert not is_duplicate(120)
    now += ANSWER_RECHECK_S
    assert is_duplicate(118)
    now += ANSWER_RECHECK_S + 1
    assert not is_duplicate(118)
    assert not is_duplicate(119)
    assert is_duplicate(118)
