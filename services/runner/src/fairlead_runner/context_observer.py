"""Asks the owner of a location what the model should be told."""

import logging

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.context import ContextSample, ObserveContext, UnavailableSource
from fairlead_session.state.session import Session

log = logging.getLogger(__name__)

_ANSWER = CommandAnswer[ContextSample]
# What a session without an epoch waits for when nobody serves its location.
_UNKNOWN = "core/environment"


def question(session: Session, agent: str) -> ObserveContext:
    """What to ask about a session's place."""
    profile = session.profile
    assert profile is not None, "a session that drains was created"
    return ObserveContext(
        location=profile.location,
        agent=agent,
        timezone=profile.timezone,
        touched=session.read_directories,
    )


async def sample(
    eventlog: EventLog, session: Session, asked: ObserveContext, *, pool: str, timeout_s: float
) -> ContextSample:
    """One coherent sample. A service that is away makes its sources unavailable, not gone."""
    try:
        body = await eventlog.requests.request(
            subjects.observe(pool),
            asked.model_dump_json(by_alias=True, exclude_none=True).encode(),
            timeout_s=timeout_s,
        )
        answer = _ANSWER.model_validate_json(body)
    except (LogError, ValueError) as error:
        return _away(session, str(error))
    if answer.data is None:
        return _away(session, answer.error.message if answer.error else "an empty answer")
    return answer.data


def _away(session: Session, reason: str) -> ContextSample:
    log.warning("context unavailable", extra={"session_id": session.id, "reason": reason})
    keys = tuple(session.epoch.snapshot) if session.epoch else (_UNKNOWN,)
    return ContextSample(
        observations=tuple(
            UnavailableSource(key=key, reason=reason, why="unreachable") for key in keys
        )
    )
