"""Asks the tools service of a location for the context sources there."""

import logging

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.context import ContextSample, ObserveContext, UnavailableSource
from fairlead_schema.ids import TenantId
from fairlead_session.state.session import Session

log = logging.getLogger(__name__)

_ANSWER = CommandAnswer[ContextSample]
# The source that a session without an epoch waits for while no tools service answers.
_FIRST_SOURCE = "core/environment"


def build_question(tenant: TenantId, session: Session, agent: str) -> ObserveContext:
    """The question about the session's location."""
    profile = session.profile
    assert profile is not None, "a session that drains was created"
    return ObserveContext(
        location=profile.location,
        tenant=tenant,
        agent=agent,
        timezone=profile.timezone,
        read_directories=session.read_directories,
    )


async def observe_context(
    eventlog: EventLog, session: Session, question: ObserveContext, *, pool: str, timeout_s: float
) -> ContextSample:
    """One coherent sample. If the service does not answer, its sources are unavailable, not gone."""
    try:
        body = await eventlog.requests.request(
            subjects.observe(pool),
            question.model_dump_json(by_alias=True, exclude_none=True).encode(),
            timeout_s=timeout_s,
        )
        answer = _ANSWER.model_validate_json(body)
    except (LogError, ValueError) as error:
        return _unavailable(session, str(error))
    if answer.data is None:
        return _unavailable(session, answer.error.message if answer.error else "an empty answer")
    return answer.data


def _unavailable(session: Session, reason: str) -> ContextSample:
    extra = {"session_id": session.id, "reason": reason}
    log.warning("tools service does not answer: context stays as it was", extra=extra)
    keys = tuple(session.epoch.snapshot) if session.epoch else (_FIRST_SOURCE,)
    return ContextSample(
        observations=tuple(
            UnavailableSource(key=key, reason=reason, why="unreachable") for key in keys
        )
    )
