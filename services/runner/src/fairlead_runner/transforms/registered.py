"""The transforms that services registered, as a runner knows them: read once, and after each change."""

import logging
import time
from math import inf
from typing import Final

from pydantic import ValidationError

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError, MessageTooLarge, NoResponders
from fairlead_runner.transforms.transform import Transform, TransformFailed
from fairlead_schema.ids import TenantId
from fairlead_schema.transforms.registration import TransformRegistration

log = logging.getLogger(__name__)

FRESH_S: Final = 60.0
"""A change is announced. In a cluster an announcement may be lost: then the change is seen this late."""


class RegisteredTransforms:
    """The registrations of all tenants. A turn reads nothing while none has changed."""

    def __init__(self, eventlog: EventLog, *, fresh_s: float = FRESH_S) -> None:
        self._eventlog = eventlog
        self._fresh_s = fresh_s
        self._known: dict[TenantId, tuple[Transform, ...]] | None = None
        self._read_at = -inf
        self._changes = 0

    def forget(self, _tenant: TenantId | None = None) -> None:
        """Read the registrations anew before the next request: some have changed."""
        self._changes += 1
        self._read_at = -inf

    async def of(self, tenant: TenantId) -> tuple[Transform, ...]:
        """The transforms of a tenant. Raises LogError if they were never read and cannot be read."""
        if time.monotonic() - self._read_at >= self._fresh_s:
            await self._refresh()
        return () if self._known is None else self._known.get(tenant, ())

    async def _refresh(self) -> None:
        changes = self._changes
        try:
            stored = await self._eventlog.transforms.get_all_tenants()
        except LogError as error:
            if self._known is None:
                raise
            log.warning("transforms unreadable: the known ones stay", extra={"reason": str(error)})
            return
        self._known = {tenant: self._parse(bodies) for tenant, bodies in stored.items()}
        if changes == self._changes:
            self._read_at = time.monotonic()

    def _parse(self, bodies: dict[str, bytes]) -> tuple[Transform, ...]:
        parsed = (_parse_registration(body) for body in bodies.values())
        return tuple(self._transform(found) for found in parsed if found is not None)

    def _transform(self, registration: TransformRegistration) -> Transform:
        subject = registration.subject

        async def ask(document: bytes, timeout_s: float) -> bytes:
            try:
                return await self._eventlog.requests.request(subject, document, timeout_s=timeout_s)
            except NoResponders:
                raise TransformFailed("unreachable", f"no service answers on {subject}") from None
            except MessageTooLarge as error:
                raise TransformFailed("too-large", str(error)) from error
            except LogError:
                raise TransformFailed("timeout", f"no answer within {timeout_s:g} s") from None

        return Transform(registration.name, registration.version, registration, ask)


def _parse_registration(body: bytes) -> TransformRegistration | None:
    try:
        return TransformRegistration.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        log.warning(
            "transform registration unreadable: requests go out without the transform",
            extra={"reason": first["msg"]},
        )
        return None
