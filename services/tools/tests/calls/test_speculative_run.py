"""Requests with a snapshot of their call, and pure tools that run before their start is written."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic_core import to_json

from fairlead_eventlog.ports import START, CommitPage, Head
from fairlead_eventlog.process_life import Nudge
from fairlead_eventlog.register_ports import StoredOutput
from fairlead_schema import subjects
from fairlead_schema.events import (
    BudgetSet,
    InterruptRequested,
    PermissionAsked,
    PermissionReplied,
    SessionEvent,
    ToolCalled,
    ToolFailed,
    ToolInputStarted,
    ToolProgressed,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.permission import CallSource, PermissionRequest
from fairlead_schema.record import Draft, decode
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import ErrorInfo, Executor, RetryClass
from fairlead_service.config.sections import ToolsConfig
from fairlead_session.calls.snapshot import snapshot_call
from fairlead_tools.registry.tool import CallContext, Tool
from services.tools.tests.conftest import (
    AT,
    EchoInput,
    EchoOutput,
    Gate,
    Harness,
    run_worker,
    tool,
    wait_until,
)

pytestmark = pytest.mark.parametrize("harness", [True], indirect=True, ids=["snapshot"])


def record_reads(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> list[Head]:
    """Record from where the log is read from now on."""
    read, reads = harness.log.read, list[Head]()

    async def read_and_record(
        at: Address, *, after: Head, limit: int = 500, reach: int = 0
    ) -> CommitPage:
        reads.append(after)
        return await read(at, after=after, limit=limit, reach=reach)

    monkeypatch.setattr(harness.log, "read", read_and_record)
    return reads


async def commits(harness: Harness) -> list[list[type[SessionEvent]]]:
    """The types of the events in each commit after the call."""
    page = await harness.log.read(AT, after=START)
    event_types = [[type(entry.event) for entry in stored.commit.events] for stored in page.commits]
    return event_types[2:]


def before_first_write(harness: Harness, kind: type, then: Callable[[], Awaitable[None]]) -> None:
    """Call a hook just before the first event of a kind is written."""

    async def before(drafts: tuple[Draft, ...]) -> None:
        if any(isinstance(draft.event, kind) for draft in drafts):
            harness.log.before = None
            await then()

    harness.log.before = before


@pytest.mark.parametrize("retry", ["idempotent", "once"])
async def test_a_call_with_a_snapshot_is_begun_and_settled_without_a_read(
    harness: Harness, retry: RetryClass, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-01: an `idempotent` or `once` tool runs after its start is written."""
    echo_tool = tool(retry=retry)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    reads = record_reads(harness, monkeypatch)

    async with run_worker(harness.worker()):
        await wait_until(lambda: not harness.jobs)

    assert reads == []
    assert await commits(harness) == [[ToolStarted], [ToolSucceeded]]
    assert len(harness.wakes) == 1


async def test_the_owner_gets_the_settlement_with_its_nudge(harness: Harness) -> None:
    """The runner that waits for the call needs no read to go on."""
    echo_tool, nudges = tool(retry="pure"), list[Nudge]()
    harness.registry.register(echo_tool)
    await harness.eventlog.liveness.start_answering("run_a", nudges.append)
    await harness.call(echo_tool)

    async with run_worker(harness.worker()):
        await wait_until(lambda: not harness.jobs)

    (nudge,) = nudges
    assert nudge.commit is not None
    assert nudge.commit.position == nudge.position == (await harness.eventlog.log.head(AT)).position
    carried = decode(nudge.commit.payload)
    assert [type(one.event) for one in carried.events] == [ToolStarted, ToolSucceeded]


async def test_a_pure_call_that_is_over_at_once_is_started_and_settled_in_one_commit(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-01: a pure tool changes nothing, so it may run before its start is written."""
    echo_tool = tool(retry="pure")
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    reads = record_reads(harness, monkeypatch)

    async with run_worker(harness.worker()):
        await wait_until(lambda: not harness.jobs)

    assert reads == []
    assert await commits(harness) == [[ToolStarted, ToolSucceeded]]
    assert await harness.settlements() == ["{'said': 'k'}"]


async def test_a_pure_call_that_takes_longer_is_started_while_it_runs(harness: Harness) -> None:
    gate = Gate()
    echo_tool = tool(execute=gate, retry="pure")
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    async with run_worker(harness.worker()):
        await harness.wait_for_starts(1)
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert len(gate.runs) == 1
    assert await commits(harness) == [[ToolStarted], [ToolSucceeded]]


async def test_a_quick_call_starts_while_its_large_output_is_stored(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-01: a slow store delays the settlement, not the start."""
    stored, put = asyncio.Event(), harness.eventlog.outputs.put

    async def put_slowly(*args: Any, **options: Any) -> StoredOutput:  # noqa: ANN401
        await stored.wait()
        return await put(*args, **options)

    monkeypatch.setattr(harness.eventlog.outputs, "put", put_slowly)

    async def say_much(_request: EchoInput, _context: CallContext) -> EchoOutput:
        return EchoOutput(said="much\n" * 100_000)

    echo_tool = tool(execute=say_much, retry="pure")
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    async with run_worker(harness.worker()):
        await harness.wait_for_starts(1)
        assert await harness.settlements() == []
        stored.set()
        await wait_until(lambda: not harness.jobs)

    assert await commits(harness) == [[ToolStarted], [ToolSucceeded]]
    (settled,) = [event for event in await harness.events() if isinstance(event, ToolSucceeded)]
    assert settled.output_paths is not None


async def test_a_large_output_of_a_call_that_was_stopped_is_dropped(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-16: an interrupt came before the start, so nobody waits for the store."""

    async def put_never(*_args: Any, **_options: Any) -> StoredOutput:  # noqa: ANN401
        await asyncio.Event().wait()
        raise AssertionError("cancelled")

    monkeypatch.setattr(harness.eventlog.outputs, "put", put_never)

    async def say_much(_request: EchoInput, _context: CallContext) -> EchoOutput:
        await harness.write(InterruptRequested())
        return EchoOutput(said="much\n" * 100_000)

    echo_tool = tool(execute=say_much, retry="pure")
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    async with run_worker(harness.worker()):
        await wait_until(lambda: not harness.jobs)

    assert await harness.starts() == []
    assert await harness.settlements() == []


async def test_a_pure_call_that_fails_at_once_keeps_what_it_told(harness: Harness) -> None:
    """E-28: only a success replaces the last report."""

    async def fail(_request: EchoInput, context: CallContext) -> EchoOutput:
        await context.report({"half": 1}, ())
        raise RuntimeError("no more")

    echo_tool = tool(execute=fail, retry="pure")
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    assert await harness.serve_all() == ["Tool execution failed: no more"]
    session = await harness.session()
    assert session.calls == ()
    assert any(isinstance(event, ToolProgressed) for event in await harness.events())


@pytest.mark.parametrize("retry", ["pure", "idempotent", "once"])
async def test_an_interrupt_that_came_first_is_honoured(
    harness: Harness, retry: RetryClass
) -> None:
    """E-16: the snapshot is older than the interrupt. Only a pure tool may have run."""
    gate = Gate()
    gate.opened.set()
    echo_tool = tool(execute=gate, retry=retry)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    await harness.write(InterruptRequested())

    assert await harness.serve_all() == []
    assert await harness.starts() == []
    assert len(gate.runs) <= (retry == "pure")


@pytest.mark.parametrize("retry", ["pure", "idempotent", "once"])
async def test_an_interrupt_between_the_snapshot_and_the_start_wins(
    harness: Harness, retry: RetryClass
) -> None:
    """E-16: the commit that starts the call fails, and the log says why."""
    echo_tool = tool(retry=retry)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    before_first_write(harness, ToolStarted, lambda: harness.write(InterruptRequested()))

    assert await harness.serve_all() == []
    assert await harness.starts() == []


@pytest.mark.parametrize("retry", ["pure", "idempotent", "once"])
async def test_a_write_that_does_not_concern_the_call_costs_a_look_and_no_second_run(
    harness: Harness, retry: RetryClass
) -> None:
    gate = Gate()
    gate.opened.set()
    echo_tool = tool(execute=gate, retry=retry)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    before_first_write(harness, ToolStarted, lambda: harness.write(BudgetSet(cost=1.0)))

    assert await harness.serve_all() == ["{'said': 'k'}"]
    assert len(gate.runs) == 1


async def test_a_call_settled_by_somebody_else_is_not_settled_again(harness: Harness) -> None:
    """E-20: the first settlement counts, and the speculative run is dropped."""
    echo_tool = tool(retry="pure")
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    other = ToolFailed(
        assistant_message_id="msg_a",
        call_id="call_1",
        error=ErrorInfo(message="Tool execution interrupted"),
        provider=Executor(),
    )
    before_first_write(harness, ToolStarted, lambda: harness.write(other))

    assert await harness.serve_all() == ["Tool execution interrupted"]
    assert await harness.starts() == []


async def test_a_result_too_large_for_one_commit_is_started_and_then_told_as_a_failure(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J-17: structured values are not cut, so a value that no commit can hold is a failure."""
    monkeypatch.setattr("fairlead_eventlog.memory.session_log.COMMIT_BYTES_MAX", 2_000)
    echo_tool = tool(retry="pure")
    harness.registry.register(echo_tool)
    await harness.call(echo_tool, key="k" * 1_000)

    async def big(_request: EchoInput, _context: CallContext) -> EchoOutput:
        return EchoOutput(said="x" * 4_000)

    object.__setattr__(echo_tool, "execute", big)
    (settlement,) = await harness.serve_all()

    assert settlement.startswith("Tool execution failed: the result cannot be recorded")
    assert await harness.starts() == ["wkr_a"]


async def test_a_speculative_run_that_nobody_wants_any_more_is_cancelled(harness: Harness) -> None:
    """E-16: the session was interrupted before the start could be written."""
    gate = Gate()
    echo_tool: Tool = tool(execute=gate, retry="pure")
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    before_first_write(harness, ToolStarted, lambda: harness.write(InterruptRequested()))

    async with run_worker(harness.worker()):
        await wait_until(lambda: not harness.jobs)

    assert gate.cancelled == 1


@pytest.mark.parametrize("retry", ["pure", "once"])
async def test_the_calls_of_one_turn_read_nothing_though_they_assume_one_head(
    harness: Harness, retry: RetryClass, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-01, E-02: what the worker itself wrote since is all that their snapshots lack."""
    echo_tool = tool(retry=retry)
    harness.registry.register(echo_tool)
    await harness.write(
        *(
            event
            for number in range(4)
            for event in (
                ToolInputStarted(
                    assistant_message_id="msg_a", call_id=f"call_{number}", name=echo_tool.name
                ),
                ToolCalled(
                    assistant_message_id="msg_a",
                    call_id=f"call_{number}",
                    tool=echo_tool.name,
                    input={"key": str(number)},
                    provider=Executor(),
                    agent="build",
                    retry=retry,
                    revision=echo_tool.info.revision,
                ),
            )
        )
    )
    for number in range(4):
        await harness.put(f"call_{number}")
    reads = record_reads(harness, monkeypatch)

    async with run_worker(harness.worker()):
        await wait_until(lambda: not harness.jobs)

    assert reads == []
    events = [type(event) for event in await harness.events()]
    assert (events.count(ToolStarted), events.count(ToolSucceeded)) == (4, 4)
    monkeypatch.undo()
    session = await harness.session()
    assert session.calls == ()


async def test_a_foreign_commit_between_the_calls_of_a_turn_is_read(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-16: the second call of a turn sees the interrupt that came after the first."""
    echo_tool = tool(retry="once")
    harness.registry.register(echo_tool)
    await harness.call(echo_tool, id_="call_1", key="1")
    second = await harness.call(echo_tool, id_="call_2", key="2")
    interrupted = False

    async def interrupt(drafts: tuple[Draft, ...]) -> None:
        nonlocal interrupted
        starts = [d.event.call_id for d in drafts if isinstance(d.event, ToolStarted)]
        if starts == ["call_2"] and not interrupted:
            interrupted = True
            await harness.write(InterruptRequested())

    assert second is not None
    harness.log.before = interrupt
    reads = record_reads(harness, monkeypatch)

    async with run_worker(harness.worker()):
        await wait_until(lambda: not harness.jobs)

    assert interrupted
    assert reads != []
    starts = [one.call_id for one in await harness.events() if isinstance(one, ToolStarted)]
    assert starts == ["call_1"]


async def test_many_calls_of_one_turn_all_run_once(harness: Harness) -> None:
    """E-02: all snapshots name the same head, and only the first commit finds it."""
    gate = Gate()
    gate.opened.set()
    kinds: tuple[RetryClass, ...] = ("pure", "idempotent", "once")
    tools = [tool(f"echo_{retry}", execute=gate, retry=retry) for retry in kinds]
    for echo_tool in tools:
        harness.registry.register(echo_tool)
    for number in range(12):
        await harness.call(tools[number % 3], id_=f"call_{number}", key=f"k{number}")
    harness.settings = ToolsConfig(grace_s=0.01, concurrency=32)

    settlements = await harness.serve_all()

    assert sorted(settlements) == sorted(f"{{'said': 'k{number}'}}" for number in range(12))
    assert sorted(context.call_id for context in gate.runs) == sorted(
        f"call_{number}" for number in range(12)
    )


async def put_wrong_snapshot(harness: Harness, **wrong: object) -> None:
    """Put a request whose snapshot differs from the log."""
    session, head = await harness.session(), await harness.log.head(AT)
    snapshot = snapshot_call(session, head.position, "msg_a", "call_1")
    assert snapshot is not None
    request = {
        "sessionID": "ses_1",
        "assistantMessageID": "msg_a",
        "callID": "call_1",
        "brief": {**snapshot.wire(), **wrong},
    }
    harness.jobs.clear()
    await harness.eventlog.work.put(subjects.tool(AT, "default"), to_json(request))


@pytest.mark.parametrize("retry", ["idempotent", "once"])
async def test_only_a_tool_that_says_so_itself_runs_before_its_start(
    harness: Harness, retry: RetryClass
) -> None:
    """E-01: a request is a hint: the retry class of the registered tool decides."""
    gate = Gate()
    echo_tool = tool(execute=gate, retry=retry)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    await put_wrong_snapshot(harness, retry="pure")
    ran: list[int] = []

    async def before(_drafts: tuple[Draft, ...]) -> None:
        await asyncio.sleep(0.02)
        ran.append(len(gate.runs))
        gate.opened.set()

    harness.log.before = before
    await harness.serve_all()

    assert ran[0] == 0


@pytest.mark.parametrize("position", [-1, 0, 2**70])
async def test_a_snapshot_of_no_head_at_all_is_no_request(harness: Harness, position: int) -> None:
    """A commit without a head would create a session that does not exist."""
    echo_tool = tool(retry="once")
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    await put_wrong_snapshot(harness, position=position)

    assert await harness.serve_all() == []
    assert await harness.starts() == []
    assert [source for source, *_ in harness.dead_letters] == ["tool"]


async def test_a_run_that_a_person_allowed_meanwhile_is_the_callers_own(harness: Harness) -> None:
    """K-06: the settlement is for the call as the log holds it now."""
    gate = Gate()
    echo_tool = tool(execute=gate, retry="pure")
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    ask = PermissionAsked(
        request=PermissionRequest(
            id="per_1",
            session_id="ses_1",
            action="echo",
            resources=("*",),
            source=CallSource(message_id="msg_a", call_id="call_1"),
        ),
        agent="build",
    )
    reply = PermissionReplied(request_id="per_1", reply="once")
    before_first_write(harness, ToolStarted, lambda: harness.write(ask, reply))

    async with run_worker(harness.worker()):
        await harness.wait_for_starts(1)
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert await harness.settlements() == ["{'said': 'k'}"]


async def test_a_speculative_run_times_out_also_while_its_start_cannot_be_written(
    harness: Harness,
) -> None:
    """J-20: the time limit counts from the start of the tool, also while the log is slow."""
    gate = Gate()
    echo_tool = tool(execute=gate, retry="pure", timeout_s=0.05)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    async def wait_for_cancellation() -> None:
        await wait_until(lambda: gate.cancelled == 1)

    before_first_write(harness, ToolStarted, wait_for_cancellation)

    assert await harness.serve_all() == ["Tool execution failed: timed out after 0.05 s"]
    assert gate.cancelled == 1
