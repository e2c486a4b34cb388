"""`GET /api/session` and `GET /api/session/active`: lists of sessions."""

from functools import partial
from typing import Annotated, Any, Final, Literal

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput, Text, WholeNumber
from fairlead_gateway.reads.cursors import (
    SESSIONS_MAX,
    CursorAnchor,
    SessionCursor,
    SessionListing,
)
from fairlead_gateway.reads.read_model import (
    ArchivedFilter,
    Direction,
    Order,
    SessionAnchor,
    SessionFilter,
)
from fairlead_gateway.routes.pages import (
    PAGE_DEFAULT,
    PageCursors,
    in_page_order,
    page_cursors,
    scan_order,
)
from fairlead_gateway.routes.sessions.session import describe
from fairlead_schema.errors import InvalidCursor, ServiceUnavailable
from fairlead_schema.ids import SessionId
from fairlead_schema.model import InputModel, Model
from fairlead_schema.session_info import SessionInfo


class SessionsQuery(InputModel):
    workspace: Text | None = None
    limit: Annotated[WholeNumber, Field(ge=1, le=SESSIONS_MAX)] | None = None
    order: Order | None = None
    search: Text | None = None
    directory: Text | None = None
    project: Text | None = None
    subpath: Text | None = None
    parent_id: SessionId | None = None
    roots: bool | None = None
    archived: Literal["true", "false", "only"] | None = None
    cursor: str | None = None


_ARCHIVED: Final[dict[str | None, ArchivedFilter]] = {
    None: "hide",
    "false": "hide",
    "true": "include",
    "only": "only",
}


class SessionPage(Model):
    data: tuple[SessionInfo, ...]
    cursor: PageCursors


class RunningSession(Model):
    type: Literal["running"] = "running"


class ActiveAnswer(Model):
    data: dict[SessionId, RunningSession]


async def _list(request: ApiRequest[SessionsQuery, EmptyInput]) -> Response:
    return await list_sessions(request, request.query)


async def list_sessions(
    request: ApiRequest[Any, EmptyInput], query: SessionsQuery, *, parent: SessionId | None = None
) -> Response:
    """One page of sessions. With a parent, a cursor of another list is refused. Raises InvalidCursor."""
    listing, anchor = listing_and_anchor(query)
    if parent is not None and listing.parent != parent:
        raise InvalidCursor
    direction: Direction = "next" if anchor is None else anchor.direction
    stale = await request.is_list_stale()
    sessions = await request.runtime.read_model.sessions(
        request.tenant,
        listing_filter(listing),
        order=scan_order(listing.order, direction),
        after=None if anchor is None else SessionAnchor(anchor.time, anchor.id),
        limit=listing.limit,
    )
    data = tuple(describe(request, session) for session in in_page_order(sessions, direction))
    page = SessionPage(data=data, cursor=page_cursors(data, partial(encode_cursor, listing)))
    return answer(page, stale=stale)


def listing_filter(listing: SessionListing) -> SessionFilter:
    """Which sessions a listing has."""
    return SessionFilter(
        workspace=listing.workspace,
        directory=listing.directory,
        project=listing.project,
        search=listing.search,
        parent=listing.parent,
        roots=listing.roots,
        archived=listing.archived,
    )


def listing_and_anchor(query: SessionsQuery) -> tuple[SessionListing, CursorAnchor | None]:
    """The listing and where it begins. The filters of a cursor win over those of the query."""
    if query.cursor is not None:
        cursor = SessionCursor.decode(query.cursor)
        return cursor.model_copy(update={"limit": query.limit or cursor.limit}), cursor.anchor
    listing = SessionListing(
        workspace=query.workspace,
        directory=query.directory,
        project=query.project,
        search=query.search,
        subpath=query.subpath,
        parent=query.parent_id,
        roots=query.roots or None,
        archived=_ARCHIVED[query.archived],
        order=query.order or "desc",
        limit=query.limit or PAGE_DEFAULT,
    )
    return listing, None


def encode_cursor(listing: SessionListing, session: SessionInfo, direction: Direction) -> str:
    """The cursor that goes on from a session in a direction."""
    anchor = CursorAnchor(id=session.id, time=session.time.created, direction=direction)
    return SessionCursor(**{**dict(listing), "anchor": anchor}).encode()


async def _active(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    stale = await request.is_list_stale()
    session_ids = await request.runtime.read_model.active(request.tenant)
    data = {session_id: RunningSession() for session_id in session_ids}
    return answer(ActiveAnswer(data=data), stale=stale)


LIST = Operation(
    id="session.list",
    method="GET",
    path="/api/session",
    scope="session:read",
    summary="Sessions by creation time, in pages.",
    respond=_list,
    query=SessionsQuery,
    answer=SessionPage,
    errors=(InvalidCursor, ServiceUnavailable),
)

ACTIVE = Operation(
    id="session.active",
    method="GET",
    path="/api/session/active",
    scope="session:read",
    summary="The sessions that a runner owns now, or takes next.",
    respond=_active,
    answer=ActiveAnswer,
    errors=(ServiceUnavailable,),
)
