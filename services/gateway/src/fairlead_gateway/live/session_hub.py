"""The hub of one session: follows its log and its fragments once, and encodes each for all clients.

A client replays the log by itself and joins the hub where its replay has come to. From then on the
hub gives it the same bytes as every other client.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.ports import Deltas, Head, SessionLog
from fairlead_eventlog.register_ports import Snapshots
from fairlead_eventlog.replicas.contiguity import next_seq
from fairlead_eventlog.replicas.open_texts import OpenTextsPort
from fairlead_eventlog.session_cache import SessionCache
from fairlead_gateway.http.sse import FrameQueue, auto_close
from fairlead_gateway.live.frames import CommitFrames, delta_frames, encode_commit
from fairlead_gateway.live.member import LiveFrames, Member
from fairlead_gateway.live.open_texts import OpenBlocks
from fairlead_gateway.log.envelopes import PUBLIC_AND_NOTICE, EnvelopeTranslator
from fairlead_gateway.reads.read_model import ReadModel
from fairlead_schema.delta import Delta
from fairlead_schema.errors import SessionIsStored, SessionUnreadable
from fairlead_schema.events import ExecutionClaimed
from fairlead_schema.raw_records.raw_commit import RawEvent, raw_commit
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_service.logs import unbound_context
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.fold.snapshot import SESSION_FOLD

OPEN_TEXTS_S: Final = 1.0
"""How long the owner of a session may take to say what its open blocks hold."""


@dataclass(frozen=True, slots=True)
class HubSources:
    """What a hub reads from. A new connection to NATS has new sources, and gets new hubs."""

    log: SessionLog
    deltas: Deltas
    read_model: ReadModel
    snapshots: Snapshots
    open_texts: OpenTextsPort


class SessionHub:
    """Follows one session for all its clients. `visitors` counts those that replay or have joined."""

    def __init__(self, at: Address, sources: HubSources, *, after: Head) -> None:
        self._at = at
        self._sources = sources
        self._translator = EnvelopeTranslator(at, sources.read_model, visible=PUBLIC_AND_NOTICE)
        self._members: set[Member] = set()
        self._fragments = LiveFrames(self._deliver, lambda: len(self._members))
        self._error: BaseException | None = None
        self._loop = asyncio.get_running_loop()
        self._tasks = [self._start(self._follow_commits())]
        self._open_blocks = OpenBlocks()
        self._owner: str | None = None
        self._asking: asyncio.Task[None] | None = None
        self.seq = after.seq
        """The last event that every joined client has. A client joins when it has this event too."""
        self.visitors = 0

    @property
    def error(self) -> BaseException | None:
        """Why a source of the hub ended, if it did. New clients then need a new hub."""
        return self._error

    def uses(self, sources: HubSources) -> bool:
        return self._sources == sources

    async def follow_fragments(self) -> None:
        """Follow live fragments from now on, because a client wants them.

        The first time it asks the owner of the session for the text so far, and waits for the answer.
        """
        if self._asking is None:
            self._asking = asyncio.create_task(self._begin_fragments(), context=unbound_context())
            self._tasks.append(self._asking)
        await asyncio.wait({self._asking})

    def join(self, frames: FrameQueue, *, seq: int, with_fragments: bool) -> Member:
        """Give a client everything after `seq`. It must have every event up to the hub's own seq."""
        assert seq >= self.seq, f"a client at {seq} joins a hub at {self.seq}"
        # Fragments from before this moment are not for the new client.
        self._fragments.flush()
        member = Member(frames, seq, with_fragments, self._loop.create_future())
        if self._error is not None:
            member.end(self._error)
        if with_fragments:
            # Everybody else has had this text already.
            for delta in self._open_blocks.so_far():
                member.offer(self._encode(delta))
        self._members.add(member)
        return member

    def leave(self, member: Member) -> None:
        """Give a client nothing more."""
        self._members.discard(member)
        if member.ended.done():
            member.ended.exception()

    async def close(self) -> None:
        """End the subscriptions of the hub."""
        self._fragments.cancel()
        await cancel_and_wait(*self._tasks)

    async def _follow_commits(self) -> None:
        tail = self._sources.log.tail(self._at, after=self.seq)
        try:
            async with auto_close(tail) as commits:
                async for stored in commits:
                    if (marker := stored.marker) is not None:
                        raise SessionIsStored(self._at.session_id, marker.file.name)
                    last, raw = next_seq(self.seq, stored), raw_commit(stored.commit)
                    frames = await encode_commit(self._translator, raw, after=self.seq)
                    self._pass_on(frames, last)
                    self._open_blocks.note(raw.events)
                    self._note_owner(raw.events)
        except RecordError as error:
            raise SessionUnreadable(self.seq + 1, str(error)) from error

    async def _begin_fragments(self) -> None:
        """Subscribe first and ask then. A delta that is missed between the two shows by its number."""
        self._tasks.append(self._start(self._follow_deltas()))
        await asyncio.sleep(0)
        with suppress(LogError, RecordError):
            sources = self._sources
            cache = SessionCache(sources.log, sources.snapshots, SESSION_FOLD, capacity=1)
            owner = (await cache.load(self._at)).state.execution.owner
            self._owner = self._owner or (None if owner is None else owner.runner)
        await self._ask_owner()

    async def _follow_deltas(self) -> None:
        async with auto_close(self._sources.deltas.listen(self._at)) as live_deltas:
            async for delta in live_deltas:
                news = self._open_blocks.receive(delta)
                if news is not None:
                    self._send(news)
                elif self._open_blocks.has_gap and self._asking is not None and self._asking.done():
                    # A delta was lost on its way. The runner has the whole text.
                    await self._ask_owner()

    async def _ask_owner(self) -> None:
        """Ask for the text so far, and pass on what nobody has had. Without an answer go on without it."""
        if self._owner is None:
            news = self._open_blocks.skip_gaps()
        else:
            try:
                texts = await self._sources.open_texts.ask(
                    self._owner, self._at, timeout_s=OPEN_TEXTS_S
                )
                news = self._open_blocks.restore(texts)
            except LogError:
                news = self._open_blocks.skip_gaps()
        for delta in news:
            self._send(delta)

    def _note_owner(self, events: Iterable[RawEvent]) -> None:
        for event in events:
            if event.kind is ExecutionClaimed:
                self._owner = event.data["runner"]

    def _send(self, delta: Delta) -> None:
        if any(member.with_fragments for member in self._members):
            self._fragments.add(self._encode(delta))

    def _encode(self, delta: Delta) -> bytes:
        return delta_frames(self._at.session_id, delta)

    def _pass_on(self, commit: CommitFrames, last: int) -> None:
        """Give one commit to every client that does not have it. The fragments before it go first."""
        self._fragments.flush()
        self.seq = last
        for member in tuple(self._members):
            if member.seq < last:
                member.seq = last
                frame = commit.all if member.with_fragments else commit.public
                if frame:
                    member.offer(frame)

    def _deliver(self, frame: bytes) -> None:
        """Give a frame of fragments to every client that wants them."""
        for member in tuple(self._members):
            if member.with_fragments:
                member.offer(frame)

    def _start(self, source: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(source, context=unbound_context())
        task.add_done_callback(self._end_with)
        return task

    def _end_with(self, task: "asyncio.Task[None]") -> None:
        """End every client with the error of a source. A closed hub has no clients."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        self._error = error
        self._fragments.flush()
        for member in tuple(self._members):
            member.end(error)
