"""The command that opens the public feed for a tenant's own client."""

from typing import Final

from pydantic import Field

from fairlead_schema.model import InputModel, Model

SEQUENCE_MAX: Final = 2**53 - 1
"""The largest whole number that every JSON reader keeps exactly."""


class OpenFeed(InputModel):
    """`feed.open`: make the caller's consumer of the feed, or continue the existing one."""

    after: int | None = Field(default=None, ge=0, le=SEQUENCE_MAX)
    """Begin after this sequence of the feed. Absent: after the last acknowledged event."""


class FeedOpened(Model):
    """The answer of `feed.open`: where the caller pulls its events."""

    stream: str
    consumer: str
