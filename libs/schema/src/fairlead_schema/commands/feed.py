"""The command that opens the public feed for a tenant's own client."""

from pydantic import Field

from fairlead_schema.model import InputModel, Model


class OpenFeed(InputModel):
    """`feed.open`: make the caller's consumer of the feed, or continue the existing one."""

    after: int | None = Field(default=None, ge=0)
    """Begin after this sequence of the feed. Absent: after the last acknowledged event."""


class FeedOpened(Model):
    """The answer of `feed.open`: where the caller pulls its events."""

    stream: str
    consumer: str
