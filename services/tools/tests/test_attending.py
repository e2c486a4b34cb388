"""Calls that something else answers: looked at until then, by one request each."""

from collections.abc import Callable
from functools import partial

from fairlead_eventlog.memory_work import MemoryJob
from fairlead_session.calling import Outcome, Succeeded
from fairlead_tools.tool import Context
from services.tools.tests.conftest import Asked, World, standing, tool, until


def attended(answer: Callable[[], Outcome | None]) -> Callable[..., object]:
    async def attend(_asked: Asked, _context: Context) -> Outcome | None:
        return answer()

    return attend


def _looked(job: MemoryJob, times: int) -> bool:
    return job.times > times


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
        looked = newest.times
        await until(lambda: newest.times > looked + 1)
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
            seen = job.times
            await until(partial(_looked, job, seen + 2))
        job.expire()

    assert world.jobs == [job]
