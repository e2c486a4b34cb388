"""Requests to the tools service: list the tools of a location, and run one call."""

from typing import Annotated, Any, TypeAlias

from pydantic import Field

from fairlead_schema.ids import DEFAULT_TENANT, CallId, MessageId, RunnerId, SessionId, TenantId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model
from fairlead_schema.tools.content import RetryClass

Position: TypeAlias = Annotated[int, Field(ge=1, lt=2**63)]
"""A position or seq in a log. Both count from 1."""


class ListTools(Model):
    """Asks the tools service of a location which tools an agent may call there now."""

    location: LocationRef
    agent: str | None = None
    tenant: TenantId = DEFAULT_TENANT


class ToolInfo(Model):
    """One tool as a turn offers it to the model."""

    name: str
    description: str
    input_schema: dict[str, Any]
    retry: RetryClass
    revision: str
    """Identifies the registration. A call is refused if its name was registered again since."""


class ToolCatalog(Model):
    """The tools of one location for one agent, in the order of the offer."""

    tools: tuple[ToolInfo, ...]


class CallSnapshot(Model):
    """A call as the session's owner knew it at one head of the log.

    The snapshot saves the worker a read of the log. It may be stale: the worker's write succeeds
    only if the head is still the same (docs/adr/0020).
    """

    position: Position
    seq: Position
    runner: RunnerId
    generation: int
    project_id: str
    location: LocationRef
    tool: str
    input: dict[str, Any]
    agent: str
    retry: RetryClass
    revision: str | None = None
    called_seq: int
    created_by: str | None = None
    """The principal for which the session and its calls count."""


class ToolRequest(Model):
    """Asks a tool worker to run one call. The log decides whether the call may still run."""

    session_id: SessionId
    assistant_message_id: MessageId
    call_id: CallId
    snapshot: CallSnapshot | None = Field(default=None, alias="brief")
