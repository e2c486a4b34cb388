"""Tools from the runner's side: what may be offered, and sending calls on their way."""

import asyncio
import logging
import time
from typing import Final, NamedTuple

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.session_cache import Versioned
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.events import SessionEvent, ToolCalled, ToolFailed
from fairlead_schema.ids import CallId, MessageId, WorkerId
from fairlead_schema.subjects import Address
from fairlead_schema.tools.request import ListTools, ToolCatalog, ToolInfo, ToolRequest
from fairlead_service.ids import now_ms
from fairlead_session.calls.snapshot import snapshot_call
from fairlead_session.people.pending import ready_calls
from fairlead_session.state.session import Session

log = logging.getLogger(__name__)

_ANSWER = CommandAnswer[ToolCatalog]
FRESH_S: Final = 1.0
CATALOGS_MAX: Final = 1024
# A larger input is in the log, where the worker finds it: not twice on its way.
BRIEF_LENGTH_MAX: Final = 16 * 1024
# A worker that lost its server is back within two tries; until then it looks like one that is dead.
RECONNECT_S: Final = 2.5


class Catalogs:
    """What each location offers each agent, remembered for a moment.

    A tool that changed meanwhile refuses the call: its revision is part of the call.
    """

    def __init__(self, eventlog: EventLog, *, pool: str, timeout_s: float) -> None:
        self._eventlog = eventlog
        self._pool = pool
        self._timeout_s = timeout_s
        self._known: dict[tuple[str, str, str], tuple[float, dict[str, ToolInfo]]] = {}

    async def offered(self, at: Address, session: Session, agent: str) -> dict[str, ToolInfo]:
        """The tools of the session's location for this agent.

        While the tools service is away they are what it offered last: they are not gone, calls wait
        for it, and a request without them would begin unlike all before it.
        """
        assert session.profile is not None, "a session that drains was created"
        key = (at.tenant, session.profile.location.directory, agent)
        learned, known = self._known.get(key, (0.0, {}))
        if time.monotonic() - learned < FRESH_S:
            return known
        asked = ListTools(location=session.profile.location, agent=agent, tenant=at.tenant)
        found = await _asked(self._eventlog, asked, pool=self._pool, timeout_s=self._timeout_s)
        if found is None:
            return known
        if len(self._known) >= CATALOGS_MAX:
            self._known.clear()
        self._known[key] = (time.monotonic(), found)
        return found


async def _asked(
    eventlog: EventLog, asked: ListTools, *, pool: str, timeout_s: float
) -> dict[str, ToolInfo] | None:
    """What the tools service says; None while it is away."""
    body = asked.model_dump_json(by_alias=True).encode()
    try:
        answer = await eventlog.requests.request(
            subjects.tool_catalog(pool), body, timeout_s=timeout_s
        )
        catalog = _ANSWER.model_validate_json(answer).data
    except (LogError, ValueError) as error:
        log.info("tools away", extra={"location": asked.location.directory, "reason": str(error)})
        return None
    return None if catalog is None else {tool.name: tool for tool in catalog.tools}


class CallRequest(NamedTuple):
    """A call to be run, and how many answers of people it has: each answer asks anew."""

    assistant_message_id: MessageId
    call_id: CallId
    answers: int = 0


def local_calls(events: tuple[SessionEvent, ...]) -> list[CallRequest]:
    """The local calls of some events that nothing in them settles."""
    settled = {event.call_id for event in events if isinstance(event, ToolFailed)}
    return [
        CallRequest(event.assistant_message_id, event.call_id)
        for event in events
        if isinstance(event, ToolCalled)
        and not event.provider.executed
        and event.call_id not in settled
    ]


def unstarted_calls(session: Session) -> list[CallRequest]:
    """The calls that no worker has begun and no person holds up: their request may never have left."""
    return [
        CallRequest(call.assistant_message_id, call.call_id, len(call.grants))
        for call in ready_calls(session)
        if call.worker is None
    ]


async def orphaned_calls(
    eventlog: EventLog, session: Session, *, timeout_s: float
) -> list[CallRequest]:
    """The calls that were begun and that nobody works on: their worker is gone, or too late.

    Their requests come again by themselves, unless they were lost with a server (docs/adr/0021).
    Whoever takes such a request ends a `once` call, so a worker is gone only if it stays away.
    """
    begun = {call.worker for call in session.calls if call.deferred_until is None}
    gone = await _gone(eventlog, begun - {None}, timeout_s)
    if gone:
        await asyncio.sleep(RECONNECT_S)
        gone = await _gone(eventlog, gone, timeout_s)
    return [
        CallRequest(call.assistant_message_id, call.call_id, len(call.grants))
        for call in session.calls
        if (call.worker in gone if call.deferred_until is None else call.deferred_until < now_ms())
    ]


async def _gone(
    eventlog: EventLog, workers: set[WorkerId | None], timeout_s: float
) -> set[WorkerId | None]:
    lives = {one: await eventlog.liveness.ping(one, timeout_s=timeout_s) for one in workers if one}
    return {worker for worker, life in lives.items() if life == "gone"}


async def send_calls(
    eventlog: EventLog,
    at: Address,
    pool: str,
    calls: list[CallRequest],
    *,
    token: str,
    known: Versioned[Session] | None = None,
) -> None:
    """Ask the pool to run durable calls. Asking twice is harmless: the log says who may start.

    Of several requests with one token the server keeps one; a reason to ask anew is a new token.
    Whoever knows the session as it is now tells the worker what there is to know.
    """
    for call in calls:
        message_id, call_id, answers = call
        await eventlog.work.put(
            subjects.tool(at, pool),
            _request(at, call, known),
            once=f"{at.session_id}:{message_id}:{call_id}:{token}:{answers}",
        )


def _request(at: Address, call: CallRequest, known: Versioned[Session] | None) -> bytes:
    message_id, call_id, _ = call
    bare = ToolRequest(session_id=at.session_id, assistant_message_id=message_id, call_id=call_id)
    told = known and snapshot_call(known.state, known.head.position, message_id, call_id)
    if told:
        briefed = bare.model_copy(update={"snapshot": told}).model_dump_json(by_alias=True)
        if len(briefed) <= BRIEF_LENGTH_MAX:
            return briefed.encode()
    return bare.model_dump_json(by_alias=True).encode()
