"""Questions over HTTP: list, answer, dismiss. A parent's list includes its children's questions."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer, empty_answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import QUESTION_ID, EmptyInput, request_id_of
from fairlead_gateway.log.commands import send_session_command
from fairlead_gateway.log.session_state import load_session
from fairlead_gateway.routes.server.location import (
    LocationQuery,
    requested_directory,
    select_location,
)
from fairlead_schema.commands.asks import AnswersBody, QuestionCommand, ReplyQuestion
from fairlead_schema.errors import QuestionNotFound, ServiceUnavailable, SessionNotFound
from fairlead_schema.location import LocationInfo
from fairlead_schema.model import Model
from fairlead_schema.permission import QuestionRequest

_ERRORS = (SessionNotFound, QuestionNotFound, ServiceUnavailable)


class QuestionsAnswer(Model):
    data: tuple[QuestionRequest, ...]


class LocatedQuestions(Model):
    location: LocationInfo
    data: tuple[QuestionRequest, ...]


async def _list_all_sessions(request: ApiRequest[LocationQuery, EmptyInput]) -> Response:
    """List the asks of the requested directory, or of every directory."""
    asks = await request.runtime.read_model.asks(
        request.tenant, "question", directory=requested_directory(request)
    )
    data = tuple(QuestionRequest.model_validate(ask) for ask in asks)
    return answer(LocatedQuestions(location=select_location(request), data=data))


async def _list(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    """List the asks of the session from the log, and those of its descendants from the read models."""
    session = await load_session(request.runtime, request.at)
    child_asks = await request.runtime.read_model.child_asks(request.at, "question")
    own = tuple(ask.request for ask in session.asks.questions.values())
    children = tuple(QuestionRequest.model_validate(ask) for ask in child_asks)
    return answer(QuestionsAnswer(data=(*own, *children)))


async def _reply(request: ApiRequest[EmptyInput, AnswersBody]) -> Response:
    command = ReplyQuestion(
        session_id=request.at.session_id,
        request_id=request_id_of(request.http, QUESTION_ID),
        answers=request.body.answers,
    )
    await send_session_command(request, "question.reply", command)
    return empty_answer()


async def _reject(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    request_id = request_id_of(request.http, QUESTION_ID)
    command = QuestionCommand(session_id=request.at.session_id, request_id=request_id)
    await send_session_command(request, "question.reject", command)
    return empty_answer()


LIST_ALL_SESSIONS = Operation(
    id="question.request.list",
    method="GET",
    path="/api/question/request",
    scope="session:read",
    summary="Questions that wait for an answer, in every session.",
    respond=_list_all_sessions,
    query=LocationQuery,
    answer=LocatedQuestions,
    errors=(ServiceUnavailable,),
)

LIST = Operation(
    id="question.list",
    method="GET",
    path="/api/session/{sessionID}/question",
    scope="session:read",
    summary="Questions that wait in this session and in its descendants.",
    respond=_list,
    answer=QuestionsAnswer,
    errors=(SessionNotFound, ServiceUnavailable),
)

REPLY = Operation(
    id="question.reply",
    method="POST",
    path="/api/session/{sessionID}/question/{requestID}/reply",
    scope="ask:reply",
    summary="Answer, question by question.",
    respond=_reply,
    body=AnswersBody,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)

REJECT = Operation(
    id="question.reject",
    method="POST",
    path="/api/session/{sessionID}/question/{requestID}/reject",
    scope="ask:reply",
    summary="Dismiss the question: the session stops.",
    respond=_reject,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)
