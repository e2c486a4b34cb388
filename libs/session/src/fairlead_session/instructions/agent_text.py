"""What a model is told about the agent as which it works, and about a switch to another one."""

from collections.abc import Mapping
from typing import Final

_ROLES: Final[Mapping[str, str]] = {
    "build": "You may use every tool that is offered, and change what the task needs changed.",
    "plan": (
        "You think a change through and change nothing: no file but the plan, and no command. Read what "
        "the change touches, ask what you need to know, and write the plan to a file "
        "`.fairlead/plans/<name>.md`: what changes where, in which order, how to check it, and what is open. "
        "End with a summary of the plan. If the person wants it carried out, they switch to an agent that "
        "may change files; do not try to begin."
    ),
    "general": (
        "Another agent gave you this task, and no person reads along. Finish it without asking. Your last "
        "message is all that the other agent gets: say what you did, what you found, where, and what is open."
    ),
    "explore": (
        "Another agent asked you this, and no person reads along. You look and change nothing. Search widely "
        "first, then read closely. Your last message is all that the other agent gets: answer the question "
        "with the places (path:line) that show it, and say what you did not find."
    ),
}


def role_text(agent: str, description: str | None) -> str:
    """Who the model is, and what that means. Other agents than the built-in ones describe themselves."""
    role = _ROLES.get(agent) or description
    named = f"You work as the agent `{agent}`."
    return named if role is None else f"{named} {role}"


def switch_text(agent: str, description: str | None) -> str:
    """The reminder after a switch. It stands in the history at the place of the switch."""
    return (
        "The agent has changed, and what was said about your agent before no longer holds. "
        f"{role_text(agent, description)}"
    )
