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
from fairlead_eventlog.replicas.tenant_broadcasts import TenantBroadcasts
from fairlead_gateway.http.sse import FrameQueue
from fairlead_gateway.live.frames import delta_frames, encode_live_commit, status_frames
from fairlead_gateway.live.hub_life import HubDuties, HubLife
from fairlead_gateway.live.member import LiveFrames, Member
from fairlead_gateway.live.session_locations import SessionLocations
from fairlead_gateway.log.envelopes import PUBLIC_AND_NOTICE, EnvelopeTranslator
from fairlead_gateway.reads.read_model import ReadModel
from fairlead_schema.delta import Delta
from fairlead_schema.ids import TenantId
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address

log = logging.getLogger(__name__)

SESSIONS_MAX: Final = 1024
"""The deliveries of pending input are remembered for so many sessions."""
MISSED: Final = "Events may be missing: read again what you show, and subscribe anew"

Broadcast: TypeAlias = tuple[Address, CommitHint | Delta]


@dataclass(frozen=True, slots=True)
class LiveParts:
    """Which parts of the live stream a client wants besides events."""

    fragments: bool = True
    """Pieces of answers as they come."""
    status: bool = False
    """When a runner takes a session, and when it leaves it."""


EVERYTHING_BUT_STATUS: Final = LiveParts()


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
        self._members: dict[LiveParts, set[Member]] = {}
        self._frames: dict[LiveParts, LiveFrames] = {}
        self.visitors = 0
        duties = HubDuties(self._receive, self._encode, self._end_clients, MISSED)
        self.life: HubLife[Broadcast] = HubLife(tenant, sources.broadcasts, duties)

    def uses(self, sources: TenantSources) -> bool:
        return self._sources == sources

    def join(self, frames: FrameQueue, parts: LiveParts = EVERYTHING_BUT_STATUS) -> Member:
        """Give a client everything of these parts that comes from now on."""
        if parts not in self._frames:
            self._add_group(parts)
        # What waits is from before this moment, and not for the new client.
        self._frames[parts].flush()
        loop = asyncio.get_running_loop()
        member = Member(frames, 0, with_fragments=parts.fragments, ended=loop.create_future())
        if self.life.error is not None:
            member.end(self.life.error)
        self._members[parts].add(member)
        return member

    def leave(self, member: Member) -> None:
        """Give a client nothing more."""
        for members in self._members.values():
            members.discard(member)
        if member.ended.done():
            member.ended.exception()

    async def close(self) -> None:
        """End the subscriptions of the hub."""
        for frames in self._frames.values():
            frames.cancel()
        await self.life.close()

    def _receive(self, at: Address, item: CommitHint | Delta) -> None:
        if any(self._members.values()):
            self.life.offer((at, item))

    async def _encode(self, broadcast: Broadcast) -> None:
        at, item = broadcast
        if isinstance(item, CommitHint):
            await self._pass_on_commit(at, item)
        elif any(parts.fragments for parts in self._frames):
            frame = delta_frames(at.session_id, item, self._locations.get(at))
            self._pass_on({parts: frame for parts in self._frames if parts.fragments})

    async def _pass_on_commit(self, at: Address, commit: CommitHint) -> None:
        events, status = await self._encode_commit(at, commit), b""
        if any(parts.status for parts in self._frames):
            status = status_frames(at.session_id, commit.payload)
        self._pass_on({p: events + status if p.status else events for p in self._frames})

    def _pass_on(self, frames: dict[LiveParts, bytes]) -> None:
        for parts, frame in frames.items():
            if frame and self._members[parts]:
                self._frames[parts].add(frame)

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

    def _add_group(self, parts: LiveParts) -> None:
        members: set[Member] = set()

        def deliver(frame: bytes) -> None:
            for member in tuple(members):
                member.offer(frame)

        self._members[parts] = members
        self._frames[parts] = LiveFrames(deliver, lambda: len(members))

    def _end_clients(self, error: BaseException) -> None:
        for frames in self._frames.values():
            frames.flush()
        for member in [member for members in self._members.values() for member in members]:
            member.end(error)
