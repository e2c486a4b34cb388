"""The JSON form of a model as a type: it reads what the model writes, and makes no model of it.

A form reads the same JSON as its model and returns what the model would write, or it refuses. It refuses
more than the model: unknown keys, nulls, and a missing key that has a default. Such JSON needs the model.
"""

from functools import cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    TypeAlias,
    Union,
    get_args,
    get_origin,
)

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo
from typing_extensions import TypedDict

# `InputModel` refuses nulls, as every form does.
_HARMLESS_VALIDATORS: Final = frozenset({"_refuse_null_keys"})
_LEAVES: Final = frozenset({bool, float, int, str})


class NoJsonForm(Exception):
    """A model converts what it reads or writes, so that only the model knows its JSON."""


def _refuse_null(value: object) -> object:
    if value is None:
        raise ValueError("a model leaves out a field that is null")
    return value


_NotNull: TypeAlias = Annotated[Any, AfterValidator(_refuse_null)]


@cache
def json_form(kind: type[BaseModel]) -> type:
    """The form of a model: a dictionary with the keys that the model writes, in its order.

    Raises NoJsonForm.
    """
    _require_plain(kind)
    fields = {_wire_key(name, info): _field_form(info) for name, info in kind.model_fields.items()}
    # The keys are known at run time only.
    form: type = TypedDict(f"{kind.__name__}Form", fields)  # type: ignore[misc]
    form.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]
    return form


def _require_plain(kind: type[BaseModel]) -> None:
    own = kind.__pydantic_decorators__
    converters = (
        own.validators,
        own.field_validators,
        own.root_validators,
        own.field_serializers,
        own.model_serializers,
        own.computed_fields,
    )
    if any(converters) or not own.model_validators.keys() <= _HARMLESS_VALIDATORS:
        raise NoJsonForm(f"{kind.__name__} has validators or serialisers of its own")


def _wire_key(name: str, info: FieldInfo) -> str:
    key = info.alias or name
    if {info.serialization_alias, info.validation_alias} - {None, key} or info.exclude:
        raise NoJsonForm(f"field {name} is not read as it is written")
    return key


def _field_form(info: FieldInfo) -> object:
    form: Any = _form(info.annotation)
    form = _NotNull if form is Any else form
    for item in info.metadata:
        form = Annotated[form, item]
    if info.discriminator is not None:
        form = Annotated[form, Field(discriminator=info.discriminator)]
    return NotRequired[form] if info.default is None else form


def _form(annotation: object) -> object:
    """The form of a type inside a model. An optional value is never null in JSON that a model writes."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any or annotation in _LEAVES or origin is Literal:
        return annotation
    if origin is Annotated:
        return Annotated[_form(arguments[0]), *arguments[1:]]
    if origin in {Union, UnionType}:
        options = (_form(item) for item in arguments if item is not NoneType)
        return reduce(or_, options)
    if origin is dict:
        key, value = arguments[0], _form(arguments[1])
        return dict[key, value]  # type: ignore[valid-type]
    if origin is tuple and arguments[1:] == (...,):
        item = _form(arguments[0])
        return list[item]  # type: ignore[valid-type]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return json_form(annotation)
    raise NoJsonForm(f"no JSON form of {annotation}")
