"""The names that existing clients have for events, where they differ from the log's."""

from typing import Final

PREFIX: Final = "session.next."

CLIENT_TYPES: Final = {"prompt.promoted": "prompted", "tool.succeeded": "tool.success"}
"""Events whose names differ between the log and existing clients."""
CLIENT_VERSIONS: Final = {"step.ended": 2, "step.failed": 2}
"""Events that existing clients know in their second version."""
NOTICE_TYPES: Final = {
    "permission.asked": "permission.v2.asked",
    "permission.replied": "permission.v2.replied",
    "question.asked": "question.v2.asked",
    "question.replied": "question.v2.replied",
    "question.rejected": "question.v2.rejected",
}
"""Notices have client names without the session prefix."""
NOTICES: Final = frozenset(
    {
        *NOTICE_TYPES.values(),
        "budget.set",
        "compaction.failed",
        "compaction.requested",
        "compaction.used",
        "execution.recovered",
        "execution.released",
        "input.cancelled",
        "input.edited",
        "interrupt.requested",
        "move.ended",
        "move.failed",
        "move.requested",
        "resume.requested",
        "revert.failed",
        "revert.requested",
        "session.archived",
        "session.created",
        "session.described",
        "session.purged",
        "session.unarchived",
        "shell.requested",
        "title.ended",
        "todo.updated",
    }
)
"""The client names of all notices, for readers that load no event."""


def client_type(type_: str, *, notice: bool = False) -> str:
    """The client name of an event type."""
    if notice:
        return NOTICE_TYPES.get(type_, type_)
    return PREFIX + CLIENT_TYPES.get(type_, type_)
