"""What the sessions of a restricted principal may use: locations, agents and a budget."""

from fairlead_schema.errors import Forbidden
from fairlead_schema.identity.restrictions import Restrictions
from fairlead_service.locations import containing_root
from fairlead_session.state.usage import Budget


def check_agent_allowed(restrictions: Restrictions, agent: str) -> None:
    """Refuse an agent that the principal may not use. Raises Forbidden."""
    agents = restrictions.agents
    if agents is not None and agent not in agents:
        raise Forbidden(f"This token may use only the agents {', '.join(agents)}", field="agent")


def check_directory_allowed(restrictions: Restrictions, directory: str) -> None:
    """Refuse a location outside the roots of the principal. Raises Forbidden."""
    roots = restrictions.roots
    if roots is not None and containing_root(roots, directory) is None:
        text = f"This token may use only locations inside {', '.join(roots)}"
        raise Forbidden(text, field="location.directory")


def bound_budget(restrictions: Restrictions, budget: Budget) -> Budget:
    """The budget with the limit of the principal, if it names no cost. Raises Forbidden above it."""
    most = restrictions.cost
    if most is None:
        return budget
    if budget.cost is None:
        return Budget(most, budget.tokens)
    if budget.cost > most:
        raise Forbidden(f"This token may give a session at most {most:g} USD", field="cost")
    return budget
