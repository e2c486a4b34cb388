"""Sessions for the terminal client: create, list, read, name, delete, fork, and their messages."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Final, TypeAlias

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.operation import AnyOperation, ApiRequest
from fairlead_gateway.http.request_parser import EmptyInput, Text, WholeNumber
from fairlead_gateway.log.commands import send_command, send_session_command
from fairlead_gateway.log.session_state import load_session
from fairlead_gateway.opencode_view.present_fields import present
from fairlead_gateway.opencode_view.routes.view_operation import (
    ViewQuery,
    directory_of,
    json_answer,
    view_operation,
)
from fairlead_gateway.opencode_view.session_rules import (
    NO_QUESTIONS,
    SessionRule,
    deny_questions,
)
from fairlead_gateway.opencode_view.translation.sessions import (
    BUSY,
    IDLE,
    view_folded,
    view_session,
)
from fairlead_gateway.opencode_view.view_hubs import ViewHubs
from fairlead_gateway.reads.cursors import SESSIONS_MAX
from fairlead_gateway.reads.read_model import SessionFilter
from fairlead_schema.catalog import ModelRef
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.session import (
    CreateSession,
    DescribeSession,
    DescriptionReached,
    ForkSession,
    SessionCommand,
    SessionTitle,
)
from fairlead_schema.errors import Refused
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import InputModel
from fairlead_schema.session_info import SessionInfo
from fairlead_service import ids

Json: TypeAlias = dict[str, Any]
LISTED_MAX: Final = 100


class ViewListQuery(ViewQuery):
    start: WholeNumber | None = None
    roots: bool | None = None
    search: Text | None = None
    limit: Annotated[WholeNumber, Field(ge=1)] | None = None


class NewSessionModel(InputModel):
    provider_id: str
    id: str
    variant: str | None = None


class ViewCreateBody(InputModel):
    agent: str | None = None
    model: NewSessionModel | None = None
    permission: tuple[SessionRule, ...] = ()


class ViewForkBody(InputModel):
    message_id: MessageId | None = None


class ViewTitleBody(InputModel):
    title: SessionTitle


class SessionRoutes:
    """The routes of sessions. The hubs know which sessions work now."""

    def __init__(self, hubs: ViewHubs) -> None:
        self._hubs = hubs

    def operations(self) -> tuple[AnyOperation, ...]:
        one = "/session/{sessionID}"
        return (
            view_operation(
                "GET", "/session", self._list, scope="session:read", query=ViewListQuery
            ),
            view_operation(
                "POST", "/session", self._create, scope="session:write", body=ViewCreateBody
            ),
            view_operation("GET", "/session/status", self._status, scope="session:read"),
            view_operation("GET", one, self._read, scope="session:read", commands=True),
            view_operation(
                "PATCH", one, self._rename, scope="session:write", body=ViewTitleBody, commands=True
            ),
            view_operation("DELETE", one, self._delete, scope="session:write", commands=True),
            view_operation("GET", f"{one}/todo", self._todos, scope="session:read", commands=True),
            view_operation("GET", f"{one}/diff", self._diff, scope="session:read", commands=True),
            view_operation("GET", f"{one}/children", self._children, scope="session:read"),
            view_operation(
                "POST",
                f"{one}/fork",
                self._fork,
                scope="session:write",
                body=ViewForkBody,
                commands=True,
            ),
        )

    async def _list(self, request: ApiRequest[ViewListQuery, EmptyInput]) -> Response:
        """The sessions with the newest activity first: `run -c` takes the first one."""
        query, limit = request.query, min(request.query.limit or LISTED_MAX, SESSIONS_MAX)
        await request.is_list_stale()
        found = await self._read_newest(request, limit)
        if len(found) == limit:
            # An older session may have the newest activity.
            found = await self._read_newest(request, SESSIONS_MAX)
        recent = [one for one in found if one.time.updated >= (query.start or 0)]
        recent.sort(key=lambda one: one.time.updated, reverse=True)
        return json_answer([view_session(one) for one in recent[:limit]])

    async def _read_newest(
        self, request: ApiRequest[ViewListQuery, EmptyInput], limit: int
    ) -> Sequence[SessionInfo]:
        query = request.query
        wanted = SessionFilter(
            directory=directory_of(request), search=query.search, roots=query.roots or None
        )
        return await request.runtime.read_model.sessions(
            request.tenant, wanted, order="desc", after=None, limit=limit
        )

    async def _create(self, request: ApiRequest[ViewQuery, ViewCreateBody]) -> Response:
        body, directory = request.body, directory_of(request)
        model = body.model
        chosen = (
            None
            if model is None
            else ModelRef(id=model.id, provider_id=model.provider_id, variant=model.variant)
        )
        location = None if directory is None else LocationRef(directory=directory)
        fields = present(agent=body.agent, model=chosen, location=location)
        command = CreateSession(id=ids.session_id(), **fields)
        created = await send_command(request, "session.create", command, CommandAnswer[SessionInfo])
        if deny_questions(body.permission):
            note = DescribeSession(session_id=created.id, metadata=dict(NO_QUESTIONS))
            with suppress(Refused):  # An upgrade is not finalised: nobody takes notes yet.
                await send_command(
                    request, "session.describe", note, CommandAnswer[DescriptionReached]
                )
        return json_answer(view_session(created))

    async def _status(self, request: ApiRequest[ViewQuery, EmptyInput]) -> Response:
        """The sessions that are not idle. The hub knows better than the read models."""
        await request.is_list_stale()
        active = await request.runtime.read_model.active(request.tenant)
        statuses: dict[SessionId, Json] = dict.fromkeys(active, BUSY)
        if (hub := self._hubs.peek(request.tenant)) is not None:
            statuses |= hub.sessions.statuses()
        return json_answer({id_: status for id_, status in statuses.items() if status != IDLE})

    async def _read(self, request: ApiRequest[ViewQuery, EmptyInput]) -> Response:
        return json_answer(view_folded(await load_session(request.runtime, request.at)))

    async def _rename(self, request: ApiRequest[ViewQuery, ViewTitleBody]) -> Response:
        command = DescribeSession(session_id=request.at.session_id, title=request.body.title)
        named = await send_command(
            request, "session.describe", command, CommandAnswer[DescriptionReached]
        )
        return json_answer(view_session(named.session))

    async def _delete(self, request: ApiRequest[ViewQuery, EmptyInput]) -> Response:
        """Archive the session: it leaves the list, and an operator can bring it back."""
        command = SessionCommand(session_id=request.at.session_id)
        await send_session_command(request, "session.archive", command)
        return json_answer(body=True)

    async def _todos(self, request: ApiRequest[ViewQuery, EmptyInput]) -> Response:
        session = await load_session(request.runtime, request.at)
        return json_answer([todo.wire() for todo in session.todos])

    async def _diff(self, request: ApiRequest[ViewQuery, EmptyInput]) -> Response:
        """The files that a staged revert changes back."""
        session = await load_session(request.runtime, request.at)
        revert = None if session.profile is None else session.profile.revert
        files = () if revert is None else revert.files or ()
        return json_answer(
            [
                {
                    "file": file.path,
                    "additions": file.additions,
                    "deletions": file.deletions,
                    "patch": file.patch,
                    "status": file.status,
                }
                for file in files
            ]
        )

    async def _children(self, request: ApiRequest[ViewQuery, EmptyInput]) -> Response:
        found = await request.runtime.read_model.sessions(
            request.tenant,
            SessionFilter(parent=request.at.session_id, archived="include"),
            order="asc",
            after=None,
            limit=SESSIONS_MAX,
        )
        return json_answer([view_session(one) for one in found])

    async def _fork(self, request: ApiRequest[ViewQuery, ViewForkBody]) -> Response:
        fields = present(message_id=request.body.message_id)
        command = ForkSession(session_id=request.at.session_id, id=ids.session_id(), **fields)
        forked = await send_command(request, "session.fork", command, CommandAnswer[SessionInfo])
        return json_answer(view_session(forked))
