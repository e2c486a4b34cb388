"""New frozen values and changed copies of them. The fold makes them more often than anything else.

The standard library calls the constructor with every field, and pydantic copies and validates. Both
took most of the time of folding an event. Frozen values are safe to share, so these copies share.
"""

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from pydantic import BaseModel

__all__ = ["build_model", "from_fields", "replace", "replace_fields"]

Value = TypeVar("Value")
ModelType = TypeVar("ModelType", bound=BaseModel)
Fields = ParamSpec("Fields")

if TYPE_CHECKING:
    # The type checker knows the fields of `dataclasses.replace`.
    from dataclasses import replace
else:

    def replace(value: Any, /, **changes: Any) -> Any:  # noqa: ANN401 - of any such class
        """A copy of the value with the changed fields."""
        try:
            fields = value.__dict__
        except AttributeError:
            # A class with slots.
            return dataclasses.replace(value, **changes)
        changed = _new(value.__class__)
        _set(changed, "__dict__", fields | changes)
        return changed


def from_fields(kind: type[Value], fields: dict[str, Any]) -> Value:
    """The value of a class without slots that has all these fields."""
    value: Value = _new(kind)
    _set(value, "__dict__", fields)
    return value


def build_model(
    kind: Callable[Fields, ModelType], /, *_: Fields.args, **fields: Fields.kwargs
) -> ModelType:
    """A new model of values that were validated before, such as the fields of an event.

    The type checker checks the fields as if this were the constructor. Nothing validates them. All
    fields count as set, so that such models and their changed copies share one set of names.
    """
    defaults, names = _defaults(kind)
    model: ModelType = _new(kind)
    return _fill(model, defaults | fields, names)


def replace_fields(model: ModelType, /, **changes: Any) -> ModelType:  # noqa: ANN401 - its fields
    """A model with changed fields, as `model_copy` makes it: the new values are not validated."""
    changed: ModelType = _new(type(model))
    names = model.__pydantic_fields_set__
    if not names.issuperset(changes):
        names = {*names, *changes}
    return _fill(changed, model.__dict__ | changes, names)


def _fill(model: ModelType, fields: dict[str, Any], names: set[str]) -> ModelType:
    """Give an empty model its fields, and the names of those that count as set."""
    _set_fields(model, fields)
    _set_names(model, names)
    _set_extra(model, None)
    _set_private(model, None)
    return model


@cache
def _defaults(kind: Any) -> tuple[dict[str, Any], set[str]]:  # noqa: ANN401 - the class of a model
    """The fields of a model in their order, each with its default if it has one, and their names."""
    fields = kind.model_fields
    defaults = {
        name: field.get_default(call_default_factory=True) for name, field in fields.items()
    }
    return defaults, set(fields)


_new: Final[Any] = object.__new__
_set = object.__setattr__
# Setters of the slots of every model. They do not ask whether the model is frozen.
_set_fields = BaseModel.__dict__["__dict__"].__set__
_set_names = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_set_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
_set_private = BaseModel.__dict__["__pydantic_private__"].__set__
