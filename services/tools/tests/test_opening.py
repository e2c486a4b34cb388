"""Requests that say what their sender knew: believed only as far as the log agrees."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from pydantic_core import to_json

from fairlead_eventlog.ports import START, CommitPage, Head
from fairlead_schema import subjects
from fairlead_schema.events import (
    BudgetSet,
    InterruptRequested,
    PermissionAsked,
    PermissionReplied,
    SessionEvent,
    ToolFailed,
    ToolProgressed,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.permission import CallSource, PermissionRequest
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import ErrorInfo, Executor, RetryClass
from fairlead_service.config.sections import ToolsConfig
from fairlead_session.calls.snapshot import brief
from fairlead_tools.registry.tool import CallContext, Tool
from services.tools.tests.conftest import AT, Asked, Gate, Told, World, standing, tool, until

pytestmark = pytest.mark.parametrize("world", [True], indirect=True, ids=["briefed"])


def counted(world: World, monkeypatch: pytest.MonkeyPatch) -> list[Head]:
    """From where the log is read from now on."""
    read, reads = world.log.read, list[Head]()

    async def counting(at: Address, *, after: Head, limit: int = 500) -> CommitPage:
        reads.append(after)
        return await read(at, after=after, limit=limit)

    monkeypatch.setattr(world.log, "read", counting)
    return reads


async def commits(world: World) -> list[list[type[SessionEvent]]]:
    """What each commit after the call holds."""
    page = await world.log.read(AT, after=START)
    written = [[type(one.event) for one in stored.commit.events] for stored in page.commits]
    return written[2:]


def once_before(world: World, kind: type, then: Callable[[], Awaitable[None]]) -> None:
    """Let something happen just before the first event of a kind is written."""

    async def before(drafts: tuple[Draft, ...]) -> None:
        if any(isinstance(draft.event, kind) for draft in drafts):
            world.log.before = None
            await then()

    world.log.before = before


@pytest.mark.parametrize("retry", ["idempotent", "once"])
async def test_a_briefed_call_is_begun_and_settled_without_a_look_at_the_log(
    world: World, retry: RetryClass, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-01: what runs once, or again with its key, is started in the log before it runs."""
    running = tool(retry=retry)
    world.registry.register(running)
    await world.call(running)
    reads = counted(world, monkeypatch)

    async with standing(world.worker()):
        await until(lambda: not world.jobs)

    assert reads == []
    assert await commits(world) == [[ToolStarted], [ToolSucceeded]]
    assert len(world.wakes) == 1


async def test_a_pure_call_that_is_over_at_once_is_started_and_settled_in_one_commit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-01: it changes nothing, so nobody has to know before that it runs."""
    running = tool(retry="pure")
    world.registry.register(running)
    await world.call(running)
    reads = counted(world, monkeypatch)

    async with standing(world.worker()):
        await until(lambda: not world.jobs)

    assert reads == []
    assert await commits(world) == [[ToolStarted, ToolSucceeded]]
    assert await world.settlements() == ["{'said': 'k'}"]


async def test_a_pure_call_that_takes_longer_is_started_while_it_runs(world: World) -> None:
    gate = Gate()
    running = tool(execute=gate, retry="pure")
    world.registry.register(running)
    await world.call(running)

    async with standing(world.worker()):
        await world.started(1)
        gate.opened.set()
        await until(lambda: not world.jobs)

    assert len(gate.runs) == 1
    assert await commits(world) == [[ToolStarted], [ToolSucceeded]]


async def test_a_pure_call_that_fails_at_once_keeps_what_it_told(world: World) -> None:
    """E-28: only a success replaces what was reported on the way."""

    async def fail(_asked: Asked, context: CallContext) -> Told:
        await context.report({"half": 1}, ())
        raise RuntimeError("no more")

    running = tool(execute=fail, retry="pure")
    world.registry.register(running)
    await world.call(running)

    assert await world.served() == ["Tool execution failed: no more"]
    session = await world.session()
    assert session.calls == ()
    assert any(isinstance(event, ToolProgressed) for event in await world.events())


@pytest.mark.parametrize("retry", ["pure", "idempotent", "once"])
async def test_an_interrupt_that_came_first_is_honoured(world: World, retry: RetryClass) -> None:
    """E-16: the brief is from before it. Nothing but a pure tool may even have run."""
    gate = Gate()
    gate.opened.set()
    running = tool(execute=gate, retry=retry)
    world.registry.register(running)
    await world.call(running)
    await world.write(InterruptRequested())

    assert await world.served() == []
    assert await world.starts() == []
    assert len(gate.runs) <= (retry == "pure")


@pytest.mark.parametrize("retry", ["pure", "idempotent", "once"])
async def test_an_interrupt_between_the_brief_and_the_start_wins(
    world: World, retry: RetryClass
) -> None:
    """E-16: the commit that starts the call fails, and the log says why."""
    running = tool(retry=retry)
    world.registry.register(running)
    await world.call(running)
    once_before(world, ToolStarted, lambda: world.write(InterruptRequested()))

    assert await world.served() == []
    assert await world.starts() == []


@pytest.mark.parametrize("retry", ["pure", "idempotent", "once"])
async def test_a_write_that_does_not_concern_the_call_costs_a_look_and_no_second_run(
    world: World, retry: RetryClass
) -> None:
    gate = Gate()
    gate.opened.set()
    running = tool(execute=gate, retry=retry)
    world.registry.register(running)
    await world.call(running)
    once_before(world, ToolStarted, lambda: world.write(BudgetSet(cost=1.0)))

    assert await world.served() == ["{'said': 'k'}"]
    assert len(gate.runs) == 1


async def test_a_call_settled_by_somebody_else_is_not_settled_again(world: World) -> None:
    """E-20: whoever was first counts; the sprint is forgotten."""
    running = tool(retry="pure")
    world.registry.register(running)
    await world.call(running)
    other = ToolFailed(
        assistant_message_id="msg_a",
        call_id="call_1",
        error=ErrorInfo(message="Tool execution interrupted"),
        provider=Executor(),
    )
    once_before(world, ToolStarted, lambda: world.write(other))

    assert await world.served() == ["Tool execution interrupted"]
    assert await world.starts() == []


async def test_a_result_too_large_for_one_commit_is_started_and_then_told_as_a_failure(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J-17: structured values are not cut, so one that no commit holds is a failure."""
    monkeypatch.setattr("fairlead_eventlog.memory.session_log.COMMIT_BYTES_MAX", 2_000)
    running = tool(retry="pure")
    world.registry.register(running)
    await world.call(running, key="k" * 1_000)

    async def big(_asked: Asked, _context: CallContext) -> Told:
        return Told(said="x" * 4_000)

    object.__setattr__(running, "execute", big)
    (settled,) = await world.served()

    assert settled.startswith("Tool execution failed: the result cannot be recorded")
    assert await world.starts() == ["wkr_a"]


async def test_a_sprint_that_nobody_wants_any_more_is_cancelled(world: World) -> None:
    """E-16: its session was interrupted before its start could be written."""
    gate = Gate()
    running: Tool = tool(execute=gate, retry="pure")
    world.registry.register(running)
    await world.call(running)
    once_before(world, ToolStarted, lambda: world.write(InterruptRequested()))

    async with standing(world.worker()):
        await until(lambda: not world.jobs)

    assert gate.cancelled == 1


async def test_many_calls_of_one_turn_all_run_once(world: World) -> None:
    """E-02: each was told of the same head; only one of them finds it."""
    gate = Gate()
    gate.opened.set()
    kinds: tuple[RetryClass, ...] = ("pure", "idempotent", "once")
    tools = [tool(f"echo_{retry}", execute=gate, retry=retry) for retry in kinds]
    for one in tools:
        world.registry.register(one)
    for number in range(12):
        await world.call(tools[number % 3], id_=f"call_{number}", key=f"k{number}")
    world.settings = ToolsConfig(grace_s=0.01, concurrency=32)

    settled = await world.served()

    assert sorted(settled) == sorted(f"{{'said': 'k{number}'}}" for number in range(12))
    assert sorted(context.call_id for context in gate.runs) == sorted(
        f"call_{number}" for number in range(12)
    )


async def misled(world: World, **wrong: object) -> None:
    """A request whose brief says something else than the log."""
    session, head = await world.session(), await world.log.head(AT)
    told = brief(session, head.position, "msg_a", "call_1")
    assert told is not None
    request = {
        "sessionID": "ses_1",
        "assistantMessageID": "msg_a",
        "callID": "call_1",
        "brief": {**told.wire(), **wrong},
    }
    world.jobs.clear()
    await world.eventlog.work.put(subjects.tool(AT, "default"), to_json(request))


@pytest.mark.parametrize("retry", ["idempotent", "once"])
async def test_only_a_tool_that_says_so_itself_runs_before_its_start(
    world: World, retry: RetryClass
) -> None:
    """E-01: a request is a hint, and what it says of a tool is not what the tool says."""
    gate = Gate()
    running = tool(execute=gate, retry=retry)
    world.registry.register(running)
    await world.call(running)
    await misled(world, retry="pure")
    ran: list[int] = []

    async def before(_drafts: tuple[Draft, ...]) -> None:
        await asyncio.sleep(0.02)
        ran.append(len(gate.runs))
        gate.opened.set()

    world.log.before = before
    await world.served()

    assert ran[0] == 0


@pytest.mark.parametrize("position", [-1, 0, 2**70])
async def test_a_brief_of_no_head_at_all_is_no_request(world: World, position: int) -> None:
    """On top of no head anybody could write anything, to a session that is not there."""
    running = tool(retry="once")
    world.registry.register(running)
    await world.call(running)
    await misled(world, position=position)

    assert await world.served() == []
    assert await world.starts() == []
    assert [source for source, *_ in world.buried] == ["tool"]


async def test_a_run_that_a_person_allowed_meanwhile_is_the_callers_own(world: World) -> None:
    """K-06: what the log says of the call now counts, and its settlement is for that."""
    gate = Gate()
    running = tool(execute=gate, retry="pure")
    world.registry.register(running)
    await world.call(running)
    asked = PermissionAsked(
        request=PermissionRequest(
            id="per_1",
            session_id="ses_1",
            action="echo",
            resources=("*",),
            source=CallSource(message_id="msg_a", call_id="call_1"),
        ),
        agent="build",
    )
    replied = PermissionReplied(request_id="per_1", reply="once")
    once_before(world, ToolStarted, lambda: world.write(asked, replied))

    async with standing(world.worker()):
        await world.started(1)
        gate.opened.set()
        await until(lambda: not world.jobs)

    assert await world.settlements() == ["{'said': 'k'}"]


async def test_a_sprints_time_runs_out_also_while_its_start_cannot_be_written(world: World) -> None:
    """J-20: its limit counts from when it began to run, whatever the log does meanwhile."""
    gate = Gate()
    running = tool(execute=gate, retry="pure", timeout_s=0.05)
    world.registry.register(running)
    await world.call(running)

    async def ended() -> None:
        await until(lambda: gate.cancelled == 1)

    once_before(world, ToolStarted, ended)

    assert await world.served() == ["Tool execution failed: timed out after 0.05 s"]
    assert gate.cancelled == 1
