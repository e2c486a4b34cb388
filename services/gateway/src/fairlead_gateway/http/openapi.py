"""The OpenAPI document, generated from the table of operations so that both always agree."""

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from fairlead_gateway.http.operation import AnyOperation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_schema.errors import InternalFailure, InvalidRequest, Refused

Json: TypeAlias = dict[str, Any]

TITLE: Final = "Fairlead"
VERSION: Final = "0.1.0"
_REF: Final = "#/components/schemas/"
_PARAMETER: Final = re.compile(r"{(\w+)}")

# Every operation may refuse its input or fail unexpectedly.
ALWAYS: Final[tuple[type[Refused], ...]] = (InvalidRequest, InternalFailure)

# The fields of each refusal besides tag and message. False marks an optional field.
_FIELDS: Final[dict[str, dict[str, bool]]] = {
    "InvalidRequestError": {"kind": False, "field": False},
    "SessionNotFoundError": {"sessionID": True},
    "MessageNotFoundError": {"sessionID": True, "messageID": True},
    "PermissionNotFoundError": {"requestID": True},
    "QuestionNotFoundError": {"requestID": True},
    "ProviderNotFoundError": {"providerID": True},
    "ToolOutputNotFoundError": {"resource": True},
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
        "components": {"schemas": schemas},
    }


def _operation(item: AnyOperation, refs: Any) -> Json:  # noqa: ANN401 - pydantic's own mapping
    described: Json = {
        "operationId": item.id,
        "summary": item.summary,
        "tags": [item.id.partition(".")[0]],
        "parameters": [*_path_parameters(item.path), *_query_parameters(item.query)],
        "responses": _responses(item, refs),
    }
    if item.body is not EmptyInput:
        schema = refs[item.body, "validation"]
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": _content(schema)},
        }
    return described


def _path_parameters(path: str) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(path)
    ]


def _query_parameters(model: type[BaseModel]) -> list[Json]:
    schema = _without_null(model.model_json_schema(by_alias=True))
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": field}
        for name, field in schema.get("properties", {}).items()
    ]


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
    return responses


def _errors(item: AnyOperation) -> tuple[type[Refused], ...]:
    return tuple(dict.fromkeys((*ALWAYS, *item.errors)))


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
