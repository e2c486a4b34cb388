"""The reply to a NATS request."""

from typing import Generic, TypeVar

from fairlead_schema.errors import WireError
from fairlead_schema.model import Model

Data = TypeVar("Data")


class CommandAnswer(Model, Generic[Data]):
    """The reply to a NATS request: data, or a typed error."""

    data: Data | None = None
    error: WireError | None = None
