"""The base models of all contracts: frozen, snake case in Python, camelCase on the wire."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator


def wire_name(name: str) -> str:
    """Turn `assistant_message_id` into `assistantMessageID`, as clients spell it."""
    first, *rest = name.split("_")
    return first + "".join("ID" if part == "id" else part.capitalize() for part in rest)


class Model(BaseModel):
    """A frozen contract value. A field that is `None` is left out on the wire."""

    model_config = ConfigDict(frozen=True, alias_generator=wire_name, populate_by_name=True)

    def wire(self) -> dict[str, Any]:
        """The JSON-ready form: camelCase, without absent keys."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def _refuse_null(value: object) -> object:
    if isinstance(value, Mapping):
        nulls = sorted(str(key) for key, item in value.items() if item is None)
        if nulls:
            raise ValueError(f"null is not a value for {', '.join(nulls)}: leave the key out")
    return value


NoNull = BeforeValidator(_refuse_null)
"""Refuses nulls in a value inside an input, because `InputModel` checks only its own keys."""


class InputModel(Model):
    """A value from a caller. A `null` is refused, because it is neither a value nor absent."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_null_keys(cls, value: object) -> object:
        return _refuse_null(value)
