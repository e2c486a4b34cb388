"""`session.edit`: change one pending input, or turn a queued one into a steer."""

from fairlead_ingest.command_context import CommandContext, Committed, ContextDep, Events
from fairlead_ingest.verbs.input.attachments import resolve_prompt
from fairlead_ingest.verbs.input.cancel import input_error
from fairlead_ingest.verbs.input.expanded_prompt import find_admitted
from fairlead_ingest.verbs.profile.restrictions import if_session_allowed
from fairlead_ingest.verbs.sessions import change, load
from fairlead_schema.commands.input import EditPendingInput
from fairlead_schema.errors import MessageNotFound
from fairlead_schema.prompt import Prompt, Receipt
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.input import inbox
from fairlead_session.input.admission import receipt
from fairlead_session.input.inbox import InputRefusal
from fairlead_session.state.session import Session


async def edit(context: ContextDep, tenant: TenantParam, command: EditPendingInput) -> Receipt:
    """Change an input that the model has not seen. Raises Conflict or MessageNotFound."""
    at, message_id = Address(tenant, command.session_id), command.message_id
    await load(context, at)
    prompt = None if command.prompt is None else await resolve_prompt(context, at, command.prompt)

    def decide(session: Session) -> Events | InputRefusal:
        return inbox.edit(session, message_id, prompt=prompt, delivery=command.delivery)

    outcome: Committed | InputRefusal = await change(
        context, at, if_session_allowed(context, decide)
    )
    if not isinstance(outcome, Committed):
        raise input_error(at.session_id, outcome)
    receipts = inbox.pending_receipts(outcome.session)
    return next(receipt for receipt in receipts if receipt.id == message_id)


async def edited_receipt(
    context: CommandContext, at: Address, session: Session, command: EditPendingInput
) -> Receipt:
    """The receipt of an input that the command has edited before."""
    message_id = command.message_id
    if command.prompt is not None:
        prompt: Prompt | None = await resolve_prompt(context, at, command.prompt)
    else:
        prompt = await find_admitted(context, at, session, message_id)
    if prompt is None:
        raise MessageNotFound(at.session_id, message_id)
    return receipt(session, message_id, prompt)
