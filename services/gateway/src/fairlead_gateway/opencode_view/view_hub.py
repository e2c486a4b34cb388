"""The hub of one tenant for terminal clients: folds the sessions that change, and tells what changed.

The stream is live. A client that joins is told first what it needs to show the turns under way. Where
the hub may have missed something, it ends all its clients: they connect again and are told anew.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_gateway.live.hub_life import HubDuties, HubLife
from fairlead_gateway.opencode_view.catch_up import RECALL_S, RECALLED_MAX, CatchUp
from fairlead_gateway.opencode_view.folded_sessions import FoldedSessions, Told, ViewSources
from fairlead_gateway.opencode_view.translation.changes import newest_prompt, snapshot
from fairlead_gateway.opencode_view.translation.session_changes import event
from fairlead_gateway.opencode_view.translation.sessions import IDLE, status_of
from fairlead_gateway.opencode_view.view_client import ViewClient, encode_frames
from fairlead_schema.delta import Delta
from fairlead_schema.ids import MessageId, TenantId
from fairlead_schema.subjects import Address
from fairlead_session.state.session import Session

log = logging.getLogger(__name__)

WAITING_MAX: Final = 4096
RECALLED_BYTES_MAX: Final = 4 * 1024 * 1024
"""What a client is told of turns that have ended, at most."""
MISSED: Final = "Events may be missing: connect again"
CONNECTED: Final = event("server.connected", {})

Json: TypeAlias = dict[str, Any]


@dataclass(slots=True, eq=False)
class _Wait:
    """Somebody who waits until a session meets a condition."""

    at: Address
    condition: Callable[[Session], bool]
    done: "asyncio.Future[Session]"


@dataclass(slots=True, eq=False)
class _Load:
    """Somebody waits until the hub knows a session."""

    at: Address
    done: "asyncio.Future[None]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


@dataclass(slots=True, eq=False)
class _Repeat(_Load):
    """Somebody does not know that the session rests."""


_Item: TypeAlias = tuple[Address, CommitHint | Delta] | ViewClient | _Load


class ViewHub:
    """Follows the sessions of one tenant. `visitors` counts the clients and the held requests."""

    def __init__(self, tenant: TenantId, sources: ViewSources) -> None:
        self._tenant = tenant
        self._sources = sources
        self.sessions = FoldedSessions(sources)
        self._held: dict[Address, set[MessageId]] = {}
        self._clients: set[ViewClient] = set()
        self._waits: set[_Wait] = set()
        self._catch_up = CatchUp(tenant, self.sessions, sources.read_model)
        self.visitors = 0
        duties = HubDuties(self._receive, self._handle, self._end_clients, MISSED)
        self.life: HubLife[_Item] = HubLife(tenant, sources.broadcasts, duties)

    def uses(self, sources: ViewSources) -> bool:
        return self._sources == sources

    async def follow(self, client: ViewClient) -> None:
        """Send a client what it needs now, and then everything, until its stream ends."""
        await self.life.put(client)
        try:
            await client.ended
        finally:
            self._clients.discard(client)
            if client.ended.done() and not client.ended.cancelled():
                client.ended.exception()

    async def hold(self, at: Address, message_id: MessageId) -> None:
        """Know a session from now on, and show the turn of a prompt to clients that join late."""
        self._held.setdefault(at, set()).add(message_id)
        await self._wait_for(_Load(at))

    def release(self, at: Address, message_id: MessageId) -> None:
        """End a hold."""
        held = self._held.get(at, set())
        held.discard(message_id)
        if not held:
            self._held.pop(at, None)

    async def repeat(self, at: Address) -> None:
        """Tell the newest turn of a session that rests again."""
        await self._wait_for(_Repeat(at))

    def wait_until(
        self, at: Address, condition: Callable[[Session], bool]
    ) -> "asyncio.Future[Session]":
        """The session when it meets a condition. Raises ServiceUnavailable."""
        wait = _Wait(at, condition, asyncio.get_running_loop().create_future())
        self._waits.add(wait)
        wait.done.add_done_callback(lambda _: self._waits.discard(wait))
        if self.life.error is not None:
            wait.done.set_exception(self.life.error)
        elif (known := self.sessions.peek(at)) is not None:
            self._settle(at, known)
        return wait.done

    async def close(self) -> None:
        """End the subscriptions of the hub."""
        await self.life.close()

    def _receive(self, at: Address, item: CommitHint | Delta) -> None:
        self.life.offer((at, item))

    async def _handle(self, item: _Item) -> None:
        match item:
            case ViewClient():
                await self._join(item)
            case _Load():
                self._tell(await self.sessions.load_unknown(item.at))
                if isinstance(item, _Repeat):
                    await self._repeat(item.at)
                if not item.done.done():
                    item.done.set_result(None)
            case (at, CommitHint() as commit):
                told = await self.sessions.fold(at, commit)
                self._tell(told)
                if told is not None:
                    self._settle(at, told.session)
            case (at, delta):
                self._tell(await self.sessions.receive(at, delta))

    async def _join(self, client: ViewClient) -> None:
        """Tell a client of the turns under way, of the asks, and of the turns that ended lately.

        The client may have missed the end of a turn while it was away, and reads nothing again.
        """
        hello = encode_frames([CONNECTED], None, is_global=client.is_global)
        client.member.offer(hello)
        async for told in self._catch_up.load_busy():
            self._tell(told)
        if client.is_global:
            await self._catch_up.recall()
        room, bytes_left = RECALLED_MAX, RECALLED_BYTES_MAX
        for at, session, age_s in self.sessions.list_known():
            view = self.sessions.view(at, session)
            is_held = newest_prompt(session) in self._held.get(at, ())
            if is_held or status_of(session) != IDLE:
                self._tell_one(client, session, snapshot(view, whole=client.is_global))
            elif client.is_global and age_s < RECALL_S and room and bytes_left > 0:
                room -= 1
                bytes_left -= self._tell_one(client, session, snapshot(view, whole=True))
        self._clients.add(client)
        if self.life.error is not None:
            client.member.end(self.life.error)

    async def _repeat(self, at: Address) -> None:
        """Tell what a lost broadcast kept from the hub, and then the turn that has ended."""
        self._tell(await self.sessions.refresh(at))
        session = self.sessions.peek(at)
        if session is None or session.profile is None or status_of(session) != IDLE:
            return
        self._settle(at, session)
        found = snapshot(self.sessions.view(at, session), whole=True)
        for client in tuple(self._clients):
            if client.is_global:
                self._tell_one(client, session, found)

    async def _wait_for(self, item: _Load) -> None:
        await self.life.put(item)
        await asyncio.wait({item.done, self.life.working}, return_when=asyncio.FIRST_COMPLETED)

    def _tell(self, told: Told | None) -> None:
        if told is None or not told.events:
            return
        profile, events = told.session.profile, told.events
        directory = "" if profile is None else profile.location.directory
        encoded: dict[bool, bytes] = {}
        for client in tuple(self._clients):
            if client.sees(directory):
                if client.is_global not in encoded:
                    encoded[client.is_global] = encode_frames(
                        events, directory, is_global=client.is_global
                    )
                client.member.offer(encoded[client.is_global])

    def _tell_one(self, client: ViewClient, session: Session, found: Iterable[Json]) -> int:
        """Tell one client, and say how many bytes that took."""
        assert session.profile is not None, "only a created session is told"
        directory = session.profile.location.directory
        if not client.sees(directory):
            return 0
        frame = encode_frames(found, directory, is_global=client.is_global)
        client.member.offer(frame)
        return len(frame)

    def _settle(self, at: Address, session: Session) -> None:
        for wait in tuple(self._waits):
            if wait.at == at and not wait.done.done() and wait.condition(session):
                wait.done.set_result(session)

    def _end_clients(self, error: BaseException) -> None:
        for client in tuple(self._clients):
            client.member.end(error)
        for wait in tuple(self._waits):
            if not wait.done.done():
                wait.done.set_exception(error)
