"""Sub-agents: a call that is answered by another session, which nobody waits for in a process.

The ids of that session and of its prompt follow from the call, so whoever makes them again after a
crash finds the ones that exist.
"""

from hashlib import sha256
from typing import Final

from fairlead_schema.events import ChildFinished
from fairlead_schema.ids import CallId, MessageId, SessionId
from fairlead_schema.message import AssistantMessage, TextBlock
from fairlead_schema.tool import TextContent
from fairlead_session.budget import spent
from fairlead_session.calling import Failed, Outcome, Succeeded
from fairlead_session.requests import at_rest
from fairlead_session.state import Call, Session

TASK: Final = "task"
SILENT: Final = "The sub-agent finished without saying anything."


def child_of(parent: SessionId, assistant_message_id: MessageId, call_id: CallId) -> SessionId:
    """The session that answers a call, for ever the same."""
    key = f"{parent}\n{assistant_message_id}\n{call_id}"
    return f"ses_{sha256(key.encode()).hexdigest()[:32]}"


def first_prompt(child: SessionId) -> MessageId:
    """The prompt that a call puts to its session."""
    return f"msg_{sha256(child.encode()).hexdigest()[:32]}"


def children(session: Session) -> tuple[SessionId, ...]:
    """The sessions that unsettled calls of this one wait for."""
    return tuple(_child(session, call) for call in session.calls if call.tool == TASK)


def child_for(session: Session, call: Call) -> SessionId | None:
    """The session that answers a call, if one does."""
    return _child(session, call) if call.tool == TASK else None


def waiting_for(session: Session, child: SessionId) -> Call | None:
    """The unsettled call that a session answers."""
    found = (call for call in session.calls if call.tool == TASK)
    return next((call for call in found if _child(session, call) == child), None)


def answered(child: Session) -> Outcome | None:
    """What a call gets from its session; None while that is at work, waits or asks somebody."""
    prompt = child.admissions.get(first_prompt(child.id))
    if prompt is None or child.questions or not at_rest(child):
        return None
    cost, tokens = spent(child)
    finished = ChildFinished(session_id=child.id, cost=cost, tokens=tokens)
    if child.rested != "idle" or prompt.promoted_seq is None:
        why = child.rest_detail or child.rested or "it never began"
        return Failed(f"The sub-agent stopped: {why}", facts=(finished,))
    text = TextContent(text=_last_words(child) or SILENT)
    return Succeeded({"sessionID": child.id}, (text,), facts=(finished,))


def _child(session: Session, call: Call) -> SessionId:
    return child_of(session.id, call.assistant_message_id, call.call_id)


def _last_words(child: Session) -> str:
    """The text of the newest assistant message that has any."""
    for line in reversed(child.transcript):
        if isinstance(line.message, AssistantMessage):
            blocks = (one for one in line.message.content if isinstance(one, TextBlock))
            text = "\n\n".join(block.text for block in blocks if block.text)
            if text:
                return text
    return ""
