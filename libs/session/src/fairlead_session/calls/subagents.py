"""Sub-agents: a call that is answered by another session, which nobody waits for in a process.

The ids of that session and of its prompt follow from the call, so whoever makes them again after a
crash finds the ones that exist.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from fairlead_schema.events import ChildFinished
from fairlead_schema.ids import SessionId
from fairlead_schema.message import AssistantMessage, TextBlock
from fairlead_schema.tools.content import TextContent
from fairlead_session.calls.child_ids import TASK, child_of, first_prompt
from fairlead_session.calls.lifecycle import Failed, Outcome, Succeeded
from fairlead_session.execution.budget import total_usage
from fairlead_session.execution.commands import is_at_rest
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session

SILENT: Final = "The sub-agent finished without saying anything."

KnownSessions: TypeAlias = Mapping[SessionId, Session]
"""Sessions below that were read."""

NO_SESSIONS: Final[KnownSessions] = MappingProxyType({})


def awaited_children(session: Session) -> tuple[SessionId, ...]:
    """The sessions that unsettled calls of this one wait for."""
    return tuple(_child(session, call) for call in session.calls if call.tool == TASK)


def child_for(session: Session, call: UnsettledCall) -> SessionId | None:
    """The session that answers a call, if one does."""
    return _child(session, call) if call.tool == TASK else None


def call_of_child(session: Session, child: SessionId) -> UnsettledCall | None:
    """The unsettled call that a session answers."""
    found = (call for call in session.calls if call.tool == TASK)
    return next((call for call in found if _child(session, call) == child), None)


def uncounted_children(session: Session) -> tuple[SessionId, ...]:
    """The sessions that no call waits for any more and whose use nobody has told this one.

    Their calls were settled without them: by an interrupt, a crash, or before they were made.
    """
    waiting = awaited_children(session)
    return tuple(child for child in session.usage.children.uncounted if child not in waiting)


def next_unread(below: Iterable[SessionId], known: KnownSessions) -> SessionId | None:
    """The next session to read, of some and all that owe below them, to know what they used."""
    for child in below:
        if child not in known:
            return child
        deeper = next_unread(known[child].usage.children.uncounted, known)
        if deeper is not None:
            return deeper
    return None


def count_children(session: Session, known: KnownSessions) -> tuple[ChildFinished, ...]:
    """What the uncounted ones used in all, of those that have come to rest.

    One that was never made has used nothing, and need not be looked for again.
    """
    rested = (known[child] for child in uncounted_children(session) if is_at_rest(known[child]))
    return tuple(_finished(child, known) for child in rested)


def child_outcome(child: Session, known: KnownSessions = NO_SESSIONS) -> Outcome | None:
    """What a call gets from its session; None while that is at work, waits or asks somebody."""
    prompt = child.inbox.admissions.get(first_prompt(child.id))
    if prompt is None or child.asks.questions or not is_at_rest(child):
        return None
    finished = _finished(child, known)
    if child.execution.rested != "idle" or prompt.promoted_seq is None:
        why = child.execution.rest_detail or child.execution.rested or "it never began"
        return Failed(f"The sub-agent stopped: {why}", facts=(finished,))
    text = TextContent(text=_last_words(child) or SILENT)
    return Succeeded({"sessionID": child.id}, (text,), facts=(finished,))


def _finished(child: Session, known: KnownSessions) -> ChildFinished:
    cost, tokens = _used(child, known)
    return ChildFinished(session_id=child.id, cost=cost, tokens=tokens)


def _used(session: Session, known: KnownSessions) -> tuple[float, int]:
    """What a session has used, with those below it that still owe their count."""
    cost, tokens = total_usage(session)
    for child in session.usage.children.uncounted:
        if child in known:
            more = _used(known[child], known)
            cost, tokens = cost + more[0], tokens + more[1]
    return cost, tokens


def _child(session: Session, call: UnsettledCall) -> SessionId:
    return child_of(session.id, call.assistant_message_id, call.call_id)


def _last_words(child: Session) -> str:
    """The text of the newest assistant message that has any."""
    for line in reversed(child.transcript.lines):
        if isinstance(line.message, AssistantMessage):
            blocks = (one for one in line.message.content if isinstance(one, TextBlock))
            text = "\n\n".join(block.text for block in blocks if block.text)
            if text:
                return text
    return ""
