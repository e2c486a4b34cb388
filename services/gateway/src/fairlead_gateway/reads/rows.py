"""Turns rows of the read models into contract values for clients."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from fairlead_gateway.reads.read_model import UnreadableRow
from fairlead_schema.commands.session_status import SessionBudget, SessionOverview
from fairlead_schema.message import MESSAGE, Message
from fairlead_schema.session_info import SessionInfo
from fairlead_session.execution.status import StatusFacts, session_status
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
                "pool": row["pool"],
                "revert": row["revert"],
                "metadata": row["metadata"] or None,
                "models": row["models"] or None,
                "children": children_usage(_CHILDREN.validate_python(row["children"])),
                "summary": change_summary(_CHANGES.validate_python(row["file_changes"])),
                "stored": row["stored"],
            }
        )
    except ValidationError as error:
        raise UnreadableRow(f"session {row['session_id']}: {error}") from error
    return client_session(stored)


def overview_from_row(row: Mapping[str, Any]) -> SessionOverview:
    """A session with its state from its row. Raises UnreadableRow."""
    facts = StatusFacts(
        owner=row["owner"],
        broken=row["broken"],
        archived=row["archived_at"] is not None,
        stored=row["stored"] is not None,
        waiting=row["waiting"],
        asks=row["asks"],
        pending=row["pending"],
        work_requested=row["work_requested"],
        interrupted=row["interrupted"],
        rested=row["rested"],
        detail=row["rest_detail"],
        wake_at=row["wake_at"],
    )
    cost, tokens = row["budget_cost"], row["budget_tokens"]
    budget = None if cost is None and tokens is None else SessionBudget(cost=cost, tokens=tokens)
    return overview_of(session_from_row(row), facts, seq=row["seq"], budget=budget)


def overview_of(
    session: SessionInfo, facts: StatusFacts, *, seq: int, budget: SessionBudget | None = None
) -> SessionOverview:
    """A session together with its state."""
    return SessionOverview.model_construct(
        **dict(session), status=session_status(facts), seq=seq, budget=budget
    )


def message_from_row(row: Mapping[str, Any]) -> Message:
    """A message from its row. Raises UnreadableRow."""
    try:
        return MESSAGE.validate_python(row["message"])
    except ValidationError as error:
        raise UnreadableRow(f"message: {error}") from error
