"""Turns rows of the read models into contract values for clients."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from fairlead_gateway.reads.read_model import UnreadableRow
from fairlead_schema.message import MESSAGE, Message
from fairlead_schema.session_info import SessionInfo
from fairlead_session.info import children_usage, client_session
from fairlead_session.state.file_changes import FileChanges, change_summary
from fairlead_session.state.usage import ChildUsage

_CHILDREN: Final = TypeAdapter(ChildUsage)
_CHANGES: Final = TypeAdapter(FileChanges)


def session_from_row(row: Mapping[str, Any]) -> SessionInfo:
    """A session from its row. Raises UnreadableRow."""
    try:
        stored = SessionInfo.model_validate(
            {
                "id": row["session_id"],
                "parent_id": row["parent_id"],
                "project_id": row["project_id"],
                "agent": row["agent"],
                "model": row["model"],
                "cost": row["cost"],
                "tokens": row["tokens"],
                "time": {
                    "created": row["created_at"],
                    "updated": row["updated_at"],
                    "archived": row["archived_at"],
                },
                "title": row["title"],
                "location": {"directory": row["directory"], "workspace_id": row["workspace_id"]},
                "subpath": row["subpath"],
                "revert": row["revert"],
                "metadata": row["metadata"] or None,
                "models": row["models"] or None,
                "children": children_usage(_CHILDREN.validate_python(row["children"])),
                "summary": change_summary(_CHANGES.validate_python(row["file_changes"])),
            }
        )
    except ValidationError as error:
        raise UnreadableRow(f"session {row['session_id']}: {error}") from error
    return client_session(stored)


def message_from_row(row: Mapping[str, Any]) -> Message:
    """A message from its row. Raises UnreadableRow."""
    try:
        return MESSAGE.validate_python(row["message"])
    except ValidationError as error:
        raise UnreadableRow(f"message: {error}") from error
