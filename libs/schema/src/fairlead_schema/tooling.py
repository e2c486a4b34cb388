"""Tools as services see them: what may be called, and the request to run one call."""

from typing import Any

from fairlead_schema.ids import DEFAULT_TENANT, CallId, MessageId, SessionId, TenantId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model
from fairlead_schema.tool import RetryClass


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


class ToolRequest(Model):
    """Asks a tool worker to run one call. The log says whether it still may."""

    session_id: SessionId
    assistant_message_id: MessageId
    call_id: CallId
