"""Parses path, query, headers and body into contract values, or refuses with the field's name."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar
from urllib.parse import unquote

from pydantic import BaseModel, BeforeValidator, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, from_json
from starlette.exceptions import HTTPException
from starlette.requests import Request

from fairlead_gateway.http.origin_rules import browser_headers
from fairlead_schema.commands.location_files import FilePath
from fairlead_schema.errors import InvalidRequest, PayloadTooLarge
from fairlead_schema.ids import (
    AttachmentId,
    MessageId,
    OutputId,
    PermissionId,
    QuestionId,
    SessionId,
)
from fairlead_schema.model import InputModel

RequestPart: TypeAlias = Literal["Params", "Headers", "Query", "Body"]
Value = TypeVar("Value")
Parsed = TypeVar("Parsed", bound=BaseModel)

SESSION_ID: Final[TypeAdapter[SessionId]] = TypeAdapter(SessionId)
OUTPUT_ID: Final[TypeAdapter[OutputId]] = TypeAdapter(OutputId)
FILE_PATH: Final[TypeAdapter[str]] = TypeAdapter(FilePath)
ATTACHMENT_ID: Final[TypeAdapter[AttachmentId]] = TypeAdapter(AttachmentId)
MESSAGE_ID: Final[TypeAdapter[MessageId]] = TypeAdapter(MessageId)
PERMISSION_ID: Final[TypeAdapter[str]] = TypeAdapter(PermissionId)
PROVIDER_ID: Final[TypeAdapter[str]] = TypeAdapter(
    Annotated[str, StringConstraints(pattern=r"^[^/\x00]+$", max_length=256)]
)
QUESTION_ID: Final[TypeAdapter[str]] = TypeAdapter(QuestionId)
REQUEST_TIMEOUT: Final = 408
UNSUPPORTED_MEDIA_TYPE: Final = 415
DIGITS_MAX: Final = 16


class EmptyInput(InputModel):
    """The contract of an operation without a query or without a body."""


def _parse_whole_number(value: object) -> object:
    if not isinstance(value, str):
        return value
    if not (value.isascii() and value.isdigit() and len(value) <= DIGITS_MAX):
        raise ValueError("a whole number in decimal digits is expected")
    return int(value)


WholeNumber = Annotated[int, BeforeValidator(_parse_whole_number, json_schema_input_type=int)]
"""A whole number in the decimal digits of a query string."""

Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=4096)]
"""Text that is compared with stored text. Stored text never holds a NUL."""
TEXT: Final[TypeAdapter[str]] = TypeAdapter(Text)


def session_id_of(request: Request) -> SessionId:
    """The session that the path names. Raises InvalidRequest."""
    try:
        return SESSION_ID.validate_python(request.path_params["sessionID"])
    except ValidationError as error:
        raise InvalidRequest("Invalid session ID", field="sessionID") from error


def output_id_of(request: Request) -> OutputId:
    """The managed output that the path names. Raises InvalidRequest."""
    try:
        return OUTPUT_ID.validate_python(request.path_params["outputID"])
    except ValidationError as error:
        raise InvalidRequest("Invalid output ID", field="outputID") from error


def file_path_of(request: Request) -> str:
    """The path of a file that the rest of the path names. Raises InvalidRequest."""
    try:
        return FILE_PATH.validate_python(request.path_params["path"])
    except ValidationError as error:
        raise InvalidRequest("Invalid path", kind="Params", field="path") from error


def attachment_id_of(request: Request) -> AttachmentId:
    """The stored attachment that the path names. Raises InvalidRequest."""
    try:
        return ATTACHMENT_ID.validate_python(request.path_params["attachmentID"])
    except ValidationError as error:
        raise InvalidRequest("Invalid attachment ID", field="attachmentID") from error


def message_id_of(request: Request) -> MessageId:
    """The message that the path names. Raises InvalidRequest."""
    try:
        return MESSAGE_ID.validate_python(request.path_params["messageID"])
    except ValidationError as error:
        raise InvalidRequest("Invalid message ID", kind="Params", field="messageID") from error


def request_id_of(request: Request, id_type: TypeAdapter[str]) -> str:
    """The permission or question that the path names. Raises InvalidRequest."""
    try:
        return id_type.validate_python(request.path_params["requestID"])
    except ValidationError as error:
        raise InvalidRequest("Invalid request ID", kind="Params", field="requestID") from error


def query_of(request: Request, model: type[Parsed]) -> Parsed:
    """The query string. Raises InvalidRequest."""
    return validate(model, dict(request.query_params), "Query")


def check_content_type(request: Request, expected: str = "application/json") -> None:
    """Refuse a request that a form of a web page could send. Raises 415.

    Only a caller that is no browser may leave the content type out.
    """
    if request.method == "GET":
        return
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    may_be_missing = not browser_headers(request.scope["headers"]).from_browser
    if content_type != expected and (content_type or not may_be_missing):
        raise HTTPException(UNSUPPORTED_MEDIA_TYPE, f"Unsupported Media Type: send {expected}")


async def read_body(request: Request, *, bytes_max: int, timeout_s: float) -> bytes:
    """The whole body. Raises PayloadTooLarge, or 408 if the body does not arrive in time."""
    refusal = PayloadTooLarge(f"The body exceeds {bytes_max} bytes")
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > bytes_max:
        raise refusal
    body = bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            async for chunk in request.stream():
                body += chunk
                if len(body) > bytes_max:
                    raise refusal
    except TimeoutError:
        text = f"The body did not arrive in {timeout_s:g} s"
        raise HTTPException(REQUEST_TIMEOUT, text, {"connection": "close"}) from None
    return bytes(body)


def parse_body(body: bytes, model: type[Parsed]) -> Parsed:
    """The JSON of a body as a value. Raises InvalidRequest."""
    try:
        raw = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidRequest(f"The body is not JSON: {error}", kind="Body") from error
    return validate(model, raw, "Body")


def validate(model: type[Parsed], raw: object, part: RequestPart) -> Parsed:
    """Validate a part of the request. Raises InvalidRequest with the first invalid field."""
    try:
        return model.model_validate(raw, by_alias=True, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = _field(first)
        text = f"{field}: {first['msg']}" if field else first["msg"]
        raise InvalidRequest(text, kind=part, field=field) from error


def header_text(request: Request, name: str) -> str | None:
    """The text of a header that clients may send URI-encoded. Raises InvalidRequest."""
    value = request.headers.get(name)
    if value is None:
        return None
    try:
        return TEXT.validate_python(unquote(value))
    except ValidationError as error:
        reason = f"{name}: {error.errors(include_url=False)[0]['msg']}"
        raise InvalidRequest(reason, kind="Headers", field=name) from error


def _field(error: ErrorDetails) -> str | None:
    path = [str(part) for part in error["loc"]]
    value: Any = error["input"]
    if error["type"] == "value_error" and isinstance(value, Mapping):
        # Pydantic reports a refused null for the object that holds it. Callers want the key.
        path += sorted(str(key) for key, item in value.items() if item is None)[:1]
    return ".".join(path) or None
