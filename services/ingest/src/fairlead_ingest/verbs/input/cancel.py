"""`session.cancel`: cancel one pending input."""

from typing import Final, assert_never

from fairlead_ingest.command_context import Committed, ContextDep
from fairlead_ingest.verbs.sessions import change, sequence_answer
from fairlead_schema.commands.input import CancelInput
from fairlead_schema.commands.session import SeqReached
from fairlead_schema.errors import Conflict, MessageNotFound, Refused
from fairlead_schema.ids import SessionId
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.input import inbox
from fairlead_session.input.inbox import AlreadyPromoted, InputNotPending, InputRefusal

PROMOTED: Final = "The input is already promoted"


async def cancel(context: ContextDep, tenant: TenantParam, command: CancelInput) -> SeqReached:
    """Cancel an input that the model has not seen. Raises Conflict or MessageNotFound."""
    at = Address(tenant, command.session_id)
    outcome: Committed | InputRefusal = await change(
        context, at, lambda session: inbox.cancel(session, command.message_id)
    )
    if not isinstance(outcome, Committed):
        raise input_error(at.session_id, outcome)
    return sequence_answer(outcome.session)


def input_error(session_id: SessionId, refusal: InputRefusal) -> Refused:
    """The error that a client reads for a refused change of its input."""
    match refusal:
        case AlreadyPromoted(message_id=message_id):
            return Conflict(PROMOTED, message_id)
        case InputNotPending(message_id=message_id):
            return MessageNotFound(session_id, message_id)
        case _:
            assert_never(refusal)
