"""Tool workers over an in-memory event log: a session with calls, and tools for tests."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, TypeAlias

import pytest
from pydantic import BaseModel
from typing_extensions import override

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.dead_letters import MemoryDeadLetters
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.memory.liveness import MemoryLiveness
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.memory.wakes import MemoryWakes
from fairlead_eventlog.memory.work_queues import MemoryMessage, MemoryWorkQueues
from fairlead_eventlog.ports import START, Head, StoredCommit
from fairlead_schema import subjects
from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import (
    AttemptDispatched,
    ExecutionClaimed,
    SessionCreated,
    SessionEvent,
    StepStarted,
    ToolCalled,
    ToolFailed,
    ToolInputStarted,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.events.tools import NOBODY
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import CommitId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import Executor, RetryClass
from fairlead_schema.tools.request import ToolRequest
from fairlead_service import ids
from fairlead_service.config.sections import ToolsConfig
from fairlead_service.rpc.answers import Answerer, Command
from fairlead_session.calls.snapshot import snapshot_call
from fairlead_session.fold.evolve import evolve
from fairlead_session.state.session import Session
from fairlead_tools.calls.permission import CallPolicy
from fairlead_tools.calls.timings import CallTimings
from fairlead_tools.calls.worker import DEFAULT_POLICY, ToolWorker
from fairlead_tools.registry.application.verbs import REFUSALS
from fairlead_tools.registry.registry import Registry
from fairlead_tools.registry.tool import CallContext, Tool

AT = Address("default", "ses_1")
WAIT_S = 5.0
CREATOR = "key:ann"
MODEL = ModelRef(provider_id="acme", id="fast")
BEFORE: tuple[SessionEvent, ...] = (
    SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w")),
    ExecutionClaimed(generation=1, runner="run_a"),
    AttemptDispatched(
        attempt_id="att_1", assistant_message_id="msg_a", agent="build", model=MODEL, step=1
    ),
    StepStarted(assistant_message_id="msg_a", agent="build", model=MODEL),
)

Before: TypeAlias = Callable[[tuple[Draft, ...]], Awaitable[None]]


class EchoInput(BaseModel):
    """The input of the tools under test."""

    key: str = "k"


class EchoOutput(BaseModel):
    """The output of the tools under test."""

    said: str


class WatchedLog(MemoryLog):
    """A log that calls a hook just before each append."""

    before: Before | None = None

    @override
    async def append(
        self,
        at: Address,
        commit_id: CommitId,
        drafts: tuple[Draft, ...],
        *,
        after: Head,
        by: PrincipalName | None = None,
    ) -> StoredCommit:
        if self.before is not None:
            await self.before(drafts)
        return await super().append(at, commit_id, drafts, after=after, by=by)


@dataclass
class Gate:
    """A tool that waits until the test opens it, and records its runs."""

    runs: list[CallContext] = field(default_factory=list)
    cancelled: int = 0
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, request: EchoInput, context: CallContext) -> EchoOutput:
        self.runs.append(context)
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return EchoOutput(said=request.key)


async def echo(request: EchoInput, _context: CallContext) -> EchoOutput:
    return EchoOutput(said=request.key)


def tool(name: str = "echo", **changes: Any) -> Tool:  # noqa: ANN401
    base_tool = Tool(name=name, description=name, input=EchoInput, output=EchoOutput, execute=echo)
    return replace(base_tool, **changes)


@dataclass
class Harness:
    """One session, its log and queues, and the workers that serve it."""

    eventlog: EventLog
    log: WatchedLog
    registry: Registry
    settings: ToolsConfig
    with_snapshot: bool = False
    """Whether requests carry a snapshot of their call, as those of a runner do."""
    timings: CallTimings = field(default_factory=lambda: CallTimings(second_look_s=0.01))

    def worker(self, name: str = "wkr_a", policy: CallPolicy = DEFAULT_POLICY) -> ToolWorker:
        self.liveness.alive.add(name)
        return ToolWorker(
            name, self.eventlog, self.registry, self.settings, policy, timings=self.timings
        )

    async def write(
        self, *events: SessionEvent, at: Address = AT, by: PrincipalName | None = None
    ) -> None:
        """Append events as another process would."""
        drafts = tuple(Draft(ids.event_id(), ids.now_ms(), event) for event in events)
        head = await self.log.head(at)
        await MemoryLog.append(self.log, at, ids.commit_id(), drafts, after=head, by=by)

    async def call(
        self,
        tool_or_name: Tool | str,
        *,
        id_: str = "call_1",
        retry: RetryClass | None = None,
        **input_: Any,  # noqa: ANN401
    ) -> MemoryMessage:
        """Write a call and put its request into the queue, as a runner does."""
        name, info = (
            (tool_or_name, None)
            if isinstance(tool_or_name, str)
            else (tool_or_name.name, tool_or_name.info)
        )
        await self.write(
            ToolInputStarted(assistant_message_id="msg_a", call_id=id_, name=name),
            ToolCalled(
                assistant_message_id="msg_a",
                call_id=id_,
                tool=name,
                input=input_,
                provider=Executor(),
                agent="build",
                retry=retry or (info.retry if info else None),
                revision=info.revision if info else None,
            ),
        )
        return await self.put(id_)

    async def put(self, id_: str = "call_1") -> MemoryMessage:
        request = ToolRequest(session_id="ses_1", assistant_message_id="msg_a", call_id=id_)
        if self.with_snapshot:
            session, head = await self.session(), await self.log.head(AT)
            snapshot = snapshot_call(session, head.position, "msg_a", id_)
            request = request.model_copy(update={"snapshot": snapshot})
        body = request.model_dump_json(by_alias=True).encode()
        await self.eventlog.work.put(subjects.tool(AT, "default"), body)
        return self.jobs[-1]

    async def session(self) -> Session:
        page = await self.log.read(AT, after=START)
        events = (recorded for commit in page.commits for recorded in commit.commit.events)
        return reduce(evolve, events, Session(id="ses_1"))

    async def events(self) -> list[SessionEvent]:
        page = await self.log.read(AT, after=START)
        return [recorded.event for commit in page.commits for recorded in commit.commit.events]

    async def starts(self) -> list[str]:
        """The workers that started calls, in order."""
        return [
            event.worker
            for event in await self.events()
            if isinstance(event, ToolStarted) and event.worker != NOBODY
        ]

    async def wait_for_starts(self, count: int) -> None:
        """Wait until the log has this many starts of calls."""
        async with asyncio.timeout(WAIT_S):
            while len(await self.starts()) < count:
                await asyncio.sleep(0)

    async def settlements(self) -> list[str]:
        """How each call was settled, in order."""
        return [
            str(event.structured) if isinstance(event, ToolSucceeded) else event.error.message
            for event in await self.events()
            if isinstance(event, ToolSucceeded | ToolFailed)
        ]

    async def serve_all(self, name: str = "wkr_a") -> list[str]:
        """Run one worker until the queue is empty, and return the settlements of all calls."""
        async with run_worker(self.worker(name)):
            await wait_until(lambda: not self.jobs)
        return await self.settlements()

    @property
    def jobs(self) -> list[MemoryMessage]:
        assert isinstance(self.eventlog.work, MemoryWorkQueues)
        return self.eventlog.work.queue("TOOLS").messages

    @property
    def wakes(self) -> list[MemoryMessage]:
        assert isinstance(self.eventlog.wakes, MemoryWakes)
        return self.eventlog.wakes.queue.messages

    @property
    def liveness(self) -> MemoryLiveness:
        assert isinstance(self.eventlog.liveness, MemoryLiveness)
        return self.eventlog.liveness

    @property
    def dead_letters(self) -> list[tuple[str, str, bytes, str]]:
        assert isinstance(self.eventlog.dead_letters, MemoryDeadLetters)
        return self.eventlog.dead_letters.letters


@asynccontextmanager
async def run_worker(worker: ToolWorker) -> AsyncIterator[None]:
    task = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        await cancel_task(task)
        await worker.shutdown()


async def cancel_task(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def answer_of(
    command: type[Command], body: bytes, perform: Callable[[Command], Awaitable[Model]]
) -> dict[str, Any]:
    """The answer of a verb to a request body, as the server sends it."""
    answer = await Answerer(REFUSALS).answer(command, body, perform)
    message: dict[str, Any] = json.loads(answer.body)
    return message


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, or fail after a while."""
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0)


@pytest.fixture(params=[False, True], ids=["", "snapshot"])
async def harness(request: pytest.FixtureRequest) -> Harness:
    log = WatchedLog()
    new_harness = Harness(
        replace(memory_eventlog(), log=log, shards=log),
        log,
        Registry(),
        ToolsConfig(grace_s=0.01, concurrency=8),
        with_snapshot=request.param,
    )
    await new_harness.write(*BEFORE, by=CREATOR)
    return new_harness
