"""JSON Schemas that others bring: checked once, then as good as a model of our own.

A schema from outside is never allowed to fetch anything or to take for ever: references to other
documents are refused, and so are property patterns; string patterns are left to who wrote them.
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

from fairlead_tools.registry.registry import InvalidTool

SCHEMA_BYTES_MAX: Final = 64 * 1024
ERRORS_MAX: Final = 5
COMPLAINT_LENGTH_MAX: Final = 300
REFERENCES: Final = frozenset({"$ref", "$dynamicRef"})

Schema: TypeAlias = dict[str, Any]


class Document(RootModel[Any]):
    """A value that fits anything; one made by `model` fits its schema."""

    @classmethod
    def complaints(cls, _value: object) -> Iterator[str]:
        """What does not fit, in words."""
        yield from ()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        found = list(islice(self.complaints(self.root), ERRORS_MAX))
        if found:
            raise PydanticCustomError("document", "{said}", {"said": "; ".join(found)})
        return self


def document_model(schema: Schema) -> type[Document]:
    """A model that takes what the schema takes. Raises InvalidTool."""
    try:
        written = json.dumps(schema)
    except (TypeError, ValueError) as error:
        raise InvalidTool(f"the schema is no JSON: {error}") from error
    if len(written) > SCHEMA_BYTES_MAX:
        raise InvalidTool(f"the schema is longer than {SCHEMA_BYTES_MAX} bytes")
    return _compile_model(written)


def input_model(schema: Schema) -> type[Document]:
    """The same for an input, which is an object always. Raises InvalidTool."""
    if schema.get("type") != "object":
        raise InvalidTool('the input schema must say "type": "object"')
    return document_model(schema)


@lru_cache(maxsize=512)
def _compile_model(written: str) -> type[Document]:
    # Only who has such tools pays for the library.
    from jsonschema import Draft202012Validator, SchemaError, ValidationError  # noqa: PLC0415
    from jsonschema.validators import extend  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    schema: Schema = json.loads(written)
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

    def complaints(_cls: type[Document], value: object) -> Iterator[str]:
        try:
            for error in validator.iter_errors(value):
                yield _said(error)
        except Unresolvable as error:
            yield f"the schema refers to nothing: {error}"
        except RecursionError:
            yield "the value or its schema is nested too deeply"

    def _said(error: ValidationError) -> str:
        where = ".".join(str(part) for part in error.absolute_path)
        message = shorten(error.message, COMPLAINT_LENGTH_MAX, placeholder=" …")
        return f"{where}: {message}" if where else message

    def shown(_cls: type[Document], /, *_args: object, **_options: object) -> Schema:
        # As it was written: rendered by the library, its references would be lost.
        return copy.deepcopy(schema)

    return type(
        "Checked",
        (Document,),
        {
            "__module__": __name__,
            "complaints": classmethod(complaints),
            "model_json_schema": classmethod(shown),
        },
    )


def _skip_pattern(*_args: object) -> None:
    """A pattern may be written to take for ever: its own service checks it."""


def _keys(schema: object) -> Iterator[tuple[str, object]]:
    """Every key inside a schema."""
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield from one.items()
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
