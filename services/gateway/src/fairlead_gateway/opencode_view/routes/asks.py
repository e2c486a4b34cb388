"""Permissions and questions for the terminal client, which names an ask without its session."""

import asyncio
from typing import Final

from starlette.responses import Response

from fairlead_gateway.http.operation import AnyOperation, ApiRequest
from fairlead_gateway.http.request_parser import (
    PERMISSION_ID,
    QUESTION_ID,
    EmptyInput,
    request_id_of,
)
from fairlead_gateway.opencode_view.routes.view_operation import (
    ViewQuery,
    json_answer,
    view_operation,
)
from fairlead_gateway.opencode_view.translation.sessions import view_permission, view_question
from fairlead_gateway.opencode_view.view_hubs import ViewHubs
from fairlead_gateway.reads.read_model import AskKind
from fairlead_gateway.turn_view.ask_replies import reply_permission, reply_question
from fairlead_schema.commands.asks import AnswersBody, ReplyBody
from fairlead_schema.errors import PermissionNotFound, QuestionNotFound
from fairlead_schema.ids import SessionId
from fairlead_schema.permission import PermissionRequest, QuestionRequest

LOOK_S: Final = 0.05


class AskRoutes:
    """The routes of asks. The hub of the tenant knows the newest asks."""

    def __init__(self, hubs: ViewHubs) -> None:
        self._hubs = hubs

    def operations(self) -> tuple[AnyOperation, ...]:
        question = "/question/{requestID}"
        return (
            view_operation("GET", "/permission", self._permissions, scope="session:read"),
            view_operation("GET", "/question", self._questions, scope="session:read"),
            view_operation(
                "POST",
                "/permission/{requestID}/reply",
                self._reply_permission,
                scope="ask:reply",
                body=ReplyBody,
            ),
            view_operation(
                "POST", f"{question}/reply", self._answer, scope="ask:reply", body=AnswersBody
            ),
            view_operation("POST", f"{question}/reject", self._dismiss, scope="ask:reply"),
        )

    async def _permissions(self, request: ApiRequest[ViewQuery, EmptyInput]) -> Response:
        asks = await request.runtime.read_model.asks(request.tenant, "permission", directory=None)
        return json_answer([view_permission(PermissionRequest.model_validate(ask)) for ask in asks])

    async def _questions(self, request: ApiRequest[ViewQuery, EmptyInput]) -> Response:
        asks = await request.runtime.read_model.asks(request.tenant, "question", directory=None)
        return json_answer([view_question(QuestionRequest.model_validate(ask)) for ask in asks])

    async def _reply_permission(self, request: ApiRequest[ViewQuery, ReplyBody]) -> Response:
        id_ = request_id_of(request.http, PERMISSION_ID)
        session_id = await self._find(request, "permission", id_)
        if session_id is None:
            raise PermissionNotFound(id_)
        await reply_permission(request, session_id, id_, request.body.reply, request.body.message)
        return json_answer(body=True)

    async def _answer(self, request: ApiRequest[ViewQuery, AnswersBody]) -> Response:
        id_, session_id = await self._find_question(request)
        await reply_question(request, session_id, id_, request.body.answers)
        return json_answer(body=True)

    async def _dismiss(self, request: ApiRequest[ViewQuery, EmptyInput]) -> Response:
        id_, session_id = await self._find_question(request)
        await reply_question(request, session_id, id_, None)
        return json_answer(body=True)

    async def _find_question(
        self, request: ApiRequest[ViewQuery, AnswersBody] | ApiRequest[ViewQuery, EmptyInput]
    ) -> tuple[str, SessionId]:
        id_ = request_id_of(request.http, QUESTION_ID)
        session_id = await self._find(request, "question", id_)
        if session_id is None:
            raise QuestionNotFound(id_)
        return id_, session_id

    async def _find(
        self,
        request: ApiRequest[ViewQuery, ReplyBody]
        | ApiRequest[ViewQuery, AnswersBody]
        | ApiRequest[ViewQuery, EmptyInput],
        kind: AskKind,
        id_: str,
    ) -> SessionId | None:
        """The session of an ask of this tenant. The read models may be a moment behind the stream."""
        hub = self._hubs.peek(request.tenant)
        if hub is not None and (known := hub.sessions.find_ask(id_)) is not None:
            return known
        loop = asyncio.get_running_loop()
        deadline = loop.time() + request.runtime.settings.fresh_timeout_s
        while True:
            asks = await request.runtime.read_model.asks(request.tenant, kind, directory=None)
            for ask in asks:
                if ask["id"] == id_:
                    session_id: SessionId = ask["sessionID"]
                    return session_id
            if loop.time() > deadline:
                return None
            await asyncio.sleep(LOOK_S)
