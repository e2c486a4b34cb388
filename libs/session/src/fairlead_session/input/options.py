"""The options of prompts: which hold for the next turn, and what they choose."""

from typing import TypeVar

from fairlead_session.frozen import replace
from fairlead_session.people.wildcard import matches
from fairlead_session.state.activity import NO_OPTIONS, Activity
from fairlead_session.state.inbox import PendingInput
from fairlead_session.state.session import Session

Tool = TypeVar("Tool")


def activity_after(session: Session, inputs: tuple[PendingInput, ...] = ()) -> Activity:
    """The options that hold for the next turn, once these inputs are promoted."""
    under_way = session.execution.owed or session.turn.attempt is not None
    activity = session.activity if under_way else NO_OPTIONS
    for item in inputs:
        activity = activity.with_prompt(item.prompt)
    return activity


def choose_profile(session: Session, inputs: tuple[PendingInput, ...] = ()) -> Session:
    """The session with the agent and the model of its next turn instead of its own ones."""
    activity, profile = activity_after(session, inputs), session.profile
    if profile is None or (activity.agent is None and activity.model is None):
        return session
    chosen = replace(
        profile, agent=activity.agent or profile.agent, model=activity.model or profile.model
    )
    return replace(session, profile=chosen)


def select_tools(
    offered: dict[str, Tool], selection: tuple[str, ...] | None
) -> tuple[dict[str, Tool], tuple[str, ...]]:
    """The selected tools in the order of the offer, and the names that fit no tool.

    Nothing can be selected that the agent is not offered.
    """
    if selection is None:
        return offered, ()
    tools = {
        name: tool
        for name, tool in offered.items()
        if any(matches(item, name) for item in selection)
    }
    unknown = (item for item in selection if not any(matches(item, name) for name in offered))
    return tools, tuple(unknown)
