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
from fairlead_eventlog.replicas.tenant_broadcasts import StopListening, TenantListener
from fairlead_gateway.opencode_view.folded_sessions import FoldedSessions, Told, ViewSources
from fairlead_gateway.opencode_view.translation.changes import newest_prompt, snapshot
from fairlead_gateway.opencode_view.translation.session_changes import event
from fairlead_gateway.opencode_view.translation.sessions import IDLE, status_of
from fairlead_gateway.opencode_view.view_client import ViewClient, encode_frames
from fairlead_gateway.reads.read_model import ReadsUnavailable
from fairlead_schema.delta import Delta
from fairlead_schema.errors import ServiceUnavailable
from fairlead_schema.ids import MessageId, TenantId
from fairlead_schema.subjects import Address
from fairlead_service.supervise import cancel_and_wait
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
        self._queue: asyncio.Queue[_Item] = asyncio.Queue(WAITING_MAX)
        self._error: BaseException | None = None
        self._opening = asyncio.ensure_future(self._listen(tenant))
        self._working = asyncio.create_task(self._work())
        self._working.add_done_callback(self._end_with)
        self.visitors = 0

    @property
    def has_ended(self) -> bool:
        failed = self._opening.done() and self._opening.exception() is not None
        return self._error is not None or failed

    def uses(self, sources: ViewSources) -> bool:
        return self._sources == sources

    async def wait_until_open(self) -> None:
        """Wait until the server knows that the hub listens. Raises LogUnavailable."""
        await asyncio.shield(self._opening)

    async def follow(self, client: ViewClient) -> None:
        """Send a client what it needs now, and then everything, until its stream ends."""
        await self._queue.put(client)
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
        await self._queue.put(_Load(at, done))
        await asyncio.wait({done, self._working}, return_when=asyncio.FIRST_COMPLETED)

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
        if self._error is not None:
            wait.done.set_exception(self._error)
        elif (known := self.sessions.peek(at)) is not None:
            self._settle(at, known)
        return wait.done

    async def close(self) -> None:
        """End the subscriptions of the hub."""
        await cancel_and_wait(self._working)
        if self._opening.done() and self._opening.exception() is None:
            self._opening.result()()
        await cancel_and_wait(self._opening)

    async def _listen(self, tenant: TenantId) -> StopListening:
        listener = TenantListener(self._receive, self._receive, self._end_all)
        return await self._sources.broadcasts.listen(tenant, listener)

    def _receive(self, at: Address, item: CommitHint | Delta) -> None:
        try:
            self._queue.put_nowait((at, item))
        except asyncio.QueueFull:
            log.warning(
                "events come faster than they are translated: all terminal clients start over"
            )
            self._end_all()

    async def _work(self) -> None:
        while True:
            item = await self._queue.get()
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
        if self._error is not None:
            client.member.end(self._error)

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

    def _end_with(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error(
                "terminal clients start over: their events cannot be translated", exc_info=error
            )
            self._end_all(error)

    def _end_all(self, error: BaseException | None = None) -> None:
        self._error = error or ServiceUnavailable(MISSED, service="nats")
        for client in tuple(self._clients):
            client.member.end(self._error)
        for wait in tuple(self._waits):
            if not wait.done.done():
                wait.done.set_exception(self._error)
