"""What the sessions of a principal may use. Services pass it on, and ingest enforces it."""

from pydantic import Field

from fairlead_schema.model import Model


class Restrictions(Model):
    """None means no restriction."""

    roots: tuple[str, ...] | None = None
    """The locations that the sessions of the principal may have."""
    agents: tuple[str, ...] | None = None
    """The agents that the sessions of the principal may use."""
    cost: float | None = Field(default=None, ge=0)
    """The largest budget of a session of the principal, in USD."""
