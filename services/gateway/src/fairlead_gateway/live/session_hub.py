"""The hub of one session: follows its log and its fragments once, and encodes each for all clients.

A client replays the log by itself and joins the hub where its replay has come to. From then on the
hub gives it the same bytes as every other client.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass

from fairlead_eventlog.ports import Deltas, Head, SessionLog
from fairlead_gateway.http.sse import FrameQueue, auto_close, event_frame
from fairlead_gateway.live.frames import CommitFrames, encode_commit
from fairlead_gateway.live.member import LiveFrames, Member
from fairlead_gateway.log.contiguity import next_seq
from fairlead_gateway.log.envelopes import PUBLIC_AND_NOTICE, EnvelopeTranslator
from fairlead_gateway.reads.read_model import ReadModel
from fairlead_schema import public_events
from fairlead_schema.errors import SessionUnreadable
from fairlead_schema.raw_records.raw_commit import raw_commit
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_service.ids import event_id, now_ms
from fairlead_service.supervise import cancel_and_wait


@dataclass(frozen=True, slots=True)
class HubSources:
    """What a hub reads from. A new connection to NATS has new sources, and gets new hubs."""

    log: SessionLog
    deltas: Deltas
    read_model: ReadModel


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
        self._follows_fragments = False
        self.seq = after.seq
        """The last event that every joined client has. A client joins when it has this event too."""
        self.visitors = 0

    @property
    def has_ended(self) -> bool:
        """Whether a source of the hub failed. New clients then need a new hub."""
        return self._error is not None

    def uses(self, sources: HubSources) -> bool:
        return self._sources == sources

    def follow_fragments(self) -> None:
        """Follow live fragments from now on, because a client wants them."""
        if not self._follows_fragments:
            self._follows_fragments = True
            self._tasks.append(self._start(self._follow_deltas()))

    def join(self, frames: FrameQueue, *, seq: int, with_fragments: bool) -> Member:
        """Give a client everything after `seq`. It must have every event up to the hub's own seq."""
        assert seq >= self.seq, f"a client at {seq} joins a hub at {self.seq}"
        # Fragments from before this moment are not for the new client.
        self._fragments.flush()
        member = Member(frames, seq, with_fragments, self._loop.create_future())
        if self._error is not None:
            member.end(self._error)
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
                    last = next_seq(self.seq, stored)
                    frames = await encode_commit(
                        self._translator, raw_commit(stored.commit), after=self.seq
                    )
                    self._pass_on(frames, last)
        except RecordError as error:
            raise SessionUnreadable(self.seq + 1, str(error)) from error

    async def _follow_deltas(self) -> None:
        async with auto_close(self._sources.deltas.listen(self._at)) as live_deltas:
            async for delta in live_deltas:
                if any(member.with_fragments for member in self._members):
                    envelope = public_events.public_delta(
                        self._at.session_id, event_id(), delta, at=now_ms()
                    )
                    self._fragments.add(event_frame(envelope))

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
        task = asyncio.create_task(source)
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
