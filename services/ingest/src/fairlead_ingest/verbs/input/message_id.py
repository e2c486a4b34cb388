"""The message id of an input: a caller's own, bound to one session, or one that a service minted."""

from typing import Final

from fairlead_eventlog.session_cache import Versioned
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.existing_session import check_exists
from fairlead_schema.errors import Conflict, InvalidRequest
from fairlead_schema.ids import MessageId, is_minted
from fairlead_schema.subjects import Address
from fairlead_service.rpc.caller import by_own_client
from fairlead_session.state.session import Session

ID_IN_USE: Final = "Message id is already in use"


def check_minted_id(minted_id: MessageId | None) -> MessageId | None:
    """The id that a service minted for an input. Nobody else can know it, so it needs no register.

    Raises InvalidRequest for an id without a seal, and for one that a tenant's own client sent.
    """
    if minted_id is not None and (by_own_client() or not is_minted(minted_id)):
        raise InvalidRequest("Only services mint ids: send `id`", kind="Body", field="mintedID")
    return minted_id


async def bind_id(
    context: CommandContext, at: Address, message_id: MessageId
) -> Versioned[Session]:
    """Bind a caller's message id to this session, and return the session as it is now.

    Raises Conflict if the id belongs to another session. A minted id carries a seal and is never
    registered: if this session did not admit it, it belongs to another session.
    """
    versioned = await context.load_assumed(at)
    if message_id in versioned.state.inbox.admissions:
        return versioned
    if versioned.state.profile is None or is_minted(message_id):
        # A refusal is told only after the leader of the log has confirmed it.
        versioned = await context.load_confirmed(at)
    check_exists(versioned.state)
    if message_id in versioned.state.inbox.admissions:
        return versioned
    if is_minted(message_id):
        raise Conflict(ID_IN_USE, message_id)
    owner = await context.eventlog.message_ids.bind(at.tenant, message_id, at.session_id)
    if owner != at.session_id:
        raise Conflict(ID_IN_USE, message_id)
    return versioned
