"""What a client may see of a location: inside the roots, and what the rules of an agent let it read."""

from collections.abc import Callable
from typing import Final, TypeAlias

from fairlead_eventlog.register_ports import Approvals
from fairlead_schema.errors import Forbidden, InvalidRequest
from fairlead_schema.ids import TenantId
from fairlead_schema.location import LocationRef, project_id
from fairlead_service.config.configuration import Config
from fairlead_service.locations import LocationRefused, containing_root, locate
from fairlead_service.rpc.caller import current_restrictions
from fairlead_session.people.permission import Need, approval_rules, permit
from fairlead_tools.calls.permission import agent_rules

READ: Final = "read"

MayRead: TypeAlias = Callable[[str], bool]
"""Whether a client may read a resource: a path relative to the location."""


def permitted_directory(config: Config, tenant: TenantId, location: LocationRef) -> str:
    """The directory of a location with its links followed. Raises InvalidRequest, Forbidden."""
    directory = locate(config.roots(tenant), location)
    if isinstance(directory, LocationRefused):
        raise InvalidRequest(directory.message, kind="Query", field="location.directory")
    roots = current_restrictions().roots
    if roots is not None and containing_root(roots, directory) is None:
        raise Forbidden(f"This token may use only locations inside {', '.join(roots)}")
    return directory


async def read_permission(
    config: Config,
    approvals: Approvals,
    tenant: TenantId,
    location: LocationRef,
    agent: str | None,
) -> MayRead:
    """Judges as `read` of a call is judged. What a person would be asked about is not permitted.

    Raises InvalidRequest for an unknown agent, Forbidden for one that the caller may not use, and
    LogError.
    """
    agents = current_restrictions().agents
    if agents is not None and config.agent_name(agent) not in agents:
        raise Forbidden(f"This token may use only the agents {', '.join(agents)}")
    rules = agent_rules(config, agent)
    if rules is None:
        raise InvalidRequest(f"Unknown agent: {agent}", kind="Query", field="agent")
    saved = approval_rules(await approvals.get_all(tenant, project_id(location.directory)))
    return lambda resource: permit(rules, saved, (), (Need(READ, (resource,)),)) is None
