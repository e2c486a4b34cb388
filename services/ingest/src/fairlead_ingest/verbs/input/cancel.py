"""`session.cancel`: withdraw one pending input."""

from typing import assert_never

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.sessions import change, reached
from fairlead_schema.commands.input import CancelInput
from fairlead_schema.commands.session import ExecutionReached
from fairlead_schema.errors import Conflict, MessageNotFound
from fairlead_schema.events import InputCancelled, SessionEvent
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.input import inbox
from fairlead_session.input.inbox import AlreadyPromoted, InputNotPending
from fairlead_session.state.session import Session

PROMOTED = "The input is already promoted"


async def cancel(
    context: ContextDep, tenant: TenantParam, command: CancelInput
) -> ExecutionReached:
    """Withdraw it while the model has not seen it. Raises Conflict or MessageNotFound."""

    def decide(session: Session) -> tuple[SessionEvent, ...]:
        outcome = inbox.cancel(session, command.message_id)
        match outcome:
            case InputCancelled():
                return (outcome,)
            case AlreadyPromoted(message_id=message_id):
                raise Conflict(PROMOTED, message_id)
            case InputNotPending(message_id=message_id):
                raise MessageNotFound(session.id, message_id)
            case _:
                assert_never(outcome)

    return reached(await change(context, Address(tenant, command.session_id), decide))
