"""Which permission rules an agent has."""

from fairlead_schema.permission import Rule
from fairlead_service.config import Config


def rules(config: Config, agent: str | None) -> tuple[Rule, ...] | None:
    """The rules of an agent; None for one that is not configured, which is permitted nothing."""
    known = config.agent.get(config.agent_name(agent))
    return None if known is None else known.permissions
