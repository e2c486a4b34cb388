"""The instructions of Fairlead as context sources, so that an epoch keeps their exact bytes."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeAlias

from fairlead_schema.context import ObservedSource, UnavailableSource
from fairlead_session.instructions.agent_text import role_text, switch_text
from fairlead_session.instructions.base_text import base_text
from fairlead_session.instructions.model_family import ModelFamily

BASE_KEY: Final = "core/base"
AGENT_KEY: Final = "core/agent"
_REMOVED: Final = (
    "The instructions on how to work that you were given before no longer hold. "
    "Those of your agent stand at the beginning, if it has any."
)


@dataclass(frozen=True, slots=True)
class InstructionText:
    """The text of a file that takes the place of the base instructions."""

    text: str


@dataclass(frozen=True, slots=True)
class UnreadableInstructions:
    """A file that should take the place of the base instructions, and why it cannot be read."""

    reason: str


BaseInstructions: TypeAlias = ModelFamily | InstructionText | UnreadableInstructions


@dataclass(frozen=True, slots=True)
class AgentInstructions:
    """The agent of the next turn, and where its base instructions come from."""

    agent: str
    description: str | None
    base: BaseInstructions


def instruction_sources(
    given: AgentInstructions,
) -> tuple[ObservedSource | UnavailableSource, ...]:
    """The base instructions and the agent. An update takes the place of what was said before."""
    return (_base_source(given.base), _agent_source(given.agent, given.description))


def _base_source(base: BaseInstructions) -> ObservedSource | UnavailableSource:
    """The value names the family and not the text: a new release changes no epoch that exists."""
    if isinstance(base, UnreadableInstructions):
        return UnavailableSource(key=BASE_KEY, reason=base.reason)
    if isinstance(base, InstructionText):
        value, text = {"file": sha256(base.text.encode()).hexdigest()}, base.text
    else:
        value, text = {"family": base}, base_text(base)
    return ObservedSource(
        key=BASE_KEY,
        value=value,
        baseline=text,
        update=f"From here on these instructions on how to work replace the earlier ones:\n\n{text}",
        removed=_REMOVED,
    )


def _agent_source(agent: str, description: str | None) -> ObservedSource:
    return ObservedSource(
        key=AGENT_KEY,
        value=agent,
        baseline=role_text(agent, description),
        update=switch_text(agent, description),
        removed=f"You no longer work as the agent `{agent}`.",
    )
