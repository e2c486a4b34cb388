"""The messages of a session for the terminal client, which reads them once and trusts its stream after that."""

from typing import Annotated, Final

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.operation import AnyOperation, ApiRequest
from fairlead_gateway.http.request_parser import EmptyInput, WholeNumber
from fairlead_gateway.log.session_state import load_session
from fairlead_gateway.opencode_view.routes.view_operation import (
    ViewQuery,
    json_answer,
    view_operation,
)
from fairlead_gateway.opencode_view.translation.messages import view_messages
from fairlead_gateway.opencode_view.translation.sessions import pending_message, setting_of
from fairlead_gateway.reads.read_model import ReadsUnavailable
from fairlead_schema.ids import MessageId
from fairlead_schema.message import Message, SystemMessage
from fairlead_session.state.session import Session

MESSAGES_MAX: Final = 1000


class ViewMessagesQuery(ViewQuery):
    limit: Annotated[WholeNumber, Field(ge=0)] | None = None


async def _list(request: ApiRequest[ViewMessagesQuery, EmptyInput]) -> Response:
    """The newest messages, oldest first.

    The log has all that a revert or a turn can change. The read models have what a compaction replaced:
    without them the client shows the rest.
    """
    limit = min(request.query.limit or MESSAGES_MAX, MESSAGES_MAX)
    session = await load_session(request.runtime, request.at)
    shown = _messages_of(session)
    if session.transcript.compacted_seq is not None and len(shown) < limit:
        shown = [*await _read_before(request, shown[0].id, limit), *shown]
    setting = setting_of(session, request.runtime.settings.with_defaults, {})
    return json_answer([one.wire() for one in view_messages(shown[-limit:], setting)])


def _messages_of(session: Session) -> list[Message]:
    """What the log has since the last compaction, and admitted input at the end."""
    joined = {
        line.message.id: line.message
        for line in session.transcript.lines
        if not isinstance(line.message, SystemMessage)
    }
    for pending in session.inbox.pending:
        if (message := pending_message(pending)) is not None:
            joined.setdefault(message.id, message)
    return list(joined.values())


async def _read_before(
    request: ApiRequest[ViewMessagesQuery, EmptyInput], first: MessageId, limit: int
) -> list[Message]:
    """The stored messages before one. The read models may be behind the log, or away."""
    try:
        await request.is_stale()
        stored = await request.runtime.read_model.messages(
            request.at, order="desc", after=None, limit=limit
        )
    except ReadsUnavailable:
        return []
    earlier = list(stored[::-1])
    ids = [message.id for message in earlier]
    return earlier[: ids.index(first)] if first in ids else earlier


OPERATIONS: Final[tuple[AnyOperation, ...]] = (
    view_operation(
        "GET",
        "/session/{sessionID}/message",
        _list,
        scope="session:read",
        query=ViewMessagesQuery,
    ),
)
