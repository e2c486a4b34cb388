"""The OpenAPI document, generated from the table of operations so that both always agree."""

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from fairlead_gateway.http.operation import AnyOperation
from fairlead_gateway.http.request_parser import (
    ATTACHMENT_ID,
    FILE_PATH,
    MESSAGE_ID,
    OUTPUT_ID,
    PERMISSION_ID,
    PROVIDER_ID,
    QUESTION_ID,
    SESSION_ID,
    EmptyInput,
)
from fairlead_schema.commands.asks import RemoveApproval
from fairlead_schema.errors import (
    Forbidden,
    InternalFailure,
    InvalidRequest,
    LimitReached,
    PayloadTooLarge,
    Refused,
    SessionIsStored,
    Unauthorized,
)
from fairlead_schema.ids import DeliveryId, ScheduleId, WebhookId

Json: TypeAlias = dict[str, Any]

TITLE: Final = "Fairlead"
VERSION: Final = "0.1.0"
_REF: Final = "#/components/schemas/"
_PARAMETER: Final = re.compile(r"{(\w+)}")

# Every operation may refuse its input or a foreign web page, or fail unexpectedly.
ALWAYS: Final[tuple[type[Refused], ...]] = (InvalidRequest, Forbidden, InternalFailure)
# An operation with a scope may refuse its caller.
SCOPED: Final[tuple[type[Refused], ...]] = (Unauthorized, LimitReached)
_SECURITY_SCHEMES: Final[Json] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key or a token."},
    "basic": {"type": "http", "scheme": "basic", "description": "User opencode, password: a key."},
}
_BOUNDS: Final = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum"}
_PATH_IDS: Final[dict[str, TypeAdapter[Any]]] = {
    "sessionID": SESSION_ID,
    "providerID": PROVIDER_ID,
    "path": FILE_PATH,
    "messageID": MESSAGE_ID,
    "outputID": OUTPUT_ID,
    "attachmentID": ATTACHMENT_ID,
    "webhookID": TypeAdapter(WebhookId),
    "deliveryID": TypeAdapter(DeliveryId),
    "scheduleID": TypeAdapter(ScheduleId),
}

# The fields of each refusal besides tag and message. False marks an optional field.
_FIELDS: Final[dict[str, dict[str, bool]]] = {
    "InvalidRequestError": {"kind": False, "field": False},
    "SessionNotFoundError": {"sessionID": True},
    "SessionStoredError": {"sessionID": True, "resource": True},
    "MessageNotFoundError": {"sessionID": True, "messageID": True},
    "PermissionNotFoundError": {"requestID": True},
    "QuestionNotFoundError": {"requestID": True},
    "ProviderNotFoundError": {"providerID": True},
    "ToolOutputNotFoundError": {"resource": True},
    "AttachmentNotFoundError": {"resource": True},
    "ConflictError": {"resource": False},
    "UnknownError": {"ref": False},
    "ServiceUnavailableError": {"service": False},
}


def document(operations: Sequence[AnyOperation]) -> Json:
    """The OpenAPI 3.1 description of these operations."""
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = []
    for item in operations:
        if item.body is not EmptyInput:
            models.append((item.body, "validation"))
        if item.answer is not None:
            models.append((item.answer, "serialization"))
    refs, shared = models_json_schema(models, by_alias=True, ref_template=_REF + "{model}")
    errors = {kind for item in operations for kind in _errors(item)}
    schemas = _without_null(shared.get("$defs", {})) | {
        kind.tag: _error_schema(kind) for kind in sorted(errors, key=lambda kind: kind.tag)
    }
    paths: Json = {}
    for item in operations:
        paths.setdefault(item.path, {})[item.method.lower()] = _operation(item, refs)
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": VERSION},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": _SECURITY_SCHEMES},
    }


def _operation(item: AnyOperation, refs: Any) -> Json:  # noqa: ANN401 - pydantic's own mapping
    described: Json = {
        "operationId": item.id,
        "summary": item.summary,
        "tags": [item.id.partition(".")[0]],
        "security": []
        if item.scope is None
        else [{"bearer": [item.scope]}, {"basic": [item.scope]}],
        "parameters": [*_path_parameters(item.path), *_query_parameters(item.query)],
        "responses": _responses(item, refs),
    }
    if item.body is not EmptyInput:
        schema = refs[item.body, "validation"]
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": _content(schema)},
        }
    elif item.takes != "application/json":
        described["requestBody"] = {
            "required": True,
            "content": {item.takes: _content({"type": "string", "format": "binary"})},
        }
    return described


def _path_parameters(path: str) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _path_schema(path, name)}
        for name in _PARAMETER.findall(path)
    ]


def _path_schema(path: str, name: str) -> Json:
    if name == "requestID":
        return (PERMISSION_ID if "/permission/" in path else QUESTION_ID).json_schema()
    if name in _PATH_IDS:
        return _PATH_IDS[name].json_schema()
    assert name == "id", f"{path}: the parameter {name} has no pattern"
    return {**RemoveApproval.model_json_schema()["properties"]["id"], "pattern": "^[^/]+$"}


def _query_parameters(model: type[BaseModel]) -> list[Json]:
    schema = _without_null(model.model_json_schema(by_alias=True))
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _with_bounds(field)}
        for name, field in schema.get("properties", {}).items()
    ]


def _with_bounds(field: Json) -> Json:
    """The schema of a number in a query. Pydantic writes bounds behind a validator in its own words."""
    return {_BOUNDS.get(key, key): value for key, value in field.items()}


def _responses(item: AnyOperation, refs: Any) -> Json:  # noqa: ANN401 - pydantic's own mapping
    success: Json = {"description": item.summary}
    if item.answer is not None:
        success["content"] = {item.media: _content(refs[item.answer, "serialization"])}
    elif item.media != "application/json":
        success["content"] = {item.media: _content({"type": "string", "format": "binary"})}
    responses: Json = {str(item.status): success}
    by_status: dict[int, list[type[Refused]]] = {}
    for kind in _errors(item):
        by_status.setdefault(kind.status, []).append(kind)
    for status, kinds in sorted(by_status.items()):
        schemas = [{"$ref": _REF + kind.tag} for kind in kinds]
        body = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        responses[str(status)] = {
            "description": ", ".join(kind.tag for kind in kinds),
            "content": {"application/json": _content(body)},
        }
        if status == Unauthorized.status:
            responses[str(status)]["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
    return responses | _plain_responses(item)


def _plain_responses(item: AnyOperation) -> Json:
    """The refusals without JSON: a wrong content type, a body that comes too slowly, a large head."""
    texts = {} if item.method == "GET" else {"415": f"The content type is not {item.takes}."}
    if item.body is not EmptyInput or item.takes != "application/json":
        texts["408"] = "The body did not arrive in time."
    content = {"text/plain": _content({"type": "string"})}
    plain = {status: {"description": text, "content": content} for status, text in texts.items()}
    return plain | {"431": {"description": "The head of the request is too large."}}


def _errors(item: AnyOperation) -> tuple[type[Refused], ...]:
    scoped = () if item.scope is None else SCOPED
    large = () if item.body is EmptyInput else (PayloadTooLarge,)
    stored = (SessionIsStored,) if item.in_session and not item.serves_stored else ()
    return tuple(dict.fromkeys((*ALWAYS, *scoped, *large, *stored, *item.errors)))


def _error_schema(kind: type[Refused]) -> Json:
    fields = _FIELDS.get(kind.tag, {})
    return {
        "type": "object",
        "properties": {
            "_tag": {"const": kind.tag},
            "message": {"type": "string"},
            **{name: {"type": "string"} for name in fields},
        },
        "required": ["_tag", "message", *(name for name, always in fields.items() if always)],
    }


def _content(schema: Json) -> Json:
    return {"schema": schema}


def _without_null(schema: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """The schema without null: on the wire a missing value is an absent key."""
    if isinstance(schema, list):
        return [_without_null(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    cleaned = {
        key: _without_null(value)
        for key, value in schema.items()
        if not (key == "default" and value is None)
    }
    options = cleaned.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options:
        others = [option for option in options if option != {"type": "null"}]
        del cleaned["anyOf"]
        cleaned |= others[0] if len(others) == 1 else {"anyOf": others}
    return cleaned
