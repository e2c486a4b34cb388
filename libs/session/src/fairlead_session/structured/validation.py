"""Checks a value against a JSON Schema of the draft 2020-12, without other documents and in bounded time."""

import json
from collections.abc import Hashable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from fairlead_schema.json_depth import is_too_deep

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

VIOLATIONS_MAX: Final = 5
LENGTH_MAX: Final = 300


class SchemaDefect(Exception):
    """The schema cannot be used. The message says why."""


def find_violations(schema: dict[str, Any], value: object) -> tuple[str, ...]:
    """Where a value does not fit, at most a few sentences. Empty: the value fits."""
    if is_too_deep(value):
        return ("the value is nested too deeply",)
    try:
        errors = compile_schema(schema).iter_errors(value)
        return tuple(_describe(error) for error in islice(errors, VIOLATIONS_MAX))
    except RecursionError:
        return ("the value is nested too deeply",)


def compile_schema(schema: dict[str, Any]) -> "Draft202012Validator":
    """The validator of a schema. Raises SchemaDefect."""
    return _compile(json.dumps(schema))


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> SchemaValidator:
    """A pattern for an engine whose time grows linearly with the text. Raises SchemaDefect."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError as error:
        raise SchemaDefect(
            f"the pattern {shorten(pattern, 80)!r} is not supported: no look-around, no back references"
        ) from error


@lru_cache(maxsize=64)
def _compile(text: str) -> "Draft202012Validator":
    # The library loads slowly: only a process that uses it waits for it.
    from jsonschema import Draft202012Validator  # noqa: PLC0415
    from jsonschema.exceptions import SchemaError as NoSchema  # noqa: PLC0415
    from jsonschema.validators import extend  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415

    schema = json.loads(text)
    try:
        Draft202012Validator.check_schema(schema)
    except NoSchema as error:
        raise SchemaDefect(f"not a JSON Schema: {shorten(error.message, LENGTH_MAX)}") from error
    checks = {
        "pattern": _check_pattern,
        "uniqueItems": _check_unique,
        "multipleOf": _check_multiple,
    }
    kind = extend(Draft202012Validator, checks)  # type: ignore[no-untyped-call]
    # An empty registry fetches nothing.
    validator: Draft202012Validator = kind(schema, registry=Registry())
    return validator


def _check_pattern(
    _validator: object, pattern: str, value: object, _schema: object
) -> Iterator[Any]:
    from jsonschema import ValidationError as Violation  # noqa: PLC0415

    if not isinstance(value, str):
        return
    try:
        compile_pattern(pattern).validate_python(value)
    except ValidationError:
        yield Violation(f"{value!r} does not match {pattern!r}")


def _check_unique(
    _validator: object, wanted: object, value: object, _schema: object
) -> Iterator[Any]:
    """The library compares objects pair by pair: seconds for a few thousand of them."""
    from jsonschema import ValidationError as Violation  # noqa: PLC0415

    if not wanted or not isinstance(value, list):
        return
    if len({_identity(item) for item in value}) < len(value):
        yield Violation("its items are not unique")


def _identity(value: object) -> Hashable:
    """A value for sets: equal for equal JSON, where 1 is 1.0 and not true."""
    match value:
        case dict():
            return frozenset((key, _identity(item)) for key, item in value.items())
        case list():
            return tuple(_identity(item) for item in value)
        case bool():
            return (bool, value)
        case _:
            assert isinstance(value, Hashable), "JSON has no other values"
            return value


def _check_multiple(
    _validator: object, factor: float, value: object, _schema: object
) -> Iterator[Any]:
    """The library fails at numbers that no float can hold, and at those that are none."""
    from jsonschema import ValidationError as Violation  # noqa: PLC0415

    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if not _is_multiple(value, factor):
        yield Violation(f"{shorten(repr(value), 80)} is not a multiple of {factor}")


def _is_multiple(value: float, factor: float) -> bool:
    if isinstance(value, int) and isinstance(factor, int):
        return value % factor == 0
    with suppress(OverflowError, ValueError):
        quotient = value / factor
        return quotient == int(quotient)
    with suppress(OverflowError, ValueError):
        return Fraction(value) % Fraction(factor) == 0
    return False


def _describe(error: Any) -> str:  # noqa: ANN401 - the library has no type for it here
    where = ".".join(str(part) for part in error.absolute_path)
    message = shorten(error.message, LENGTH_MAX, placeholder=" …")
    return f"{where}: {message}" if where else message
