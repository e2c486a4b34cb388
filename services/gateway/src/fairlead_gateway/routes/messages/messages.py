"""`GET /api/session/{sessionID}/message`: the transcript in pages."""

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput, WholeNumber
from fairlead_gateway.log.unreadable import find_unreadable_place
from fairlead_gateway.reads.cursors import MESSAGES_MAX, MessageCursor
from fairlead_gateway.reads.read_model import Direction, Order
from fairlead_gateway.reads.stored_messages import require_messages
from fairlead_gateway.routes.pages import (
    PAGE_DEFAULT,
    PageCursors,
    in_page_order,
    page_cursors,
    scan_order,
)
from fairlead_schema.errors import (
    InvalidCursor,
    ServiceUnavailable,
    SessionIsStored,
    SessionNotFound,
    UnreadablePlace,
)
from fairlead_schema.message import Message
from fairlead_schema.model import InputModel, Model


class MessagesQuery(InputModel):
    limit: Annotated[WholeNumber, Field(ge=1, le=MESSAGES_MAX)] | None = None
    order: Order | None = None
    cursor: str | None = None


class MessagePage(Model):
    data: tuple[Message, ...]
    cursor: PageCursors
    seq: int | None = None
    """The messages show every event up to this one. A stream after it brings all later ones."""
    unreadable: UnreadablePlace | None = None
    """From which event on the log cannot be read. The messages are those before it."""


async def _list(request: ApiRequest[MessagesQuery, EmptyInput]) -> Response:
    query, read_model = request.query, request.runtime.read_model
    cursor = _cursor(request)
    order: Order = cursor.order if cursor is not None else query.order or "desc"
    direction: Direction = "next" if cursor is None else cursor.direction
    limit = query.limit or (PAGE_DEFAULT if cursor is None else cursor.limit)
    stale = await request.is_stale()
    await require_messages(request)
    # Read before the messages, so that they show no less.
    progress = await read_model.progress(request.at)
    after = None if cursor is None else await read_model.message_seq(request.at, cursor.id)
    if cursor is not None and after is None:
        raise InvalidCursor
    messages = await read_model.messages(
        request.at, order=scan_order(order, direction), after=after, limit=limit
    )
    data = in_page_order(messages, direction)

    def encode(message: Message, direction: Direction) -> str:
        return MessageCursor(
            session=request.at.session_id,
            id=message.id,
            order=order,
            direction=direction,
            limit=limit,
        ).encode()

    page = MessagePage(
        data=data,
        cursor=page_cursors(data, encode),
        seq=None if progress is None else progress.seq,
        unreadable=await find_unreadable_place(request),
    )
    return answer(page, stale=stale)


def _cursor(request: ApiRequest[MessagesQuery, EmptyInput]) -> MessageCursor | None:
    query = request.query
    if query.cursor is None:
        return None
    if query.order is not None:
        raise InvalidCursor("Cursor cannot be combined with order")
    cursor = MessageCursor.decode(query.cursor)
    if cursor.session != request.at.session_id:
        raise InvalidCursor
    return cursor


LIST = Operation(
    id="message.list",
    method="GET",
    path="/api/session/{sessionID}/message",
    scope="session:read",
    summary="The messages of a session, in pages.",
    respond=_list,
    query=MessagesQuery,
    answer=MessagePage,
    serves_stored=True,
    errors=(InvalidCursor, SessionNotFound, SessionIsStored, ServiceUnavailable),
)
