"""The hub of one tenant for terminal clients: folds the sessions that change, and tells what changed.

The stream is live. A client that joins is told first what it needs to show the turns under way. Where
the hub may have missed something, it ends all its clients: they connect again and are told anew.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_gateway.live.hub_life import HubDuties, HubLife
from fairlead_gateway.opencode_view.folded_sessions import FoldedSessions, Told, ViewSources
from fairlead_gateway.opencode_view.translation.changes import newest_prompt, snapshot
from fairlead_gateway.opencode_view.translation.session_changes import event
from fairlead_gateway.opencode_view.translation.sessions import IDLE, status_of
from fairlead_gateway.opencode_view.view_client import ViewClient, encode_frames
from fairlead_gateway.reads.read_model import ReadsUnavailable
from fairlead_schema.delta import Delta
from fairlead_schema.ids import MessageId, TenantId
from fairlead_schema.subjects import Address
from fairlead_session.state.session import Session

log = logging.getLogger(__name__)

WAITING_MAX: Final = 4096
CAUGHT_UP_MAX: Final = 64
"""So many sessions that work or ask are told to a client that joins."""
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
    at: Address
    done: "asyncio.Future[None]"


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
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self.life.put(_Load(at, done))
        await asyncio.wait({done, self.life.working}, return_when=asyncio.FIRST_COMPLETED)

    def release(self, at: Address, message_id: MessageId) -> None:
        """End a hold."""
        held = self._held.get(at, set())
        held.discard(message_id)
        if not held:
            self._held.pop(at, None)

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
        hello = encode_frames([CONNECTED], None, is_global=client.is_global)
        client.member.offer(hello)
        for at in await self._find_busy():
            self._tell(await self.sessions.load_unknown(at))
        for at, session, is_recent in self.sessions.list_known():
            is_held = newest_prompt(session) in self._held.get(at, ())
            is_open = is_held or status_of(session) != IDLE
            if is_open or (client.is_global and is_recent):
                view = self.sessions.view(at, session)
                self._tell_one(client, session, snapshot(view, whole=client.is_global))
        self._clients.add(client)
        if self.life.error is not None:
            client.member.end(self.life.error)

    async def _find_busy(self) -> list[Address]:
        """The sessions that work or ask people, as the read models know them."""
        read_model, tenant = self._sources.read_model, self._tenant
        try:
            found = list(await read_model.active(tenant))
            for kind in ("permission", "question"):
                asks = await read_model.asks(tenant, kind, directory=None)
                found += [ask["sessionID"] for ask in asks]
        except ReadsUnavailable:
            log.info(
                "reads are not available: a terminal client is told only what this process knows"
            )
            return []
        return [Address(tenant, id_) for id_ in dict.fromkeys(found)][:CAUGHT_UP_MAX]

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

    def _tell_one(self, client: ViewClient, session: Session, found: Iterable[Json]) -> None:
        assert session.profile is not None, "only a created session is told"
        directory = session.profile.location.directory
        if client.sees(directory):
            client.member.offer(encode_frames(found, directory, is_global=client.is_global))

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
