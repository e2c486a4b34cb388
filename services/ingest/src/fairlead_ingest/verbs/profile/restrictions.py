"""What the sessions of a restricted principal may use: locations, agents and a budget."""

from fairlead_ingest.command_context import CommandContext, CommandDecider, Events, Refusal
from fairlead_schema.errors import Forbidden
from fairlead_schema.identity.restrictions import Restrictions
from fairlead_service.locations import containing_root
from fairlead_service.rpc.caller import current_restrictions
from fairlead_session.input.options import activity_after
from fairlead_session.state.session import Session
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


def check_session_allowed(context: CommandContext, session: Session) -> None:
    """Refuse a session that the caller may not let work. Raises Forbidden.

    A colleague may have created the session with an agent, a location or a budget that the caller
    could not choose.
    """
    restrictions, profile = current_restrictions(), session.profile
    if profile is None:
        return
    if restrictions.agents is not None:
        # A prompt that is worked on now may have chosen another agent.
        for agent in {profile.agent, activity_after(session).agent or profile.agent}:
            check_agent_allowed(restrictions, context.settings.config.agent_name(agent))
    check_directory_allowed(restrictions, profile.location.directory)
    _check_budget_allowed(restrictions, session.usage.budget)


def if_session_allowed(
    context: CommandContext, decide: CommandDecider[Refusal]
) -> CommandDecider[Refusal]:
    """The decider of a command that lets a session work, behind the check of the session."""

    # In quotes, because every command would evaluate it.
    def decide_if_allowed(session: Session) -> "Events | Refusal":
        check_session_allowed(context, session)
        return decide(session)

    return decide_if_allowed


def _check_budget_allowed(restrictions: Restrictions, budget: Budget) -> None:
    most = restrictions.cost
    if most is not None and (budget.cost is None or budget.cost > most):
        text = (
            f"This token may use only sessions with a budget of at most {most:g} USD: set it first"
        )
        raise Forbidden(text, field="cost")
