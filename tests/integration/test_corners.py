"""The corners of the wake protocol, replayed against real processes (`tests/model/corners.py`).

All but two run without the sweep: nothing but the protocol itself may save them. Where a step is too quick
to hit from outside, the test writes to the log what the dead process would have written.
"""

import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from fairlead_schema.events import (
    StepStarted,
    ToolCalled,
    ToolInputEnded,
    ToolInputStarted,
)
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import Executor
from fairlead_service import ids
from fairlead_testing.session_driver import (
    SIM,
    boundary_events,
    count_runs,
    events_of,
    force,
    new_admission,
    probe_prompt,
    probe_stack,
    provider_calls,
    say,
    tool_revision,
    wait_for_probe,
    wait_until_settled,
)
from fairlead_testing.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

SLOW = "[[sim: chunks=40 delay_ms=50]] take your time"
LONG_MS = 20_000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    """A stack whose sweep never comes in time."""
    async with probe_stack(sweep_age_s=3600, tools_wait_s=0.4) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def swept() -> AsyncIterator[Stack]:
    """A stack whose sweep comes soon."""
    async with probe_stack(sweep_age_s=1) as running:
        yield running


async def test_the_sweep_finds_input_whose_ingest_died_before_its_wake(swept: Stack) -> None:
    """Corner: ingest dies between append and wake."""
    session = await swept.session()

    await force(swept, session, new_admission("nobody was told"))
    log = await wait_until_settled(swept, session)

    assert len(events_of(log, "prompt.promoted")) == 1
    assert len(events_of(log, "step.ended")) == 1


async def test_the_sweep_finds_a_turn_whose_wake_and_owner_are_gone(swept: Stack) -> None:
    """A stale acknowledgement took the wake, and then both runners died.

    Corner: a stale acknowledgement followed by two crashes.
    """
    session = await swept.session()
    prompt = new_admission("both of us are gone")

    await force(swept, session, prompt)
    await force(swept, session, *boundary_events(prompt, ids.message_id()))
    log = await wait_until_settled(swept, session)

    assert len(events_of(log, "execution.recovered")) == 1
    assert len(events_of(log, "prompt.promoted")) == 1
    assert events_of(log, "execution.claimed")[-1].generation == 2


async def test_an_overtaken_owner_writes_nothing_more(up: Stack) -> None:
    """P-02: it was paused, not dead, and the log fences it when it comes back.

    Corner: a paused owner is overtaken.
    """
    session = await up.session()
    up.up.kill("runner", 0, signal.SIGSTOP)
    try:
        await say(up, session, SLOW)
        await up.until(session, "step.started")
    finally:
        up.up.kill("runner", 0, signal.SIGCONT)
    up.up.kill("runner", 1, signal.SIGSTOP)
    try:
        await up.until(session, "step.ended")
        finished = await wait_until_settled(up, session)
        up.up.kill("runner", 0, signal.SIGSTOP)
    finally:
        up.up.kill("runner", 1, signal.SIGCONT)
    try:
        # Only the overtaken owner can serve this session: it is awake when the turn is over.
        await up.answer_another_session()
    finally:
        up.up.kill("runner", 0, signal.SIGCONT)

    assert await up.events(session) == finished
    assert len(events_of(finished, "execution.claimed")) == 2
    assert (
        (await provider_calls(up))[session] == len(events_of(finished, "attempt.dispatched")) == 2
    )


@pytest.mark.parametrize("moment", ["step.started", "step.ended", "execution.released"])
async def test_input_that_arrives_as_a_drain_ends_is_not_left_behind(
    up: Stack, moment: str
) -> None:
    """C-05, C-06: before the release it fails it; after it, the second look or a newer wake.

    Corner: input arrives as the turn ends.
    Corner: input arrives between release and acknowledgement.
    Corner: a newer wake comes while the drain ends.
    """
    session = await up.session()

    for number in range(12):
        before = len(events_of(await up.events(session), moment))
        await say(up, session, f"once more {number}")
        await up.until(session, moment, count=before + 1)
    log = await wait_until_settled(up, session)

    assert len(events_of(log, "prompt.promoted")) == 12


async def test_a_call_whose_request_was_lost_with_its_runner_is_run(up: Stack) -> None:
    """E-01: the call is durable, so the next owner sends its request.

    Corner: a runner dies between a call and its request.
    """
    session, assistant, call = await up.session(), ids.message_id(), "call_lost"
    prompt = new_admission("go")
    owner = {"assistant_message_id": assistant, "call_id": call}
    await force(up, session, prompt)
    await force(
        up,
        session,
        *boundary_events(prompt, assistant),
        StepStarted(assistant_message_id=assistant, agent="build", model=SIM),
        ToolInputStarted(**owner, name="probe_once"),
        ToolInputEnded(**owner, text="{}"),
        ToolCalled(
            **owner,
            tool="probe_once",
            input={"key": "lost"},
            provider=Executor(executed=False),
            agent="build",
            retry="once",
            revision=await tool_revision(up, "probe_once"),
        ),
    )

    await up.eventlog.wakes.wake(Address(DEFAULT_TENANT, session))
    log = await wait_until_settled(up, session)

    assert count_runs(up, "lost") == 1
    assert len(events_of(log, "tool.succeeded")) == 1
    assert events_of(log, "text.ended")[-1].text.startswith("The tool said")


async def test_a_settlement_that_meets_a_parking_runner_is_not_lost(up: Stack) -> None:
    """The calls end just before, while and just after their sessions park.

    Corner: a settlement arrives while the runner parks.
    """
    sessions = [await up.session() for _ in range(16)]

    for number, session in enumerate(sessions):
        await say(up, session, probe_prompt(f"park{number}", 320 + 10 * number))
    logs = [await wait_until_settled(up, session) for session in sessions]

    assert all(events_of(log, "text.ended")[-1].text == "done" for log in logs)
    assert [count_runs(up, f"park{number}") for number in range(16)] == [1] * 16


@pytest.mark.slow
async def test_a_once_call_whose_worker_died_is_settled_and_never_run_again(up: Stack) -> None:
    """E-20: its outcome is unknown, and that is what the model is told.

    Corner: the worker of a once call dies.
    """
    session = await up.session()
    await say(up, session, probe_prompt("widow", LONG_MS))
    await up.until(session, "tool.started")
    await wait_for_probe(up, "widow", "begun")

    for index in range(2):
        up.up.kill("tools", index, signal.SIGKILL)
    log = await wait_until_settled(up, session)
    await up.up.wait_ready()

    assert events_of(log, "tool.failed")[0].error.message == "Tool execution interrupted"
    assert count_runs(up, "widow") == 1, "it had begun before its worker died"
    assert events_of(log, "text.ended")[-1].text == "done"


async def test_an_interrupt_of_a_dead_owners_turn_is_honoured_by_the_next(up: Stack) -> None:
    """C-12: the interrupt is durable and holds for a later owner too.

    Corner: an interrupt arrives between a reading and its claim.
    """
    session = await up.session()
    await say(up, session, SLOW)
    await up.until(session, "step.started")

    for index in range(2):
        up.up.kill("runner", index, signal.SIGKILL)
    answer = await up.ask("session.interrupt", {"sessionID": session})
    log = await wait_until_settled(up, session)
    await up.up.wait_ready()

    assert "data" in answer
    assert events_of(log, "execution.released")[-1].reason == "interrupted"
    assert len(events_of(log, "attempt.dispatched")) == 1


async def test_an_interrupt_finds_a_parked_session(up: Stack) -> None:
    """C-12, E-17: nobody owns it, a tool runs for it, and both come to rest.

    Corner: an interrupt finds the session parked.
    """
    session = await up.session()
    await say(up, session, probe_prompt("parked", LONG_MS))
    await up.until(session, "execution.released")

    await up.ask("session.interrupt", {"sessionID": session})
    log = await wait_until_settled(up, session)

    assert [event.reason for event in events_of(log, "execution.released")] == [
        "parked",
        "interrupted",
    ]
    assert events_of(log, "tool.failed")[0].error.message == "Tool execution interrupted"


async def test_an_interrupt_drops_what_no_runner_has_begun(up: Stack) -> None:
    """C-12, C-16: its wake finds nothing to do; an exact retry afterwards counts as a wake.

    Corner: an interrupt meets what nobody has begun.
    """
    session, message = await up.session(), ids.message_id()[:12]
    prompt = {"sessionID": session, "id": message, "prompt": {"text": "[[sim: answer=now]]"}}
    for index in range(2):
        up.up.kill("runner", index, signal.SIGSTOP)
    try:
        await up.ask("session.prompt", prompt)
        answer = await up.ask("session.interrupt", {"sessionID": session})
        explanation = (await up.http.get(f"/api/session/{session}/explain")).json()["data"]
    finally:
        for index in range(2):
            up.up.kill("runner", index, signal.SIGCONT)
    await up.answer_another_session()
    quiet = await up.events(session)
    await up.ask("session.prompt", prompt)
    log = await wait_until_settled(up, session)

    assert answer["data"]["outcome"] == "dropped"
    assert explanation["state"] == "resting"
    assert [item.event.type for item in quiet[-2:]] == ["prompt.admitted", "interrupt.requested"]
    assert events_of(log, "text.ended")[-1].text == "now"
    assert len(events_of(log, "prompt.admitted")) == len(events_of(log, "prompt.promoted")) == 1


async def test_a_prompt_after_an_interrupt_counts(up: Stack) -> None:
    """C-13: earlier wakes are dropped, this one is not.

    Corner: a prompt after the interrupt counts.
    """
    session = await up.session()
    await say(up, session, SLOW)
    await up.until(session, "step.started")

    await up.ask("session.interrupt", {"sessionID": session})
    after = await say(up, session, "[[sim: answer=here]] are you")
    log = await wait_until_settled(up, session)

    assert after in [event.message_id for event in events_of(log, "prompt.promoted")]
    assert events_of(log, "text.ended")[-1].text == "here"
