"""Context observation: the sources of a location, and the snapshot to compare them with."""

import math
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from fairlead_schema.ids import DEFAULT_TENANT, TenantId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model

SourceKey: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._/-]*$")
]
Text: TypeAlias = Annotated[str, StringConstraints(min_length=1)]

FRESH_MS_MAX: Final = 60 * 60 * 1000
READ_DIRECTORIES_MAX: Final = 256
"""How many directories a session remembers that it has read, to apply their instructions."""


def _require_finite(value: object) -> object:
    """Refuse NaN and infinity: JSON cannot hold them, so the stored value would differ."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a value must be JSON: no NaN, no infinity")
    if isinstance(value, dict):
        _require_finite(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            _require_finite(item)
    return value


Value: TypeAlias = Annotated[Any, AfterValidator(_require_finite)]
"""The JSON value of a source. Observations are compared by value, never by rendered text."""


class SnapshotEntry(Model):
    """One source as last admitted: its value, and the text to send when the source is removed.

    `shape` is the version of the value's form. Values of different shapes cannot be compared.
    """

    value: Value = None
    removed: Text | None = None
    shape: int | None = None


class BaselinePart(Model):
    """One source's text inside a baseline."""

    key: SourceKey
    text: Text


class ObservedSource(Model):
    """A source that was read: its value, its first text, and its text after a change."""

    status: Literal["observed"] = "observed"
    key: SourceKey
    value: Value = None
    baseline: Text
    update: Text
    removed: Text | None = None
    shape: int | None = None


UnavailableKind: TypeAlias = Literal[
    "unreadable",
    "outside",
    "too-large",
    "not-text",
    "timeout",
    "unreachable",
    "malformed",
    "defect",
]
"""Why a source cannot be read."""


class UnavailableSource(Model):
    """A source that could not be read now. Unavailable is not the same as removed."""

    status: Literal["unavailable"] = "unavailable"
    key: SourceKey
    reason: str
    why: UnavailableKind = "unreadable"
    required: bool = True
    """Whether a session's first turn waits for the source. Else the source joins later."""
    instead: ObservedSource | None = None
    """The value for a session that never had this source, if waiting would not help."""


Observation: TypeAlias = Annotated[
    ObservedSource | UnavailableSource, Field(discriminator="status")
]


class ObserveContext(Model):
    """Asks the tools service of a location for one sample of all its sources."""

    location: LocationRef
    tenant: TenantId = DEFAULT_TENANT
    """Its roots hold, and only the sources that it registered are observed."""
    agent: str | None = None
    timezone: str | None = None
    read_directories: Annotated[tuple[str, ...], Field(max_length=READ_DIRECTORIES_MAX)] = Field(
        default=(), alias="touched"
    )
    """Directories that the session has read. Their instructions apply from then on."""


class ContextSample(Model):
    """All sources of one location, observed together, in rendering order. Keys are unique."""

    observations: tuple[Observation, ...]

    @model_validator(mode="after")
    def _require_unique_keys(self) -> Self:
        keys = [source.key for source in self.observations]
        duplicates = sorted({key for key in keys if keys.count(key) > 1})
        if duplicates:
            raise ValueError(f"two sources have one key: {', '.join(duplicates)}")
        return self


class SourceRegistration(Model):
    """A source of another service: the subject to ask, and how long to wait."""

    key: SourceKey
    subject: Annotated[str, StringConstraints(pattern=r"^[^\s.*>]+(\.[^\s.*>]+)*$", max_length=255)]
    timeout_ms: Annotated[int, Field(gt=0, le=60_000)] = 1000
    required: bool = False
    """Whether a session's first turn waits until the source can be observed."""
    fresh_ms: Annotated[int, Field(ge=0, le=FRESH_MS_MAX)] = 0
    """How long an answer counts unless `source.changed` announces a change. 0: asked each time."""


class SourceChanged(Model):
    """`source.changed`: the source has another value now. The next observation asks for it."""

    key: SourceKey


class RemoveSource(Model):
    """Removes a source. The next boundary tells the model that the source is gone."""

    key: SourceKey


class SourceRegistrations(Model):
    """The registered sources, without the built-in ones, in key order."""

    sources: tuple[SourceRegistration, ...]
