"""Asks people of an editor, and gives their answers to the session."""

import asyncio
import logging
from contextlib import suppress

from acp import RequestError, schema
from acp.interfaces import Client
from pydantic import ValidationError

from fairlead_cli.acp.translation.ask_options import (
    is_given_up,
    label_of,
    permission_call,
    permission_options,
    question_call,
    question_options,
    reply_of,
)
from fairlead_cli.acp.translation.question_forms import form_answers, form_message, question_form
from fairlead_client import AsyncFairlead, ClientError, ReceivedEvent
from fairlead_schema.errors import (
    Conflict,
    Forbidden,
    PermissionNotFound,
    QuestionNotFound,
    Unauthorized,
)
from fairlead_schema.permission import PermissionRequest, QuestionRequest
from fairlead_service.supervise import cancel_and_wait

log = logging.getLogger(__name__)


class EditorAsks:
    """The asks of one session, and of its sub-agents, that wait at the editor."""

    def __init__(
        self, fairlead: AsyncFairlead, editor: Client, session_id: str, *, has_forms: bool
    ) -> None:
        """`has_forms`: the editor shows forms, so that questions need not be permissions."""
        self._fairlead = fairlead
        self._editor = editor
        self._session_id = session_id
        self._has_forms = has_forms
        self._waiting: dict[str, asyncio.Task[None]] = {}

    def ask(self, event: ReceivedEvent) -> None:
        """Ask the person, once for each ask."""
        id_ = event.data["id"]
        if id_ not in self._waiting:
            task = asyncio.create_task(self._serve(event))
            self._waiting[id_] = task

    def drop(self, request_id: str) -> None:
        """Forget an ask that is answered. The protocol cannot take a shown request back."""
        task = self._waiting.pop(request_id, None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    async def close(self) -> None:
        await cancel_and_wait(*self._waiting.values())

    async def _serve(self, event: ReceivedEvent) -> None:
        # Another client may have been first, or the editor has left: the ask stays in the log.
        with suppress(PermissionNotFound, QuestionNotFound, Conflict, ConnectionError):
            try:
                if event.type == "permission.v2.asked":
                    await self._ask_permission(PermissionRequest.model_validate(event.data))
                else:
                    await self._ask_questions(QuestionRequest.model_validate(event.data))
            except (RequestError, ValidationError, ClientError, Forbidden, Unauthorized) as error:
                log.warning(
                    "%s has no answer: fairlead reply gives one, or load the session again: %s",
                    event.data["id"],
                    error,
                )

    async def _ask_permission(self, request: PermissionRequest) -> None:
        response = await self._editor.request_permission(
            session_id=self._session_id,
            tool_call=permission_call(request),
            options=permission_options(request),
        )
        reply = reply_of(response)
        if reply is not None:
            await self._fairlead.approve(request, reply)

    async def _ask_questions(self, request: QuestionRequest) -> None:
        if not self._has_forms:
            await self._ask_one_by_one(request)
            return
        response = await self._editor.create_elicitation(
            form_message(request), question_form(self._session_id, request)
        )
        match response:
            case schema.AcceptElicitationResponse():
                await self._fairlead.answer(request, form_answers(request, response.content))
            case schema.DeclineElicitationResponse():
                await self._fairlead.answer(request, None)
            case _:
                pass

    async def _ask_one_by_one(self, request: QuestionRequest) -> None:
        answers: list[list[str]] = []
        for question in request.questions:
            response = await self._editor.request_permission(
                session_id=self._session_id,
                tool_call=question_call(request, question),
                options=question_options(question),
            )
            if is_given_up(response):
                return
            label = label_of(question, response)
            if label is None:
                await self._fairlead.answer(request, None)
                return
            answers.append([label])
        await self._fairlead.answer(request, answers)
