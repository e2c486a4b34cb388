"""What comes in: query, headers and body become contract values, or a refusal that names the field."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar
from urllib.parse import unquote

from pydantic import BaseModel, BeforeValidator, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, from_json
from starlette.exceptions import HTTPException
from starlette.requests import Request

from fairlead_schema.errors import InvalidRequest, PayloadTooLarge
from fairlead_schema.ids import (
    DEFAULT_TENANT,
    MessageId,
    OutputId,
    PermissionId,
    QuestionId,
    SessionId,
    TenantId,
)
from fairlead_schema.model import InputModel

Kind: TypeAlias = Literal["Params", "Headers", "Query", "Body"]
Value = TypeVar("Value")
Parsed = TypeVar("Parsed", bound=BaseModel)

SESSION_ID: Final[TypeAdapter[SessionId]] = TypeAdapter(SessionId)
OUTPUT_ID: Final[TypeAdapter[OutputId]] = TypeAdapter(OutputId)
MESSAGE_ID: Final[TypeAdapter[MessageId]] = TypeAdapter(MessageId)
PERMISSION_ID: Final[TypeAdapter[str]] = TypeAdapter(PermissionId)
QUESTION_ID: Final[TypeAdapter[str]] = TypeAdapter(QuestionId)
UNSUPPORTED_MEDIA_TYPE: Final = 415
DIGITS_MAX: Final = 16


class Nothing(InputModel):
    """No query, or no body."""


def _decimal(value: object) -> object:
    if not isinstance(value, str):
        return value
    if not (value.isascii() and value.isdigit() and len(value) <= DIGITS_MAX):
        raise ValueError("a whole number in decimal digits is expected")
    return int(value)


Decimal = Annotated[int, BeforeValidator(_decimal, json_schema_input_type=int)]
"""A whole number as query strings spell it."""

Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=4096)]
"""Text to compare with stored text, which never holds a NUL."""


def tenant_of(_request: Request) -> TenantId:
    """Whose sessions these are: there is one tenant until there is authentication."""
    return DEFAULT_TENANT


def session_id_of(request: Request) -> SessionId:
    """The session a path names. Raises InvalidRequest."""
    try:
        return SESSION_ID.validate_python(request.path_params["sessionID"])
    except ValidationError as error:
        raise InvalidRequest("Invalid session ID", field="sessionID") from error


def output_id_of(request: Request) -> OutputId:
    """The managed output a path names. Raises InvalidRequest."""
    try:
        return OUTPUT_ID.validate_python(request.path_params["outputID"])
    except ValidationError as error:
        raise InvalidRequest("Invalid output ID", field="outputID") from error


def message_id_of(request: Request) -> MessageId:
    """The message a path names. Raises InvalidRequest."""
    try:
        return MESSAGE_ID.validate_python(request.path_params["messageID"])
    except ValidationError as error:
        raise InvalidRequest("Invalid message ID", kind="Params", field="messageID") from error


def request_id_of(request: Request, kind: TypeAdapter[str]) -> str:
    """The permission or question a path names. Raises InvalidRequest."""
    try:
        return kind.validate_python(request.path_params["requestID"])
    except ValidationError as error:
        raise InvalidRequest("Invalid request ID", kind="Params", field="requestID") from error


def query_of(request: Request, model: type[Parsed]) -> Parsed:
    """The query string. Raises InvalidRequest."""
    return checked(model, dict(request.query_params), "Query")


async def body_of(request: Request, model: type[Parsed], *, bytes_max: int) -> Parsed:
    """The JSON body. Raises InvalidRequest, TooLarge, or 415 for another content type."""
    if model is Nothing:
        return model()
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type not in {"", "application/json"}:
        raise HTTPException(UNSUPPORTED_MEDIA_TYPE, "Unsupported Media Type: send application/json")
    body = await _bounded(request, bytes_max)
    try:
        raw = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidRequest(f"The body is not JSON: {error}", kind="Body") from error
    return checked(model, raw, "Body")


def checked(model: type[Parsed], raw: object, kind: Kind) -> Parsed:
    """Validate against a contract. Raises InvalidRequest with the first field that does not fit."""
    try:
        return model.model_validate(raw, by_alias=True, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = _field(first)
        text = f"{field}: {first['msg']}" if field else first["msg"]
        raise InvalidRequest(text, kind=kind, field=field) from error


def header_text(request: Request, name: str) -> str | None:
    """A header that may be URI-encoded, decoded."""
    value = request.headers.get(name)
    return None if value is None else unquote(value)


async def _bounded(request: Request, bytes_max: int) -> bytes:
    refusal = PayloadTooLarge(f"The body exceeds {bytes_max} bytes")
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > bytes_max:
        raise refusal
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > bytes_max:
            raise refusal
    return bytes(body)


def _field(error: ErrorDetails) -> str | None:
    path = [str(part) for part in error["loc"]]
    value: Any = error["input"]
    if error["type"] == "value_error" and isinstance(value, Mapping):
        # A refused null is reported for the object that holds it; callers want the key.
        path += sorted(str(key) for key, item in value.items() if item is None)[:1]
    return ".".join(path) or None
