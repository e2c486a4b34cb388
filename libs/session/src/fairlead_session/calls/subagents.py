"""Sub-agents: calls that another session, the child, answers. No process waits for the child.

The ids of the child and of its prompt follow from the call. A worker that creates them again after
a crash finds the existing ones.
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
from fairlead_session.execution.rest import rest_rule
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session

SILENT: Final = "The sub-agent finished without saying anything."

KnownSessions: TypeAlias = Mapping[SessionId, Session]
"""Child sessions that were read, at any depth."""

NO_SESSIONS: Final[KnownSessions] = MappingProxyType({})


def awaited_children(session: Session) -> tuple[SessionId, ...]:
    """The child sessions that open calls wait for."""
    return tuple(_child(session, call) for call in session.calls if call.tool == TASK)


def child_for(session: Session, call: UnsettledCall) -> SessionId | None:
    """The child session that answers a call. None if a worker answers it."""
    return _child(session, call) if call.tool == TASK else None


def call_of_child(session: Session, child: SessionId) -> UnsettledCall | None:
    """The open call that a child session answers."""
    tasks = (call for call in session.calls if call.tool == TASK)
    return next((call for call in tasks if _child(session, call) == child), None)


def uncounted_children(session: Session) -> tuple[SessionId, ...]:
    """The child sessions whose usage is not counted and for which no call waits any more.

    Their calls were settled without them: by an interrupt, by a crash, or before they existed.
    """
    waiting = awaited_children(session)
    return tuple(child for child in session.usage.children.uncounted if child not in waiting)


def next_unread(children: Iterable[SessionId], sessions: KnownSessions) -> SessionId | None:
    """The next session to read, before the usage of these children and their children is sessions."""
    for child in children:
        if child not in sessions:
            return child
        deeper = next_unread(sessions[child].usage.children.uncounted, sessions)
        if deeper is not None:
            return deeper
    return None


def count_children(session: Session, sessions: KnownSessions) -> tuple[ChildFinished, ...]:
    """Count the usage of uncounted children that are at rest.

    A child that was never created has used nothing and counts as 0.
    """
    children = (sessions[child] for child in uncounted_children(session))
    return tuple(_finished_event(child, sessions) for child in children if is_at_rest(child))


def child_outcome(child: Session, sessions: KnownSessions = NO_SESSIONS) -> Outcome | None:
    """The result of a call from its child. None while the child works, waits or asks a person."""
    prompt = child.inbox.admissions.get(first_prompt(child.id))
    if prompt is None or child.asks.questions or not is_at_rest(child):
        return None
    finished = _finished_event(child, sessions)
    if not rest_rule(child.execution.rested).finished or prompt.promoted_seq is None:
        why = child.execution.rest_detail or child.execution.rested or "it never began"
        return Failed(f"The sub-agent stopped: {why}", facts=(finished,))
    text = TextContent(text=_last_text(child) or SILENT)
    return Succeeded({"sessionID": child.id}, (text,), facts=(finished,))


def _finished_event(child: Session, sessions: KnownSessions) -> ChildFinished:
    cost, tokens = _usage_with_children(child, sessions)
    return ChildFinished(session_id=child.id, cost=cost, tokens=tokens)


def _usage_with_children(session: Session, sessions: KnownSessions) -> tuple[float, int]:
    """The usage of a session, with its uncounted children."""
    cost, tokens = total_usage(session)
    for child in session.usage.children.uncounted:
        if child in sessions:
            more = _usage_with_children(sessions[child], sessions)
            cost, tokens = cost + more[0], tokens + more[1]
    return cost, tokens


def _child(session: Session, call: UnsettledCall) -> SessionId:
    return child_of(session.id, call.assistant_message_id, call.call_id)


def _last_text(child: Session) -> str:
    """The text of the newest assistant message that has any."""
    for line in reversed(child.transcript.lines):
        if isinstance(line.message, AssistantMessage):
            blocks = (block for block in line.message.content if isinstance(block, TextBlock))
            text = "\n\n".join(block.text for block in blocks if block.text)
            if text:
                return text
    return ""
