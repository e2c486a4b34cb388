"""`GET /api/session/{sessionID}/message`: the transcript in pages."""

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.incoming import Decimal, Nothing
from fairlead_gateway.http.operation import Call, Operation
from fairlead_gateway.reads.cursors import MESSAGES_MAX, MessageCursor, reading
from fairlead_gateway.reads.read_model import Direction, Order
from fairlead_gateway.routes.pages import PAGE_DEFAULT, Cursors
from fairlead_schema.errors import InvalidCursor, ServiceUnavailable, SessionNotFound
from fairlead_schema.message import Message
from fairlead_schema.model import InputModel, Model


class MessagesQuery(InputModel):
    limit: Annotated[Decimal, Field(ge=1, le=MESSAGES_MAX)] | None = None
    order: Order | None = None
    cursor: str | None = None


class MessagePage(Model):
    data: tuple[Message, ...]
    cursor: Cursors


async def _list(call: Call[MessagesQuery, Nothing]) -> Response:
    query, read = call.query, call.runtime.read
    cursor = _cursor(call)
    order: Order = cursor.order if cursor is not None else query.order or "desc"
    direction: Direction = "next" if cursor is None else cursor.direction
    limit = query.limit or (PAGE_DEFAULT if cursor is None else cursor.limit)
    stale = await call.stale()
    after = None if cursor is None else await read.message_seq(call.at, cursor.id)
    if cursor is not None and after is None:
        raise InvalidCursor
    found = await read.messages(call.at, order=reading(order, direction), after=after, limit=limit)
    data = tuple(found) if direction == "next" else tuple(reversed(found))
    page = MessagePage(data=data, cursor=_around(call, data, order, limit))
    return answer(page, stale=stale)


def _cursor(call: Call[MessagesQuery, Nothing]) -> MessageCursor | None:
    query = call.query
    if query.cursor is None:
        return None
    if query.order is not None:
        raise InvalidCursor("Cursor cannot be combined with order")
    cursor = MessageCursor.decode(query.cursor)
    if cursor.session != call.at.session_id:
        raise InvalidCursor
    return cursor


def _around(
    call: Call[MessagesQuery, Nothing], data: tuple[Message, ...], order: Order, limit: int
) -> Cursors:
    if not data:
        return Cursors()
    previous, following = (
        MessageCursor(
            session=call.at.session_id,
            id=message.id,
            order=order,
            direction=direction,
            limit=limit,
        ).encode()
        for message, direction in _ends(data)
    )
    return Cursors(previous=previous, next=following)


def _ends(data: tuple[Message, ...]) -> tuple[tuple[Message, Direction], ...]:
    return (data[0], "previous"), (data[-1], "next")


LIST = Operation(
    id="message.list",
    method="GET",
    path="/api/session/{sessionID}/message",
    summary="The messages of a session, in pages.",
    respond=_list,
    query=MessagesQuery,
    body=Nothing,
    answer=MessagePage,
    errors=(InvalidCursor, SessionNotFound, ServiceUnavailable),
)
