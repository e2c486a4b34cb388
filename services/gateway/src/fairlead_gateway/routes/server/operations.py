"""`GET /api/operations`: how the installation does, for those who run it."""

from importlib.metadata import version
from typing import Final

from pydantic_core import to_json
from starlette.responses import Response

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.streams import log_stream
from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.operations import (
    AskOperations,
    OperationsReport,
    ServiceInstance,
    ShownDeadLetter,
    StreamState,
)
from fairlead_schema.errors import Refused, ServiceUnavailable
from fairlead_schema.ids import SessionId
from fairlead_schema.model import Model
from fairlead_schema.subjects import SHARDS
from fairlead_service.ids import now_ms

LISTED_MAX: Final = 50
RECENT_MS: Final = 24 * 3600 * 1000


class ShardState(Model):
    """One shard of the log, and how far the read models are behind it."""

    shard: int
    head: int
    projected: int
    messages: int
    bytes: int


class BrokenInfo(Model):
    session_id: SessionId
    reason: str
    time: int


class RecoveryInfo(Model):
    session_id: SessionId
    time: int
    action: str
    detail: str


class Operations(Model):
    """Services, streams, shards, and the sessions of the caller's tenant that need a look."""

    version: str
    log_level: int | None = None
    metrics_url: str | None = None
    """Where the operator of this installation looks at metrics."""
    services: tuple[ServiceInstance, ...]
    streams: tuple[StreamState, ...]
    shards: tuple[ShardState, ...]
    dead_letters: tuple[ShownDeadLetter, ...]
    broken: tuple[BrokenInfo, ...]
    recoveries: tuple[RecoveryInfo, ...]


class OperationsAnswer(Model):
    data: Operations


async def _read(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    read_model, tenant = request.runtime.read_model, request.tenant
    report = await _ask_projector(request)
    checkpoints = await read_model.checkpoints()
    broken = await read_model.broken_sessions(tenant, limit=LISTED_MAX)
    recent = now_ms() - RECENT_MS
    recoveries = await read_model.recoveries(tenant, since=recent, limit=LISTED_MAX)
    streams = {stream.name: stream for stream in report.streams}
    shards = [(shard, streams.get(log_stream(shard))) for shard in range(SHARDS)]
    data = Operations(
        version=version("fairlead-service"),
        log_level=request.runtime.nats().status.current.level,
        metrics_url=request.runtime.settings.metrics_url or None,
        services=report.services,
        streams=tuple(one for one in report.streams if not one.name.startswith("LOG-")),
        shards=tuple(
            _shard(number, stream, checkpoints.get(number, 0))
            for number, stream in shards
            if stream is not None
        ),
        dead_letters=report.dead_letters,
        broken=tuple(BrokenInfo(**one._asdict()) for one in broken),
        recoveries=tuple(RecoveryInfo(**one._asdict()) for one in recoveries),
    )
    return answer(OperationsAnswer(data=data))


def _shard(number: int, stream: StreamState, projected: int) -> ShardState:
    return ShardState(
        shard=number,
        head=stream.last_position,
        projected=projected,
        messages=stream.messages,
        bytes=stream.bytes,
    )


async def _ask_projector(request: ApiRequest[EmptyInput, EmptyInput]) -> OperationsReport:
    """The report of the servers. Raises ServiceUnavailable while the projector does not answer."""
    runtime = request.runtime
    try:
        reply = await runtime.nats().requests.request(
            subjects.operations(request.tenant),
            to_json(AskOperations().wire()),
            timeout_s=runtime.settings.request_timeout_s,
        )
    except LogError as error:
        text = "The projector did not answer: try again when it runs"
        raise ServiceUnavailable(text, service="projector") from error
    result = CommandAnswer[OperationsReport].model_validate_json(reply)
    if result.error is not None:
        raise Refused.from_wire(result.error)
    assert result.data is not None, "a question is answered with data or an error"
    return result.data


READ = Operation(
    id="operations.read",
    method="GET",
    path="/api/operations",
    scope="ops",
    summary="Services, shards and their lag, streams, dead letters, broken and recovered sessions.",
    respond=_read,
    answer=OperationsAnswer,
    errors=(ServiceUnavailable,),
)
