"""`GET /api/session/{sessionID}/epoch`: what the model is told about its surroundings."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.session_state import load_readable
from fairlead_gateway.log.unreadable import unreadable_place
from fairlead_schema.context import BaselinePart
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound, UnreadablePlace
from fairlead_schema.model import Model
from fairlead_session.state.session import Epoch


class EpochInfo(Model):
    """The context epoch in force. A session that has not taken a turn yet has none."""

    seq: int | None = None
    """The event that began the epoch."""
    baseline: tuple[BaselinePart, ...] = ()
    """The text that introduces the epoch, by source, as every request repeats it."""
    sources: tuple[str, ...] = ()
    """The keys of all sources that the model was last told."""


class EpochAnswer(Model):
    data: EpochInfo
    unreadable: UnreadablePlace | None = None
    """From which event on the log cannot be read. The epoch is the one before it."""


async def _read_epoch(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    readable = await load_readable(request.runtime, request.at)
    epoch, unreadable = readable.versioned.state.epoch, unreadable_place(readable)
    return answer(EpochAnswer(data=_describe(epoch), unreadable=unreadable))


def _describe(epoch: Epoch | None) -> EpochInfo:
    if epoch is None:
        return EpochInfo()
    return EpochInfo(seq=epoch.seq, baseline=epoch.baseline, sources=tuple(sorted(epoch.snapshot)))


READ = Operation(
    id="session.epoch",
    method="GET",
    path="/api/session/{sessionID}/epoch",
    scope="session:read",
    summary="The context epoch in force: its baseline, its sources, and where it began.",
    respond=_read_epoch,
    answer=EpochAnswer,
    errors=(SessionNotFound, ServiceUnavailable),
)
