"""Sessions, their states and what they ask people, as the terminal client knows them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from fairlead_gateway.opencode_view.translation.message_fields import Setting, TextKey
from fairlead_schema.catalog import ModelRef
from fairlead_schema.ids import MessageId
from fairlead_schema.message import Message, UserMessage
from fairlead_schema.permission import PermissionRequest, QuestionRequest
from fairlead_schema.session_info import SessionInfo
from fairlead_session.execution.commands import is_at_rest
from fairlead_session.info import info
from fairlead_session.state.inbox import PendingInput
from fairlead_session.state.session import Session

Json: TypeAlias = dict[str, Any]
WithDefaults: TypeAlias = Callable[[SessionInfo], SessionInfo]

IDLE: Final[Json] = {"type": "idle"}
BUSY: Final[Json] = {"type": "busy"}
_NO_MODEL: Final = ModelRef(id="none", provider_id="none")


def view_session(session: SessionInfo, *, hidden_from: MessageId | None = None) -> Json:
    """A session. `hidden_from` is the first message that a staged revert hides."""
    viewed: Json = {
        "id": session.id,
        "projectID": session.project_id,
        "title": session.title,
        "directory": session.location.directory,
        "version": "fairlead",
        "time": {"created": session.time.created, "updated": session.time.updated},
        "cost": session.cost,
    }
    if session.parent_id is not None:
        viewed["parentID"] = session.parent_id
    if session.revert is not None and hidden_from is not None:
        viewed["revert"] = {"messageID": hidden_from}
        if session.revert.diff is not None:
            viewed["revert"]["diff"] = session.revert.diff
    return viewed


def view_folded(session: Session) -> Json:
    """A folded session. The time of its last event counts as its update."""
    described = info(session)
    hidden = None if described.revert is None else _hidden_from(session, described)
    viewed = view_session(described, hidden_from=hidden)
    viewed["time"]["updated"] = max(described.time.updated, session.changed_at or 0)
    return viewed


def setting_of(
    session: Session, with_defaults: WithDefaults, texts: Mapping[TextKey, str]
) -> Setting:
    """What the messages of a folded session have in common."""
    described = with_defaults(info(session))
    return Setting(
        session_id=session.id,
        directory=described.location.directory,
        agent=described.agent or "build",
        model=described.model or _NO_MODEL,
        texts=texts,
    )


def status_of(session: Session) -> Json:
    """Whether a session works, waits to try again, or is idle. A session that asks people works."""
    execution = session.execution
    if execution.rested == "retry-later" and execution.wake_at is not None:
        return {
            "type": "retry",
            "attempt": max(1, session.turn.retries),
            "message": execution.rest_detail or "The provider asked to wait",
            "next": execution.wake_at,
        }
    return IDLE if is_at_rest(session) else BUSY


def pending_message(pending: PendingInput) -> UserMessage | None:
    """Admitted input as the message that it becomes. A program's own text is not shown."""
    prompt = pending.prompt
    if prompt.synthetic:
        return None
    return UserMessage(
        id=pending.message_id,
        text=prompt.text,
        files=prompt.files,
        agents=prompt.agents,
        model=prompt.model,
        agent=prompt.agent,
        time={"created": pending.created},  # type: ignore[arg-type]
    )


def view_permission(ask: PermissionRequest) -> Json:
    source = ask.source
    tool = {} if source is None else {"tool": _call(source.message_id, source.call_id)}
    return {
        "id": ask.id,
        "sessionID": ask.session_id,
        "permission": ask.action,
        "patterns": list(ask.resources),
        "always": list(ask.save or ()),
        "metadata": _metadata(ask),
        **tool,
    }


def _metadata(ask: PermissionRequest) -> Json:
    """The title of the dialog names the files of an edit from here."""
    found = dict(ask.metadata or {})
    return {"filepath": ", ".join(ask.resources), **found} if ask.action == "edit" else found


def view_question(ask: QuestionRequest) -> Json:
    source = ask.tool
    tool = {} if source is None else {"tool": _call(source.message_id, source.call_id)}
    return {
        "id": ask.id,
        "sessionID": ask.session_id,
        "questions": [question.wire() for question in ask.questions],
        **tool,
    }


def first_hidden(messages: Iterable[Message], boundary: MessageId) -> MessageId | None:
    """The first prompt after the boundary of a revert. The client hides this prompt and all after it."""
    is_after = False
    for message in messages:
        if is_after and isinstance(message, UserMessage):
            return message.id
        is_after = is_after or message.id == boundary
    return None


def _hidden_from(session: Session, described: SessionInfo) -> MessageId | None:
    assert described.revert is not None, "only a staged revert hides messages"
    if described.revert.before:
        return described.revert.message_id
    messages = (line.message for line in session.transcript.lines)
    return first_hidden(messages, described.revert.message_id)


def _call(message_id: str, call_id: str) -> Json:
    return {"messageID": message_id, "callID": call_id}
