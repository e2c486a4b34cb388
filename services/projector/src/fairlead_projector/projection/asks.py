"""What waits for people, as rows. Pure: one row per pending request, none once it is answered."""

from typing import Final, Protocol, TypeAlias

from fairlead_projector.projection.rows import AskKey, AskRow, Projected
from fairlead_schema.events import (
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
)
from fairlead_schema.ids import CallId, MessageId
from fairlead_schema.message import ToolBlock
from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address

_ASKED: Final = (PermissionAsked, QuestionAsked)
_ANSWERED: Final = (PermissionReplied, QuestionReplied, QuestionRejected)
KINDS: Final = frozenset((*_ASKED, *_ANSWERED))

Source: TypeAlias = tuple[MessageId, CallId] | None


class Changes(Protocol):
    """Where row changes of asks are collected."""

    asks: dict[AskKey, AskRow]
    answers: list[AskKey]


def follow(session: Projected, at: Address, recorded: Recorded, changes: Changes) -> None:
    """Apply one event of an ask."""
    event = recorded.event
    if isinstance(event, _ASKED):
        row = _row(at, recorded, event)
        session.asks[row.request_id] = _source(event)
        changes.asks[AskKey(*at, row.request_id)] = row
    else:
        assert isinstance(event, _ANSWERED), event.type
        key = AskKey(*at, event.request_id)
        session.asks.pop(event.request_id, None)
        if changes.asks.pop(key, None) is None:
            changes.answers.append(key)
    session.row.asks = len(session.asks)


def settle(session: Projected) -> None:
    """Whether, after a commit, only people can move the session on."""
    if not session.asks:
        session.row.waiting = False
        return
    asking = set(session.asks.values())
    newest = session.find(session.newest_assistant or "")
    if newest is None or newest.type != "assistant":
        session.row.waiting = False
        return
    open_ = [
        (newest.id, block.id)
        for block in newest.content
        if isinstance(block, ToolBlock)
        and not (block.provider and block.provider.executed)
        and block.state.status in {"pending", "running"}
    ]
    session.row.waiting = bool(open_) and all(call in asking for call in open_)


def _source(event: PermissionAsked | QuestionAsked) -> Source:
    found = event.request.source if isinstance(event, PermissionAsked) else event.request.tool
    return None if found is None else (found.message_id, found.call_id)


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
