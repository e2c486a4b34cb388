"""The base of every event: a frozen fact with a type, a version and a visibility."""

from typing import ClassVar, Literal, TypeAlias

from fairlead_schema.model import Model

Visibility: TypeAlias = Literal["public", "notice", "private"]
"""Who reads an event: every client; clients that know Fairlead; the services alone."""


class Event(Model):
    """An immutable, durable fact. A changed meaning gets a new version."""

    type: ClassVar[str]
    version: ClassVar[int] = 1
    level: ClassVar[int] = 1
    """The level of the log's format that introduced this type and version (docs/adr/0029)."""
    visibility: ClassVar[Visibility] = "public"

    @property
    def needed_level(self) -> int:
        """The level that a reader must know. A newer field may need more than the type does."""
        return self.level
