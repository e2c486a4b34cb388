"""The hub of one tenant: follows all its sessions at once, for every client of `GET /api/event`.

The stream is live only. Where the hub may have missed something, it ends all its clients: they read
again what they show, and subscribe anew.
"""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, TypeAlias

from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.replicas.tenant_broadcasts import (
    StopListening,
    TenantBroadcasts,
    TenantListener,
)
from fairlead_gateway.http.sse import FrameQueue
from fairlead_gateway.live.frames import delta_frames, encode_live_commit
from fairlead_gateway.live.member import LiveFrames, Member
from fairlead_gateway.live.session_locations import SessionLocations
from fairlead_gateway.log.envelopes import PUBLIC_AND_NOTICE, EnvelopeTranslator
from fairlead_gateway.reads.read_model import ReadModel
from fairlead_schema.delta import Delta
from fairlead_schema.errors import ServiceUnavailable
from fairlead_schema.ids import TenantId
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_service.supervise import cancel_and_wait

log = logging.getLogger(__name__)

WAITING_MAX: Final = 4096
"""How many broadcasts may wait to be encoded. More than that, and the clients have to start over."""
SESSIONS_MAX: Final = 1024
"""The deliveries of pending input are remembered for so many sessions."""
MISSED: Final = "Events may be missing: read again what you show, and subscribe anew"

Broadcast: TypeAlias = tuple[Address, CommitHint | Delta]


@dataclass(frozen=True, slots=True)
class TenantSources:
    """What the hub of a tenant reads from. A new connection to NATS has new sources, and gets new hubs."""

    broadcasts: TenantBroadcasts
    read_model: ReadModel


class TenantHub:
    """Follows the sessions of one tenant. `visitors` counts the clients that wait or have joined."""

    def __init__(self, tenant: TenantId, sources: TenantSources) -> None:
        self._sources = sources
        self._translators: OrderedDict[Address, EnvelopeTranslator] = OrderedDict()
        clock = asyncio.get_running_loop().time
        self._locations = SessionLocations(sources.read_model, clock)
        self._members: set[Member] = set()
        self._frames = LiveFrames(self._deliver, lambda: len(self._members))
        self._waiting: asyncio.Queue[Broadcast] = asyncio.Queue(WAITING_MAX)
        self._error: BaseException | None = None
        self._opening = asyncio.ensure_future(self._listen(tenant))
        self._encoding = asyncio.create_task(self._encode_all())
        self._encoding.add_done_callback(self._end_with)
        self.visitors = 0

    @property
    def has_ended(self) -> bool:
        """Whether the hub missed something. New clients then need a new hub."""
        failed = self._opening.done() and self._opening.exception() is not None
        return self._error is not None or failed

    def uses(self, sources: TenantSources) -> bool:
        return self._sources == sources

    async def wait_until_open(self) -> None:
        """Wait until the server knows that the hub listens. Raises LogUnavailable."""
        await asyncio.shield(self._opening)

    def join(self, frames: FrameQueue) -> Member:
        """Give a client everything that comes from now on."""
        # What waits is from before this moment, and not for the new client.
        self._frames.flush()
        loop = asyncio.get_running_loop()
        member = Member(frames, 0, with_fragments=True, ended=loop.create_future())
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
        self._frames.cancel()
        await cancel_and_wait(self._encoding)
        if self._opening.done() and self._opening.exception() is None:
            self._opening.result()()
        await cancel_and_wait(self._opening)

    async def _listen(self, tenant: TenantId) -> StopListening:
        listener = TenantListener(self._receive, self._receive, self._end_all)
        return await self._sources.broadcasts.listen(tenant, listener)

    def _receive(self, at: Address, item: CommitHint | Delta) -> None:
        if not self._members:
            return
        try:
            self._waiting.put_nowait((at, item))
        except asyncio.QueueFull:
            log.warning("live events come faster than they are encoded: all clients start over")
            self._end_all()

    async def _encode_all(self) -> None:
        while True:
            at, item = await self._waiting.get()
            if isinstance(item, CommitHint):
                frame = await self._encode_commit(at, item)
            else:
                frame = delta_frames(at.session_id, item, self._locations.get(at))
            if frame:
                self._frames.add(frame)

    async def _encode_commit(self, at: Address, commit: CommitHint) -> bytes:
        try:
            return await encode_live_commit(self._translator(at), self._locations, commit.payload)
        except RecordError as error:
            # The stream of the session itself says where its log cannot be read.
            log.info(
                "a commit cannot be read: the live stream leaves it out", extra={"at": str(error)}
            )
            return b""

    def _translator(self, at: Address) -> EnvelopeTranslator:
        known = self._translators.get(at)
        if known is None:
            read_model = self._sources.read_model
            known = EnvelopeTranslator(at, read_model, visible=PUBLIC_AND_NOTICE)
            self._translators[at] = known
            if len(self._translators) > SESSIONS_MAX:
                self._translators.popitem(last=False)
        self._translators.move_to_end(at)
        return known

    def _deliver(self, frame: bytes) -> None:
        for member in tuple(self._members):
            member.offer(frame)

    def _end_with(self, task: "asyncio.Task[None]") -> None:
        """End every client with the error of the hub. A closed hub has no clients."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._end_all(error)

    def _end_all(self, error: BaseException | None = None) -> None:
        self._error = error or ServiceUnavailable(MISSED, service="nats")
        self._frames.flush()
        for member in tuple(self._members):
            member.end(self._error)
