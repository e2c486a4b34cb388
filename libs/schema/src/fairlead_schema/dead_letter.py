"""The body of a dead letter."""

from pydantic import Field

from fairlead_schema.model import Model


class DeadLetter(Model):
    """A message that no service can ever handle, with the reason. It is never delivered again."""

    subject: str
    reason: str
    payload: str
    headers: dict[str, str] = Field(default_factory=dict)
