"""An explanation as clients read it, over HTTP and over NATS."""

from pydantic import Field

from fairlead_schema.errors import UnreadablePlace
from fairlead_session.explain import Explanation, Waiting


class WireExplanation(Explanation):
    """An explanation with the field names of the wire."""

    waiting_on: tuple[Waiting, ...] | None = Field(default=None, alias="waiting_on")
    approved_by: str | None = Field(default=None, alias="approved_by")
    unreadable: UnreadablePlace | None = None
