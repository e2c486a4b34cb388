"""Registrations of transforms: one record each, which every runner reads."""

import logging
from typing import Final

from pydantic import ValidationError

from fairlead_eventlog.connection import EventLog
from fairlead_schema import subjects
from fairlead_schema.errors import InvalidRequest, LimitReached
from fairlead_schema.ids import TenantId
from fairlead_schema.transforms.registration import (
    ListTransforms,
    RemoveTransform,
    TransformRegistration,
    TransformRegistrations,
)
from fairlead_service.audit import audit_command
from fairlead_service.rpc.server import RpcServer, TenantParam

log = logging.getLogger(__name__)

TRANSFORMS_MAX: Final = 16


class TransformVerbs:
    """Performs the verbs of transforms."""

    def __init__(self) -> None:
        self._eventlog: EventLog | None = None

    def connect(self, eventlog: EventLog) -> None:
        """Use this connection from now on."""
        self._eventlog = eventlog

    def serve(self, server: RpcServer) -> None:
        """Serve the verbs for every tenant."""
        server.serve_verb("transform.register", self.register)
        server.serve_verb("transform.remove", self.remove)
        server.serve_verb("transform.list", self.list_all)

    async def register(
        self, tenant: TenantParam, command: TransformRegistration
    ) -> TransformRegistration:
        """Register a transform, or replace it. Raises InvalidRequest, LimitReached."""
        prefix = subjects.application_tool_prefix(tenant)
        if not command.subject.startswith(prefix):
            reason = f"subject: it must begin with {prefix}"
            raise InvalidRequest(reason, kind="Body", field="subject")
        known = {transform.name for transform in await self._load(tenant)}
        if command.name not in known and len(known) >= TRANSFORMS_MAX:
            raise LimitReached(f"A tenant may register {TRANSFORMS_MAX} transforms")
        body = command.model_dump_json(by_alias=True).encode()
        await self._log.transforms.put(tenant, _key(command.name), body)
        audit_command("transform.register", tenant, command.name)
        return command

    async def remove(self, tenant: TenantParam, command: RemoveTransform) -> TransformRegistrations:
        """Remove a transform. Removing an unknown one succeeds."""
        await self._log.transforms.remove(tenant, _key(command.name))
        audit_command("transform.remove", tenant, command.name)
        return TransformRegistrations(transforms=await self._load(tenant))

    async def list_all(
        self, tenant: TenantParam, _command: ListTransforms
    ) -> TransformRegistrations:
        """The transforms of a tenant, in the order in which they run."""
        return TransformRegistrations(transforms=await self._load(tenant))

    async def _load(self, tenant: TenantId) -> tuple[TransformRegistration, ...]:
        bodies = (await self._log.transforms.get_all(tenant)).values()
        found = [parsed for body in bodies if (parsed := _parse(body)) is not None]
        return tuple(sorted(found, key=lambda transform: (transform.order, transform.name)))

    @property
    def _log(self) -> EventLog:
        assert self._eventlog is not None, "the server answers only while the log is connected"
        return self._eventlog


def _key(name: str) -> str:
    """A name has characters that a subject cannot have, so its key is in hexadecimal."""
    return name.encode().hex()


def _parse(body: bytes) -> TransformRegistration | None:
    try:
        return TransformRegistration.model_validate_json(body)
    except ValidationError:
        log.warning("transform registration unreadable: it is left out of the list")
        return None
