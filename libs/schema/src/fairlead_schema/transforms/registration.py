"""Registrations of transforms: which part of a request a service changes, when, and how it may fail."""

from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator

from fairlead_schema.commands.application_tools import Subject
from fairlead_schema.model import InputModel, Model

TIMEOUT_MS_MAX: Final = 10_000
ORDER_MAX: Final = 1_000

TransformName: TypeAlias = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*$", max_length=100),
]
"""The name of a service's transform, with its namespace. Names of plugins have no slash."""
TransformVersion: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=64)
]
RequestPart: TypeAlias = Literal["system", "messages", "parameters", "headers"]
"""A part of a request that a transform may see and change."""
FailurePolicy: TypeAlias = Literal["open", "closed"]
"""`open`: the request goes out without a failed transform. `closed`: the session waits for it."""


class TransformRules(Model):
    """What every transform declares, whether a service or a plugin has it."""

    parts: Annotated[tuple[RequestPart, ...], Field(min_length=1, max_length=4)]
    """A transform gets these parts of a request and no others, and may change only them."""
    order: Annotated[int, Field(ge=-ORDER_MAX, le=ORDER_MAX)] = 100
    """Transforms run in this order, those of one number in the order of their names."""
    timeout_ms: Annotated[int, Field(gt=0, le=TIMEOUT_MS_MAX)] = 1000
    on_failure: FailurePolicy = "open"

    @model_validator(mode="after")
    def _require_distinct_parts(self) -> Self:
        if len(set(self.parts)) != len(self.parts):
            raise ValueError("parts: each part once")
        return self


class TransformRegistration(TransformRules, InputModel):
    """`transform.register`: change the requests of a tenant's sessions, or replace the registration."""

    name: TransformName
    version: TransformVersion
    subject: Subject
    """The subject to ask: below `fairlead.app.<tenant>.`."""


class RemoveTransform(InputModel):
    """`transform.remove`: the next request goes out without the transform."""

    name: TransformName


class ListTransforms(InputModel):
    """`transform.list`: every registered transform of the tenant."""


class TransformRegistrations(Model):
    """The registered transforms of a tenant, in the order in which they run."""

    transforms: tuple[TransformRegistration, ...]
