"""`session.explain`: why a session moves or rests, from the log and the quotas."""

from fairlead_eventlog.ports import START
from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.existing_session import check_exists
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.errors import SessionNotFound, UnreadablePlace
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.explain import add_quotas, explain_unreadable
from fairlead_session.explain import explain as explain_session
from fairlead_session.explain_answer import WireExplanation


async def explain(
    context: ContextDep, tenant: TenantParam, command: SessionCommand
) -> WireExplanation:
    """The state of a session in words and codes. Raises SessionNotFound."""
    at = Address(tenant, command.session_id)
    readable = await context.load_readable(at)
    session = readable.versioned.state
    if readable.error is not None:
        if await context.eventlog.log.end(at) == START:
            raise SessionNotFound(at.session_id)
        place = UnreadablePlace(seq=session.seq + 1, reason=str(readable.error))
        unreadable = explain_unreadable(place.reason)
        return WireExplanation(**unreadable.model_dump(), unreadable=place)
    if session.stored is not None:
        return WireExplanation(**explain_session(session).model_dump())
    profile = check_exists(session).profile
    assert profile is not None, "an existing session has a profile"
    explanation = explain_session(session)
    async for limits, totals in context.quotas.known_totals(tenant, profile.created_by):
        explanation = add_quotas(explanation, limits, totals)
    return WireExplanation(**explanation.model_dump())
