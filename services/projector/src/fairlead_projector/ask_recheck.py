"""Looks again at what waits for people: approved for always meanwhile, or waiting for too long.

Whoever approves for always may die before other requests hear of it, and a request may be written by
somebody who looked at the approvals a moment too early. So every pending request is held against
every revision of the approvals, once; ingest decides, from the log.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, NamedTuple

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_projector import database
from fairlead_projector.database import ASKS_LOCK, Connection, query
from fairlead_schema import subjects
from fairlead_schema.commands.asks import ExpireAsk, PermissionCommand
from fairlead_schema.ids import TenantId
from fairlead_schema.model import Model
from fairlead_schema.permission import SavedPermission
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_session.people.permission import approval_rules, effect

log = logging.getLogger(__name__)

WAITING_MAX: Final = 20_000
ASK_TIMEOUT_S: Final = 5.0


class Waiting(NamedTuple):
    """One pending request."""

    at: Address
    request_id: str
    kind: Literal["permission", "question"]
    project_id: str
    asked_at: int
    action: str | None
    resources: tuple[str, ...]


class Checked:
    """Which requests were held against which revision of the approvals."""

    def __init__(self) -> None:
        self._at: dict[tuple[Address, str], int] = {}

    def due(self, waiting: Iterable[Waiting], revision: int) -> list[Waiting]:
        """The permissions not checked at this revision; what no longer waits is forgotten."""
        asks = [one for one in waiting if one.kind == "permission"]
        keys = {(one.at, one.request_id) for one in asks}
        self._at = {key: seen for key, seen in self._at.items() if key in keys}
        return [one for one in asks if self._at.get((one.at, one.request_id)) != revision]

    def note(self, one: Waiting, revision: int) -> None:
        self._at[one.at, one.request_id] = revision


def touched(one: Waiting, saved: Sequence[SavedPermission]) -> bool:
    """Whether an approval speaks of the request at all; whether it is enough, ingest decides."""
    if one.action is None:
        return False
    rules = approval_rules(saved)
    return any(effect(rules, one.action, resource) == "allow" for resource in one.resources)


async def answering(
    dsn: str,
    eventlog: EventLog,
    *,
    interval_s: float,
    expire_s: float | None,
    well: Callable[[], None],
) -> None:
    """Look for ever; one process at a time. Raises what stopped it; start again then."""
    checked = Checked()
    async with await database.connect(dsn) as connection:
        while not await database.try_lock(connection, ASKS_LOCK):
            well()
            await asyncio.sleep(interval_s)
        while True:
            waiting = await _waiting(connection)
            if waiting:
                await look(eventlog, waiting, checked)
                await expire(eventlog, waiting, expire_s)
            well()
            await asyncio.sleep(interval_s)


async def look(eventlog: EventLog, waiting: Sequence[Waiting], checked: Checked) -> None:
    """Have ingest answer what was approved meanwhile."""
    revision = await eventlog.approvals.revision()
    saved: dict[tuple[TenantId, str], Sequence[SavedPermission]] = {}
    for one in checked.due(waiting, revision):
        project = (one.at.tenant, one.project_id)
        if project not in saved:
            saved[project] = await eventlog.approvals.get_all(*project)
        if not touched(one, saved[project]) or await _told(
            eventlog,
            one,
            "permission.recheck",
            PermissionCommand(session_id=one.at.session_id, request_id=one.request_id),
        ):
            checked.note(one, revision)


async def expire(eventlog: EventLog, waiting: Sequence[Waiting], expire_s: float | None) -> None:
    """Have ingest refuse what waited for too long."""
    if expire_s is None:
        return
    before = ids.now_ms() - int(expire_s * 1000)
    for one in waiting:
        if one.asked_at < before:
            command = ExpireAsk(session_id=one.at.session_id, request_id=one.request_id)
            await _told(eventlog, one, "ask.expire", command)


async def _told(eventlog: EventLog, one: Waiting, verb: str, command: Model) -> bool:
    body = command.model_dump_json(by_alias=True).encode()
    subject = subjects.api(one.at.tenant, verb)
    try:
        await eventlog.requests.request(subject, body, timeout_s=ASK_TIMEOUT_S)
    except LogError as error:
        extra = {"session_id": one.at.session_id, "verb": verb, "reason": str(error)}
        log.warning("ingest did not answer", extra=extra)
        return False
    return True


async def _waiting(connection: Connection) -> list[Waiting]:
    cursor = await connection.execute(query("load_waiting"), {"limit": WAITING_MAX})
    return [
        Waiting(
            Address(tenant, session_id),
            request_id,
            kind,
            project_id,
            asked_at,
            action,
            tuple(resources or ()),
        )
        for tenant, session_id, request_id, kind, project_id, asked_at, action, resources in (
            await cursor.fetchall()
        )
    ]
