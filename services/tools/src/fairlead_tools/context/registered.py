"""Context sources that other services offer: registered by key, asked over NATS, never trusted."""

import asyncio
import logging
import time
from typing import Final, NamedTuple

from pydantic import ValidationError

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError, NoResponders
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.context import (
    Observation,
    ObserveContext,
    ObservedSource,
    RemoveSource,
    SourceRegistration,
    SourceRegistrations,
    Text,
    UnavailableKind,
    Value,
)
from fairlead_schema.errors import Conflict, InvalidRequest, LimitReached
from fairlead_schema.model import Model
from fairlead_tools.context.reader import unavailable

log = logging.getLogger(__name__)

ANSWER_BYTES_MAX: Final = 64 * 1024
PLUGINS_MAX: Final = 32
# What another worker registered is known here after this long.
FRESH_S: Final = 1.0
# Ours to write under, or the server's: a loader there would be sent commands.
RESERVED: Final = ("fairlead.", "$", "_")


class LoaderAnswer(Model):
    """What a loader answers as its data: the source as it is now. No data: there is none."""

    value: Value = None
    baseline: Text
    update: Text
    removed: Text | None = None
    shape: int | None = None


_ANSWER = CommandAnswer[LoaderAnswer]


class RegisteredSources:
    """The registered sources of one pool."""

    def __init__(self, eventlog: EventLog, pool: str, timeout_s: float) -> None:
        self._eventlog = eventlog
        self._pool = pool
        self._timeout_s = timeout_s
        self._known: tuple[float, tuple[SourceRegistration, ...]] | None = None

    async def register(self, asked: SourceRegistration) -> SourceRegistration:
        """Offer a source from now on. Raises InvalidRequest, Conflict, TooMany."""
        if asked.key.startswith("core/"):
            raise InvalidRequest("core/ is Fairlead's own namespace", kind="Body", field="key")
        if asked.subject.startswith(RESERVED):
            raise InvalidRequest("the subject is reserved", kind="Body", field="subject")
        known = {one.key for one in await self._load()}
        if asked.key not in known and len(known) >= PLUGINS_MAX:
            raise LimitReached(f"A pool has at most {PLUGINS_MAX} registered sources")
        body = asked.model_dump_json(by_alias=True).encode()
        kept = await self._eventlog.sources.add(self._pool, asked.key, body)
        self._known = None
        if kept != body:
            raise Conflict("Another source has this key", asked.key)
        return asked

    async def remove(self, asked: RemoveSource) -> SourceRegistrations:
        """Take a source back. One that is not there is removed already."""
        await self._eventlog.sources.remove(self._pool, asked.key)
        return SourceRegistrations(sources=await self._load())

    async def observe(self, asked: ObserveContext) -> tuple[Observation, ...]:
        """Every registered source, in key order. Raises LogError if nobody knows which there are."""
        observed = await asyncio.gather(*(self._ask(one, asked) for one in await self._current()))
        return tuple(one for one in observed if one is not None)

    async def _current(self) -> tuple[SourceRegistration, ...]:
        if self._known is not None and time.monotonic() - self._known[0] < FRESH_S:
            return self._known[1]
        try:
            return await self._load()
        except LogError:
            # What was registered a moment ago is better than a guess; without it there is none.
            if self._known is None:
                raise
            return self._known[1]

    async def _load(self) -> tuple[SourceRegistration, ...]:
        kept = await self._eventlog.sources.get_all(self._pool)
        found = tuple(one for one in map(_parse_registration, kept.values()) if one is not None)
        self._known = (time.monotonic(), found)
        return found

    async def _ask(self, one: SourceRegistration, asked: ObserveContext) -> Observation | None:
        body = asked.model_dump_json(by_alias=True, exclude_none=True).encode()
        timeout_s = min(one.timeout_ms / 1000, self._timeout_s)
        try:
            raw = await self._eventlog.requests.request(one.subject, body, timeout_s=timeout_s)
            return _parse_answer(one.key, raw)
        except NoResponders:
            why, reason = _Why("unreachable", f"nobody answers on {one.subject}")
        except LogError as error:
            why, reason = _Why("timeout", str(error))
        except BadAnswer as error:
            why, reason = error.said
        return unavailable(one.key, why, reason, required=one.required)


class _Why(NamedTuple):
    why: UnavailableKind
    reason: str


class BadAnswer(Exception):
    """A loader's answer that is none, or one that it cannot give now."""

    def __init__(self, why: UnavailableKind, reason: str) -> None:
        super().__init__(reason)
        self.said = _Why(why, reason)


def _parse_answer(key: str, raw: bytes) -> ObservedSource | None:
    """What a loader said, if it can be understood. Raises Misspoken."""
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
        log.warning("registration left out", extra={"reason": _first(error)})
        return None


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
