"""Tools as services see them: what may be called, and the request to run one call."""

from typing import Annotated, Any, TypeAlias

from pydantic import Field

from fairlead_schema.ids import DEFAULT_TENANT, CallId, MessageId, RunnerId, SessionId, TenantId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model
from fairlead_schema.tools.content import RetryClass

Position: TypeAlias = Annotated[int, Field(ge=1, lt=2**63)]
"""Where something is in a log. There is no head before the first."""


class ListTools(Model):
    """Asks the owner of a location which tools an agent may call there now."""

    location: LocationRef
    agent: str | None = None
    tenant: TenantId = DEFAULT_TENANT


class ToolInfo(Model):
    """One tool as it is advertised for a turn."""

    name: str
    description: str
    input_schema: dict[str, Any]
    retry: RetryClass
    revision: str
    """Which registration this is: a call is refused if another one answers to the name by then."""


class ToolCatalog(Model):
    """The tools of one location for one agent, in their advertised order."""

    tools: tuple[ToolInfo, ...]


class CallBrief(Model):
    """What the owner of a session knew of a call at one head of the log.

    It spares the worker a look at the log, and it is never believed: whatever is decided from it is
    written on the condition that this is still the head (docs/adr/0020).
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


class ToolRequest(Model):
    """Asks a tool worker to run one call. The log says whether it still may."""

    session_id: SessionId
    assistant_message_id: MessageId
    call_id: CallId
    brief: CallBrief | None = None
