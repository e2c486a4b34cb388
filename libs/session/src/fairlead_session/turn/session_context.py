"""Context sources of the session itself, not of its location: the selected model."""

from typing import Final

from fairlead_schema.catalog import ModelRef
from fairlead_schema.context import ContextSample, ObservedSource
from fairlead_session.turn.epoch import combine

MODEL_KEY: Final = "core/model"


def model_source(model: ModelRef) -> ObservedSource:
    """The selected provider and model. A switch is an update and does not end the epoch."""
    name = f"{model.provider_id}/{model.id}"
    return ObservedSource(
        key=MODEL_KEY,
        value=name,
        baseline=f"You are running on the model {name}.",
        update=f"The model has changed: from here on you are running on the model {name}.",
    )


def add_session_sources(sample: ContextSample, model: ModelRef | None) -> ContextSample:
    """The session's own sources before those of its location. A location cannot replace them."""
    if model is None:
        return sample
    rest = tuple(source for source in sample.observations if source.key != MODEL_KEY)
    own = ContextSample(observations=(model_source(model),))
    return combine(own, ContextSample(observations=rest))
