"""Whatever happens and in whatever order, each client gets each event once (docs/adr/0028)."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import cast

from hypothesis import example, given, settings
from hypothesis import strategies as st
from typing_extensions import override

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.commits import require_readable
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.ports import EntryPage, StoredCommit
from fairlead_gateway.http.operation import ApiRequest, TargetSession
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.http.sse import CAUGHT_UP, FrameQueue, SlowClient
from fairlead_gateway.routes.events.replay import FollowQuery, Replay
from fairlead_gateway.runtime import Runtime
from fairlead_gateway.settings import GatewaySettings
from fairlead_schema.delta import TextDelta
from fairlead_schema.events import (
    ExecutionClaimed,
    SessionArchived,
    SessionCreated,
    SessionEvent,
    SyntheticAdded,
)
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.location import LocationRef
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_service.supervise import cancel_and_wait
from fairlead_testing.read_model import MemoryReadModel
from services.gateway.tests.conftest import open_runtime

AT = Address(DEFAULT_TENANT, "ses_1")
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
# A queue so small that a client which does not read is cut off within one example.
FRAMES_MAX = 4
BYTES_MAX = 2_000
STEPS_MAX = 60
ROUNDS_MAX = 400


class UnevenLog(MemoryLog):
    """Answers after a random number of rounds, and sometimes as a replica that lags behind."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance
        self.tails = 0

    @override
    async def read_entries(
        self, at: Address, *, after: int, limit: int = 500, reach: int = 0
    ) -> EntryPage:
        await self._wait()
        limit = self._chance.choice([1, 2, limit])
        page = await super().read_entries(at, after=after, limit=limit, reach=reach)
        if page.entries and self._chance.random() < 0.2:
            shown = page.entries[: self._chance.randrange(len(page.entries))]
            last = shown[-1].position if shown else after
            return EntryPage(shown, more=last < reach)
        return page

    @override
    async def tail(self, at: Address, *, after: int) -> AsyncIterator[StoredCommit]:
        self.tails += 1
        commits, read = self._sessions[at], 0
        try:
            while True:
                for stored in commits[read:]:
                    read += 1
                    await self._wait()
                    if stored.head.seq > after:
                        yield require_readable(stored)
                async with self._appended:
                    if read == len(commits):
                        await self._appended.wait()
        finally:
            self.tails -= 1

    async def _wait(self) -> None:
        for _ in range(self._chance.randrange(4)):
            await asyncio.sleep(0)


@dataclass
class Client:
    """A client that reconnects from the last event that it has read."""

    runtime: Runtime
    with_fragments: bool
    cursor: int
    reads: int
    """How many times it reads of ten chances."""
    started_at: int = field(init=False)
    seqs: list[int] = field(default_factory=list)
    cut_off: int = 0
    _frames: FrameQueue = field(init=False)
    _task: "asyncio.Task[None]" = field(init=False)

    def __post_init__(self) -> None:
        self.started_at = self.cursor
        self.connect()

    @property
    def last(self) -> int:
        return self.seqs[-1] if self.seqs else self.cursor

    def connect(self) -> None:
        self._frames = FrameQueue(frames_max=FRAMES_MAX, bytes_max=BYTES_MAX)
        self._task = asyncio.create_task(self._run(self.last))

    async def disconnect(self) -> None:
        await cancel_and_wait(self._task)

    async def read(self) -> None:
        """Read what waits, and connect again after a cut."""
        if self._task.done():
            error = self._task.exception()
            assert isinstance(error, SlowClient), error
            self.cut_off += 1
            self.connect()
            return
        try:
            async with asyncio.timeout(0):
                chunk = await self._frames.take()
        except TimeoutError:
            return
        for frame in chunk.removesuffix(b"\n\n").split(b"\n\n"):
            if frame.startswith(b"id: "):
                self.seqs.append(int(frame.split(b"\n")[0].removeprefix(b"id: ")))
            else:
                assert frame + b"\n\n" == CAUGHT_UP or frame.startswith(b"data: "), frame

    async def _run(self, after: int) -> None:
        head = await self.runtime.nats().log.head(AT)
        request = ApiRequest(
            http=cast("object", None),  # type: ignore[arg-type]
            runtime=self.runtime,
            principal=cast("object", None),  # type: ignore[arg-type]
            query=FollowQuery(after=after),
            body=EmptyInput(),
            target=TargetSession(AT, head),
        )
        await Replay(request, with_fragments=self.with_fragments).run(self._frames)


class World:
    """One gateway, one session, and everything that may happen to them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - a test
        self.log = UnevenLog(self.chance)
        self.eventlog: EventLog = replace(memory_eventlog(), log=self.log, shards=self.log)
        read = MemoryReadModel()
        self.runtime = open_runtime(GatewaySettings(), lambda: self.eventlog, read)
        self.clients: list[Client] = []
        self.visible: dict[int, str] = {}
        self._ids = count(1)

    async def append(self) -> None:
        """One commit of some events, each public, a notice or private."""
        head = await MemoryLog.head(self.log, AT)
        events: list[SessionEvent] = [] if head.seq else [CREATED]
        for _ in range(self.chance.randint(1, 3)):
            number = next(self._ids)
            note = SyntheticAdded(message_id=f"msg_{number}", text="x" * self.chance.randrange(300))
            claimed = ExecutionClaimed(generation=number, runner="run_1")
            kinds: list[SessionEvent] = [note, SessionArchived(), claimed]
            events.append(self.chance.choice(kinds))
        drafts = tuple(Draft(f"evt_{next(self._ids)}", 1, event) for event in events)
        await self.log.append(AT, f"cmt_{next(self._ids)}", drafts, after=head)
        for seq, event in enumerate(events, start=head.seq + 1):
            self.visible[seq] = event.visibility

    async def step(self) -> None:
        match self.chance.randrange(10):
            case 0 | 1 | 2:
                await self.append()
            case 3:
                delta = TextDelta(assistant_message_id="msg_a", text_id="t", delta="…" * 40)
                await self.eventlog.deltas.send(AT, delta)
            case 4 if len(self.clients) < 6:
                head = await MemoryLog.head(self.log, AT)
                self.clients.append(
                    Client(
                        self.runtime,
                        with_fragments=self.chance.random() < 0.5,
                        cursor=self.chance.randint(0, head.seq),
                        reads=self.chance.choice([0, 2, 10]),
                    )
                )
            case 5 if self.clients:
                client = self.chance.choice(self.clients)
                await client.disconnect()
                client.connect()
            case _:
                await asyncio.sleep(0)
        for client in self.clients:
            if self.chance.randrange(10) < client.reads:
                await client.read()

    def expected(self, client: Client) -> list[int]:
        kinds = {"public", "notice"} if client.with_fragments else {"public"}
        return [
            seq for seq, kind in self.visible.items() if kind in kinds and seq > client.started_at
        ]

    async def settle(self) -> None:
        """Let every client read to the end."""
        for _ in range(ROUNDS_MAX):
            if all(client.seqs == self.expected(client) for client in self.clients):
                return
            await asyncio.sleep(0.001)
            for client in self.clients:
                await client.read()


@settings(max_examples=100, deadline=None)
@given(st.integers(min_value=0, max_value=2**32))
@example(2312)
def test_each_client_gets_each_event_once_and_in_order(seed: int) -> None:
    """H-30, H-31, H-37: random cursors, arrivals, reconnects, slow clients and lagging replicas."""

    async def live() -> None:
        world = World(seed)
        await world.append()
        for _ in range(STEPS_MAX):
            await world.step()
            assert world.log.tails <= 1, "one subscription serves all clients of a session"
        await world.settle()
        for client in world.clients:
            assert client.seqs == world.expected(client)
            await client.disconnect()
        assert (len(world.runtime.hubs), world.log.tails) == (0, 0)

    asyncio.run(live())
