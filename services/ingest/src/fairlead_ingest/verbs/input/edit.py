"""`session.edit`: change one pending input, or turn a queued one into a steer."""

from typing import assert_never

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.input.cancel import PROMOTED
from fairlead_ingest.verbs.input.prompt import resolved_prompt
from fairlead_ingest.verbs.sessions import change, load
from fairlead_schema.commands.input import EditPendingInput
from fairlead_schema.errors import Conflict, MessageNotFound
from fairlead_schema.events import InputEdited, SessionEvent
from fairlead_schema.prompt import Receipt
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.input import inbox
from fairlead_session.input.inbox import AlreadyPromoted, InputNotPending, InputUnchanged
from fairlead_session.state.session import Session


async def edit(context: ContextDep, tenant: TenantParam, command: EditPendingInput) -> Receipt:
    """Change it while the model has not seen it. Raises Conflict or MessageNotFound."""
    at = Address(tenant, command.session_id)
    await load(context, at)
    prompt = None if command.prompt is None else resolved_prompt(context, command.prompt)
    message_id, delivery = command.message_id, command.delivery

    def decide(session: Session) -> tuple[SessionEvent, ...]:
        outcome = inbox.edit(session, message_id, prompt=prompt, delivery=delivery)
        match outcome:
            case InputEdited():
                return (outcome,)
            case InputUnchanged():
                return ()
            case AlreadyPromoted():
                raise Conflict(PROMOTED, message_id)
            case InputNotPending():
                raise MessageNotFound(session.id, message_id)
            case _:
                assert_never(outcome)

    session = await change(context, at, decide)
    return next(one for one in inbox.pending(session) if one.id == message_id)
