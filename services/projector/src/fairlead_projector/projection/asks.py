"""Rows of pending asks: one row per ask until somebody answers it. Pure."""

from typing import Final, Protocol, TypeAlias

from fairlead_projector.projection.rows import AskKey, AskRow, ProjectedSession
from fairlead_schema.events import (
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
)
from fairlead_schema.ids import CallId, MessageId
from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address

_ASK_EVENTS: Final = (PermissionAsked, QuestionAsked)
_ANSWER_EVENTS: Final = (PermissionReplied, QuestionReplied, QuestionRejected)
ASK_EVENTS: Final = frozenset((*_ASK_EVENTS, *_ANSWER_EVENTS))

CallSource: TypeAlias = tuple[MessageId, CallId] | None


class AskChanges(Protocol):
    """Collects the row changes of asks."""

    asks: dict[AskKey, AskRow]
    answers: list[AskKey]


def apply_event(
    session: ProjectedSession, at: Address, recorded: Recorded, changes: AskChanges
) -> None:
    """Apply one event of an ask."""
    event = recorded.event
    if isinstance(event, _ASK_EVENTS):
        row = _row(at, recorded, event)
        session.asks[row.request_id] = _source(event)
        changes.asks[AskKey(*at, row.request_id)] = row
    else:
        assert isinstance(event, _ANSWER_EVENTS), event.type
        key = AskKey(*at, event.request_id)
        session.asks.pop(event.request_id, None)
        if changes.asks.pop(key, None) is None:
            changes.answers.append(key)
    session.row.asks = len(session.asks)


def update_waiting(session: ProjectedSession) -> None:
    """Set `waiting` after a commit: every open call waits for a person, so nothing else can move."""
    open_calls = session.row.execution.open_calls
    sources = set(session.asks.values()) if session.asks else ()
    session.row.waiting = bool(open_calls and session.asks) and all(
        (call.assistant_message_id, call.call_id) in sources for call in open_calls
    )


def _source(event: PermissionAsked | QuestionAsked) -> CallSource:
    call = event.request.source if isinstance(event, PermissionAsked) else event.request.tool
    return None if call is None else (call.message_id, call.call_id)


def _row(at: Address, recorded: Recorded, event: PermissionAsked | QuestionAsked) -> AskRow:
    source = _source(event)
    return AskRow(
        *at,
        request_id=event.request.id,
        kind="permission" if isinstance(event, PermissionAsked) else "question",
        seq=recorded.seq,
        message_id=source[0] if source else None,
        call_id=source[1] if source else None,
        request=event.request,
        asked_at=recorded.time,
    )
