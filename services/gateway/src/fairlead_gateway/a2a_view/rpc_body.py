"""The body of a JSON-RPC request, read within the limits of its caller."""

from typing import Any, TypeAlias

import orjson
from a2a.utils.errors import (
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    PushNotificationNotSupportedError,
)

from fairlead_gateway.a2a_view.tasks import RpcRequest
from fairlead_gateway.http.request_parser import read_body

Json: TypeAlias = dict[str, Any]
RpcId: TypeAlias = str | int | None


async def read_request(request: RpcRequest) -> Json:
    """The body as an object. Raises A2AError, PayloadTooLarge."""
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


def id_of(body: Json) -> RpcId:
    """The id that the answer repeats. Raises InvalidRequestError."""
    id_ = body.get("id")
    if isinstance(id_, bool) or not isinstance(id_, str | int | None):
        raise InvalidRequestError("id must be a text, a whole number or null")
    return id_


def method_of(body: Json) -> str:
    """The method. Raises A2AError for what is no request, or is never served."""
    method = body.get("method")
    if body.get("jsonrpc") != "2.0":
        raise InvalidRequestError('jsonrpc must be "2.0"')
    if not isinstance(method, str) or not method:
        raise InvalidRequestError("method must be a text")
    if not isinstance(body.get("params", {}), dict):
        raise InvalidParamsError("params must be an object")
    if "pushnotificationconfig" in method.lower():
        raise PushNotificationNotSupportedError(
            "Push notifications are not supported: use webhooks of Fairlead, or subscribe"
        )
    return method
