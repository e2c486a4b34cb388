"""Context observation: what a location reports, and the snapshot the next boundary compares with."""

import math
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model

SourceKey: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._/-]*$")
]
Text: TypeAlias = Annotated[str, StringConstraints(min_length=1)]

TOUCHED_MAX: Final = 256
"""So many directories that a session read in are remembered for their instructions."""


def _finite(value: object) -> object:
    """A number that JSON cannot hold would never equal what was stored of it."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a value must be JSON: no NaN, no infinity")
    if isinstance(value, dict):
        _finite(list(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            _finite(one)
    return value


Value: TypeAlias = Annotated[Any, AfterValidator(_finite)]
"""What a source's observations are compared by: JSON, never the rendered text."""


class SnapshotEntry(Model):
    """One source as last admitted: its canonical value, and the words for its disappearance.

    `shape` is the form of the value. Of a value in another form nobody can say what changed.
    """

    value: Value = None
    removed: Text | None = None
    shape: int | None = None


class BaselinePart(Model):
    """One source's text inside a baseline."""

    key: SourceKey
    text: Text


class Observed(Model):
    """A source that could be read: its value, and how it reads first and when it changed."""

    status: Literal["observed"] = "observed"
    key: SourceKey
    value: Value = None
    baseline: Text
    update: Text
    removed: Text | None = None
    shape: int | None = None


Why: TypeAlias = Literal[
    "unreadable",
    "outside",
    "too-large",
    "not-text",
    "timeout",
    "unreachable",
    "malformed",
    "defect",
]
"""The kinds of reasons for which a source cannot be read."""


class Unavailable(Model):
    """A source that could not be read now, which is not the same as removed."""

    status: Literal["unavailable"] = "unavailable"
    key: SourceKey
    reason: str
    why: Why = "unreadable"
    required: bool = True
    """Whether a first turn waits for it; else it is told as soon as it can be."""
    instead: Observed | None = None
    """What a session that was never told of it begins with, where waiting would not help."""


Observation: TypeAlias = Annotated[Observed | Unavailable, Field(discriminator="status")]


class ObserveContext(Model):
    """Asks the owner of a location for one coherent sample of its sources."""

    location: LocationRef
    agent: str | None = None
    timezone: str | None = None
    touched: Annotated[tuple[str, ...], Field(max_length=TOUCHED_MAX)] = ()
    """Directories that the session has read in: their instructions apply from then on."""


class ContextSample(Model):
    """All sources of one location, observed together, in rendering order; each key once."""

    observations: tuple[Observation, ...]

    @model_validator(mode="after")
    def _each_key_once(self) -> Self:
        keys = [source.key for source in self.observations]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise ValueError(f"two sources have one key: {', '.join(twice)}")
        return self


class SourceRegistration(Model):
    """A source that another service offers: where to ask for it, and how long to wait."""

    key: SourceKey
    subject: Annotated[str, StringConstraints(pattern=r"^[^\s.*>]+(\.[^\s.*>]+)*$", max_length=255)]
    timeout_ms: Annotated[int, Field(gt=0, le=60_000)] = 1000
    required: bool = False
    """Whether sessions wait with their first turn until it can be observed."""


class RemoveSource(Model):
    """Takes a source back; what the model was told of it is revoked at the next boundary."""

    key: SourceKey


class SourceRegistrations(Model):
    """The sources that services offer beside the built-in ones, in key order."""

    sources: tuple[SourceRegistration, ...]
