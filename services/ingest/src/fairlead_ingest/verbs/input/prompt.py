"""`session.prompt`: admit one prompt, durably, once; then wake a runner."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, assert_never

from fairlead_ingest.command_context import CommandContext, Committed, ContextDep, Events
from fairlead_ingest.existing_session import check_exists
from fairlead_ingest.metrics import REPEATED
from fairlead_ingest.quotas import quota_error
from fairlead_ingest.verbs.input.attachments import check_content, resolve_prompt
from fairlead_ingest.verbs.input.expand_prompt import expand_prompt, may_expand
from fairlead_ingest.verbs.input.expanded_prompt import find_admitted, request_shells
from fairlead_ingest.verbs.input.message_id import ID_IN_USE, bind_id, check_minted_id
from fairlead_ingest.verbs.input.options import check_options
from fairlead_ingest.verbs.input.prompt_quota import find_prompt_quota
from fairlead_ingest.verbs.profile.restrictions import check_session_allowed, if_session_allowed
from fairlead_ingest.verbs.sessions import archived_error
from fairlead_schema.commands.input import AdmitPrompt, LoadSkill
from fairlead_schema.errors import (
    Conflict,
    InvalidRequest,
    LimitReached,
    Refused,
)
from fairlead_schema.events import PromptAdmitted
from fairlead_schema.ids import MessageId
from fairlead_schema.prompt import Prompt, Receipt
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution.commands import SessionIsArchived
from fairlead_session.input.admission import (
    AdmissionRefusal,
    InboxFull,
    MessageIdInUse,
    TurnNotRunning,
    admit,
    receipt,
)
from fairlead_session.state.session import Session

Expand: TypeAlias = Callable[[Session], Awaitable[tuple[Prompt, tuple[str, ...]]]]
"""The expanded prompt of a session, and the commands that run before it."""
_NO_SHELLS: Final[tuple[str, ...]] = ()


async def prompt(context: ContextDep, tenant: TenantParam, command: AdmitPrompt) -> Receipt:
    """Admit a prompt, or return the receipt of an exact retry. Both wake a runner."""
    at = Address(tenant, command.session_id)
    if command.expected_turn is not None and command.delivery != "steer":
        raise InvalidRequest("Only a steer expects a turn", kind="Body", field="expectedTurn")
    typed = await resolve_prompt(context, at, command.prompt)

    # In quotes, because every prompt would evaluate it.
    async def expand(session: Session) -> "tuple[Prompt, tuple[str, ...]]":
        assert session.profile is not None, "only an existing session is looked at"
        return await expand_prompt(context, at, session.profile, typed)

    expands = command.prompt.expand is not False and may_expand(context, typed)
    return await admit_typed(context, at, command, typed, expand if expands else None)


async def admit_typed(
    context: CommandContext,
    at: Address,
    command: AdmitPrompt | LoadSkill,
    typed: Prompt,
    expand: Expand | None,
) -> Receipt:
    """Admit what was typed, expanded if need be. An exact retry is not expanded again."""
    message_id = command.id or check_minted_id(command.minted_id) or ids.message_id()
    assumed = None if command.id is None else await bind_id(context, at, command.id)
    resolved, shells = typed, _NO_SHELLS
    if expand is not None:
        assumed = assumed or await context.load_assumed(at)
        resolved, shells = await _expand_new(context, assumed.state, message_id, typed, expand)
    reached = await find_prompt_quota(context, at)

    def decide(session: Session) -> "Events | AdmissionRefusal":
        _check_model(context, session, resolved)
        # An exact retry adds nothing, so its caller gets the receipt whatever the tenant uses.
        if reached is not None and message_id not in session.inbox.admissions:
            raise quota_error(reached)
        return admit(
            session,
            message_id,
            resolved,
            command.delivery,
            resume=command.resume,
            expected_turn=command.expected_turn if isinstance(command, AdmitPrompt) else None,
            pending_max=context.settings.pending_inputs_max,
            shells=request_shells(context.settings.config, session, message_id, resolved, shells),
        )

    outcome: Committed | AdmissionRefusal = await context.commit(
        at, if_session_allowed(context, decide), assumed=assumed
    )
    if not isinstance(outcome, Committed):
        raise admission_error(outcome)
    is_new = any(isinstance(event, PromptAdmitted) for event in outcome.events)
    if is_new:
        context.quotas.add(at, outcome.session, "pending")
        context.quotas.add(at, outcome.session, "log_bytes", len(resolved.text))
    elif isinstance(command, AdmitPrompt):
        REPEATED.inc()
    if command.resume:
        context.waker.wake(at)
    if expand is not None and not is_new:
        resolved = await find_admitted(context, at, outcome.session, message_id) or resolved
    return receipt(outcome.session, message_id, resolved)


async def _expand_new(
    context: CommandContext, session: Session, message_id: MessageId, typed: Prompt, expand: Expand
) -> tuple[Prompt, tuple[str, ...]]:
    """Expand a prompt that the session has not admitted. Raises a refusal that says what to correct."""
    if session.profile is None or message_id in session.inbox.admissions:
        return typed, ()
    check_session_allowed(context, session)
    expanded, shells = await expand(session)
    check_options(context, expanded)
    check_content(context, expanded)
    return expanded, shells


def _check_model(context: CommandContext, session: Session, prompt: Prompt) -> None:
    """Raises SessionNotFound, SessionIsStored, or InvalidRequest if no model is selected or configured."""
    profile = check_exists(session).profile
    assert profile is not None, "an existing session has a profile"
    agent, model = prompt.agent or profile.agent, prompt.model or profile.model
    if context.settings.config.model_of(agent, model) is None:
        raise InvalidRequest("No model: set default_model in fairlead.toml", field="model")


def admission_error(refusal: AdmissionRefusal) -> Refused:
    """The refusal of an admission, as callers get it."""
    match refusal:
        case MessageIdInUse(message_id=message_id):
            return Conflict(ID_IN_USE, message_id)
        case TurnNotRunning(expected=expected):
            return Conflict("The turn to steer is not running", expected)
        case SessionIsArchived(session_id=session_id):
            return archived_error(session_id)
        case InboxFull(limit=limit):
            return LimitReached(f"{limit} inputs are pending: wait until some are promoted")
        case _:
            assert_never(refusal)
