"""Calls that something else answers: no request waits for the answer, which brings one of its own."""

from collections.abc import Callable

from fairlead_session.calls.lifecycle import Outcome, Succeeded
from fairlead_tools.registry.tool import CallContext
from services.tools.tests.conftest import EchoInput, Harness, run_worker, tool, wait_until


def attend_with(answer: Callable[[], Outcome | None]) -> Callable[..., object]:
    async def attend(_request: EchoInput, _context: CallContext) -> Outcome | None:
        return answer()

    return attend


async def test_a_call_that_is_not_answered_holds_no_place_in_its_queue(harness: Harness) -> None:
    """A hundred thousand such calls would stop a pool if each kept its request."""
    answers: list[Outcome] = []
    ask_tool = tool("ask", attend=attend_with(lambda: answers[-1] if answers else None))
    harness.registry.register(ask_tool)
    await harness.call(ask_tool)
    for _ in range(5):
        await harness.put()

    async with run_worker(harness.worker("wkr_a")):
        await wait_until(lambda: not harness.jobs)
        assert await harness.settlements() == []

        answers.append(Succeeded({"said": "at last"}))
        await harness.put()
        await wait_until(lambda: not harness.jobs)

    assert await harness.settlements() == ["{'said': 'at last'}"]
    assert (await harness.starts(), len(harness.wakes)) == ([], 1)


async def test_the_request_of_a_worker_that_dies_before_the_acknowledgement_comes_again(
    harness: Harness,
) -> None:
    """The next worker finds what the first one began, and acknowledges."""
    attended: list[str] = []

    def note() -> None:
        attended.append("again")

    ask_tool = tool("ask", attend=attend_with(note))
    harness.registry.register(ask_tool)
    job = await harness.call(ask_tool)
    job.deliveries = 1  # The first worker took it and died.

    async with run_worker(harness.worker("wkr_b")):
        await wait_until(lambda: not harness.jobs)

    assert attended == ["again"]
    assert await harness.settlements() == []
