"""Checks pending asks again: an approval for always may answer one, and old ones expire.

A service that saves an approval may die before it answers the other asks that the approval allows,
and a worker may write an ask just before the approval is saved. So every pending permission is
compared with every revision of the approvals, in laps of bounded pages. Ingest decides, from the log.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.service_command import send_service_command
from fairlead_projector import database
from fairlead_projector.database import ASKS_LOCK, Connection, query
from fairlead_schema import subjects
from fairlead_schema.commands.asks import ExpireAsk, PermissionCommand
from fairlead_schema.errors import InternalFailure, LimitReached, Refused
from fairlead_schema.ids import TenantId
from fairlead_schema.model import Model
from fairlead_schema.permission import SavedPermission
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_session.people.permission import approval_rules, is_approved

log = logging.getLogger(__name__)

PAGE_ROWS: Final = 2_000
# Pages of a round, until one whole lap has compared every ask with the newest approvals.
PAGES_MAX: Final = 10
# Ingest is asked one ask at a time, so a round of expired asks is short.
EXPIRE_ROWS: Final = 500
REMEMBERED_MAX: Final = 10_000
PROJECTOR: Final = "service:projector"
ASK_TIMEOUT_S: Final = 5.0
RETRY_S: Final = 1.0
RETRY_S_MAX: Final = 60.0


class WaitingAsk(NamedTuple):
    """A permission or question that waits for a person."""

    at: Address
    request_id: str
    kind: Literal["permission", "question"]
    project_id: str
    asked_at: int
    action: str | None = None
    resources: tuple[str, ...] = ()


class AskTries:
    """When each ask may be sent to ingest again. Remembers a bounded number of asks."""

    def __init__(self) -> None:
        self._next: OrderedDict[tuple[Address, str], tuple[float, float]] = OrderedDict()

    def is_due(self, ask: WaitingAsk, *, now: float) -> bool:
        return now >= self._next.get((ask.at, ask.request_id), (0.0, 0.0))[0]

    def note(self, ask: WaitingAsk, *, decided: bool, now: float) -> None:
        """After a decision the ask goes away soon. Without one it is tried again, ever less often."""
        key = (ask.at, ask.request_id)
        delay_s = RETRY_S_MAX if decided else self._next.get(key, (0.0, RETRY_S))[1]
        self._next[key] = (now + delay_s, min(delay_s * 2, RETRY_S_MAX))
        self._next.move_to_end(key)
        while len(self._next) > REMEMBERED_MAX:
            self._next.popitem(last=False)

    def forget(self) -> None:
        self._next.clear()


class AskSender:
    """Lets ingest decide about asks, and notes whether it did."""

    def __init__(self, eventlog: EventLog, tries: AskTries) -> None:
        self._requests = eventlog.requests
        self._tries = tries

    async def send(self, ask: WaitingAsk, verb: str, command: Model) -> bool:
        """Send one command. False: ingest is away, so the rest of the round can wait."""
        subject, away, reason = subjects.api(ask.at.tenant, verb), False, None
        try:
            await send_service_command(
                self._requests, subject, command.wire(), timeout_s=ASK_TIMEOUT_S, by=PROJECTOR
            )
        except LogError as error:
            away, reason = True, str(error)
        except (InternalFailure, LimitReached) as undecided:
            reason = str(undecided)
        except Refused:
            pass  # Ingest decided: the ask is answered already, or its session is gone.
        self._tries.note(ask, decided=reason is None, now=time.monotonic())
        if reason is not None:
            extra = {"session_id": ask.at.session_id, "verb": verb, "reason": reason}
            log.warning("ingest could not decide about an ask: it is tried again", extra=extra)
        return not away


def may_be_approved(ask: WaitingAsk, saved: Sequence[SavedPermission]) -> bool:
    """Whether an approval allows a resource of the ask. Ingest decides whether it allows all."""
    if ask.action is None:
        return False
    rules = approval_rules(saved)
    return any(is_approved(rules, ask.action, resource) for resource in ask.resources)


async def recheck_asks(
    dsn: str,
    eventlog: EventLog,
    *,
    interval_s: float,
    expire_s: float | None,
    on_healthy: Callable[[], None],
) -> None:
    """Recheck until something fails. One process does this at a time; the others wait."""
    async with await database.connect(dsn) as connection:
        while not await database.try_lock(connection, ASKS_LOCK):
            on_healthy()
            await asyncio.sleep(interval_s)
        permissions = PermissionRecheck(connection, eventlog)
        expiry = AskExpiry(connection, eventlog)
        while True:
            await permissions.look()
            if expire_s is not None:
                await expiry.look(before=ids.now_ms() - int(expire_s * 1000))
            on_healthy()
            await asyncio.sleep(interval_s)


class PermissionRecheck:
    """Lets ingest check the permissions that a saved approval may answer, lap after lap."""

    def __init__(
        self, connection: Connection, eventlog: EventLog, *, page_rows: int = PAGE_ROWS
    ) -> None:
        self._connection = connection
        self._eventlog = eventlog
        self._page_rows = page_rows
        self._after: Mapping[str, str] = _FIRST_PAGE
        self._revision = -1
        self._lap_revision = -1
        self._compared_revision = -1
        """The revision with which a whole lap has compared every ask."""
        self._saved: dict[tuple[TenantId, str], Sequence[SavedPermission]] = {}
        self._tries = AskTries()
        self._sender = AskSender(eventlog, self._tries)

    async def look(self) -> None:
        """Compare the next pages with the approvals of now."""
        revision = await self._eventlog.approvals.revision()
        if revision != self._revision:
            self._revision = revision
            self._saved.clear()
            self._tries.forget()
        for _page in range(1 if self._compared_revision == revision else PAGES_MAX):
            if self._after is _FIRST_PAGE:
                self._lap_revision = revision
            parameters = {**self._after, "limit": self._page_rows}
            cursor = await self._connection.execute(
                query("load_asks_page"), parameters, prepare=False
            )
            page = await cursor.fetchall()
            await self.check(_answerable(page))
            if len(page) < self._page_rows:
                self._after, self._compared_revision = _FIRST_PAGE, self._lap_revision
                return
            self._after = dict(zip(_FIRST_PAGE, page[-1], strict=False))

    async def check(self, asks: Iterable[WaitingAsk]) -> None:
        """Send the asks that an approval may answer to ingest."""
        for ask in asks:
            if ask.kind != "permission" or not self._tries.is_due(ask, now=time.monotonic()):
                continue
            if may_be_approved(ask, await self._load_saved(ask)):
                command = PermissionCommand(session_id=ask.at.session_id, request_id=ask.request_id)
                if not await self._sender.send(ask, "permission.recheck", command):
                    return

    async def _load_saved(self, ask: WaitingAsk) -> Sequence[SavedPermission]:
        project = (ask.at.tenant, ask.project_id)
        if project not in self._saved:
            if len(self._saved) >= REMEMBERED_MAX:
                self._saved.clear()
            self._saved[project] = await self._eventlog.approvals.get_all(*project)
        return self._saved[project]


class AskExpiry:
    """Lets ingest decline the asks that are too old, the oldest first."""

    def __init__(self, connection: Connection, eventlog: EventLog) -> None:
        self._connection = connection
        self._after: Mapping[str, Any] = _OLDEST
        self._tries = AskTries()
        self._sender = AskSender(eventlog, self._tries)

    async def look(self, *, before: int) -> None:
        """Expire the next page of asks that are older than a time. Younger ones are not read."""
        parameters = {**self._after, "before": before, "limit": EXPIRE_ROWS}
        cursor = await self._connection.execute(query("load_old_asks"), parameters, prepare=False)
        page = await cursor.fetchall()
        await self.expire(_answerable(page))
        is_last = len(page) < EXPIRE_ROWS
        key = None if is_last else (page[-1][5], *page[-1][:3])
        self._after = _OLDEST if key is None else dict(zip(_OLDEST, key, strict=True))

    async def expire(self, asks: Iterable[WaitingAsk]) -> None:
        """Send expired asks to ingest."""
        for ask in asks:
            if self._tries.is_due(ask, now=time.monotonic()):
                command = ExpireAsk(session_id=ask.at.session_id, request_id=ask.request_id)
                if not await self._sender.send(ask, "ask.expire", command):
                    return


_FIRST_PAGE: Final[Mapping[str, str]] = {"tenant": "", "session_id": "", "request_id": ""}
_OLDEST: Final[Mapping[str, Any]] = {"asked_at": -1, **_FIRST_PAGE}


def _answerable(page: Iterable[Sequence[Any]]) -> list[WaitingAsk]:
    return [
        WaitingAsk(
            Address(tenant, session_id),
            request_id,
            kind,
            project_id,
            asked_at,
            action,
            tuple(resources or ()),
        )
        for tenant, session_id, request_id, kind, project_id, asked_at, action, resources, broken in page
        if not broken
    ]
