"""Asks the tools service of a location for the context sources and the tools there, in one request."""

import logging
from collections import OrderedDict
from typing import Final, NamedTuple, TypeAlias

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_runner.calls.catalogs import Catalogs, OfferedTools
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.context import ContextSample, ObserveContext, UnavailableSource
from fairlead_schema.subjects import Address
from fairlead_schema.tools.location_view import LocationView, ObserveLocation
from fairlead_session.relocation.pools import silent_pool
from fairlead_session.state.session import Session

log = logging.getLogger(__name__)

_ANSWER = CommandAnswer[LocationView]
# The source that a session without an epoch waits for while no tools service answers.
_FIRST_SOURCE = "core/environment"
SAMPLES_MAX: Final = 1024
SAMPLES_BYTES_MAX: Final = 32 * 1024 * 1024


class ObservedLocation(NamedTuple):
    """One coherent sample of a location, and the tools that it offers."""

    sample: ContextSample
    tools: OfferedTools


def build_question(at: Address, session: Session, agent: str) -> ObserveContext:
    """The question about the session's location."""
    profile = session.profile
    assert profile is not None, "a session that drains was created"
    return ObserveContext(
        location=profile.location,
        tenant=at.tenant,
        agent=agent,
        timezone=profile.timezone,
        read_directories=session.read_directories,
    )


class ContextObserver:
    """Observes locations for the drains of one runner.

    It names the hashes of what it knows, and gets only what has changed (docs/adr/0043).
    """

    def __init__(
        self, eventlog: EventLog, catalogs: Catalogs, *, pool: str, timeout_s: float
    ) -> None:
        """`pool` is the default pool."""
        self._eventlog = eventlog
        self._catalogs = catalogs
        self._pool = pool
        self._timeout_s = timeout_s
        self._samples = _KnownSamples()

    async def observe(self, session: Session, question: ObserveContext) -> ObservedLocation:
        """One look. If the service does not answer, its sources are unavailable, not gone."""
        pool = self._pool_of(session)
        offer = self._catalogs.last_offer(question, pool)
        sample = self._samples.get((pool, question))
        asked = ObserveLocation(
            **dict(question),
            with_tools=True,
            known_sample=None if sample is None else sample.hash,
            known_tools=None if offer is None else offer.hash,
        )
        body = asked.model_dump_json(by_alias=True, exclude_none=True).encode()
        try:
            raw = await self._eventlog.requests.request(
                subjects.observe(pool), body, timeout_s=self._timeout_s
            )
            answer = _ANSWER.model_validate_json(raw)
            view = answer.data
            if view is None:
                reason = answer.error.message if answer.error else "an empty answer"
                return await self._unavailable(session, question, reason)
            seen = self._sample((pool, question), view, sample, len(raw))
        except (LogError, ValueError) as error:
            reason = f"{silent_pool(pool)} ({error})"
            return await self._unavailable(session, question, reason)
        return ObservedLocation(seen, await self._catalogs.take(question, view, pool))

    def _pool_of(self, session: Session) -> str:
        assert session.profile is not None, "a session that drains was created"
        return session.profile.serving_pool(self._pool)

    def _sample(
        self,
        place: "_Place",
        view: LocationView,
        known: "_KnownSample | None",
        size: int,
    ) -> ContextSample:
        """The sample of an answer. Raises ValueError for an answer that is none."""
        if view.observations is None:
            if known is None or view.sample_hash != known.hash:
                raise ValueError("an answer without observations")
            return known.sample
        sample = ContextSample(observations=view.observations)
        if view.sample_hash is not None:
            self._samples.put(place, _KnownSample(view.sample_hash, sample, size))
        return sample

    async def _unavailable(
        self, session: Session, question: ObserveContext, reason: str
    ) -> ObservedLocation:
        extra = {"session_id": session.id, "reason": reason}
        log.warning("tools service does not answer: context stays as it was", extra=extra)
        keys = tuple(session.epoch.snapshot) if session.epoch else (_FIRST_SOURCE,)
        sources = (UnavailableSource(key=key, reason=reason, why="unreachable") for key in keys)
        sample = ContextSample(observations=tuple(sources))
        tools = await self._catalogs.last_tools(question, self._pool_of(session))
        return ObservedLocation(sample, tools)


_Place: TypeAlias = tuple[str, ObserveContext]
"""A pool, and a question about one of its locations."""


class _KnownSample(NamedTuple):
    hash: str
    sample: ContextSample
    bytes: int


class _KnownSamples:
    """The samples that this runner got last, by question; the oldest ones make room."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Place, _KnownSample] = OrderedDict()
        self._bytes = 0

    def get(self, place: _Place) -> _KnownSample | None:
        known = self._kept.get(place)
        if known is not None:
            self._kept.move_to_end(place)
        return known

    def put(self, place: _Place, known: _KnownSample) -> None:
        earlier = self._kept.pop(place, None)
        self._bytes += known.bytes - (0 if earlier is None else earlier.bytes)
        self._kept[place] = known
        while len(self._kept) > SAMPLES_MAX or (
            self._bytes > SAMPLES_BYTES_MAX and len(self._kept) > 1
        ):
            self._bytes -= self._kept.popitem(last=False)[1].bytes
