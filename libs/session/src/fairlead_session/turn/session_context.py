"""Context sources of the session itself, not of its location: its instructions and its model."""

from typing import Final

from fairlead_schema.catalog import ModelRef
from fairlead_schema.context import ContextSample, ObservedSource
from fairlead_session.instructions.sources import (
    AGENT_KEY,
    BASE_KEY,
    AgentInstructions,
    instruction_sources,
)
from fairlead_session.turn.epoch import combine

MODEL_KEY: Final = "core/model"
_OWN_KEYS: Final = frozenset({BASE_KEY, AGENT_KEY, MODEL_KEY})


def model_source(model: ModelRef) -> ObservedSource:
    """The selected provider and model. A switch is an update and does not end the epoch."""
    name = f"{model.provider_id}/{model.id}"
    return ObservedSource(
        key=MODEL_KEY,
        value=name,
        baseline=f"You are running on the model {name}.",
        update=f"The model has changed: from here on you are running on the model {name}.",
    )


def add_session_sources(
    sample: ContextSample, model: ModelRef | None, instructions: AgentInstructions | None = None
) -> ContextSample:
    """The session's own sources before those of its location. A location cannot replace them.

    An agent with a system text of its own, or one that nobody configured, has no instructions.
    """
    if model is None:
        return sample
    rest = tuple(source for source in sample.observations if source.key not in _OWN_KEYS)
    given = () if instructions is None else instruction_sources(instructions)
    own = ContextSample(observations=(*given, model_source(model)))
    return combine(own, ContextSample(observations=rest))
