"""JSON-RPC of A2A: calls the tasks, and answers in the words and the version of the caller."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from hashlib import sha256
from importlib.metadata import version
from typing import Any, Final, TypeAlias

import orjson
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
)
from a2a.utils.errors import (
    JSON_RPC_ERROR_CODE_MAP,
    A2AError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    MethodNotFoundError,
)
from starlette.responses import Response

from fairlead_gateway.a2a_view.rpc_body import RpcId, id_of, method_of, read_request
from fairlead_gateway.a2a_view.task_list import list_tasks
from fairlead_gateway.a2a_view.tasks import RpcRequest, Tasks
from fairlead_gateway.a2a_view.translation.agent_card import agent_card
from fairlead_gateway.a2a_view.translation.wire_versions import (
    STREAMING,
    WireVersion,
    card_json,
    page_json,
    version_of,
)
from fairlead_gateway.http.answers import JSON, wire_error
from fairlead_gateway.http.sse import FrameQueue, SlowClient
from fairlead_gateway.routes.events.replay import event_stream
from fairlead_schema.errors import (
    Conflict,
    InvalidRequest,
    MessageNotFound,
    PayloadTooLarge,
    PermissionNotFound,
    QuestionNotFound,
    SessionIsStored,
    SessionNotFound,
)

Json: TypeAlias = dict[str, Any]

_CALLERS_MISTAKE: Final = (
    Conflict,
    InvalidRequest,
    MessageNotFound,
    PayloadTooLarge,
    PermissionNotFound,
    QuestionNotFound,
    SessionIsStored,
    SessionNotFound,
)
_VERSION: Final = "a2a-version"
CARD_LIFE_S: Final = 300


async def serve(request: RpcRequest) -> Response:
    """The answer to one request. Every error but those of identity and limits is one of the protocol."""
    id_: RpcId = None
    try:
        body = await read_request(request)
        id_, method = id_of(body), method_of(body)
        wire = version_of(method, request.http.headers.get(_VERSION))
        if wire is None:
            raise MethodNotFoundError(f"No method {method}")
        return await _call(request, wire, method, id_, body)
    except (A2AError, *_CALLERS_MISTAKE) as error:
        return _json_answer({"id": id_, "error": _error_of(error)})


def card_answer(request: RpcRequest) -> Response:
    """The public card: what anybody may know. It changes with a release alone."""
    body = orjson.dumps(_card(request, is_known=False))
    etag = f'"{sha256(body).hexdigest()[:32]}"'
    headers = {"cache-control": f"max-age={CARD_LIFE_S}", "etag": etag, "vary": "x-forwarded-proto"}
    if request.http.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=JSON, headers=headers)


async def _call(
    request: RpcRequest, wire: WireVersion, method: str, id_: RpcId, body: Json
) -> Response:
    tasks, params = Tasks(request), wire.parse(method, body)
    match params:
        case SendMessageRequest() if method in STREAMING:
            return _stream(request, wire, id_, await tasks.stream(params))
        case SubscribeToTaskRequest():
            return _stream(request, wire, id_, await tasks.subscribe(params.id))
        case SendMessageRequest():
            result = wire.send_result(await tasks.send(params))
        case GetTaskRequest():
            result = wire.task(await tasks.get(params))
        case ListTasksRequest():
            result = page_json(await list_tasks(request, params))
        case CancelTaskRequest():
            result = wire.task(await tasks.cancel(params.id))
        case _:
            result = _card(request, is_known=True)
    return _json_answer({"id": id_, "result": result})


def _card(request: RpcRequest, *, is_known: bool) -> Json:
    agents = request.runtime.settings.agents
    shown = {
        id_: agent.description
        for id_, agent in agents.items()
        if not agent.hidden and agent.mode != "subagent"
    }
    return card_json(
        agent_card(_base_url(request), version("fairlead-gateway"), shown if is_known else None)
    )


def _base_url(request: RpcRequest) -> str:
    """Where the caller reaches this server. A proxy that ends TLS says so."""
    url = request.http.base_url
    forwarded = request.http.headers.get("x-forwarded-proto", "").partition(",")[0].strip()
    url = url.replace(scheme=forwarded) if forwarded in {"http", "https"} else url
    return str(url).rstrip("/")


def _stream(
    request: RpcRequest,
    wire: WireVersion,
    id_: RpcId,
    updates: AsyncGenerator[StreamResponse, None],
) -> Response:
    async def put_updates(frames: FrameQueue) -> None:
        try:
            async with aclosing(updates) as items:
                async for item in items:
                    await frames.put(_frame({"id": id_, "result": wire.update(item)}))
        except (SlowClient, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 - the last frame says why
            await frames.put(_frame({"id": id_, "error": _error_of(error)}))
        # The stream ends when its client has everything.
        frames.close()
        await request.runtime.shutdown.wait()

    stopping = InternalError("The gateway stops: subscribe to the task again")
    farewell = _frame({"id": id_, "error": _error_of(stopping)})
    return event_stream(request, put_updates, farewell=farewell, tells_failure=False)


def _frame(body: Json) -> bytes:
    return b"data: %s\n\n" % orjson.dumps({"jsonrpc": "2.0", **body})


def _json_answer(body: Json) -> Response:
    return Response(orjson.dumps({"jsonrpc": "2.0", **body}), media_type=JSON)


def _error_of(error: Exception) -> Json:
    """An error of JSON-RPC. Our own refusals keep their tag as data."""
    if isinstance(error, A2AError):
        code = JSON_RPC_ERROR_CODE_MAP.get(type(error), JSON_RPC_ERROR_CODE_MAP[InternalError])
        return {"code": code, "message": error.message}
    refusal = wire_error(error, request="POST /a2a")
    kind: type[A2AError] = InternalError
    if isinstance(error, _CALLERS_MISTAKE):
        kind = InvalidRequestError if isinstance(error, PayloadTooLarge) else InvalidParamsError
    data = [refusal.model_dump(mode="json", by_alias=True, exclude_none=True)]
    return {"code": JSON_RPC_ERROR_CODE_MAP[kind], "message": refusal.message, "data": data}
