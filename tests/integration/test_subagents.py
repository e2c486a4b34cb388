"""Sub-agents through real processes: a call is answered by a session, and nobody waits for it."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from fairlead_schema.events import ToolCalled
from fairlead_schema.record import Recorded
from fairlead_session.calls.child_ids import child_of
from fairlead_testing.session_driver import events_of, probe_stack, say, wait_until_settled
from fairlead_testing.stack import TIMEOUT_S, Stack, event_types

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

SLOW = {"providerID": "sim", "id": "slow"}
LONG = "tell me a long story " * 40


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    """Two runners and two tool workers."""
    async with probe_stack() as running:
        yield running


def task_prompt(prompt: str, *, agent: str = "general") -> str:
    """A prompt whose answer hands work to a sub-agent, which says what it heard."""
    arguments = json.dumps({"agent": agent, "description": "some work", "prompt": prompt})
    return f"[[sim: tool=task args='{arguments}' ; answer=done]] go"


async def child(up: Stack, session: str) -> str:
    """The session that answers the only call of another, once it was made and prompted."""
    log = await up.until(session, "tool.called")
    called = events_of(log, "tool.called")[0]
    assert isinstance(called, ToolCalled)
    assert not events_of(log, "tool.failed"), events_of(log, "tool.failed")
    below = child_of(session, called.assistant_message_id, called.call_id)
    await up.until(below, "prompt.admitted")
    return below


async def info(up: Stack, session: str) -> dict[str, Any]:
    answer: dict[str, Any] = (await up.ask("session.get", {"sessionID": session}))["data"]
    return answer


def answers(log: list[Recorded]) -> list[str]:
    return [event.content[0].text for event in events_of(log, "tool.succeeded")]


async def test_a_call_is_answered_by_a_session_of_its_own(up: Stack) -> None:
    """The parent parks or waits, the child answers once, and what it used counts above."""
    session = await up.session()
    await say(up, session, task_prompt("count the sails"))

    below = await child(up, session)
    log = await wait_until_settled(up, session)

    assert answers(log) == ["You said: count the sails"]
    assert (await info(up, below))["parentID"] == session
    assert (await info(up, below))["agent"] == "general"
    (finished,) = events_of(log, "child.finished")
    assert (finished.session_id, finished.tokens > 0) == (below, True)
    assert event_types(log).count("step.ended") == 2
    lines = event_types(await wait_until_settled(up, below))
    assert [lines.count(name) for name in ("prompt.admitted", "step.ended")] == [1, 1]


async def test_an_unknown_agent_is_told_to_the_model(up: Stack) -> None:
    """Nothing is created, and the model learns whom it may ask."""
    session = await up.session()
    await say(up, session, task_prompt("x", agent="nobody"))

    (failed,) = events_of(await wait_until_settled(up, session), "tool.failed")

    assert failed.error.message.startswith("Unknown sub-agent: nobody. There are: ")
    assert "general" in failed.error.message


async def test_an_interrupt_reaches_down(up: Stack) -> None:
    """The child stops too, keeps what it said, and its parent's call is settled as interrupted."""
    session = await up.session(model=SLOW)
    await say(up, session, task_prompt(LONG))
    below = await child(up, session)
    await up.until(below, "text.started")

    await up.ask("session.interrupt", {"sessionID": session})
    log, ended = await wait_until_settled(up, session), await wait_until_settled(up, below)

    (failed,) = events_of(log, "tool.failed")
    assert failed.error.message == "Tool execution interrupted"
    (stopped,) = events_of(ended, "step.failed")
    assert stopped.error.message == "Provider turn interrupted"
    assert events_of(ended, "execution.released")[-1].reason == "interrupted"

    # What it used before it was stopped counts above, as soon as that matters.
    assert not events_of(log, "child.finished")
    await say(up, session, "go on")
    await up.until(session, "child.finished")
    (finished,) = events_of(await wait_until_settled(up, session), "child.finished")
    assert finished.session_id == below


async def test_a_budget_reaches_down(up: Stack) -> None:
    """What the parent has used up its child cannot use: it asks no provider, and says why."""
    session = await up.session()
    await up.ask("session.budget", {"sessionID": session, "tokens": 1})
    await say(up, session, task_prompt("count the sails"))

    below = await child(up, session)
    resting: list[Recorded] = []
    async with asyncio.timeout(TIMEOUT_S):
        while not any(
            event.reason == "over-budget" for event in events_of(resting, "execution.released")
        ):
            await asyncio.sleep(0.05)
            resting = await up.events(session)
    await up.ask("session.budget", {"sessionID": session, "tokens": 1_000_000})
    log = await up.until(session, "step.ended", count=2)

    (failed,) = events_of(resting, "tool.failed")
    assert failed.error.message.startswith("The sub-agent stopped: the session has used 0 of 0")
    assert not events_of(await up.events(below), "attempt.dispatched")
    assert events_of(log, "text.ended")[-1].text == "done"


async def test_a_deleted_session_stops_those_below_it(up: Stack) -> None:
    """H-29: when the answer is there they were told, and their turns end now."""
    session = await up.session(model=SLOW)
    await say(up, session, task_prompt(LONG))
    below = await child(up, session)
    await up.until(below, "text.started")

    deleted = await up.http.delete(f"/api/session/{session}", params={"purge": "true"})

    assert deleted.status_code == httpx.codes.NO_CONTENT
    assert events_of(await up.events(below), "interrupt.requested")
    ended = await wait_until_settled(up, below)
    assert events_of(ended, "execution.released")[-1].reason == "interrupted"
    assert not events_of(ended, "step.ended")


async def test_a_child_that_is_interrupted_alone_fails_its_call(up: Stack) -> None:
    """Its parent goes on with the reason."""
    session = await up.session(model=SLOW)
    await say(up, session, task_prompt(LONG))
    below = await child(up, session)
    await up.until(below, "text.started")

    await up.ask("session.interrupt", {"sessionID": below})
    log = await wait_until_settled(up, session)

    (failed,) = events_of(log, "tool.failed")
    assert failed.error.message == "The sub-agent stopped: interrupted"
    assert event_types(log).count("step.ended") == 2


async def test_killed_workers_and_runners_make_no_second_child(up: Stack) -> None:
    """Everything that knew of the child dies while it works: it is found again, and answers once."""
    session = await up.session(model=SLOW)
    await say(up, session, task_prompt("tell me a story of some length " * 4))
    below = await child(up, session)
    await up.until(below, "text.started")
    for name, count in (("tools", 2), ("runner", 2)):
        for index in range(count):
            up.up.kill(name, index, signal.SIGKILL)

    log = await wait_until_settled(up, session)

    assert [text.startswith("You said: tell me a story") for text in answers(log)] == [True]
    lines = event_types(await wait_until_settled(up, below))
    assert lines.count("prompt.admitted") == lines.count("prompt.promoted") == 1
    assert lines.count("step.ended") == 1


async def test_nobody_is_held_while_a_child_works(up: Stack) -> None:
    """The parent is parked: its runner let go of it long before its child answers."""
    session = await up.session(model=SLOW)
    await say(up, session, task_prompt(LONG))
    below = await child(up, session)

    async with asyncio.timeout(TIMEOUT_S):
        while not any(
            event.reason == "parked"
            for event in events_of(await up.events(session), "execution.released")
        ):
            await asyncio.sleep(0.1)
    explained = await up.client.explain(session)
    await up.ask("session.interrupt", {"sessionID": session})

    assert explained["state"] == "waiting"
    assert not events_of(await up.events(below), "step.ended")
    await wait_until_settled(up, session)
    await wait_until_settled(up, below)
