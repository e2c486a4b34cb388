"""Context observation: what a location reports, and the snapshot the next boundary compares with."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, StringConstraints

from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model

SourceKey: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._/-]*$")
]
Text: TypeAlias = Annotated[str, StringConstraints(min_length=1)]


class SnapshotEntry(Model):
    """One source as last admitted: its canonical value, and the words for its disappearance."""

    value: Any = None
    removed: Text | None = None


class BaselinePart(Model):
    """One source's text inside a baseline."""

    key: SourceKey
    text: Text


class Observed(Model):
    """A source that could be read: its value, and how it reads first and when it changed."""

    status: Literal["observed"] = "observed"
    key: SourceKey
    value: Any = None
    baseline: Text
    update: Text
    removed: Text | None = None


class Unavailable(Model):
    """A source that could not be read now, which is not the same as removed."""

    status: Literal["unavailable"] = "unavailable"
    key: SourceKey
    reason: str


Observation: TypeAlias = Annotated[Observed | Unavailable, Field(discriminator="status")]


class ObserveContext(Model):
    """Asks the owner of a location for one coherent sample of its sources."""

    location: LocationRef
    agent: str | None = None


class ContextSample(Model):
    """All sources of one location, observed together, in rendering order."""

    observations: tuple[Observation, ...]
