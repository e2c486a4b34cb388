"""Decodes the arguments of a call. Unknown fields are left out; everything else that is wrong is refused.

Models often invent fields. Such a call is still clear, so it runs, and its result names the fields.
"""

import copy
from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fairlead_tools.registry.json_schema import Document

EXTRA_FIELD: Final = "extra_forbidden"
SHOWN_LENGTH_MAX: Final = 200
FIELDS_SHOWN_MAX: Final = 20


class InvalidArguments(Exception):
    """Arguments that a tool cannot take. The message says what is wrong and what was expected."""


class CallInput(NamedTuple):
    """The decoded input of a call, and the fields that the tool does not have."""

    value: BaseModel
    ignored: tuple[str, ...] = ()


def decode_input(model: type[BaseModel], arguments: Mapping[str, Any]) -> CallInput:
    """The input of a call. Raises InvalidArguments, and whatever a validator of the tool raises."""
    _check_object(model, arguments)
    known, ignored = _split_document(model, arguments)
    try:
        return CallInput(model.model_validate(known), ignored)
    except ValidationError as error:
        errors = _details(error)
    unknown = [item["loc"] for item in errors if item["type"] == EXTRA_FIELD]
    wrong = [item for item in errors if item["type"] != EXTRA_FIELD]
    pruned = None if wrong else _without(known, unknown)
    if pruned is None:
        raise InvalidArguments(_describe(wrong or errors))
    try:
        return CallInput(model.model_validate(pruned), tuple(map(_path, unknown)))
    except ValidationError as error:
        raise InvalidArguments(describe_errors(error)) from error


def describe_errors(error: ValidationError) -> str:
    """The validation errors in one line, without links and values."""
    return _describe(_details(error))


def ignored_note(fields: Sequence[str]) -> str:
    """A sentence for the model about fields that its tool does not have."""
    shown = ", ".join(fields[:FIELDS_SHOWN_MAX])
    return f"[Ignored unknown arguments: {shorten(shown, SHOWN_LENGTH_MAX, placeholder=' …')}]"


def _check_object(model: type[BaseModel], arguments: Mapping[str, Any]) -> None:
    """Refuse text or a list in place of the arguments. The log holds such a value as `value`."""
    if arguments.keys() != {"value"} or isinstance(arguments["value"], dict):
        return
    fields = model.model_json_schema().get("properties", {})
    if fields and "value" not in fields:
        shown = shorten(repr(arguments["value"]), SHOWN_LENGTH_MAX, placeholder=" …")
        expected = ", ".join(fields)
        raise InvalidArguments(
            f"the arguments are not a JSON object: {shown}. Send one object with these fields: {expected}"
        )


def _split_document(
    model: type[BaseModel], arguments: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The fields that a foreign schema names, and those that it does not allow."""
    if not issubclass(model, Document):
        return dict(arguments), ()
    schema = model.model_json_schema()
    fields = schema.get("properties", {})
    if schema.get("additionalProperties") is not False or not isinstance(fields, dict):
        return dict(arguments), ()
    known = {name: value for name, value in arguments.items() if name in fields}
    return known, tuple(name for name in arguments if name not in fields)


def _without(
    arguments: Mapping[str, Any], places: Sequence[tuple[int | str, ...]]
) -> dict[str, Any] | None:
    """A copy without the values at these places; None if a place cannot be found."""
    pruned = copy.deepcopy(dict(arguments))
    for *parents, name in places:
        holder: Any = pruned
        try:
            for step in parents:
                holder = holder[step]
            del holder[name]
        except (LookupError, TypeError):
            return None
    return pruned


def _details(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False, include_input=False, include_context=False)


def _describe(errors: Sequence[ErrorDetails]) -> str:
    return "; ".join(
        ": ".join(part for part in (_path(item["loc"]), item["msg"]) if part) for item in errors
    )


def _path(place: tuple[int | str, ...]) -> str:
    return ".".join(map(str, place))
