"""Counts what a session used by model and through its sub-agents, and what its tools changed. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from fairlead_projector.projection.rows import ProjectedSession
from fairlead_schema.events import (
    ChildFinished,
    CompactionEnded,
    CompactionUsed,
    SessionEvent,
    StepEnded,
    TitleEnded,
    ToolSucceeded,
)
from fairlead_schema.message import AssistantMessage, ToolBlock
from fairlead_schema.session_info import ChildrenUsage
from fairlead_session.execution.usage_sums import add_model_usage
from fairlead_session.state.file_changes import changes_after, settle_changes

Count: TypeAlias = Callable[[ProjectedSession, Any], None]


def _count_step(session: ProjectedSession, event: StepEnded) -> None:
    message, row = session.find(event.assistant_message_id), session.row
    if isinstance(message, AssistantMessage):
        row.models = add_model_usage(row.models, message.model, event.cost, event.tokens)


def _count_request(session: ProjectedSession, event: CompactionUsed | TitleEnded) -> None:
    row = session.row
    row.models = add_model_usage(row.models, event.model, event.cost, event.tokens)


def _count_child(session: ProjectedSession, event: ChildFinished) -> None:
    used = session.row.children
    more = ChildrenUsage(cost=used.cost + event.cost, tokens=used.tokens + event.tokens)
    session.row.children = more


def _count_changes(session: ProjectedSession, event: ToolSucceeded) -> None:
    message, row = session.find(event.assistant_message_id), session.row
    if event.provider.executed or not isinstance(message, AssistantMessage):
        return
    seq = session.messages[message.id].seq
    for block in message.content:
        if isinstance(block, ToolBlock) and block.id == event.call_id:
            row.file_changes = changes_after(
                row.file_changes, block.name, event.structured, message_seq=seq
            )


def _settle_changes(session: ProjectedSession, _event: CompactionEnded) -> None:
    session.row.file_changes = settle_changes(session.row.file_changes)


COUNTS: Final[Mapping[type[SessionEvent], Count]] = {
    StepEnded: _count_step,
    CompactionUsed: _count_request,
    TitleEnded: _count_request,
    ChildFinished: _count_child,
    ToolSucceeded: _count_changes,
    CompactionEnded: _settle_changes,
}
"""How each event is counted. An event that is not here counts for nothing."""
