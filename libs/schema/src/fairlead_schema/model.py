"""The shape every contract shares: frozen values, snake case inside, camelCase on the wire."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator


def wire_name(name: str) -> str:
    """Turn `assistant_message_id` into `assistantMessageID`, as clients spell it."""
    first, *rest = name.split("_")
    return first + "".join("ID" if part == "id" else part.capitalize() for part in rest)


class Model(BaseModel):
    """A frozen contract value. Absent keys stay absent: `None` is never written."""

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
"""For a shared value inside an input, which the input's own check does not reach."""


class InputModel(Model):
    """What a caller sends. A `null` is refused, because it means neither a value nor absence."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: object) -> object:
        return _refuse_null(value)
