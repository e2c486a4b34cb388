"""Which message an undo or a redo goes to, from the messages of the active history, oldest first."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from fairlead_schema.ids import MessageId

Messages: TypeAlias = Sequence[dict[str, Any]]


def undo_boundary(messages: Messages, staged: MessageId | None) -> MessageId | None:
    """The message to keep, so that the last prompt before the boundary leaves; None without one.

    The first prompt has no message before it. It stays then, and only its answer leaves.
    """
    end = len(messages) if staged is None else _index(messages, staged) + 1
    prompts = [index for index in _prompts(messages) if index < end]
    while prompts:
        index = prompts.pop()
        boundary = max(0, index - 1)
        if boundary < end - 1:
            found: MessageId = messages[boundary]["id"]
            return found
    return None


def redo_boundary(messages: Messages, staged: MessageId) -> MessageId | None:
    """The message to keep, so that one more prompt comes back with its answer; None: all come back."""
    at = _index(messages, staged)
    returned = [index for index in _prompts(messages) if index > at]
    if at == 0 and _prompts(messages)[:1] == [0]:
        returned.insert(0, 0)
    if len(returned) < 2:  # noqa: PLR2004 - the prompt that comes back, and the one after it
        return None
    found: MessageId = messages[returned[1] - 1]["id"]
    return found


def _prompts(messages: Messages) -> list[int]:
    return [index for index, message in enumerate(messages) if message["type"] == "user"]


def _index(messages: Messages, id_: MessageId) -> int:
    return next((index for index, message in enumerate(messages) if message["id"] == id_), 0)
