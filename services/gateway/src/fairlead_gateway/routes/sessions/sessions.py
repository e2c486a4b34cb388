"""`GET /api/session` and `GET /api/session/active`: which sessions there are."""

from typing import Annotated, Literal

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.incoming import Decimal, Nothing, Text
from fairlead_gateway.http.operation import Call, Operation
from fairlead_gateway.reads.cursors import SESSIONS_MAX, Anchor, Listing, SessionCursor, reading
from fairlead_gateway.reads.read_model import Direction, Order, SessionAnchor, SessionFilter
from fairlead_gateway.routes.pages import PAGE_DEFAULT, Cursors
from fairlead_schema.errors import InvalidCursor, ServiceUnavailable
from fairlead_schema.ids import SessionId
from fairlead_schema.model import InputModel, Model
from fairlead_schema.session_info import SessionInfo


class SessionsQuery(InputModel):
    workspace: Text | None = None
    limit: Annotated[Decimal, Field(gt=0)] | None = None
    order: Order | None = None
    search: Text | None = None
    directory: Text | None = None
    project: Text | None = None
    subpath: Text | None = None
    cursor: str | None = None


class SessionPage(Model):
    data: tuple[SessionInfo, ...]
    cursor: Cursors


class Running(Model):
    type: Literal["running"] = "running"


class ActiveAnswer(Model):
    data: dict[SessionId, Running]


async def _list(call: Call[SessionsQuery, Nothing]) -> Response:
    listing, anchor = _place(call.query)
    direction: Direction = "next" if anchor is None else anchor.direction
    found = await call.runtime.read.sessions(
        call.tenant,
        SessionFilter(listing.workspace, listing.directory, listing.project, listing.search),
        order=reading(listing.order, direction),
        after=None if anchor is None else SessionAnchor(anchor.time, anchor.id),
        limit=listing.limit,
    )
    data = tuple(found) if direction == "next" else tuple(reversed(found))
    return answer(SessionPage(data=data, cursor=_around(listing, data)))


def _place(query: SessionsQuery) -> tuple[Listing, Anchor | None]:
    """What to list and from where: a cursor brings its own filters, the query's are ignored."""
    limit = None if query.limit is None else min(query.limit, SESSIONS_MAX)
    if query.cursor is not None:
        cursor = SessionCursor.decode(query.cursor)
        return cursor.model_copy(update={"limit": limit or cursor.limit}), cursor.anchor
    listing = Listing(
        workspace=query.workspace,
        directory=query.directory,
        project=query.project,
        search=query.search,
        subpath=query.subpath,
        order=query.order or "desc",
        limit=limit or PAGE_DEFAULT,
    )
    return listing, None


def _around(listing: Listing, data: tuple[SessionInfo, ...]) -> Cursors:
    if not data:
        return Cursors()
    return Cursors(
        previous=_cursor(listing, data[0], "previous"), next=_cursor(listing, data[-1], "next")
    )


def _cursor(listing: Listing, session: SessionInfo, direction: Direction) -> str:
    anchor = Anchor(id=session.id, time=session.time.created, direction=direction)
    return SessionCursor(**{**dict(listing), "anchor": anchor}).encode()


async def _active(call: Call[Nothing, Nothing]) -> Response:
    owned = await call.runtime.read.active(call.tenant)
    return answer(ActiveAnswer(data={session_id: Running() for session_id in owned}))


LIST = Operation(
    id="session.list",
    method="GET",
    path="/api/session",
    summary="Sessions by creation time, in pages.",
    respond=_list,
    query=SessionsQuery,
    body=Nothing,
    answer=SessionPage,
    errors=(InvalidCursor, ServiceUnavailable),
)

ACTIVE = Operation(
    id="session.active",
    method="GET",
    path="/api/session/active",
    summary="The sessions that a runner owns now.",
    respond=_active,
    query=Nothing,
    body=Nothing,
    answer=ActiveAnswer,
    errors=(ServiceUnavailable,),
)
