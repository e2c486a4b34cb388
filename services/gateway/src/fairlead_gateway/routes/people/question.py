"""Questions over HTTP: list, answer, dismiss; a child's questions are on its parents' lists."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer, done
from fairlead_gateway.http.incoming import QUESTION_ID, Nothing, request_id_of
from fairlead_gateway.http.operation import Call, Operation
from fairlead_gateway.log.commands import tell
from fairlead_gateway.log.session_state import folded
from fairlead_gateway.routes.server.location import LocationQuery, named, selected
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


async def _everywhere(call: Call[LocationQuery, Nothing]) -> Response:
    """Of the directory that the request names, else of every one."""
    found = await call.runtime.read.asks(call.tenant, "question", directory=named(call))
    data = tuple(QuestionRequest.model_validate(one) for one in found)
    return answer(LocatedQuestions(location=selected(call), data=data))


async def _list(call: Call[Nothing, Nothing]) -> Response:
    """Its own from the log, those of the sessions below it from the read models."""
    session = await folded(call.runtime, call.at)
    below = await call.runtime.read.child_asks(call.at, "question")
    own = tuple(one.request for one in session.asks.questions.values())
    children = tuple(QuestionRequest.model_validate(one) for one in below)
    return answer(QuestionsAnswer(data=(*own, *children)))


async def _reply(call: Call[Nothing, AnswersBody]) -> Response:
    command = ReplyQuestion(
        session_id=call.at.session_id,
        request_id=request_id_of(call.request, QUESTION_ID),
        answers=call.body.answers,
    )
    await tell(call.runtime, call.at, "question.reply", command)
    return done()


async def _reject(call: Call[Nothing, Nothing]) -> Response:
    request_id = request_id_of(call.request, QUESTION_ID)
    command = QuestionCommand(session_id=call.at.session_id, request_id=request_id)
    await tell(call.runtime, call.at, "question.reject", command)
    return done()


EVERYWHERE = Operation(
    id="question.request.list",
    method="GET",
    path="/api/question/request",
    summary="What waits for an answer, in every session.",
    respond=_everywhere,
    query=LocationQuery,
    body=Nothing,
    answer=LocatedQuestions,
    errors=(ServiceUnavailable,),
)

LIST = Operation(
    id="question.list",
    method="GET",
    path="/api/session/{sessionID}/question",
    summary="What waits for an answer in this session and in those below it.",
    respond=_list,
    query=Nothing,
    body=Nothing,
    answer=QuestionsAnswer,
    errors=(SessionNotFound, ServiceUnavailable),
)

REPLY = Operation(
    id="question.reply",
    method="POST",
    path="/api/session/{sessionID}/question/{requestID}/reply",
    summary="Answer, question by question.",
    respond=_reply,
    query=Nothing,
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
    summary="Dismiss the question: the session stops.",
    respond=_reject,
    query=Nothing,
    body=Nothing,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)
