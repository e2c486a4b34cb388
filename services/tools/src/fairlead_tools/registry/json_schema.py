"""JSON Schemas of other services: checked once, then used like a model of our own.

A foreign schema must not fetch documents or take unbounded time. References to other documents and
property patterns are refused; string patterns are not checked here but by the service itself.
"""

import copy
import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from textwrap import shorten
from typing import Any, Final, Self, TypeAlias

from pydantic import RootModel, model_validator
from pydantic_core import PydanticCustomError

from fairlead_tools.registry.tool import InvalidTool

SCHEMA_BYTES_MAX: Final = 64 * 1024
ERRORS_MAX: Final = 5
ERROR_LENGTH_MAX: Final = 300
REFERENCES: Final = frozenset({"$ref", "$dynamicRef"})

Schema: TypeAlias = dict[str, Any]


class Document(RootModel[Any]):
    """Any JSON value. A subclass made by `document_model` accepts what its schema accepts."""

    @classmethod
    def violations(cls, _value: object) -> Iterator[str]:
        """Each violation of the schema as a sentence."""
        yield from ()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        violations = list(islice(self.violations(self.root), ERRORS_MAX))
        if violations:
            message = {"message": "; ".join(violations)}
            raise PydanticCustomError("document", "{message}", message)
        return self


def document_model(schema: Schema) -> type[Document]:
    """A model that accepts what the schema accepts. Raises InvalidTool."""
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError) as error:
        raise InvalidTool(f"the schema is no JSON: {error}") from error
    if len(text) > SCHEMA_BYTES_MAX:
        raise InvalidTool(f"the schema is longer than {SCHEMA_BYTES_MAX} bytes")
    return _compile_model(text)


def input_model(schema: Schema) -> type[Document]:
    """The same for an input, which is always an object. Raises InvalidTool."""
    if schema.get("type") != "object":
        raise InvalidTool('the input schema must say "type": "object"')
    return document_model(schema)


@lru_cache(maxsize=512)
def _compile_model(text: str) -> type[Document]:
    # The library loads slowly: only a process with such tools waits for it.
    from jsonschema import Draft202012Validator, SchemaError, ValidationError  # noqa: PLC0415
    from jsonschema.validators import extend  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    schema: Schema = json.loads(text)
    for key, value in _keys(schema):
        if key == "patternProperties":
            raise InvalidTool("patternProperties are not supported")
        if key in REFERENCES and isinstance(value, str) and not value.startswith("#"):
            raise InvalidTool(f"a schema may refer to itself alone, not to {value!r}")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise InvalidTool(f"not a JSON Schema: {error.message}") from error
    kind = extend(Draft202012Validator, {"pattern": _skip_pattern})  # type: ignore[no-untyped-call]
    validator = kind(schema, registry=Registry())

    def violations(_cls: type[Document], value: object) -> Iterator[str]:
        try:
            for error in validator.iter_errors(value):
                yield describe(error)
        except Unresolvable as error:
            yield f"the schema refers to nothing: {error}"
        except RecursionError:
            yield "the value or its schema is nested too deeply"

    def describe(error: ValidationError) -> str:
        where = ".".join(str(part) for part in error.absolute_path)
        message = shorten(error.message, ERROR_LENGTH_MAX, placeholder=" …")
        return f"{where}: {message}" if where else message

    def json_schema(_cls: type[Document], /, *_args: object, **_options: object) -> Schema:
        # The original text: pydantic would lose the references.
        return copy.deepcopy(schema)

    return type(
        "Checked",
        (Document,),
        {
            "__module__": __name__,
            "violations": classmethod(violations),
            "model_json_schema": classmethod(json_schema),
        },
    )


def _skip_pattern(*_args: object) -> None:
    """Skip the check: a hostile pattern could take for ever. The service itself checks it."""


def _keys(schema: object) -> Iterator[tuple[str, object]]:
    """Every key inside a schema."""
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield from value.items()
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
