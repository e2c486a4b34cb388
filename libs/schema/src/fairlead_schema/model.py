"""The base models of all contracts: frozen, snake case in Python, camelCase on the wire."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic_core import to_json


def wire_name(name: str) -> str:
    """Turn `assistant_message_id` into `assistantMessageID`, as clients spell it."""
    first, *rest = name.split("_")
    return first + "".join("ID" if part == "id" else part.capitalize() for part in rest)


class Model(BaseModel):
    """A frozen contract value. A field that is `None` is left out on the wire.

    Its validator is built at its first use: a short command uses few of all models.
    """

    model_config = ConfigDict(
        frozen=True, alias_generator=wire_name, populate_by_name=True, defer_build=True
    )

    def wire(self) -> dict[str, Any]:
        """The JSON-ready form: camelCase, without absent keys."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def wire_bytes(self) -> bytes:
        """The same as JSON, without the dictionaries in between."""
        return to_json(self, by_alias=True, exclude_none=True)


def build_models(base: type[Model] = Model) -> None:
    """Build the validators of all models that are loaded, for a process that serves others."""
    for model in base.__subclasses__():
        # In the order of their definition: a model finds those that it holds built.
        model.model_rebuild()
        build_models(model)


def _refuse_null(value: object) -> object:
    if isinstance(value, Mapping) and None in value.values():
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
