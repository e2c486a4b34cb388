"""JSON-RPC of A2A: parses requests, calls the tasks, and answers in the words of the protocol."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from importlib.metadata import version
from typing import Any, Final, TypeAlias

import orjson
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    SendMessageRequest,
    SendMessageResponse,
    StreamResponse,
    SubscribeToTaskRequest,
)
from a2a.utils.errors import (
    JSON_RPC_ERROR_CODE_MAP,
    A2AError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    MethodNotFoundError,
    PushNotificationNotSupportedError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message as ProtoMessage
from starlette.responses import Response

from fairlead_gateway.a2a_view.tasks import RpcRequest, Tasks
from fairlead_gateway.a2a_view.translation.agent_card import agent_card
from fairlead_gateway.http.answers import JSON, wire_error
from fairlead_gateway.http.request_parser import read_body
from fairlead_gateway.http.sse import FrameQueue, SlowClient
from fairlead_gateway.routes.events.replay import event_stream
from fairlead_schema.errors import (
    Conflict,
    InvalidRequest,
    MessageNotFound,
    PayloadTooLarge,
    PermissionNotFound,
    QuestionNotFound,
    Refused,
    SessionNotFound,
)

Json: TypeAlias = dict[str, Any]
RpcId: TypeAlias = str | int | None

_PARAMS: Final[dict[str, type[ProtoMessage]]] = {
    "SendMessage": SendMessageRequest,
    "SendStreamingMessage": SendMessageRequest,
    "GetTask": GetTaskRequest,
    "CancelTask": CancelTaskRequest,
    "SubscribeToTask": SubscribeToTaskRequest,
}
_CALLERS_MISTAKE: Final = (
    Conflict,
    InvalidRequest,
    MessageNotFound,
    PermissionNotFound,
    QuestionNotFound,
    SessionNotFound,
)
_VERSION: Final = "a2a-version"


async def serve(request: RpcRequest) -> Response:
    """The answer to one request. Every error but those of identity and limits is one of the protocol."""
    id_: RpcId = None
    try:
        body = await _read(request)
        id_ = _id_of(body)
        method, params = _method_of(body), _params_of(body)
        _check_version(request)
        if method == "GetExtendedAgentCard":
            return _answer(id_, _card(request, is_known=True))
        parsed = _parse(method, params)
        match parsed:
            case SendMessageRequest() if method == "SendStreamingMessage":
                return _stream(request, id_, await Tasks(request).stream(parsed))
            case SendMessageRequest():
                task = await Tasks(request).send(parsed)
                return _answer(id_, MessageToDict(SendMessageResponse(task=task)))
            case GetTaskRequest():
                return _answer(id_, MessageToDict(await Tasks(request).get(parsed.id)))
            case CancelTaskRequest():
                return _answer(id_, MessageToDict(await Tasks(request).cancel(parsed.id)))
            case SubscribeToTaskRequest():
                return _stream(request, id_, await Tasks(request).subscribe(parsed.id))
            case _:
                raise MethodNotFoundError(f"No method {method}")
    except (A2AError, PayloadTooLarge, *_CALLERS_MISTAKE) as error:
        return _refuse(id_, error)


def card_answer(request: RpcRequest) -> Response:
    """The public card: what anybody may know."""
    return Response(orjson.dumps(_card(request, is_known=False)), media_type=JSON)


def _card(request: RpcRequest, *, is_known: bool) -> Json:
    agents = request.runtime.settings.agents
    shown = {
        id_: agent.description
        for id_, agent in agents.items()
        if not agent.hidden and agent.mode != "subagent"
    }
    base = str(request.http.base_url).rstrip("/")
    card = agent_card(base, version("fairlead-gateway"), shown if is_known else None)
    found: Json = MessageToDict(card)
    return found


async def _read(request: RpcRequest) -> Json:
    """The body as a JSON-RPC request. Raises A2AError, PayloadTooLarge."""
    runtime, name = request.runtime, request.principal.name
    runtime.limits.check_bytes(name)
    settings = runtime.settings
    raw = await read_body(
        request.http, bytes_max=settings.body_bytes_max, timeout_s=settings.body_timeout_s
    )
    runtime.limits.take_bytes(name, len(raw))
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise JSONParseError(f"The body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise InvalidRequestError("A request is an object; batches are not supported")
    return body


def _id_of(body: Json) -> RpcId:
    id_ = body.get("id")
    if isinstance(id_, bool) or not isinstance(id_, str | int | None):
        raise InvalidRequestError("id must be a text, a whole number or null")
    return id_


def _method_of(body: Json) -> str:
    method = body.get("method")
    if body.get("jsonrpc") != "2.0":
        raise InvalidRequestError('jsonrpc must be "2.0"')
    if not isinstance(method, str) or not method:
        raise InvalidRequestError("method must be a text")
    if "PushNotificationConfig" in method:
        raise PushNotificationNotSupportedError(
            "Push notifications are not supported: use webhooks of Fairlead, or subscribe"
        )
    if method == "ListTasks":
        raise UnsupportedOperationError("Tasks are not listed: list sessions with GET /api/session")
    return method


def _params_of(body: Json) -> Json:
    params = body.get("params", {})
    if not isinstance(params, dict):
        raise InvalidParamsError("params must be an object")
    return params


def _parse(method: str, params: Json) -> ProtoMessage:
    kind = _PARAMS.get(method)
    if kind is None:
        raise MethodNotFoundError(f"No method {method}")
    try:
        parsed: ProtoMessage = ParseDict(params, kind(), ignore_unknown_fields=True)
    except (ParseError, ValueError, TypeError) as error:
        raise InvalidParamsError(f"params: {error}") from error
    return parsed


def _check_version(request: RpcRequest) -> None:
    wanted = request.http.headers.get(_VERSION, "1.0")
    if wanted.partition(".")[0] != "1":
        raise VersionNotSupportedError(f"Version {wanted} is not supported: use 1.0")


def _stream(
    request: RpcRequest, id_: RpcId, updates: AsyncGenerator[StreamResponse, None]
) -> Response:
    async def put_updates(frames: FrameQueue) -> None:
        try:
            async with aclosing(updates) as items:
                async for item in items:
                    await frames.put(_frame({"id": id_, "result": MessageToDict(item)}))
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


def _answer(id_: RpcId, result: Json) -> Response:
    return Response(orjson.dumps({"jsonrpc": "2.0", "id": id_, "result": result}), media_type=JSON)


def _refuse(id_: RpcId, error: Exception) -> Response:
    body = {"jsonrpc": "2.0", "id": id_, "error": _error_of(error)}
    return Response(orjson.dumps(body), media_type=JSON)


def _error_of(error: Exception) -> Json:
    """An error of JSON-RPC. Our own refusals keep their tag as data."""
    if isinstance(error, A2AError):
        code = JSON_RPC_ERROR_CODE_MAP.get(type(error), JSON_RPC_ERROR_CODE_MAP[InternalError])
        return {"code": code, "message": error.message}
    refusal = wire_error(error, request="POST /a2a")
    kind: type[A2AError] = InternalError
    if isinstance(error, Refused):
        kind = InvalidRequestError if isinstance(error, PayloadTooLarge) else InvalidParamsError
    data = [refusal.model_dump(mode="json", by_alias=True, exclude_none=True)]
    return {"code": JSON_RPC_ERROR_CODE_MAP[kind], "message": refusal.message, "data": data}
