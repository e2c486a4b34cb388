"""The verbs of permissions: ask, reply, list, get, and recheck after an approval for always."""

from typing import Final

from fairlead_ingest.command_context import CommandContext, ContextDep
from fairlead_ingest.verbs.people.answer_ask import answer_ask
from fairlead_ingest.verbs.profile.restrictions import check_session_allowed
from fairlead_ingest.verbs.sessions import change, load
from fairlead_schema.commands.asks import (
    AskPermission,
    PendingPermissions,
    PermissionCommand,
    PermissionDecision,
    ReplyPermission,
)
from fairlead_schema.commands.session import SeqReached, SessionCommand
from fairlead_schema.errors import Conflict, Forbidden, PermissionNotFound
from fairlead_schema.events import PermissionAsked, PermissionReplied
from fairlead_schema.permission import PermissionRequest, PermissionRule
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.audit import audit_command
from fairlead_service.rpc.caller import by_own_client
from fairlead_service.rpc.server import TenantParam
from fairlead_session.people.asks import (
    AskNotPending,
    PermissionIdInUse,
    approval_to_save,
    ask_permission,
    recheck_permission,
    reply_permission,
)
from fairlead_session.people.permission import Need, approval_rules, judge
from fairlead_session.state.session import Session

ALWAYS_NEEDS_SCOPE: Final = (
    'The answer "always" needs the scope approval:save: call permission.approve instead'
)
ID_IN_USE: Final = "The permission id is already in use"


async def ask(
    context: ContextDep, tenant: TenantParam, command: AskPermission
) -> PermissionDecision:
    """Judge by the agent's rules and saved approvals. Only a request for a person is written."""
    at = Address(tenant, command.session_id)
    session = await load(context, at)
    assert session.profile is not None, "a loaded session exists"
    config, id_ = context.settings.config, command.id or ids.permission_id()
    agent = command.agent or session.profile.agent or config.default_agent
    need = Need(command.action, command.resources)
    effect = judge(config.rules(agent), await _saved_rules(context, at, session), need)
    if effect == "ask":
        asked = PermissionAsked(request=_request(session, id_, command), agent=agent)
        outcome = await change(context, at, lambda current: ask_permission(current, asked))
        if isinstance(outcome, PermissionIdInUse):
            raise Conflict(ID_IN_USE, id_)
    return PermissionDecision(id=id_, effect=effect)


async def reply(context: ContextDep, tenant: TenantParam, command: ReplyPermission) -> SeqReached:
    """Write a person's answer, and let the session go on. Raises PermissionNotFound and Forbidden.

    A tenant's own client answers "always" with `permission.approve`, which needs its own scope.
    """
    if command.reply == "always" and by_own_client():
        raise Forbidden(ALWAYS_NEEDS_SCOPE)
    return await approve(context, tenant, command)


async def approve(context: ContextDep, tenant: TenantParam, command: ReplyPermission) -> SeqReached:
    """Write a person's answer in one commit, "always" included. Raises PermissionNotFound.

    A repeated reply gets the same answer, because a client may have lost the first one.
    """
    at, rejects = Address(tenant, command.session_id), command.reply == "reject"
    replied = PermissionReplied(
        request_id=command.request_id,
        reply=command.reply,
        message=(command.message or None) if rejects else None,
    )
    session = await load(context, at)
    # An approval is saved before the reply is decided, so the caller is checked before both.
    check_session_allowed(context, session)
    await _save_approval(context, at, session, replied)
    saved: tuple[PermissionRule, ...] = ()
    if command.reply == "always" and command.request_id in session.asks.permissions:
        saved = await _saved_rules(context, at, session)
    rules = context.settings.config.rules
    answer = await answer_ask(
        context, at, lambda current: reply_permission(current, replied, rules, saved)
    )
    if isinstance(answer, AskNotPending):
        raise PermissionNotFound(command.request_id)
    resource = f"{at.session_id}/{command.request_id}"
    audit_command("permission.reply", tenant, resource, command.reply)
    return answer


async def recheck(
    context: ContextDep, tenant: TenantParam, command: PermissionCommand
) -> SeqReached:
    """Answer a request that was approved for always meanwhile, perhaps in another session."""
    at = Address(tenant, command.session_id)
    saved = await _saved_rules(context, at, await load(context, at))
    rules = context.settings.config.rules
    return await answer_ask(
        context,
        at,
        lambda session: recheck_permission(session, command.request_id, rules, saved),
    )


async def list_(
    context: ContextDep, tenant: TenantParam, command: SessionCommand
) -> PendingPermissions:
    """The pending permission requests of this session, oldest first, from the log."""
    session = await load(context, Address(tenant, command.session_id))
    permissions = session.asks.permissions.values()
    return PendingPermissions(requests=tuple(pending.request for pending in permissions))


async def get(
    context: ContextDep, tenant: TenantParam, command: PermissionCommand
) -> PermissionRequest:
    """One pending request of this session. Raises PermissionNotFound."""
    session = await load(context, Address(tenant, command.session_id))
    pending = session.asks.permissions.get(command.request_id)
    if pending is None:
        raise PermissionNotFound(command.request_id)
    return pending.request


def _request(session: Session, id_: str, command: AskPermission) -> PermissionRequest:
    return PermissionRequest(
        id=id_,
        session_id=session.id,
        action=command.action,
        resources=command.resources,
        save=command.save,
        metadata=command.metadata,
        source=command.source,
    )


async def _save_approval(
    context: CommandContext, at: Address, session: Session, replied: PermissionReplied
) -> None:
    """Save an approval before its reply is written: after a crash the recheck writes the reply."""
    request = approval_to_save(session, replied)
    if request is None or not request.save:
        return
    assert session.profile is not None, "a loaded session exists"
    await context.eventlog.approvals.save(
        at.tenant, session.profile.project_id, request.action, request.save
    )


async def _saved_rules(
    context: CommandContext, at: Address, session: Session
) -> tuple[PermissionRule, ...]:
    assert session.profile is not None, "a loaded session exists"
    saved = await context.eventlog.approvals.get_all(at.tenant, session.profile.project_id)
    return approval_rules(saved)
