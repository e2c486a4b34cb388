"""Registrations of application tools: durable, one record each, read by every worker alike."""

import logging
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from pydantic import ValidationError

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.ports import ToolRegistrations
from fairlead_schema import subjects
from fairlead_schema.commands.application_tools import (
    RegisteredTool,
    RegisterTool,
    ToolRegistrationKey,
)
from fairlead_schema.errors import InvalidRequest, LimitReached, PayloadTooLarge
from fairlead_schema.ids import TenantId
from fairlead_service.ids import now_ms
from fairlead_tools.registry.registry import InvalidTool, Registration, Registry, Scope
from fairlead_tools.registry.tool import Tool

log = logging.getLogger(__name__)

FRESH_S: Final = 0.5
TOOLS_MAX: Final = 256
RECORD_BYTES_MAX: Final = 192 * 1024
# A record that ran out is swept away by whoever sees it so much later: clocks may differ.
SWEEP_MS: Final = 60 * 60 * 1000
RANK: Final = 20
EVERYWHERE: Final = "-"

MakeTool = Callable[[TenantId, RegisteredTool], Tool]
"""Makes the tool that a record describes. Raises InvalidTool."""


class ToolRecords:
    """What the services of every tenant registered, kept in the registry as far as it is asked for."""

    def __init__(self, kept: ToolRegistrations, registry: Registry, make: MakeTool) -> None:
        self._kept = kept
        self._registry = registry
        self._make = make
        self._known: dict[TenantId, tuple[RegisteredTool, ...]] = {}
        self._learned: dict[TenantId, float] = {}

    async def register(self, tenant: TenantId, asked: RegisterTool) -> RegisteredTool:
        """Keep a registration. Said again, it keeps its place and lives on. Raises Refused."""
        _check_subject(tenant, asked)
        there = await self._read(tenant)
        before = there.get(_key(asked))
        now = now_ms()
        if before is None and len(there) >= TOOLS_MAX:
            raise LimitReached(f"A tenant may register {TOOLS_MAX} tools")
        same = before is not None and _content(before) == _content(asked) and _alive(before, now)
        since = before.since if same and before is not None else now
        record = RegisteredTool.model_validate(
            {**asked.model_dump(exclude_none=True), "since": since}
        )
        if asked.ttl_ms is not None:
            record = record.model_copy(update={"expires": now + asked.ttl_ms})
        try:
            self._make(tenant, record)
        except InvalidTool as error:
            raise InvalidRequest(str(error), kind="Body") from error
        value = record.model_dump_json(by_alias=True, exclude_none=True).encode()
        if len(value) > RECORD_BYTES_MAX:
            raise PayloadTooLarge(f"A registration may have {RECORD_BYTES_MAX} bytes")
        await self._kept.put(tenant, _key(asked), value)
        self._learned.pop(tenant, None)
        return record

    async def unregister(self, tenant: TenantId, asked: ToolRegistrationKey) -> bool:
        """Forget a registration; whether there was one."""
        there = _key(asked) in await self._read(tenant)
        if there:
            await self._kept.remove(tenant, _key(asked))
        self._learned.pop(tenant, None)
        return there

    async def list_tools(self, tenant: TenantId) -> tuple[RegisteredTool, ...]:
        """The registrations that stand, oldest first."""
        now, there = now_ms(), await self._read(tenant)
        standing = [one for one in there.values() if _alive(one, now)]
        return tuple(sorted(standing, key=lambda one: (one.since, _key(one))))

    async def refresh(self, scope: Scope, *, sure: bool = False) -> None:
        """Bring the registry up to date; while the servers are away it stays as it is.

        Unless it must be `sure`, what was learned a moment ago is good enough.
        """
        tenant = scope.tenant
        if not sure and time.monotonic() - self._learned.get(tenant, -FRESH_S) < FRESH_S:
            return
        try:
            records = await self.list_tools(tenant)
        except LogError as error:
            log.warning("registrations unknown", extra={"tenant": tenant, "reason": str(error)})
            return
        self._learned[tenant] = time.monotonic()
        if records != self._known.get(tenant, ()):
            self._known[tenant] = records
            made = (self._made(tenant, record) for record in records)
            self._registry.replace_owned(_owner(tenant), [one for one in made if one is not None])

    def _made(self, tenant: TenantId, record: RegisteredTool) -> Registration | None:
        try:
            tool = self._make(tenant, record)
        except InvalidTool as error:
            # Another release took it.
            extra = {"tenant": tenant, "tool": record.name, "reason": str(error)}
            log.warning("registration refused", extra=extra)
            return None
        return Registration(tool, tenant, record.location, _owner(tenant), RANK)

    async def _read(self, tenant: TenantId) -> dict[str, RegisteredTool]:
        found: dict[str, RegisteredTool] = {}
        for key, value in (await self._kept.get_all(tenant)).items():
            try:
                record = RegisteredTool.model_validate_json(value)
            except ValidationError as error:
                log.warning("registration unreadable", extra={"key": key, "reason": str(error)})
                continue
            if _alive(record, now_ms() - SWEEP_MS):
                found[key] = record
            else:
                await self._kept.remove(tenant, key)
        return found


def _check_subject(tenant: TenantId, asked: RegisterTool) -> None:
    """A tenant's calls go to the tenant's own subjects and to nobody else's."""
    queue = asked.mode == "queue"
    prefix = (
        subjects.queued_tool_prefix(tenant) if queue else subjects.application_tool_prefix(tenant)
    )
    if not asked.subject.startswith(prefix):
        reason = f"subject: it must begin with {prefix}"
        raise InvalidRequest(reason, kind="Body", field="subject")


def _content(record: RegisterTool) -> dict[str, object]:
    return record.model_dump(exclude={"since", "expires", "ttl_ms"})


def _alive(record: RegisteredTool, now: int) -> bool:
    return record.expires is None or record.expires > now


def _key(asked: ToolRegistrationKey) -> str:
    where = EVERYWHERE
    if asked.location is not None:
        where = sha256(asked.location.encode()).hexdigest()[:24]
    return f"{asked.service}.{asked.name}.{where}"


def _owner(tenant: TenantId) -> str:
    return f"application:{tenant}"
