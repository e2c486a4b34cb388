"""`session.prompt`: admit one prompt, durably, once; then ask for it to be worked on."""

from typing import assert_never

from fairlead_eventlog.session_cache import Versioned
from fairlead_ingest.command_context import CommandContext, ContextDep
from fairlead_ingest.verbs.sessions import maybe
from fairlead_schema.commands.input import AdmitPrompt
from fairlead_schema.errors import (
    Conflict,
    InvalidRequest,
    LimitReached,
    PayloadTooLarge,
    SessionNotFound,
)
from fairlead_schema.events import SessionEvent
from fairlead_schema.ids import MessageId, is_minted
from fairlead_schema.prompt import Prompt, PromptInput, Receipt
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution.commands import request_work
from fairlead_session.input.admission import (
    Admit,
    AlreadyAdmitted,
    InboxFull,
    MessageIdInUse,
    TurnNotRunning,
    admit,
    receipt,
)
from fairlead_session.input.attachment import resolve_attachments
from fairlead_session.state.session import Session

REUSED = "Message id is already in use"


async def prompt(context: ContextDep, tenant: TenantParam, command: AdmitPrompt) -> Receipt:
    """Admit, or give an exact retry its receipt again. Either way somebody is asked to work."""
    at = Address(tenant, command.session_id)
    if command.expected_turn is not None and command.delivery != "steer":
        raise InvalidRequest("Only a steer expects a turn", kind="Body", field="expectedTurn")
    resolved = resolved_prompt(context, command.prompt)
    message_id = command.id or ids.message_id()
    seen = None if command.id is None else await _bound(context, at, command.id)

    def decide(session: Session) -> tuple[SessionEvent, ...]:
        return _events(context, session, command, message_id, resolved)

    session = await context.commit(at, decide, seen=seen)
    if command.resume:
        context.waker.wake(at)
    return receipt(session, message_id, resolved, session.inbox.admissions[message_id])


def _events(
    context: CommandContext,
    session: Session,
    command: AdmitPrompt,
    message_id: MessageId,
    resolved: Prompt,
) -> tuple[SessionEvent, ...]:
    if session.profile is None:
        raise SessionNotFound(session.id)
    if session.profile.model is None and context.settings.default_model is None:
        raise InvalidRequest("No model: set default_model in fairlead.toml", field="model")
    limit = context.settings.pending_inputs_max
    outcome = admit(
        session,
        message_id,
        resolved,
        command.delivery,
        resume=command.resume,
        expected_turn=command.expected_turn,
        pending_max=limit,
    )
    match outcome:
        case Admit(event=event):
            return (event,)
        case AlreadyAdmitted():
            # A wake alone is a hint, and after an interrupt nobody follows it.
            return maybe(request_work(session)) if command.resume else ()
        case MessageIdInUse():
            raise Conflict(REUSED, message_id)
        case TurnNotRunning(expected=expected):
            raise Conflict("The turn to steer is not running", expected)
        case InboxFull():
            raise LimitReached(f"{limit} inputs are pending: wait until some are promoted")
        case _:
            assert_never(outcome)


def resolved_prompt(context: CommandContext, prompt: PromptInput) -> Prompt:
    """A prompt as it will be stored. Raises InvalidRequest for an empty one, and TooLarge."""
    resolved = resolve_attachments(prompt)
    if not resolved.text.strip() and not resolved.files:
        raise InvalidRequest("A prompt needs text or a file", kind="Body", field="prompt.text")
    size = len(resolved.model_dump_json().encode())
    if size > context.settings.prompt_bytes_max:
        raise PayloadTooLarge(
            f"A prompt of {size} bytes exceeds {context.settings.prompt_bytes_max}"
        )
    return resolved


async def _bound(context: CommandContext, at: Address, message_id: MessageId) -> Versioned[Session]:
    """Bind a caller's message id to its one session; the answer is that session as it is now.

    Ids that Fairlead minted need no register: the seal tells them, and one that this session does
    not know was minted for another.
    """
    seen = await context.look(at)
    if seen.state.profile is None:
        raise SessionNotFound(at.session_id)
    if message_id in seen.state.inbox.admissions:
        return seen
    if is_minted(message_id):
        raise Conflict(REUSED, message_id)
    bound = await context.eventlog.message_ids.bind(at.tenant, message_id, at.session_id)
    if bound != at.session_id:
        raise Conflict(REUSED, message_id)
    return seen
