"""Changed copies of frozen values. The fold makes them more often than anything else.

The standard library calls the constructor with every field, and pydantic copies and validates. Both
took most of the time of folding an event. Frozen values are safe to share, so these copies share.
"""

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

__all__ = ["from_fields", "replace", "replace_fields"]

Value = TypeVar("Value")
ModelType = TypeVar("ModelType", bound=BaseModel)

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


def replace_fields(model: ModelType, **changes: Any) -> ModelType:  # noqa: ANN401 - its fields
    """A model with changed fields, as `model_copy` makes it: the new values are not validated."""
    changed: ModelType = _new(type(model))
    _set(changed, "__dict__", model.__dict__ | changes)
    _set(changed, "__pydantic_fields_set__", model.__pydantic_fields_set__ | changes.keys())
    _set(changed, "__pydantic_extra__", None)
    _set(changed, "__pydantic_private__", None)
    return changed


_new = object.__new__
_set = object.__setattr__
