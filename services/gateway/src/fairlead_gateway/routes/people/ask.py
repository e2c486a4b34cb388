"""`GET /api/ask`: everything that waits for a person, with what the person wants to know first."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.reads.read_model import AskKind, AskWithSession
from fairlead_schema.errors import ServiceUnavailable
from fairlead_schema.ids import SessionId
from fairlead_schema.model import Model
from fairlead_schema.permission import PermissionRequest, QuestionRequest

ASKS_MAX: Final = 500
WORDS_MAX: Final = 400


class ListedAsk(Model):
    """A permission request or a question, and the session that waits for it."""

    kind: AskKind
    request: PermissionRequest | QuestionRequest
    asked_at: int
    expires_at: int | None = None
    """When the ask is rejected by itself; absent: never."""
    title: str
    directory: str
    agent: str | None = None
    """The one that somebody chose, else the one of the newest answer."""
    parent_id: SessionId | None = None
    last_words: str | None = None
    """The end of what the model said last."""


class AsksAnswer(Model):
    data: tuple[ListedAsk, ...]


async def _list(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    stale = await request.is_list_stale()
    found = await request.runtime.read_model.asks_with_sessions(request.tenant, limit=ASKS_MAX)
    expire_s = request.runtime.settings.ask_expire_s
    data = tuple(_describe(row, expire_s) for row in found)
    return answer(AsksAnswer(data=data), stale=stale)


def _describe(row: AskWithSession, expire_s: float | None) -> ListedAsk:
    kind = PermissionRequest if row.kind == "permission" else QuestionRequest
    return ListedAsk(
        kind=row.kind,
        request=kind.model_validate(row.request),
        asked_at=row.asked_at,
        expires_at=None if expire_s is None else row.asked_at + int(expire_s * 1000),
        title=row.title,
        directory=row.directory,
        agent=row.agent or (row.newest or {}).get("agent"),
        parent_id=row.parent_id,
        last_words=_last_words(row.newest),
    )


def _last_words(message: Mapping[str, Any] | None) -> str | None:
    """The end of the newest text that the model has said."""
    blocks = [] if message is None else message.get("content", ())
    texts = [block["text"] for block in blocks if block["type"] == "text" and block["text"]]
    if not texts:
        return None
    words: str = texts[-1]
    return words if len(words) <= WORDS_MAX else f"…{words[-WORDS_MAX:]}"


LIST = Operation(
    id="ask.list",
    method="GET",
    path="/api/ask",
    scope="session:read",
    summary="Permission requests and questions of every session, newest first, with their sessions.",
    respond=_list,
    answer=AsksAnswer,
    errors=(ServiceUnavailable,),
)
