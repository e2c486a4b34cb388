"""What every event is: a frozen fact with a type, a version and a reader."""

from typing import ClassVar, Literal, TypeAlias

from fairlead_schema.model import Model

Visibility: TypeAlias = Literal["public", "notice", "private"]
"""Who reads it: every client; clients that know Fairlead; the services alone."""


class Event(Model):
    """An immutable durable fact. A changed meaning is a new version, never an edit."""

    type: ClassVar[str]
    version: ClassVar[int] = 1
    visibility: ClassVar[Visibility] = "public"
