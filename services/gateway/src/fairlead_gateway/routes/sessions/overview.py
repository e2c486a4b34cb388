"""`GET /api/session/overview` and `GET /api/session/count`: sessions with their states, and how many."""

from functools import partial
from typing import Annotated, Final, TypeVar

from pydantic import StringConstraints, TypeAdapter, ValidationError
from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.reads.read_model import Direction, SessionAnchor
from fairlead_gateway.routes.pages import PageCursors, in_page_order, page_cursors, scan_order
from fairlead_gateway.routes.sessions.sessions import (
    SessionsQuery,
    encode_cursor,
    listing_and_anchor,
    listing_filter,
)
from fairlead_schema.commands.session_status import SessionOverview
from fairlead_schema.errors import InvalidCursor, InvalidRequest, ServiceUnavailable
from fairlead_schema.ids import SessionId
from fairlead_schema.model import Model

IDS_MAX: Final = 100
_IDS: Final[TypeAdapter[tuple[SessionId, ...]]] = TypeAdapter(tuple[SessionId, ...])


class OverviewQuery(SessionsQuery):
    ids: Annotated[str, StringConstraints(min_length=1, max_length=8192)] | None = None
    """Only these sessions, separated by commas, archived ones too. Other filters do not count then."""


class OverviewPage(Model):
    data: tuple[SessionOverview, ...]
    cursor: PageCursors


class SessionCounts(Model):
    """How many sessions that are not archived people may want to look at."""

    running: int
    waiting: int
    """Sessions that wait for a person."""
    asks: int
    """Permissions and questions that wait for a person."""
    broken: int


class CountsAnswer(Model):
    data: SessionCounts


async def _list(request: ApiRequest[OverviewQuery, EmptyInput]) -> Response:
    if request.query.ids is not None:
        return await _list_named(request, request.query.ids)
    listing, anchor = listing_and_anchor(request.query)
    direction: Direction = "next" if anchor is None else anchor.direction
    stale = await request.is_list_stale()
    found = await request.runtime.read_model.overviews(
        request.tenant,
        listing_filter(listing),
        order=scan_order(listing.order, direction),
        after=None if anchor is None else SessionAnchor(anchor.time, anchor.id),
        limit=listing.limit,
    )
    data = tuple(_describe(request, item) for item in in_page_order(found, direction))
    page = OverviewPage(data=data, cursor=page_cursors(data, partial(encode_cursor, listing)))
    return answer(page, stale=stale)


async def _list_named(request: ApiRequest[OverviewQuery, EmptyInput], ids: str) -> Response:
    try:
        wanted = _IDS.validate_python(ids.split(","))
    except ValidationError as error:
        raise InvalidRequest("ids: session ids are expected", kind="Query", field="ids") from error
    if len(wanted) > IDS_MAX:
        raise InvalidRequest(f"ids: at most {IDS_MAX}", kind="Query", field="ids")
    stale = await request.is_list_stale()
    found = await request.runtime.read_model.overviews_by_id(request.tenant, wanted)
    data = tuple(_describe(request, item) for item in found)
    return answer(OverviewPage(data=data, cursor=PageCursors()), stale=stale)


Shown = TypeVar("Shown", bound=SessionOverview)


def _describe(request: ApiRequest[OverviewQuery, EmptyInput], item: Shown) -> Shown:
    """The session with the agent and the model of its next turn, if it names none."""
    full = request.runtime.settings.with_defaults(item)
    return item.model_copy(update={"agent": full.agent, "model": full.model})


async def _count(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    counts = await request.runtime.read_model.state_counts(request.tenant)
    return answer(CountsAnswer(data=SessionCounts(**counts._asdict())))


LIST = Operation(
    id="session.overview",
    method="GET",
    path="/api/session/overview",
    scope="session:read",
    summary="Sessions with their states, in pages or by their ids.",
    respond=_list,
    query=OverviewQuery,
    answer=OverviewPage,
    errors=(InvalidCursor, ServiceUnavailable),
)

COUNT = Operation(
    id="session.count",
    method="GET",
    path="/api/session/count",
    scope="session:read",
    summary="How many sessions run, wait for people or are broken.",
    respond=_count,
    answer=CountsAnswer,
    errors=(ServiceUnavailable,),
)
