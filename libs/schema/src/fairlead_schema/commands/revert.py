"""Commands of a revert, and their answers."""

from fairlead_schema.commands.session import SeqReached, SessionCommand
from fairlead_schema.ids import MessageId
from fairlead_schema.model import InputModel


class StageBody(InputModel):
    """The message to go back to. Without `files` only the boundary moves."""

    message_id: MessageId
    files: bool = True
    before: bool = False
    """True: that message leaves too. Only so does the first prompt of a session leave."""


class StageRevert(StageBody, SessionCommand):
    """`revert.stage`: go back to a message, and change files back."""


class RevertReached(SeqReached):
    """The sequence of the request that is not done yet; None if there was nothing to do."""

    request: int | None = None
