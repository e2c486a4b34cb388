"""Registrations of application tools: durable, one record each, read by every worker alike."""

import logging
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from pydantic import ValidationError

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.register_ports import Registrations
from fairlead_schema import subjects
from fairlead_schema.commands.application_tools import (
    RegisteredTool,
    RegisterTool,
    ToolRegistrationKey,
)
from fairlead_schema.errors import InvalidRequest, LimitReached, PayloadTooLarge
from fairlead_schema.ids import TenantId
from fairlead_service.ids import now_ms
from fairlead_tools.registry.registry import Registration, Registry, Scope
from fairlead_tools.registry.tool import InvalidTool, Tool

log = logging.getLogger(__name__)

FRESH_S: Final = 0.5
TOOLS_MAX: Final = 256
TENANTS_MAX: Final = 10_000
RECORD_BYTES_MAX: Final = 192 * 1024
# An expired record is deleted this much later, because the clocks of workers may differ.
SWEEP_MS: Final = 60 * 60 * 1000
RANK: Final = 20
EVERYWHERE: Final = "-"

MakeTool = Callable[[TenantId, RegisteredTool], Tool]
"""Makes the tool of a record. Raises InvalidTool."""


class ToolRecords:
    """The registrations of all services. The registry gets those of each tenant on demand."""

    def __init__(self, store: Registrations, registry: Registry, make: MakeTool) -> None:
        self._store = store
        self._registry = registry
        self._make = make
        self._known: dict[TenantId, tuple[RegisteredTool, ...]] = {}
        self._read_at: dict[TenantId, float] = {}
        self._changes = 0

    def forget(self, tenant: TenantId | None) -> None:
        """Read the records of a tenant anew: they have changed. None: those of all tenants."""
        self._changes += 1
        if tenant is None:
            self._read_at.clear()
        self._read_at.pop(tenant or "", None)

    async def register(self, tenant: TenantId, command: RegisterTool) -> RegisteredTool:
        """Store a registration. A repeated one keeps its place and gets a new expiry. Raises Refused."""
        _check_subject(tenant, command)
        records = await self._load(tenant)
        before = records.get(_key(command))
        now = now_ms()
        if before is None and len(records) >= TOOLS_MAX:
            raise LimitReached(f"A tenant may register {TOOLS_MAX} tools")
        same = (
            before is not None and _content(before) == _content(command) and _is_alive(before, now)
        )
        since = before.since if same and before is not None else now
        record = RegisteredTool.model_validate(
            {**command.model_dump(exclude_none=True), "since": since}
        )
        if command.ttl_ms is not None:
            record = record.model_copy(update={"expires": now + command.ttl_ms})
        try:
            self._make(tenant, record)
        except InvalidTool as error:
            raise InvalidRequest(str(error), kind="Body") from error
        value = record.model_dump_json(by_alias=True, exclude_none=True).encode()
        if len(value) > RECORD_BYTES_MAX:
            raise PayloadTooLarge(f"A registration may have {RECORD_BYTES_MAX} bytes")
        await self._store.put(tenant, _key(command), value)
        self._read_at.pop(tenant, None)
        return record

    async def unregister(self, tenant: TenantId, key: ToolRegistrationKey) -> bool:
        """Delete a registration. Returns whether there was one."""
        exists = _key(key) in await self._load(tenant)
        if exists:
            await self._store.remove(tenant, _key(key))
        self._read_at.pop(tenant, None)
        return exists

    async def list_tools(self, tenant: TenantId) -> tuple[RegisteredTool, ...]:
        """The registrations that have not expired, oldest first."""
        now, records = now_ms(), await self._load(tenant)
        alive = [record for record in records.values() if _is_alive(record, now)]
        return tuple(sorted(alive, key=lambda record: (record.since, _key(record))))

    async def refresh(self, scope: Scope, *, sure: bool = False) -> None:
        """Bring the registry up to date. It stays as it is while the log is unavailable.

        Records that were read a moment ago are used again, unless the caller must be `sure`.
        """
        tenant = scope.tenant
        if not sure and time.monotonic() - self._read_at.get(tenant, -FRESH_S) < FRESH_S:
            return
        changes = self._changes
        try:
            records = await self.list_tools(tenant)
        except LogError as error:
            log.warning(
                "tool registrations unreadable: the known tools stay",
                extra={"tenant": tenant, "reason": str(error)},
            )
            return
        if changes == self._changes:
            if len(self._read_at) >= TENANTS_MAX:
                self._read_at.clear()
            self._read_at[tenant] = time.monotonic()
        if records != self._known.get(tenant, ()):
            self._known[tenant] = records
            entries = (self._registration(tenant, record) for record in records)
            valid = [entry for entry in entries if entry is not None]
            self._registry.replace_owned(_owner(tenant), valid)

    def _registration(self, tenant: TenantId, record: RegisteredTool) -> Registration | None:
        try:
            tool = self._make(tenant, record)
        except InvalidTool as error:
            # A worker of another release accepted it.
            extra = {"tenant": tenant, "tool": record.name, "reason": str(error)}
            log.warning("tool registration invalid: the tool is left out", extra=extra)
            return None
        return Registration(tool, tenant, record.location, _owner(tenant), RANK)

    async def _load(self, tenant: TenantId) -> dict[str, RegisteredTool]:
        records: dict[str, RegisteredTool] = {}
        for key, value in (await self._store.get_all(tenant)).items():
            try:
                record = RegisteredTool.model_validate_json(value)
            except ValidationError as error:
                log.warning(
                    "tool registration unreadable: it is left out",
                    extra={"key": key, "reason": str(error)},
                )
                continue
            if _is_alive(record, now_ms() - SWEEP_MS):
                records[key] = record
            else:
                await self._store.remove(tenant, key)
        return records


def _check_subject(tenant: TenantId, command: RegisterTool) -> None:
    """A tenant's tool must be served on a subject of that tenant. Raises InvalidRequest."""
    queue = command.mode == "queue"
    prefix = (
        subjects.queued_tool_prefix(tenant) if queue else subjects.application_tool_prefix(tenant)
    )
    if not command.subject.startswith(prefix):
        reason = f"subject: it must begin with {prefix}"
        raise InvalidRequest(reason, kind="Body", field="subject")


def _content(record: RegisterTool) -> dict[str, object]:
    return record.model_dump(exclude={"since", "expires", "ttl_ms"})


def _is_alive(record: RegisteredTool, now: int) -> bool:
    return record.expires is None or record.expires > now


def _key(key: ToolRegistrationKey) -> str:
    where = EVERYWHERE
    if key.location is not None:
        where = sha256(key.location.encode()).hexdigest()[:24]
    return f"{key.service}.{key.name}.{where}"


def _owner(tenant: TenantId) -> str:
    return f"application:{tenant}"
