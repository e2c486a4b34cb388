"""`GET /api/session/{sessionID}/history`: public events from the log, in pages."""

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput, Text, WholeNumber
from fairlead_gateway.http.sse import auto_close
from fairlead_gateway.log.envelopes import PUBLIC, EnvelopeTranslator, read_envelopes
from fairlead_gateway.log.restored_log import check_cursor, log_headers
from fairlead_gateway.log.session_state import load_session
from fairlead_gateway.log.unreadable import find_end, find_start
from fairlead_gateway.routes.pages import PAGE_DEFAULT
from fairlead_schema.errors import (
    CursorExpired,
    InvalidCursor,
    ServiceUnavailable,
    SessionNotFound,
    SessionUnreadable,
    UnreadablePlace,
)
from fairlead_schema.model import InputModel, Model
from fairlead_schema.public_events import EventEnvelope

HISTORY_MAX = 100


class HistoryQuery(InputModel):
    limit: Annotated[WholeNumber, Field(ge=1, le=HISTORY_MAX)] = PAGE_DEFAULT
    after: Annotated[WholeNumber, Field(ge=0)] = 0
    log: Text | None = None
    """The incarnation of the log that the cursor belongs to."""


class HistoryPage(Model):
    data: tuple[EventEnvelope, ...]
    has_more: bool
    unreadable: UnreadablePlace | None = None
    """Where the log cannot be read any further, if the page ends there."""


async def _read_history(request: ApiRequest[HistoryQuery, EmptyInput]) -> Response:
    limit, after = request.query.limit, request.query.after
    head = None if request.unreadable is not None else request.head.seq
    if head is not None and after > head:
        # While a restore is not complete, the cursor is right, and the session is still stored.
        await load_session(request.runtime, request.at)
    check_cursor(request.runtime, after=after, log=request.query.log, head=head)
    envelopes: list[EventEnvelope] = []
    unreadable: UnreadablePlace | None = None
    if request.unreadable is not None or after < request.head.seq:
        try:
            await _collect(request, envelopes)
        except SessionUnreadable as error:
            unreadable = error.place
    data, has_more = tuple(envelopes[:limit]), len(envelopes) > limit
    page = answer(HistoryPage(data=data, has_more=has_more, unreadable=unreadable))
    page.headers.update(log_headers(request.runtime))
    return page


async def _collect(
    request: ApiRequest[HistoryQuery, EmptyInput], envelopes: list[EventEnvelope]
) -> None:
    """Add the events of a page, and one more if there is one. Raises SessionUnreadable."""
    runtime, after = request.runtime, request.query.after
    translator = EnvelopeTranslator(request.at, runtime.read_model, visible=PUBLIC)
    start, reach = await find_start(request, after), await find_end(request)
    log, at = runtime.nats().log, request.at
    events = read_envelopes(log, at, translator, start=start, after=after, reach=reach)
    async with auto_close(events):
        async for envelope in events:
            envelopes.append(envelope)
            if len(envelopes) > request.query.limit:
                return


READ = Operation(
    id="session.history",
    method="GET",
    path="/api/session/{sessionID}/history",
    scope="session:read",
    summary="The public events of a session after a sequence.",
    respond=_read_history,
    query=HistoryQuery,
    answer=HistoryPage,
    errors=(InvalidCursor, CursorExpired, SessionNotFound, ServiceUnavailable),
)
