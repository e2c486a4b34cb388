"""`session.shell`: ask for a person's own command, durably, once; then wake a runner."""

from functools import partial

from fairlead_ingest.command_context import CommandContext, Committed, ContextDep, Events
from fairlead_ingest.existing_session import check_exists
from fairlead_ingest.quotas import quota_error
from fairlead_ingest.verbs.input.message_id import bind_id, check_minted_id
from fairlead_ingest.verbs.input.prompt import admission_error
from fairlead_ingest.verbs.input.prompt_quota import find_prompt_quota
from fairlead_ingest.verbs.profile.restrictions import if_session_allowed
from fairlead_schema.commands.input import RequestShell, ShellReceipt
from fairlead_schema.commands.quota import QuotaReached
from fairlead_schema.ids import MessageId
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.rpc.server import TenantParam
from fairlead_session.input.shell import ShellRefusal, request_shell
from fairlead_session.state.session import Session


async def shell(context: ContextDep, tenant: TenantParam, command: RequestShell) -> ShellReceipt:
    """Ask for a command, or return the receipt of an exact retry. Both wake a runner.

    The command runs at the next safe boundary, under the permissions of the session's agent.
    """
    at = Address(tenant, command.session_id)
    message_id = command.id or check_minted_id(command.minted_id) or ids.message_id()
    assumed = None if command.id is None else await bind_id(context, at, command.id)
    reached = await find_prompt_quota(context, at)
    decide = partial(_decide, context, command, message_id, reached)
    outcome: Committed | ShellRefusal = await context.commit(
        at, if_session_allowed(context, decide), assumed=assumed
    )
    if not isinstance(outcome, Committed):
        raise admission_error(outcome)
    if outcome.events:
        context.quotas.add(at, outcome.session, "pending")
        context.quotas.add(at, outcome.session, "log_bytes", len(command.command))
    context.waker.wake(at)
    admission = outcome.session.inbox.admissions[message_id]
    return ShellReceipt(
        admitted_seq=admission.admitted_seq,
        id=message_id,
        session_id=at.session_id,
        call_id=shell_call_id(message_id),
        command=command.command,
        time_created=admission.created,
        started_seq=admission.promoted_seq,
    )


def shell_call_id(message_id: MessageId) -> str:
    """The id of the call behind a command. It follows from the message, so that a retry has it too."""
    return f"call_{message_id}"


def _decide(
    context: CommandContext,
    command: RequestShell,
    message_id: MessageId,
    reached: QuotaReached | None,
    session: Session,
) -> Events | ShellRefusal:
    profile = check_exists(session).profile
    assert profile is not None, "an existing session has a profile"
    # An exact retry adds nothing, so its caller gets the receipt whatever the tenant uses.
    if reached is not None and message_id not in session.inbox.admissions:
        raise quota_error(reached)
    return request_shell(
        session,
        message_id,
        shell_call_id(message_id),
        command.command,
        context.settings.config.agent_name(profile.agent),
        pending_max=context.settings.pending_inputs_max,
    )
