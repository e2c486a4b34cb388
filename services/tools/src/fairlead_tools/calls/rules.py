"""Which permission rules an agent has."""

from fairlead_schema.permission import PermissionRule
from fairlead_service.config.configuration import Config


def agent_rules(config: Config, agent: str | None) -> tuple[PermissionRule, ...] | None:
    """The rules of an agent; None for one that is not there, which is permitted nothing."""
    name = config.agent_name(agent)
    return config.rules(name) if name in config.agents else None
