"""`session.describe`: name a session, and note metadata of its users' own programs."""

from typing import assert_never

from fairlead_ingest.command_context import Committed, ContextDep
from fairlead_ingest.verbs.sessions import archived_error, change, load
from fairlead_ingest.verbs.sessions import describe as describe_session
from fairlead_schema.commands.session import DescribeSession, DescriptionReached
from fairlead_schema.errors import Conflict, InvalidRequest
from fairlead_schema.events import SessionDescribed
from fairlead_schema.session_values.metadata import METADATA_KEYS_MAX
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution import description
from fairlead_session.execution.commands import SessionIsArchived
from fairlead_session.execution.description import TooMuchMetadata


async def describe(
    context: ContextDep, tenant: TenantParam, command: DescribeSession
) -> DescriptionReached:
    """Change title and metadata. Raises Conflict for an archived session, and InvalidRequest."""
    at = Address(tenant, command.session_id)
    await load(context, at)
    if context.eventlog.status.current.level < SessionDescribed.level:
        reason = (
            "Nobody can describe sessions before the upgrade is finalised:"
            " run `fairlead provision --finalise` when no older release will run again"
        )
        raise Conflict(reason, command.session_id)
    decided: Committed | SessionIsArchived | TooMuchMetadata = await change(
        context,
        at,
        lambda session: description.describe(session, command.title, command.metadata),
    )
    match decided:
        case SessionIsArchived():
            raise archived_error(at.session_id)
        case TooMuchMetadata(keys=keys):
            reason = f"The session would have {keys} keys of metadata, above {METADATA_KEYS_MAX}"
            raise InvalidRequest(reason, kind="Body", field="metadata")
        case Committed(session=session):
            return DescriptionReached(
                session_id=session.id,
                seq=session.seq,
                session=describe_session(context, session),
            )
        case _:
            assert_never(decided)
