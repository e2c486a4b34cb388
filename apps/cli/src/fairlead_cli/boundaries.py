"""Which message an undo or a redo goes to, from the messages of the active history, oldest first."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from fairlead_schema.ids import MessageId
from fairlead_schema.session_values.revert_state import RevertState

Messages: TypeAlias = Sequence[dict[str, Any]]


class RevertBoundary(NamedTuple):
    """The last message that stays, or with `before` the first one that leaves."""

    message_id: MessageId
    before: bool = False


def undo_boundary(messages: Messages, staged: RevertState | None) -> RevertBoundary | None:
    """The boundary that lets one more prompt leave; None if no prompt is left."""
    end = _end(messages, staged)
    prompts = [index for index in _prompts(messages) if index < end]
    return _boundary_at(messages, prompts[-1]) if prompts else None


def redo_boundary(messages: Messages, staged: RevertState) -> RevertBoundary | None:
    """The boundary that brings one more prompt back with its answer; None: all come back."""
    end = _end(messages, staged)
    hidden = [index for index in _prompts(messages) if index >= end]
    if len(hidden) < 2:  # noqa: PLR2004 - the prompt that comes back, and the one after it
        return None
    return _boundary_at(messages, hidden[1])


def _boundary_at(messages: Messages, end: int) -> RevertBoundary:
    """So many messages stay."""
    if end == 0:
        return RevertBoundary(messages[0]["id"], before=True)
    return RevertBoundary(messages[end - 1]["id"])


def _end(messages: Messages, staged: RevertState | None) -> int:
    """How many messages stay now."""
    if staged is None:
        return len(messages)
    ids = (message["id"] for message in messages)
    at = next((index for index, id_ in enumerate(ids) if id_ == staged.message_id), 0)
    return at if staged.before else at + 1


def _prompts(messages: Messages) -> list[int]:
    return [index for index, message in enumerate(messages) if message["type"] == "user"]
