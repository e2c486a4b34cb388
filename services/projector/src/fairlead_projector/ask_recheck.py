"""Checks pending asks again: an approval for always may answer one, and old ones expire.

A service that saves an approval may die before it answers the other asks that the approval allows,
and a worker may write an ask just before the approval is saved. So every pending permission is
compared once with every revision of the approvals. Ingest decides, from the log.
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
from fairlead_session.people.permission import approval_rules, is_approved

log = logging.getLogger(__name__)

ASKS_MAX: Final = 20_000
PROJECTOR: Final = "service:projector"
ASK_TIMEOUT_S: Final = 5.0


class WaitingAsk(NamedTuple):
    """A permission or question that waits for a person."""

    at: Address
    request_id: str
    kind: Literal["permission", "question"]
    project_id: str
    asked_at: int
    action: str | None
    resources: tuple[str, ...]


class CheckedRevisions:
    """The revision of the approvals that each permission was last compared with."""

    def __init__(self) -> None:
        self._revisions: dict[tuple[Address, str], int] = {}

    def due(self, asks: Iterable[WaitingAsk], revision: int) -> list[WaitingAsk]:
        """The permissions not compared with this revision. Forgets asks that no longer wait."""
        permissions = [ask for ask in asks if ask.kind == "permission"]
        keys = {(ask.at, ask.request_id) for ask in permissions}
        self._revisions = {key: checked for key, checked in self._revisions.items() if key in keys}
        return [
            ask for ask in permissions if self._revisions.get((ask.at, ask.request_id)) != revision
        ]

    def note(self, ask: WaitingAsk, revision: int) -> None:
        """Remember that a permission was compared with a revision."""
        self._revisions[ask.at, ask.request_id] = revision


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
    checked = CheckedRevisions()
    async with await database.connect(dsn) as connection:
        while not await database.try_lock(connection, ASKS_LOCK):
            on_healthy()
            await asyncio.sleep(interval_s)
        while True:
            asks = await _load_pending_asks(connection)
            if asks:
                await recheck_permissions(eventlog, asks, checked)
                await expire_asks(eventlog, asks, expire_s)
            on_healthy()
            await asyncio.sleep(interval_s)


async def recheck_permissions(
    eventlog: EventLog, asks: Sequence[WaitingAsk], checked: CheckedRevisions
) -> None:
    """Let ingest check the permissions that a saved approval may answer."""
    revision = await eventlog.approvals.revision()
    saved: dict[tuple[TenantId, str], Sequence[SavedPermission]] = {}
    for ask in checked.due(asks, revision):
        project = (ask.at.tenant, ask.project_id)
        if project not in saved:
            saved[project] = await eventlog.approvals.get_all(*project)
        if not may_be_approved(ask, saved[project]) or await _send_command(
            eventlog,
            ask,
            "permission.recheck",
            PermissionCommand(session_id=ask.at.session_id, request_id=ask.request_id),
        ):
            checked.note(ask, revision)


async def expire_asks(
    eventlog: EventLog, asks: Sequence[WaitingAsk], expire_s: float | None
) -> None:
    """Let ingest decline the asks that are older than `expire_s`."""
    if expire_s is None:
        return
    before = ids.now_ms() - int(expire_s * 1000)
    for ask in asks:
        if ask.asked_at < before:
            command = ExpireAsk(session_id=ask.at.session_id, request_id=ask.request_id)
            await _send_command(eventlog, ask, "ask.expire", command)


async def _send_command(eventlog: EventLog, ask: WaitingAsk, verb: str, command: Model) -> bool:
    body = command.model_dump_json(by_alias=True).encode()
    subject = subjects.api(ask.at.tenant, verb)
    try:
        await eventlog.requests.request(subject, body, timeout_s=ASK_TIMEOUT_S, by=PROJECTOR)
    except LogError as error:
        extra = {"session_id": ask.at.session_id, "verb": verb, "reason": str(error)}
        log.warning("ingest did not answer: the ask is checked again later", extra=extra)
        return False
    return True


async def _load_pending_asks(connection: Connection) -> list[WaitingAsk]:
    cursor = await connection.execute(query("load_waiting"), {"limit": ASKS_MAX})
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
        for tenant, session_id, request_id, kind, project_id, asked_at, action, resources in (
            await cursor.fetchall()
        )
    ]
