"""The plugins that change requests: entry points of installed packages, by name."""

from typing import Annotated, TypeAlias

from pydantic import Field, StringConstraints

from fairlead_schema.ids import TenantId
from fairlead_schema.transforms.registration import (
    ORDER_MAX,
    TIMEOUT_MS_MAX,
    FailurePolicy,
    RequestPart,
)
from fairlead_service.config.section import Section

PluginName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")]


class TransformConfig(Section):
    """One plugin: which parts of a request it changes, for whom, when, and how it may fail."""

    parts: tuple[RequestPart, ...] = Field(min_length=1, max_length=4)
    tenants: tuple[TenantId, ...] = ()
    order: int = Field(default=100, ge=-ORDER_MAX, le=ORDER_MAX)
    timeout_ms: int = Field(default=1000, gt=0, le=TIMEOUT_MS_MAX)
    on_failure: FailurePolicy = "open"
