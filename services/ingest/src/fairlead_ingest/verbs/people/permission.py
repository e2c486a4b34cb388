"""The verbs of permissions: ask, reply, list, get, and look again after an approval for always."""

from fairlead_ingest.command_context import CommandContext, ContextDep
from fairlead_ingest.verbs.people.answer_ask import answer_with
from fairlead_ingest.verbs.sessions import load, reached
from fairlead_schema.commands.asks import (
    AskPermission,
    PendingPermissions,
    PermissionCommand,
    PermissionDecision,
    ReplyPermission,
)
from fairlead_schema.commands.session import ExecutionReached, SessionCommand
from fairlead_schema.errors import Conflict, PermissionNotFound
from fairlead_schema.events import PermissionAsked, PermissionReplied, SessionEvent
from fairlead_schema.permission import PermissionRequest, PermissionRule
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.rpc.server import TenantParam
from fairlead_session.people import asks
from fairlead_session.people.asks import AskNotPending, approval_rules
from fairlead_session.people.permission import Need, judge
from fairlead_session.state.session import Session

TAKEN = "The permission id is already in use"


async def ask(
    context: ContextDep, tenant: TenantParam, command: AskPermission
) -> PermissionDecision:
    """Judge by the agent's rules and saved approvals; only what a person decides is written."""
    at = Address(tenant, command.session_id)
    session = await load(context, at)
    assert session.profile is not None, "it was just found"
    agent = command.agent or session.profile.agent or context.settings.config.default_agent
    need = Need(command.action, command.resources)
    effect = judge(context.settings.config.rules(agent), await _saved(context, at, session), need)
    id_ = command.id or ids.permission_id()
    if effect == "ask":
        request = PermissionRequest(
            id=id_,
            session_id=session.id,
            action=command.action,
            resources=command.resources,
            save=command.save,
            metadata=command.metadata,
            source=command.source,
        )
        asked = PermissionAsked(request=request, agent=agent)
        await context.commit(at, lambda found: _asked(found, asked))
    return PermissionDecision(id=id_, effect=effect)


async def reply(
    context: ContextDep, tenant: TenantParam, command: ReplyPermission
) -> ExecutionReached:
    """Write a person's word in one commit, and have the session go on. Raises PermissionNotFound.

    The very same reply again is answered as the first one was: a client may lose the answer.
    """
    at = Address(tenant, command.session_id)
    session = await load(context, at)
    pending = session.asks.permissions.get(command.request_id)
    saved: tuple[PermissionRule, ...] = ()
    if command.reply == "always" and pending is not None:
        await _keep(context, at, session, pending.request)
        saved = await _saved(context, at, session)
    message = command.message or None
    answer = PermissionReplied(
        request_id=command.request_id,
        reply=command.reply,
        message=message if command.reply == "reject" else None,
    )

    def decide(found: Session) -> tuple[SessionEvent, ...]:
        decided = asks.reply_permission(found, answer, context.settings.config.rules, saved)
        if isinstance(decided, AskNotPending):
            raise PermissionNotFound(command.request_id)
        return decided

    return reached(await answer_with(context, at, decide))


async def recheck(
    context: ContextDep, tenant: TenantParam, command: PermissionCommand
) -> ExecutionReached:
    """Answer a request that was approved for always meanwhile, perhaps in another session."""
    at = Address(tenant, command.session_id)
    session = await load(context, at)
    saved, rules = await _saved(context, at, session), context.settings.config.rules
    decided = await answer_with(
        context, at, lambda found: asks.recheck_permission(found, command.request_id, rules, saved)
    )
    return reached(decided)


async def list_(
    context: ContextDep, tenant: TenantParam, command: SessionCommand
) -> PendingPermissions:
    """What waits in this session, in the order of asking, from the log."""
    session = await load(context, Address(tenant, command.session_id))
    return PendingPermissions(
        requests=tuple(one.request for one in session.asks.permissions.values())
    )


async def get(
    context: ContextDep, tenant: TenantParam, command: PermissionCommand
) -> PermissionRequest:
    """One pending request of this session. Raises PermissionNotFound."""
    session = await load(context, Address(tenant, command.session_id))
    pending = session.asks.permissions.get(command.request_id)
    if pending is None:
        raise PermissionNotFound(command.request_id)
    return pending.request


def _asked(session: Session, asked: PermissionAsked) -> tuple[SessionEvent, ...]:
    known = session.asks.permissions.get(asked.request.id)
    if known is not None and known.request == asked.request:
        return ()
    if known is not None or asked.request.id in session.asks.answers:
        raise Conflict(TAKEN, asked.request.id)
    return (asked,)


async def _keep(
    context: CommandContext, at: Address, session: Session, request: PermissionRequest
) -> None:
    """Before the reply is written: should we die in between, the approval answers the request."""
    assert session.profile is not None, "it was just found"
    if request.save:
        await context.eventlog.approvals.save(
            at.tenant, session.profile.project_id, request.action, request.save
        )


async def _saved(
    context: CommandContext, at: Address, session: Session
) -> tuple[PermissionRule, ...]:
    assert session.profile is not None, "it was just found"
    return approval_rules(
        await context.eventlog.approvals.get_all(at.tenant, session.profile.project_id)
    )
