"""Context sources of other services: registered by key, asked over NATS, never trusted."""

import asyncio
import logging
import time
from contextlib import suppress
from typing import Final, NamedTuple

from pydantic import ValidationError

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError, NoResponders
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.context import (
    Observation,
    ObserveContext,
    ObservedSource,
    RemoveSource,
    SourceChanged,
    SourceRegistration,
    SourceRegistrations,
    Text,
    UnavailableKind,
    Value,
)
from fairlead_schema.errors import Conflict, InvalidRequest, LimitReached
from fairlead_schema.ids import TenantId
from fairlead_schema.model import Model
from fairlead_tools.context.fresh_answers import FreshAnswers, Question
from fairlead_tools.context.reader import unavailable

log = logging.getLogger(__name__)

ANSWER_BYTES_MAX: Final = 64 * 1024
SOURCES_MAX: Final = 32
TENANTS_MAX: Final = 10_000
# A registration by another worker is seen here after this long.
FRESH_S: Final = 1.0


class LoaderAnswer(Model):
    """The data of a loader's answer: the source as it is now. No data: there is no source."""

    value: Value = None
    baseline: Text
    update: Text
    removed: Text | None = None
    shape: int | None = None


_ANSWER = CommandAnswer[LoaderAnswer]
# A runner asks for more than a loader needs to know.
_ASKED_FIELDS: Final = set(ObserveContext.model_fields)


class RegisteredSources:
    """The sources that services registered, each for one tenant."""

    def __init__(self, eventlog: EventLog, timeout_s: float, *, fresh_s: float = FRESH_S) -> None:
        self._eventlog = eventlog
        self._timeout_s = timeout_s
        self._fresh_s = fresh_s
        self._known: dict[TenantId, _KnownSources] = {}
        self._answers = FreshAnswers()

    async def watch(self) -> None:
        """Hear of changes from now on. Until then every source is asked at every observation."""
        await self._eventlog.sources.watch(self._forget)
        self._answers.start()

    async def announce(self, tenant: TenantId, change: SourceChanged) -> SourceChanged:
        """Tell every worker that a source changed: from the answer on nobody uses an earlier value."""
        self._forget(tenant, change.key)
        await self._eventlog.sources.announce(tenant, change.key)
        return change

    def _forget(self, tenant: TenantId | None, key: str | None) -> None:
        self._answers.forget(tenant, key)
        if tenant is None:
            self._known.clear()
        else:
            self._known.pop(tenant, None)

    async def register(
        self, tenant: TenantId, registration: SourceRegistration
    ) -> SourceRegistration:
        """Register a source of a tenant. Raises InvalidRequest, Conflict, LimitReached."""
        if registration.key.startswith("core/"):
            raise InvalidRequest("core/ is Fairlead's own namespace", kind="Body", field="key")
        prefix = subjects.application_tool_prefix(tenant)
        if not registration.subject.startswith(prefix):
            reason = f"subject: it must begin with {prefix}"
            raise InvalidRequest(reason, kind="Body", field="subject")
        keys = {source.key for source in await self._load(tenant)}
        if registration.key not in keys and len(keys) >= SOURCES_MAX:
            raise LimitReached(f"A tenant has at most {SOURCES_MAX} registered sources")
        # A registration without the field has the bytes that earlier releases stored.
        left_out = None if registration.fresh_ms else {"fresh_ms"}
        body = registration.model_dump_json(by_alias=True, exclude=left_out).encode()
        stored = await self._eventlog.sources.add(tenant, registration.key, body)
        self._known.pop(tenant, None)
        if stored != body:
            raise Conflict("Another source has this key", registration.key)
        await self._tell(tenant, registration.key)
        return registration

    async def remove(self, tenant: TenantId, command: RemoveSource) -> SourceRegistrations:
        """Remove a source. Removing an unknown source succeeds."""
        await self._eventlog.sources.remove(tenant, command.key)
        self._answers.forget(tenant, command.key)
        await self._tell(tenant, command.key)
        return SourceRegistrations(sources=await self._load(tenant))

    async def _tell(self, tenant: TenantId, key: str) -> None:
        """Tell the other workers of a registration. Who misses the news knows it after a second."""
        with suppress(LogError):
            await self._eventlog.sources.announce(tenant, key)

    async def has_any(self, tenant: TenantId) -> bool:
        """Whether the tenant has registered a source. Raises LogError if that is unknown."""
        return bool(await self._current(tenant))

    async def observe(self, request: ObserveContext) -> tuple[Observation, ...]:
        """Observe every source of the tenant, in key order. Raises LogError if they are unknown."""
        sources = await self._current(request.tenant)
        observations = await asyncio.gather(*(self._ask(source, request) for source in sources))
        return tuple(observation for observation in observations if observation is not None)

    async def _current(self, tenant: TenantId) -> tuple[SourceRegistration, ...]:
        known = self._known.get(tenant)
        if known is not None and time.monotonic() - known.at < self._fresh_s:
            return known.sources
        try:
            return await self._load(tenant)
        except LogError:
            # While the log is unavailable the last known registrations are used.
            if known is None:
                raise
            return known.sources

    async def _load(self, tenant: TenantId) -> tuple[SourceRegistration, ...]:
        bodies = await self._eventlog.sources.get_all(tenant)
        parsed = map(_parse_registration, bodies.values())
        sources = tuple(source for source in parsed if source is not None)
        if len(self._known) >= TENANTS_MAX:
            self._known.clear()
        self._known[tenant] = _KnownSources(time.monotonic(), sources)
        return sources

    async def _ask(self, source: SourceRegistration, request: ObserveContext) -> Observation | None:
        """One source. An answer that still counts is used again; a failure never counts later."""
        body = request.model_dump_json(
            by_alias=True, exclude_none=True, include=_ASKED_FIELDS
        ).encode()
        question = Question(request.tenant, source.key, source.subject, body)
        known = self._answers.find(question)
        if known is not None:
            return known.source
        changes = self._answers.changes
        timeout_s = min(source.timeout_ms / 1000, self._timeout_s)
        try:
            raw = await self._eventlog.requests.request(source.subject, body, timeout_s=timeout_s)
            result = _result_from_bytes(source.key, raw)
        except NoResponders:
            why, reason = _Why("unreachable", f"no service answers on {source.subject}")
        except LogError as error:
            why, reason = _Why("timeout", str(error))
        except BadAnswer as error:
            why, reason = error.details
        else:
            self._answers.keep(question, result, source.fresh_ms / 1000, asked_at=changes)
            return result
        return unavailable(source.key, why, reason, required=source.required)


class _KnownSources(NamedTuple):
    at: float
    sources: tuple[SourceRegistration, ...]


class _Why(NamedTuple):
    why: UnavailableKind
    reason: str


class BadAnswer(Exception):
    """A loader sent an invalid answer, or an error."""

    def __init__(self, why: UnavailableKind, reason: str) -> None:
        super().__init__(reason)
        self.details = _Why(why, reason)


def _result_from_bytes(key: str, raw: bytes) -> ObservedSource | None:
    """The source in a loader's answer; None if it has none. Raises BadAnswer."""
    if len(raw) > ANSWER_BYTES_MAX:
        raise BadAnswer("too-large", f"it answered more than {ANSWER_BYTES_MAX} bytes")
    try:
        answer = _ANSWER.model_validate_json(raw)
    except ValidationError as error:
        raise BadAnswer("malformed", _first(error)) from error
    if answer.error is not None:
        raise BadAnswer("unreachable", answer.error.message)
    if answer.data is None and "data" not in answer.model_fields_set:
        raise BadAnswer("malformed", "neither data nor error")
    if b"\\u0000" in raw or b"\0" in raw:
        raise BadAnswer("malformed", "its text holds a null character")
    return None if answer.data is None else ObservedSource(key=key, **dict(answer.data))


def _parse_registration(body: bytes) -> SourceRegistration | None:
    try:
        return SourceRegistration.model_validate_json(body)
    except ValidationError as error:
        log.warning(
            "context source registration unreadable: it is left out",
            extra={"reason": _first(error)},
        )
        return None


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
