"""`GET /api/session/{sessionID}/explain`: why a session moves or does not, from the log alone."""

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.incoming import Nothing
from fairlead_gateway.http.operation import Call, Operation
from fairlead_gateway.log.session_state import folded
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound
from fairlead_schema.model import Model
from fairlead_schema.record import RecordError
from fairlead_session.explain import Explanation, Waiting, explain, explain_unreadable


class Explained(Explanation):
    """An explanation as the wire spells it."""

    waiting_on: tuple[Waiting, ...] | None = Field(default=None, alias="waiting_on")


class ExplainAnswer(Model):
    data: Explained


async def _read(call: Call[Nothing, Nothing]) -> Response:
    try:
        found = explain(await folded(call.runtime, call.at))
    except RecordError as error:
        found = explain_unreadable(str(error))
    return answer(ExplainAnswer(data=Explained.model_validate(found.model_dump())))


READ = Operation(
    id="session.explain",
    method="GET",
    path="/api/session/{sessionID}/explain",
    summary="Why the session moves or does not, in one sentence and as values.",
    respond=_read,
    query=Nothing,
    body=Nothing,
    answer=ExplainAnswer,
    # A log that cannot be read has no head to find either, and that is to be explained.
    commands=True,
    errors=(SessionNotFound, ServiceUnavailable),
)
